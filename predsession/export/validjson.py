"""JSON that every reader takes: a server's NaN, for which it has no word, becomes null, and is counted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial

NOT_FINITE = "numbers that are not finite"
"""What is counted."""


def valid_json(value: object, *, indent: int | None = None, ascii_only: bool = True) -> tuple[str, int]:
    """Write JSON.

    Parameters
    ----------
    value : JSON
        Perhaps with NaN and infinity in it, as Python reads them.
    indent : int or None
        Of the lines; all in one without.
    ascii_only : bool
        Whether other characters are escaped.

    Returns
    -------
    str
        The text.
    int
        How many numbers became null in it.
    """
    write = partial(
        json.dumps,
        indent=indent,
        separators=(",", ":") if indent is None else None,
        ensure_ascii=ascii_only,
        allow_nan=False,
    )
    try:
        return write(value), 0
    except ValueError:
        value, lost = _finite(value)
        return write(value), lost


def _finite(value: object) -> tuple[object, int]:
    """Return a value with null for numbers that are none, and how many those are."""
    if isinstance(value, float) and not math.isfinite(value):
        return None, 1
    if isinstance(value, Mapping):
        pairs = {key: _finite(inner) for key, inner in value.items()}
        return {key: inner for key, (inner, _) in pairs.items()}, sum(count for _, count in pairs.values())
    if isinstance(value, list | tuple):
        items = [_finite(inner) for inner in value]
        return [inner for inner, _ in items], sum(count for _, count in items)
    return value, 0
