"""The keywords of a session: which are the session's own, which go to the model, which are mistakes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

from predsession.errors import SourceError
from predsession.http.retry import RetryPolicy
from predsession.wire.jsontypes import JSON

OnError = Literal["raise", "skip", "yield"]


class Api(Protocol):
    """What is read of an ``api`` object; a Supervisely ``Api`` fits."""

    @property
    def token(self) -> str | None:
        """The token to send."""

    @property
    def retry_count(self) -> int | None:
        """How many tries a call gets."""


ID_SOURCES = (
    "image_id", "image_ids", "video_id", "video_ids", "dataset_id", "dataset_ids",
    "project_id", "project_ids",
)  # fmt: skip
"""Sources that only a server with a library, or a platform, can resolve."""

NOT_YET = frozenset(
    {
        *ID_SOURCES, "start_frame", "start_frame_index", "num_frames", "frames_count", "end_frame",
        "duration", "stride", "step", "direction", "upload_mode", "iou_merge_threshold", "output_project_id",
        "cache_project_on_model", "cache_datasets_on_model", "model_prediction_suffix", "resume", "encoding",
    }
)  # fmt: skip
"""The ancestor's names, and ours, whose work is still to come: never the model's settings."""


def merge_settings(
    given: Iterable[Mapping[str, JSON] | None], named: Mapping[str, JSON], loose: Mapping[str, object]
) -> dict[str, JSON]:
    """Put the model's settings together.

    Parameters
    ----------
    given : iterable of mapping or None
        ``settings=`` and its alias; later ones win.
    named : mapping
        ``conf=`` and ``classes=``; None values are left out.
    loose : mapping
        Keywords that are none of the session's own; they win over all.

    Returns
    -------
    dict
        JSON, ready to be sent.

    Raises
    ------
    TypeError
        If settings are no mapping, or a value cannot be sent as JSON.
    """
    merged: dict[str, object] = {}
    for settings in given:
        if settings is not None and not isinstance(settings, Mapping):
            raise TypeError(f"settings must be a dict, not {type(settings).__name__}")
        merged.update(settings or {})
    merged.update({name: value for name, value in named.items() if value is not None})
    merged.update(loose)
    for name, value in merged.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise TypeError(f"setting {name!r} cannot be sent as JSON: {error}") from None
    result: dict[str, JSON] = json.loads(json.dumps(merged))
    return result


def check_keywords(loose: Mapping[str, object], own: Iterable[str]) -> None:
    """Refuse what cannot be meant for the model.

    Parameters
    ----------
    loose : mapping
        Keywords that are none of the session's own.
    own : iterable of str
        The session's own keywords.

    Raises
    ------
    SourceError
        For a keyword whose work is still to come.
    TypeError
        For one that is a letter off one of ours, or whose value is no plain str, int, float or bool.
    """
    known = sorted({*own, *NOT_YET})
    for name, value in loose.items():
        if name in NOT_YET:
            raise SourceError(f"{name}= is not supported yet: this version runs images")
        meant = next((other for other in known if _is_near(name, other)), None)
        if meant is not None:
            raise TypeError(f"unknown keyword {name!r}; did you mean {meant!r}?")
        if not isinstance(value, str | int | float):
            raise TypeError(
                f"unknown keyword {name!r} of type {type(value).__name__}; to send it to the model as a "
                f"setting, pass settings={{{name!r}: ...}}"
            )


def check_one_source(given: Mapping[str, object]) -> None:
    """Make sure that exactly one source was passed, and one that works here.

    Parameters
    ----------
    given : mapping
        The source keywords and their values.

    Raises
    ------
    SourceError
        If none or several were given, or an id.
    """
    passed = [name for name, value in given.items() if value is not None]
    if not passed:
        raise SourceError(f"nothing to run: pass input=, or one of {', '.join(ID_SOURCES[::2])}")
    if len(passed) > 1:
        raise SourceError(f"pass one source, not {' and '.join(passed)}")
    if passed[0] != "input":
        raise SourceError(f"{passed[0]}= is not supported yet: pass input= with images")


def listed(classes: Sequence[str] | None) -> list[JSON] | None:
    """Return the classes as a list; a single name is taken for one class, not for its letters."""
    if classes is None:
        return None
    return [classes] if isinstance(classes, str) else list(classes)


def retry_policy(api: Api | None) -> RetryPolicy:
    """Return the policy, bounded as the ancestor's is where an api is given."""
    tries = getattr(api, "retry_count", None)
    if not isinstance(tries, int):
        return RetryPolicy()
    return RetryPolicy(tries=max(1, tries), bounded_connect=True)


def _is_near(name: str, other: str) -> bool:
    """Whether two names, of five letters or more, are one letter apart, or two neighbours swapped."""
    if min(len(name), len(other)) < 5 or abs(len(name) - len(other)) > 1 or name == other:
        return False
    start = next((i for i, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), None)
    if start is None:
        return True
    rest, rest_other = name[start:], other[start:]
    swapped = rest[1::-1] + rest[2:] == rest_other
    return swapped or rest[1:] == rest_other[1:] or rest[1:] == rest_other or rest == rest_other[1:]
