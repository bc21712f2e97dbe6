"""Tokens: where they come from, where they may travel, and how URLs are shown without them.

Invariant: a token, and any part of a URL that works like one (user info, query, the session token after
``/net/`` in a platform's path), leaves this module only towards the endpoint's own origin, never towards a
message, a log or a repr.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from predsession.errors import ConnectError

HEADER = "x-api-key"
"""The header by which the platform's clients, and the embedded server, pass a token."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_PLATFORM_HOSTS = ("supervisely.com", "supervise.ly")
_SESSION_IN_PATH = re.compile(r"(/net/)([^/?#]+)")


SHORTEST_SECRET = 8
"""Characters; what is shorter is not looked for in answers: it would be found where it is none."""


class Secret(str):
    """A text that is sent as it is and shown as ``***``, as in a traceback with the values of variables."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def secrets_in(url: str, token: str | None = None) -> tuple[str, ...]:
    """Return what must not be repeated of what is sent to a URL.

    Parameters
    ----------
    url : str
        Where to.
    token : str or None
        What is sent along.

    Returns
    -------
    tuple of str
        The token, the session's token in the path, the password, the values of the query, each as it is
        written and as it is meant; those of at least `SHORTEST_SECRET` characters.
    """
    parts = urlsplit(url)
    found = [token or "", parts.password or ""]
    found += [match.group(2) for match in _SESSION_IN_PATH.finditer(parts.path)]
    found += [value for _, value in parse_qsl(parts.query)]
    found += [pair.partition("=")[2] for pair in parts.query.split("&")]
    each = dict.fromkeys([*found, *map(unquote, found)])
    return tuple(Secret(secret) for secret in each if len(secret) >= SHORTEST_SECRET)


def show_url(url: str) -> str:
    """Return the URL as it may be shown.

    Parameters
    ----------
    url : str
        Any URL.

    Returns
    -------
    str
        Without user info, query and fragment; the part after ``/net/`` is ``***``.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(an unreadable URL)"
    netloc = parts.netloc.rpartition("@")[2]
    path = _SESSION_IN_PATH.sub(r"\1***", parts.path)
    query = "?***" if parts.query else ""
    return f"{parts.scheme}://{netloc}{path}{query}" if parts.scheme else f"{path}{query}"


def origin_of(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port, the port filled in where it is the scheme's own."""
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").lower(), port


def check_endpoint(url: str) -> str:
    """Return the endpoint without a trailing slash.

    Parameters
    ----------
    url : str
        A server's base URL.

    Returns
    -------
    str
        The same, fit to have ``/<method>`` added.

    Raises
    ------
    ConnectError
        If it is no http(s) URL with a host.
    """
    try:
        url = url.strip()
        parts = urlsplit(url)
        usable = parts.scheme in _DEFAULT_PORTS and bool(parts.hostname) and parts.port != 0
        usable = usable and not (parts.query or parts.fragment) and url.isprintable() and " " not in url
    except (ValueError, AttributeError, TypeError):
        usable = False
    if not usable:
        raise ConnectError(
            f"{_shown_wrong(url)} is not a server's URL; pass one such as 'http://127.0.0.1:8000'",
            permanent=True,
        )
    return url.rstrip("/")


def _shown_wrong(url: object) -> str:
    """Show what is no URL: it may be one whose scheme was forgotten, with a secret in it."""
    if not isinstance(url, str):
        return repr(url)[:80]
    if "://" in url:
        return show_url(url)
    return repr(show_url(f"http://{url}").removeprefix("http://"))


@dataclass(frozen=True, slots=True)
class Credentials:
    """A token and the only origin that may see it.

    Parameters
    ----------
    endpoint : str
        The server's base URL.
    token : str or None
        The token.
    """

    endpoint: str = field(repr=False)
    token: str | None = field(default=None, repr=False)

    def headers_for(self, url: str) -> dict[str, str]:
        """Return the headers to send to this URL: the token, or nothing where it is another origin."""
        if self.token is None or origin_of(url) != origin_of(self.endpoint):
            return {}
        return {HEADER: Secret(self.token)}


def find_token(
    token: str | None,
    api_token: str | None,
    *,
    explicit_url: str | None,
    env: Mapping[str, str] | None = None,
) -> str | None:
    """Choose the token.

    Parameters
    ----------
    token : str or None
        The caller's own; taken first.
    api_token : str or None
        That of the ``api`` object, taken second.
    explicit_url : str or None
        The URL the caller passed; None where it came from elsewhere.
    env : mapping, optional
        The environment; the process's own by default. ``PREDSESSION_TOKEN`` is taken third,
        ``API_TOKEN`` last, and only for a platform's URL that was given explicitly: it is set on many
        machines, and would otherwise travel to whatever server is tried.

    Returns
    -------
    str or None
        The token, or None.
    """
    env = os.environ if env is None else env
    own = token or api_token or env.get("PREDSESSION_TOKEN")
    if own:
        return own
    try:
        platform = explicit_url is not None and is_platform(urlsplit(explicit_url))
    except ValueError:  # brackets that do not fit: whoever uses the URL says so
        platform = False
    return env.get("API_TOKEN") or None if platform else None


def is_sendable(token: str | None) -> bool:
    """Whether a token can be sent in a header: printable ASCII without blanks, or none at all."""
    return token is None or (token.isascii() and token.isprintable() and " " not in token)


def is_platform(url: SplitResult) -> bool:
    """Whether the URL is one of the platform's: its host, or its way of addressing a session."""
    host = (url.hostname or "").lower()
    known = any(host == name or host.endswith("." + name) for name in _PLATFORM_HOSTS)
    return known or _SESSION_IN_PATH.search(url.path) is not None
