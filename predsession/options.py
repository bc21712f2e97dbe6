"""The keywords of a session: which are its own, which go to the model, which are slips of the finger."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import numpy as np

from predsession.errors import SourceError
from predsession.inputs.frames import NAMES
from predsession.wire.jsontypes import JSON

FRAME_NAMES = NAMES
"""What chooses frames of a clip."""

ID_SOURCES = (
    "image_id", "image_ids", "video_id", "video_ids", "dataset_id", "dataset_ids",
    "project_id", "project_ids",
)  # fmt: skip
"""Sources that only a server with a library, or a platform, can resolve."""

ID_OPTIONS = (
    "upload_mode", "iou_merge_threshold", "output_project_id", "cache_project_on_model",
    "cache_datasets_on_model", "model_prediction_suffix",
)  # fmt: skip
"""What a job by ids does beside predicting."""


def take_keywords(
    loose: dict[str, object], names: Iterable[str], given: Mapping[str, object] | None = None
) -> dict[str, object]:
    """Take keywords out of the loose ones, and those that have a place of their own in the signature."""
    given = given or {}
    return {name: loose.pop(name, None) if name not in given else given[name] for name in names}


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
    return {name: _as_json(name, value) for name, value in merged.items()}


def _as_json(name: str, value: object) -> JSON:
    """Return a setting as JSON; numpy's numbers and arrays are taken for what they hold."""
    try:
        result: JSON = json.loads(json.dumps(value, allow_nan=False, default=_plain))
    except (TypeError, ValueError) as error:
        raise TypeError(f"setting {name!r} cannot be sent as JSON: {error}") from None
    return result


def _plain(value: object) -> object:
    """Return what a numpy value holds."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no JSON")


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
    TypeError
        For one that is a letter off one of ours, or whose value is no plain str, int, float or bool.
    """
    known = sorted({*own, *FRAME_NAMES, *ID_SOURCES, *ID_OPTIONS})
    for name, value in loose.items():
        meant = next((other for other in known if _is_near(name, other)), None)
        if meant is not None:
            raise TypeError(f"unknown keyword {name!r}; did you mean {meant!r}?")
        if not isinstance(value, str | int | float | np.bool_ | np.number):
            raise TypeError(
                f"unknown keyword {name!r} of type {type(value).__name__}; to send it to the model as a "
                f"setting, pass settings={{{name!r}: ...}}"
            )


def check_one_source(given: Mapping[str, object]) -> None:
    """Make sure that exactly one source was passed.

    Parameters
    ----------
    given : mapping
        The source keywords and their values.

    Raises
    ------
    SourceError
        If none or several were given.
    """
    passed = [name for name, value in given.items() if value is not None]
    if not passed:
        raise SourceError(f"nothing to run: pass input=, or one of {', '.join(ID_SOURCES[::2])}")
    if len(passed) > 1:
        raise SourceError(f"pass one source, not {' and '.join(passed)}")


def _is_near(name: str, other: str) -> bool:
    """Whether a name of five letters or more is one letter off another, or has two neighbours swapped."""
    if len(name) < 5 or abs(len(name) - len(other)) > 1 or name == other:
        return False
    start = next((i for i, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), None)
    if start is None:
        return True
    rest, rest_other = name[start:], other[start:]
    swapped = rest[1::-1] + rest[2:] == rest_other
    return swapped or rest[1:] == rest_other[1:] or rest[1:] == rest_other or rest == rest_other[1:]
