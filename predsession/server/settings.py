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
_SHARES = frozenset({*CONF_NAMES, "iou"})
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
        Whether a setting that the model does not have, a value of the wrong kind or out of its range, or two
        values for one setting are refused. A stock client sends its own options along, so from one of those
        what cannot be used is ignored, and ranges are the model's business.

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
    confs = [name for name in CONF_NAMES if name in chosen]
    if strict and any(chosen[name] != chosen[confs[0]] for name in confs[1:]):
        raise Refusal(400, explained(f"settings {' and '.join(confs)} are one; give it once"))
    for name in confs:
        chosen[conf_name] = chosen.pop(name)
    settings: dict[str, JSON] = {**card.settings, "classes": None}
    for name, value in chosen.items():
        problem = _problem(name, value, card, conf_name)
        if strict and not problem:
            problem = _range_problem(name, value, card.settings.get(name, 0.0 if name == conf_name else None))
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


def _range_problem(name: str, value: JSON, default: JSON) -> str:
    """Return what is wrong with a number, judged by what its name means where its default bears that out."""
    if not isinstance(default, (int, float)) or not isinstance(value, (int, float)):
        return ""
    if name in _SHARES and 0 <= default <= 1 and not 0 <= value <= 1:
        return f"setting {name!r} is {value!r}; it must be 0 to 1"
    if name == "max_objects" and (value < 0 or value != int(value)):
        return f"setting {name!r} is {value!r}; it must be a whole number, 0 or more"
    return ""


def _is_number(value: JSON) -> bool:
    """Whether a value is a number; Python reads NaN and Infinity from JSON, which has neither."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < math.inf
