"""Reading the JSON that callers send; what could not be written again is refused here."""

from __future__ import annotations

import json
import re

from predsession.wire.jsontypes import JSON

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that may be one half of a character; where there is one, a text is looked at more closely."""


def read_json(text: bytes | str) -> JSON:
    """Read JSON.

    Parameters
    ----------
    text : bytes or str
        UTF-8.

    Returns
    -------
    JSON
        Its texts are valid Unicode, its whole numbers have at most the 63 bits that the database keeps, and
        it is not nested more deeply than Python can read and write.

    Raises
    ------
    ValueError
        If it is no such JSON.
    """
    plain = text if isinstance(text, str) else text.decode("utf-8-sig")
    try:
        data: JSON = json.loads(plain, parse_int=_whole)
        if _HALF.search(plain):
            json.dumps(data, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("it has half a character, which is no valid UTF-8") from None
    return data


def _whole(text: str) -> int:
    """Read a whole number; no id and no count is as long as this."""
    number = int(text) if len(text) < 25 else 1 << 63
    if abs(number) >> 63:
        raise ValueError("it has a whole number of more than 63 bits")
    return number
