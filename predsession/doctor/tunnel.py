"""The way through a proxy to a server's TLS: a CONNECT, as a request sends it (RFC 9110, section 9.3.6)."""

from __future__ import annotations

import base64
import errno
import re
import socket
import time
from urllib.parse import unquote, urlsplit

from predsession.doctor.certificates import Peer, look_at_certificate, trusting
from predsession.doctor.findings import Finding, bad
from predsession.doctor.proxies import past, proxy_scheme, wants_password
from predsession.doctor.target import Target
from predsession.doctor.wires import Dial, trusting_all

_MOST = 1 << 16
"""Bytes of a proxy's answer."""
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})\b")


class NoWayError(OSError):
    """A proxy lets nothing through: its status, or None where what came is no HTTP."""

    def __init__(self, status: int | None) -> None:
        super().__init__(errno.ECONNABORTED, "the proxy lets nothing through")
        self.status = status


def encrypted(target: Target, dial: Dial, *, ca: str | None) -> Dial:
    """Return what makes connections to a proxy that is spoken with over TLS, or over none.

    Parameters
    ----------
    target : Target
        With a proxy.
    dial : callable
        Makes a bare connection to the proxy.
    ca : str or None
        The authorities that are trusted.

    Returns
    -------
    callable
        `dial` itself for a proxy without TLS.
    """
    if proxy_scheme(target) != "https":
        return dial

    def dial_tls() -> socket.socket:
        context = trusting_all() if ca is None else trusting(ca)
        return context.wrap_socket(dial(), server_hostname=target.next_hop[0])

    return dial_tls


def through(target: Target, dial: Dial, *, patience: float) -> Dial:
    """Return what makes connections to the server, through its proxy.

    Parameters
    ----------
    target : Target
        With a proxy.
    dial : callable
        Makes a connection to the proxy.
    patience : float
        Seconds for the proxy's answer.

    Returns
    -------
    callable
        Raises `NoWayError` where the proxy refuses.
    """

    def dial_through() -> socket.socket:
        connection = dial()
        try:
            connection.sendall(_request(target))
            status = _status(connection, time.monotonic() + patience)
            if status is None or not 200 <= status < 300:
                raise NoWayError(status)
        except BaseException:
            connection.close()
            raise
        return connection

    return dial_through


def _request(target: Target) -> bytes:
    """Return what asks for the way to the server."""
    host = f"[{target.host}]" if ":" in target.host else target.host.encode("idna").decode()
    place, parts = f"{host}:{target.port}", urlsplit(target.next_url)
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode("latin-1")
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(pair).decode()}")
    return "\r\n".join([*lines, "", ""]).encode()


def _status(connection: socket.socket, ends: float) -> int | None:
    """Read the headers of a proxy's answer and return its status, None for what is no HTTP."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _MOST:
        if time.monotonic() > ends:
            raise TimeoutError("no answer in time")
        block = connection.recv(1 << 12)
        if not block:
            break
        head += block
    found = _STATUS.match(head)
    return None if found is None else int(found[1])


def look_at_proxys_certificate(target: Target, dial: Dial, *, ca: str | None) -> Finding | None:
    """Agree on TLS with a proxy that is spoken with over it.

    Parameters
    ----------
    target : Target
        With such a proxy.
    dial : callable
        Makes a bare connection to the proxy.
    ca : str or None
        The authorities that are trusted; None trusts everybody.

    Returns
    -------
    Finding or None
        What is wrong with the proxy's certificate, or that it has none.
    """
    host, port = target.next_hop
    good, finding = look_at_certificate(dial, Peer(host, port, "The proxy's"), ca=ca)
    if good:
        return None
    text = f"TLS with the proxy {target.shown_proxy} is in the way. {finding.text}"
    return bad(finding.check, text, f"{finding.advice} It is the proxy that is meant. {past(target)}")


def look_through(target: Target, dial: Dial, *, patience: float) -> Finding | None:
    """Ask the proxy for the way to the server.

    Parameters
    ----------
    target : Target
        Where to, through a proxy.
    dial : callable
        As `through` returns it.
    patience : float
        Seconds that are waited.

    Returns
    -------
    Finding or None
        Why there is no way; None where there is one.
    """
    place = f"{target.host}:{target.port}"
    try:
        dial().close()
    except NoWayError as error:
        return bad("answer", *_refused(error.status, target, place))
    except TimeoutError:
        text = f"The proxy {target.shown_proxy} found no way to {place} within {patience:g} s."
        return bad("answer", text, f"Is the server there, at this port? {past(target)}")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        text = f"The proxy {target.shown_proxy} breaks off when asked for {place}: {reason}."
        return bad("answer", text, f"Ask whoever runs the proxy. {past(target)}")
    return None


def _refused(status: int | None, target: Target, place: str) -> tuple[str, str]:
    """Say what it means that a proxy lets nothing through."""
    proxy = target.shown_proxy
    if status == 407:
        return wants_password(target)
    if status in (502, 503, 504):
        text = f"The proxy {proxy} cannot reach {place} ({status})."
        return text, f"Is the server running, and the address right as the proxy sees it? {past(target)}"
    if status in (403, 429):
        text = f"The proxy {proxy} lets nobody through to {place} ({status})."
        return text, f"Ask whoever runs the proxy: many let through port 443 alone. {past(target)}"
    said = "in something that is no HTTP" if status is None else f"with {status}"
    text = f"There is no way through the proxy {proxy}: it answers CONNECT {said}, as what is no proxy does."
    return text, past(target)
