"""Whether a proxy stands between, and whether what comes is its own doing."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

from predsession.doctor.findings import Finding, Verdict, bad, ok, warning
from predsession.doctor.target import Target, split_url
from predsession.http.auth import show_url
from predsession.http.loopback import is_loopback
from predsession.http.surroundings import environment_proxy
from predsession.wire.httpreply import Reply

PROXIES = frozenset({"http", "https"})
SOCKS = frozenset({"socks4", "socks4a", "socks5", "socks5h"})
NOWHERE = "http://predsession-doctor.invalid"
"""RFC 6761 keeps .invalid from ever being a host: a proxy has no way there, and says so."""


def past(target: Target) -> str:
    """Return the advice for a proxy that is the wrong one."""
    host = target.host
    return f"Correct the environment's http_proxy or https_proxy, or add {host} to no_proxy to go past it."


def look_at_proxy(target: Target, given: Mapping[str, str] | None) -> Finding:
    """Say whether a proxy stands between, and whether it should.

    Parameters
    ----------
    target : Target
        Where to.
    given : mapping or None
        The proxies that were handed in; None for the environment's.

    Returns
    -------
    Finding
        A warning where a proxy stands before a private address; bad where there can be no such proxy.
    """
    if target.proxy is not None:
        unusable = _unusable(target)
        if unusable is not None:
            return bad("proxy", *unusable)
        source = "it was handed in" if given is not None else "the environment's http_proxy or https_proxy"
        text = f"Requests go through the proxy {show_url(target.proxy)} ({source})."
        if _is_private(target.host):
            advice = f"If they should not, add {target.host} to the environment's no_proxy."
            return warning("proxy", f"{text} {target.host} is an address of a private network.", advice)
        return ok("proxy", text)
    if environment_proxy(target.url) is None or given is not None:
        return ok("proxy", "No proxy stands between.")
    why = "this machine is never reached through one" if is_loopback(target.host) else "no_proxy excepts it"
    return ok("proxy", f"The environment names a proxy, which is not used here: {why}.")


def _unusable(target: Target) -> tuple[str, str] | None:
    """Say why there can be no such proxy, None where there can."""
    parts = split_url(target.next_url)
    if parts is None or not parts.hostname:
        text = "The proxy that is named for this address cannot be read as a URL."
        return text, f"It must be like http://proxy:3128. {past(target)}"
    if parts.scheme not in PROXIES | SOCKS:
        text = f"The proxy {target.shown_proxy} is of no kind that is known: {parts.scheme}://."
        return text, f"It must begin with http://, https:// or socks5h://. {past(target)}"
    if parts.scheme in SOCKS and find_spec("socks") is None:
        text = f"The proxy {target.shown_proxy} speaks SOCKS, for which the package PySocks is missing."
        return text, f"Install it: pip install PySocks. {past(target)}"
    if not all(sign < "\u0100" for sign in unquote(f"{parts.username or ''}{parts.password or ''}")):
        text = "The proxy's name or password has a letter that no header can carry."
        return text, past(target)
    return None


def blamed_on_proxy(target: Target, finding: Finding) -> Finding:
    """Return what was found on the way to a proxy as what is wrong with that, not with the server.

    Parameters
    ----------
    target : Target
        Where to, through a proxy or none.
    finding : Finding
        Of a name or a connection.

    Returns
    -------
    Finding
        Another one where a proxy cannot be reached.
    """
    if target.proxy is None or finding.verdict is not Verdict.BAD:
        return finding
    text = f"The proxy {target.shown_proxy} cannot be reached. {finding.text}"
    return bad(finding.check, text, past(target))


def told_of_proxy(target: Target, finding: Finding) -> Finding:
    """Return what was found through a proxy, with a word that it was.

    Parameters
    ----------
    target : Target
        Where to, through a proxy or none.
    finding : Finding
        Of a certificate, or an answer.

    Returns
    -------
    Finding
        The same where all is well, or nothing is in between.
    """
    if target.proxy is None or finding.verdict is Verdict.OK:
        return finding
    text = f"{finding.text} It came through the proxy {target.shown_proxy}, and may be that proxy's own."
    return replace(finding, text=text)


def wants_password(target: Target) -> tuple[str, str]:
    """Say what to do about status 407."""
    place = f"the environment's {target.scheme}_proxy"
    form = "http://name:password@host:port"
    if not urlsplit(target.next_url).username:
        return "The proxy wants a name and a password (407).", f"Put them into {place}: {form}."
    advice = f"Correct them in {place}: {form}, where signs such as @ and : are written as %40 and %3A."
    return "The proxy refuses the name and the password that it was given (407).", advice


def look_at_its_own(target: Target, reply: Reply, *, nowhere: Callable[[], Reply | None]) -> Finding | None:
    """Say that it is the proxy that answers, if it answers so even for a host that there is not.

    Parameters
    ----------
    target : Target
        Where to, over plain HTTP through a proxy.
    reply : Reply
        The answer.
    nowhere : callable
        Asks `NOWHERE` in the same way.

    Returns
    -------
    Finding or None
        None where it is the server's answer, or cannot be told from that: a proxy that finds no server says
        502 or its like of either.
    """
    other = nowhere() if reply.status < 500 or reply.status == 501 else None
    if other is None or other.status != reply.status:
        return None
    text = (
        f"{target.shown_proxy}, which is named as the proxy, answers by itself ({reply.status}), "
        "even for a host that does not exist: it passes nothing on."
    )
    return bad("answer", text, f"Is it a proxy at all, or one that wants a login first? {past(target)}")


def _is_private(host: str) -> bool:
    """Whether a host is an address, or a bare name, that a company's proxy seldom knows."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan"))


def proxy_scheme(target: Target) -> str:
    """Return how the proxy is spoken with; empty where there is none."""
    return urlsplit(target.next_url).scheme if target.proxy is not None else ""
