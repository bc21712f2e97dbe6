"""UpdatePostprocessConfig: a caller's JSON -> a model's settings. Nothing is kept here."""

from __future__ import annotations

import json
from collections.abc import Mapping

from predsession.errors import PredSessionError
from predsession.server.models.card import ModelCard
from predsession.server.refusal import Refusal
from predsession.server.settings import CONF_NAMES, complete_settings
from predsession.server.shots import error_text
from predsession.wire.jsontypes import JSON, JSONObject

_ALIASES = {
    **dict.fromkeys(CONF_NAMES, "conf"),
    "detection_threshold": "conf",
    "score_threshold": "conf",
    "iou_threshold": "iou",
    "nms_iou_threshold": "iou",
    "max_boxes": "max_objects",
}
"""What the runtimes call settings that our models have under another name."""


class ChangeError(PredSessionError):
    """Settings that cannot be; the message is for the caller."""


def changed(present: JSONObject, text: str, *, card: ModelCard) -> JSONObject:
    """Return settings with a change made to them.

    Parameters
    ----------
    present : JSONObject
        The model's, complete.
    text : str
        JSON: an object of settings, by their own names or those of the runtimes.
    card : ModelCard
        The model's.

    Returns
    -------
    JSONObject
        Complete.

    Raises
    ------
    ChangeError
        If there is no such setting, a value is none, or a setting is given twice.
    """
    try:
        given: JSON = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, Mapping):
        raise ChangeError("config_json is no JSON object")
    try:
        return complete_settings({**present, **_by_own_names(given, card)}, card, strict=True)
    except Refusal as refusal:
        raise ChangeError(_said(refusal)) from None


def _by_own_names(given: Mapping[str, JSON], card: ModelCard) -> JSONObject:
    """Return settings under the model's own names for them."""
    conf = next((name for name in CONF_NAMES if name in card.settings), "conf")
    keys: dict[str, str] = {}
    for key in given:
        name = key if key in card.settings else _ALIASES.get(key, key)
        name = conf if name == "conf" else name
        if name in keys:
            raise ChangeError(f"{keys[name]} and {key} are one setting; give it once")
        keys[name] = key
    return {name: given[key] for name, key in keys.items()}


def _said(refusal: Refusal) -> str:
    """Return a refusal's text."""
    body = refusal.body
    return error_text({"message": body.get("detail", "") if isinstance(body, dict) else str(body)})
