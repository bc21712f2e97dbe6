"""The settings of a submit: completed with the model's defaults, and checked."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence

from predsession.server.models.card import ModelCard
from predsession.server.refusal import Refusal, explained
from predsession.wire.jsontypes import JSON, JSONObject

CONF_NAMES = ("conf", "confidence", "confidence_threshold", "confidence_thresh")
"""The names under which a client may set the lowest score."""
_GENERIC = frozenset({"classes", "deploy", "inference_mode", "sliding_window_mode"})
"""What a stock client may set for any model."""


def complete_settings(given: JSON, card: ModelCard, *, strict: bool) -> JSONObject:
    """Fill in the model's defaults and check the rest.

    Parameters
    ----------
    given : JSON
        The caller's settings.
    card : ModelCard
        With the defaults.
    strict : bool
        Whether a setting that the model does not have, or a value of the wrong kind, is refused. A stock
        client sends its own options along, so from one of those they are ignored.

    Returns
    -------
    JSONObject
        ``conf`` is found under any of its names; ``classes`` "all" is None.

    Raises
    ------
    Refusal
        If a setting cannot be used; the message names it.
    """
    if given is not None and not isinstance(given, Mapping):
        raise Refusal(400, explained("Settings is not json object"))
    chosen = {name: value for name, value in dict(given or {}).items() if value is not None}
    conf_name = next((name for name in CONF_NAMES if name in card.settings), "conf")
    for name in CONF_NAMES:
        if name in chosen:
            chosen[conf_name] = chosen.pop(name)
    settings: dict[str, JSON] = {**card.settings, "classes": None}
    for name, value in chosen.items():
        problem = _problem(name, value, card, conf_name)
        if not problem:
            settings[name] = value
        elif strict:
            raise Refusal(400, explained(problem))
    if settings["classes"] == "all":
        settings["classes"] = None
    return settings


def _problem(name: str, value: JSON, card: ModelCard, conf_name: str) -> str:
    """Return what is wrong with a setting, or nothing."""
    if name == "classes":
        return _class_problem(value, card)
    if name in _GENERIC:
        return ""
    if name == conf_name and name not in card.settings:
        return "" if _is_number(value) else f"setting {name!r} is {value!r}; it must be a number"
    if name not in card.settings:
        near = difflib.get_close_matches(name, card.settings, n=1)
        hint = (
            f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(card.settings)) or 'none'}."
        )
        return f"The model has no setting {name!r}; {hint}"
    return _kind_problem(name, value, card.settings[name])


def _class_problem(value: JSON, card: ModelCard) -> str:
    """Return what is wrong with a choice of classes."""
    if value == "all":
        return ""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return f"setting 'classes' is {value!r}; it must be a list of names, or 'all'"
    unknown = [name for name in value if name not in card.classes]
    return f"The model has no class {unknown[0]!r}; get_model_meta lists its classes." if unknown else ""


def _kind_problem(name: str, value: JSON, default: JSON) -> str:
    """Return what is wrong with the kind of a value, judged by the default."""
    kinds: list[tuple[type, str]] = [
        (bool, "true or false"),
        (str, "a text"),
        (list, "a list"),
        (dict, "an object"),
    ]
    if _is_number(default):
        return "" if _is_number(value) else f"setting {name!r} is {value!r}; it must be a number"
    for kind, words in kinds:
        if isinstance(default, kind) and not isinstance(value, kind):
            return f"setting {name!r} is {value!r}; it must be {words}"
    return ""


def _is_number(value: JSON) -> bool:
    """Whether a value is a number; Python reads NaN and Infinity from JSON, which has neither."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < math.inf
