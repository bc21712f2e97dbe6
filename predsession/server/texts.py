"""Texts of models, files and callers, made fit for a protobuf message and for a gRPC status.

A model may raise, or call its classes, anything: half a character of UTF-16 is a text to Python, and none to
protobuf. What is as long as its caller likes is shortened before it is said again.
"""

from __future__ import annotations

from collections.abc import Collection

LONGEST = 1000
"""Characters of a text that is said again."""
_HEADER_BYTES = 3000  # of the 8 KiB that gRPC takes for all headers together
_NAMED = 10


def encodable(text: str) -> str:
    r"""Return a text that UTF-8 can hold.

    Parameters
    ----------
    text : str
        Any.

    Returns
    -------
    str
        The same; lone surrogates are written out, ``\ud800``.
    """
    return text.encode("utf-8", "backslashreplace").decode()


def shortened(text: str, most: int = LONGEST) -> str:
    """Return a text that UTF-8 can hold and that is not too long.

    Parameters
    ----------
    text : str
        Any.
    most : int
        Characters.

    Returns
    -------
    str
        Cut texts end with an ellipsis.
    """
    cut = encodable(text[: most + 1])
    return cut if len(cut) <= most else f"{cut[: most - 1]}…"


def for_header(text: str) -> str:
    """Return a text as it may travel in a status, whose bytes gRPC writes as ``%41`` unless they are ASCII.

    Parameters
    ----------
    text : str
        Any.

    Returns
    -------
    str
        Cut by what it takes on its way, not by its characters.

    References
    ----------
    https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, "Percent-Byte"
    """
    plain = shortened(text)
    room = _HEADER_BYTES
    for place, character in enumerate(plain):
        room -= 1 if " " <= character <= "~" and character != "%" else 3 * len(character.encode())
        if room < 0:
            return f"{plain[:place]}..."
    return plain


def named(names: Collection[str]) -> str:
    """Return some names in a line, the first ten of them where there are more.

    Parameters
    ----------
    names : collection of str
        In the order in which they are named.

    Returns
    -------
    str
        ``a, b``; ``a, b, ... and 12 more``.
    """
    first = [shortened(name, 100) for name, _ in zip(names, range(_NAMED), strict=False)]
    rest = len(names) - len(first)
    return ", ".join(first) + (f", ... and {rest} more" if rest else "")
