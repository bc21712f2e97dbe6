"""What of the environment a request uses: its proxies, its CA bundle. A part of `transport`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

import requests

from predsession.http.auth import Secret
from predsession.http.loopback import is_loopback


def proxies_for(url: str, given: Mapping[str, str] | None) -> dict[str, str]:
    """Return the proxies to use: the given ones, else the environment's; none to the loopback.

    Parameters
    ----------
    url : str
        Where to.
    given : mapping or None
        Proxy by scheme, as the caller has it; None for the environment's.

    Returns
    -------
    dict of str to str
        As requests takes them.
    """
    if is_loopback(urlsplit(url).hostname or ""):
        return {}
    proxies = requests.utils.get_environ_proxies(url) if given is None else given
    return {scheme: Secret(proxy) for scheme, proxy in proxies.items()}  # each may hold a password


def proxy_for(url: str, given: Mapping[str, str] | None = None) -> str | None:
    """Return the one proxy that a request to this URL takes, None where it takes none.

    Parameters
    ----------
    url : str
        Where to.
    given : mapping or None
        As for `proxies_for`.

    Returns
    -------
    str or None
        The proxy's URL; it may hold a password.
    """
    chosen = requests.utils.select_proxy(url, proxies_for(url, given))
    return Secret(chosen) if chosen else None


def environment_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for URLs of this scheme, wherever they lead."""
    names = (f"{urlsplit(url).scheme}_proxy", "all_proxy")
    found = (os.environ.get(name) or os.environ.get(name.upper()) for name in names)
    return next((Secret(proxy) for proxy in found if proxy), None)


def verify_with(verify: bool | str) -> bool | str:
    """Return what certificates are checked with: what was asked for, else the environment's bundle."""
    if verify is not True:
        return verify
    return os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or True


def ca_bundle(verify: bool | str) -> str:
    """Return the file, or folder, of the authorities that are trusted."""
    chosen = verify_with(verify)
    return chosen if isinstance(chosen, str) else requests.utils.DEFAULT_CA_BUNDLE_PATH
