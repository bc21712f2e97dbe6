"""Reading the fields of one object of an annotation, with errors that name object and field.

Invariant: whatever JSON is there, reading it gives a value of the promised type or `ProtocolError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from predsession.errors import ProtocolError
from predsession.wire.geometry import Point
from predsession.wire.jsontypes import JSON, JSONObject

MAX_COORDINATE = 1 << 24
"""The largest pixel number that is believed: up to here float32 holds every whole number."""

MAX_VALUE = 3.4e38
"""The largest number that float32 can hold, a little rounded down."""


class Tag(NamedTuple):
    """A tag of a picture or an object; the value of one without a value is None."""

    name: str
    value: str | float | None


def shown(value: JSON) -> str:
    """Return the beginning of a value, for a message."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, a list in a list in a list ...
        return f"a {'number' if isinstance(value, int) else 'value'} too long to show"
    return text if len(text) <= 60 else text[:57] + "..."


def as_text(value: JSON) -> str:
    """Return a string as it is, anything else as an empty one."""
    return value if isinstance(value, str) else ""


class Fields:
    """The fields of a JSON object.

    Parameters
    ----------
    item : JSON
        What should be an object.
    owner : str
        Whose it is, for messages, as in ``object 3``.

    Raises
    ------
    ProtocolError
        If it is no object.
    """

    __slots__ = ("item", "owner")

    def __init__(self, item: JSON, owner: str) -> None:
        if not isinstance(item, Mapping):
            raise ProtocolError(f"{owner}: {shown(item)} is no object")
        self.item: JSONObject = item
        self.owner: str = owner

    def broken(self, field: str, problem: str) -> ProtocolError:
        """Return the error that names owner and field, to be raised."""
        return ProtocolError(f"{self.owner}: {field}: {problem}")

    def text(self, field: str) -> str:
        """Return a string; raise ProtocolError if it is something else."""
        value = self.item.get(field)
        if not isinstance(value, str):
            raise self.broken(field, f"{shown(value)} is no string")
        return value

    def inner(self, field: str) -> Fields:
        """Return the fields of an object inside; raise ProtocolError if it is none."""
        value = self.item.get(field)
        if not isinstance(value, Mapping):
            raise self.broken(field, f"{shown(value)} is no object")
        return Fields(value, f"{self.owner}: {field}")

    def array(self, value: JSON, field: str) -> Sequence[JSON]:
        """Return a JSON array; raise ProtocolError if it is something else."""
        if isinstance(value, (list, tuple)):
            return value
        raise self.broken(field, f"{shown(value)} is no list")

    def number(self, value: JSON, field: str, limit: float = MAX_COORDINATE) -> float:
        """Return a number between minus limit and limit; raise ProtocolError otherwise, also for NaN."""
        # The comparison is false for NaN and for integers too large for a float, so neither needs a test.
        if isinstance(value, (int, float)) and not isinstance(value, bool) and -limit <= value <= limit:
            return value
        raise self.broken(field, f"{shown(value)} is no number between {-limit:g} and {limit:g}")

    def whole(self, value: JSON, field: str) -> int:
        """Return a whole number of at most 63 bits; raise ProtocolError if it is something else."""
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63:
            return value
        raise self.broken(field, f"{shown(value)} is no whole number")

    def point(self, value: JSON, field: str) -> Point:
        """Return ``[x, y]``; raise ProtocolError if it is something else."""
        pair = self.array(value, field)
        if len(pair) != 2:
            raise self.broken(field, f"{shown(value)} is no [x, y]")
        return self.number(pair[0], field), self.number(pair[1], field)

    def points(self, field: str) -> list[Point]:
        """Return at least one point; raise ProtocolError if there is none, or something else."""
        return self.ring(self.item.get(field), field)

    def ring(self, value: JSON, field: str) -> list[Point]:
        """Return the points of one ring: at least one; raise ProtocolError otherwise."""
        points = [self.point(pair, field) for pair in self.array(value, field)]
        if not points:
            raise self.broken(field, "there is no point")
        return points

    def tags(self) -> tuple[Tag, ...]:
        """Return the tags in ``tags``, in order; raise ProtocolError if one has no name."""
        tags = self.item.get("tags")
        if not tags:
            return ()
        return tuple(self._tag(tag) for tag in self.array(tags, "tags"))

    def _tag(self, tag: JSON) -> Tag:
        """Read one tag."""
        fields = Fields(tag, f"{self.owner}: tags")
        value = fields.item.get("value")
        if value is not None and not isinstance(value, (str, int, float)):
            raise fields.broken("value", f"{shown(value)} is no string or number")
        return Tag(fields.text("name"), value)
