"""What a submit asks for: the state beside the files, checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from predsession.server.models.card import ModelCard
from predsession.server.refusal import Refusal, explained
from predsession.wire.jsontypes import JSON, JSONObject

STOCK_BATCH = 16
_CONF_NAMES = ("conf", "confidence", "confidence_threshold", "confidence_thresh")


@dataclass(frozen=True, slots=True)
class Submit:
    """A checked state.

    Parameters
    ----------
    settings : JSONObject
        The model's, complete.
    batch_size : int
        The largest batch wanted.
    item_errors : bool
        Whether bad items get an error in their place.
    session : str or None
        The session's id.
    first_index : int or None
        Where the first item stands in the caller's source.
    extension : bool
        Whether any key of the extension was used.
    """

    settings: JSONObject
    batch_size: int
    item_errors: bool = False
    session: str | None = None
    first_index: int | None = None
    extension: bool = False


def read_state(fields: Mapping[str, str]) -> JSONObject:
    """Return the state of a form.

    Parameters
    ----------
    fields : mapping
        The text parts; ``settings`` counts only where ``state`` is absent or empty.

    Returns
    -------
    JSONObject
        Not checked further.

    Raises
    ------
    Refusal
        If it is no JSON object.
    """
    text = fields.get("state", "")
    if text in {"", "{}"}:
        text = fields.get("settings", "") or "{}"
    try:
        state = json.loads(text)
    except ValueError as error:
        raise Refusal(400, explained(f"Cannot decode settings: {error}")) from error
    if not isinstance(state, dict):
        raise Refusal(400, explained("Settings is not json object"))
    return state


def read_submit(state: JSONObject, card: ModelCard, *, stock: bool) -> Submit:
    """Check what a state asks for.

    Parameters
    ----------
    state : JSONObject
        Of a form.
    card : ModelCard
        What the model offers.
    stock : bool
        Whether the extension's keys are ignored.

    Returns
    -------
    Submit
        Complete.

    Raises
    ------
    Refusal
        If a value cannot be used.
    """
    settings = complete_settings(state.get("settings"), card)
    batch_size = _batch_size(state.get("batch_size"), card)
    if stock:
        return Submit(settings, batch_size)
    session, first = state.get("session"), state.get("first_index")
    return Submit(
        settings,
        batch_size,
        item_errors=state.get("item_errors") is True,
        session=session if isinstance(session, str) else None,
        first_index=first if isinstance(first, int) else None,
        extension=bool({"item_errors", "session", "first_index"} & set(state)),
    )


def complete_settings(given: JSON, card: ModelCard) -> JSONObject:
    """Fill in the model's defaults.

    Parameters
    ----------
    given : JSON
        The caller's settings.
    card : ModelCard
        With the defaults.

    Returns
    -------
    JSONObject
        ``conf`` is found under any of its names; ``classes`` "all" is None.

    Raises
    ------
    Refusal
        If it is no JSON object.
    """
    if given is not None and not isinstance(given, Mapping):
        raise Refusal(400, explained("Settings is not json object"))
    chosen = dict(given or {})
    conf = next((chosen.pop(name) for name in _CONF_NAMES if name in chosen), None)
    settings: dict[str, JSON] = {**card.settings, "classes": None}
    settings.update({name: value for name, value in chosen.items() if value is not None})
    if isinstance(conf, (int, float)):
        target = next((name for name in _CONF_NAMES if name in card.settings), "conf")
        settings[target] = conf
    if settings["classes"] == "all":
        settings["classes"] = None
    return settings


def _batch_size(value: JSON, card: ModelCard) -> int:
    """Return the batch size; one that is too large is refused as a stock server does."""
    if value is None:
        return card.max_batch_size or STOCK_BATCH
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Refusal(400, explained(f"batch_size is {value!r}; it must be a whole number of at least 1"))
    if card.max_batch_size is not None and value > card.max_batch_size:
        text = f"Batch size should be less than or equal to {card.max_batch_size} for this model."
        raise Refusal(400, {"message": text, "success": False})
    return value
