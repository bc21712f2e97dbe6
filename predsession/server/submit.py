"""What a submit asks for: the state beside the files, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from predsession.server.json_text import read_json
from predsession.server.models.card import ModelCard
from predsession.server.refusal import Refusal, explained
from predsession.server.settings import complete_settings
from predsession.wire.jsontypes import JSON, JSONObject

LONGEST_WORD = 200
"""Characters of a session's id or a submit's key."""
_KEYS = frozenset({"item_errors", "session", "first_index", "indexes"})


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
    indexes : tuple of int or None
        Where each does, if they do not follow one another.
    extension : bool
        Whether any key of the extension was used.
    """

    settings: JSONObject
    batch_size: int
    item_errors: bool = False
    session: str | None = None
    first_index: int | None = None
    indexes: tuple[int, ...] | None = None
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
        state = read_json(text)
    except ValueError as error:
        raise Refusal(400, explained(f"Cannot decode settings: {error}")) from error
    if not isinstance(state, dict):
        raise Refusal(400, explained("Settings is not json object"))
    return state


def read_submit(state: JSONObject, card: ModelCard, *, stock: bool, keyed: bool) -> Submit:
    """Check what a state asks for.

    Parameters
    ----------
    state : JSONObject
        Of a form.
    card : ModelCard
        What the model offers.
    stock : bool
        Whether the extension's keys are ignored.
    keyed : bool
        Whether the submit has an ``Idempotency-Key``, which also makes it one of the extension.

    Returns
    -------
    Submit
        Complete.

    Raises
    ------
    Refusal
        If a value cannot be used.
    """
    extension = not stock and (keyed or bool(_KEYS & set(state)))
    settings = complete_settings(state.get("settings"), card, strict=extension)
    batch_size = _batch_size(state.get("batch_size"), card)
    if not extension:
        return Submit(settings, batch_size)
    return Submit(
        settings,
        batch_size,
        item_errors=_kept(state, "item_errors", bool, "true or false") is True,
        session=_kept(state, "session", str, "a text"),
        first_index=_kept(state, "first_index", int, "a whole number"),
        indexes=_indexes(state.get("indexes")),
        extension=True,
    )


def _indexes(value: JSON) -> tuple[int, ...] | None:
    """Return the positions of the items."""
    if value is None:
        return None
    if not isinstance(value, list) or not all(type(one) is int for one in value):
        raise Refusal(400, explained("indexes must be a list of whole numbers"))
    return tuple(one for one in value if isinstance(one, int))


Kept = TypeVar("Kept")


def _kept(state: JSONObject, name: str, kind: type[Kept], words: str) -> Kept | None:
    """Return a key of the extension."""
    value = state.get(name)
    if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise Refusal(400, explained(f"{name} is {value!r}; it must be {words}"))
    if isinstance(value, str) and len(value) > LONGEST_WORD:
        raise Refusal(400, explained(f"{name} is longer than {LONGEST_WORD} characters"))
    return value


def _batch_size(value: JSON, card: ModelCard) -> int:
    """Return the batch size; one that is too large is refused as a stock server does."""
    if value is None:
        return card.batch_limit
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Refusal(400, explained(f"batch_size is {value!r}; it must be a whole number of at least 1"))
    if card.max_batch_size is not None and value > card.max_batch_size:
        text = f"Batch size should be less than or equal to {card.max_batch_size} for this model."
        raise Refusal(400, {"message": text, "success": False})
    return value
