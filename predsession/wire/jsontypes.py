"""The types of a JSON value, and the two narrowings that every reader of one needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
JSONObject: TypeAlias = Mapping[str, JSON]


def as_object(value: JSON) -> JSONObject:
    """Return the value if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: JSON) -> Sequence[JSON]:
    """Return the value if it is a JSON array, else an empty one."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()
