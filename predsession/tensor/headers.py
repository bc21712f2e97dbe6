"""What is sent along with every call: checked before it is, and shown nowhere."""

from __future__ import annotations

import re
from collections.abc import Mapping

from predsession.errors import SourceError
from predsession.http.auth import Secret

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[ -~]*")


def veiled(token: str | None, headers: Mapping[str, str] | None) -> tuple[str | None, dict[str, str]]:
    """Return a token and headers that no traceback shows, with the values of variables or without.

    Parameters
    ----------
    token, headers
        As a caller handed them in; whoever calls this keeps nothing else of them.

    Returns
    -------
    tuple
        The same, or what stands for a value that is no text.

    Raises
    ------
    SourceError
        If the headers are no mapping.
    """
    if headers is not None and not isinstance(headers, Mapping):
        raise SourceError(f"headers is {type(headers).__name__}; wanted a dict, str to str")
    shown: dict[str, str] = {
        name: Secret(one) if isinstance(one, str) else Secret("\0") for name, one in (headers or {}).items()
    }
    if token is None or token == "":
        return None, shown
    return Secret(token) if isinstance(token, str) else Secret("\0"), shown


def checked(headers: Mapping[str, str], token: str | None) -> dict[str, str]:
    """Refuse a token and headers that one of the two ways of speaking cannot send.

    Parameters
    ----------
    headers : mapping of str to str
        From `veiled`.
    token : str or None
        Likewise.

    Returns
    -------
    dict of str to str
        The headers.

    Raises
    ------
    SourceError
        If one cannot be; it does not show the value.
    """
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER.fullmatch(name):
            raise SourceError(f"headers has {name!r}, which is no header's name")
        if not _VALUE.fullmatch(value) or value != value.strip():
            raise SourceError(f"headers: the value of {name!r} is no text of printable ASCII characters")
    if token is not None and not re.fullmatch(r"[!-~]+", token):
        raise SourceError("token is no text of printable ASCII characters without spaces")
    return dict(headers)
