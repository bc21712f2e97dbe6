"""JSON text to values, and back: by orjson, which is quicker; by the standard library where it is too strict.

A server may say NaN, or half a character (a lone surrogate): the standard library reads these, and what they
mean is for whoever wanted the value to decide. A whole number beyond 64 bits comes as a float.
"""

from __future__ import annotations

import json

from predsession.wire.jsontypes import JSON


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

    try:
        value: JSON = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = json.loads(text)
    return value


def dumps(value: JSON) -> bytes:
    """Write JSON.

    Parameters
    ----------
    value : JSON
        Without NaN and infinity, for which JSON has no words.

    Returns
    -------
    bytes
        In UTF-8, without blanks.
    """
    import orjson

    return orjson.dumps(value)
