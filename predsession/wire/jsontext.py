"""JSON text to values: by orjson, which is quicker, and by the standard library where orjson is too strict.

A server may say NaN, half a character (a lone surrogate), or a number of hundreds of digits: the standard
library reads all of these, and what they mean is for whoever wanted the value to decide.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from predsession.wire.jsontypes import JSON

LARGE = 1 << 20
"""Bytes: below, the collector hardly counts; 60 MB take a third of the time without it."""


def loads(text: bytes) -> JSON:
    """Parse JSON.

    Parameters
    ----------
    text : bytes
        In UTF-8, 16 or 32.

    Returns
    -------
    JSON
        Its value.

    Raises
    ------
    ValueError
        If it is no JSON.
    RecursionError
        If it is nested too deep to be read.
    """
    import orjson  # when the first answer comes, not when a session is imported

    with _uncollected() if len(text) > LARGE else nullcontext():
        try:
            value: JSON = orjson.loads(text)
        except orjson.JSONDecodeError:
            value = json.loads(text)
    return value


@contextmanager
def _uncollected() -> Iterator[None]:
    """Let the collector rest: it would look again and again at a million new objects that are no garbage."""
    rests = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if rests:
            gc.enable()
