"""Messages of what a caller gave: what does not fit the wire is the caller's mistake, and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from google.protobuf.message import Message

from predsession.errors import SourceError

R = TypeVar("R", bound=Message)


def written(kind: Callable[..., R], /, **fields: object) -> R:
    """Return a message with these fields.

    Parameters
    ----------
    kind : type of Message
        Which.
    **fields : object
        Its fields; sequences, not iterators.

    Returns
    -------
    Message
        That can be sent.

    Raises
    ------
    SourceError
        If a field has the wrong type, does not fit its number, or is no text; it names the field.
    """
    try:
        message = kind(**fields)
        message.SerializeToString()
    except (TypeError, ValueError) as error:
        raise SourceError(_mistake(kind, fields, error)) from None
    return message


def _mistake(kind: Callable[..., Message], fields: dict[str, object], whole: Exception) -> str:
    """Name the field which does not fit."""
    for name, value in fields.items():
        try:
            kind(**{name: value}).SerializeToString()
        except (TypeError, ValueError) as error:
            return f"{name} is {ascii(value)[:80]}, which the wire cannot hold: {error}"
    return str(whole)
