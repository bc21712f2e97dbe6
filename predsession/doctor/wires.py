"""Whether a connection can be made, what is spoken on it, and whether TLS is agreed on.

Bare sockets, on purpose: a request tells a refused connection from a bad certificate, but not a certificate
that ends tomorrow from a good one, nor a gRPC server from one that is broken.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from enum import Enum

from predsession.doctor.findings import Finding, bad, ok
from predsession.http.loopback import is_loopback

Dial = Callable[[], socket.socket]
"""Makes a connection to what is looked at, straight or through a proxy."""
_HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""How every HTTP/2 connection begins: the preface and an empty SETTINGS frame (RFC 9113, section 3.4)."""
_SETTINGS = 4


class Tongue(Enum):
    """What a port speaks."""

    HTTP = "HTTP"
    GRPC = "HTTP/2 without TLS, as gRPC servers do"
    TLS = "TLS"
    UNKNOWN = "nothing that is known here"


def connect(addresses: Sequence[str], port: int, *, patience: float) -> tuple[str | None, Finding]:
    """Make a connection to the first address that takes one.

    Parameters
    ----------
    addresses : sequence of str
        In the order in which they are tried.
    port : int
        Where on them.
    patience : float
        Seconds for each.

    Returns
    -------
    str or None
        The address that took it.
    Finding
        What is to be said of it.
    """
    failed: OSError = OSError("no address")
    for address in addresses:
        began = time.perf_counter()
        try:
            with socket.create_connection((address, port), timeout=patience):
                took = (time.perf_counter() - began) * 1e3
                return address, ok(
                    "connection", f"Port {port} of {address} takes connections ({took:.1f} ms)."
                )
        except OSError as error:
            failed = error
    return None, _unreachable(failed, addresses[-1], port, patience)


def _unreachable(error: OSError, address: str, port: int, patience: float) -> Finding:
    """Say why no connection came about."""
    if isinstance(error, ConnectionRefusedError):
        advice = "Start the server, or correct the port."
        if is_loopback(address):
            advice += " In a container this address is the container itself, not the machine it runs on."
        else:
            advice += " A server that listens on 127.0.0.1 only is not seen from here: start it for 0.0.0.0."
        return bad(
            "connection", f"Nothing listens on port {port} of {address}: it refuses connections.", advice
        )
    if isinstance(error, TimeoutError):
        text = f"Port {port} of {address} gave no sign within {patience:.0f} s."
        advice = "A firewall drops it, mostly, or the machine is off or elsewhere: check address and VPN."
        return bad("connection", text, advice)
    text = f"Port {port} of {address} cannot be reached: {error.strerror or error}."
    return bad("connection", text, "Check this machine's network, its routes and the VPN.")


def straight(address: str, port: int, *, patience: float) -> Dial:
    """Return what makes connections with nothing in between.

    Parameters
    ----------
    address : str
        A host's.
    port : int
        Where on it.
    patience : float
        Seconds for a connection, and for each word of it.

    Returns
    -------
    callable
        Makes one; raises `OSError`.
    """
    return lambda: socket.create_connection((address, port), timeout=patience)


def tongue_of(dial: Dial) -> Tongue:
    """Find out what a port speaks, by what it says to the first words of several protocols.

    Parameters
    ----------
    dial : callable
        Makes a connection to it.

    Returns
    -------
    Tongue
        What it speaks.
    """
    with contextlib.suppress(OSError):
        head = _said(dial, _HTTP2)
        if len(head) >= 4 and head[3] == _SETTINGS and not head.startswith(b"HTTP"):
            return Tongue.GRPC
        if head.startswith(b"HTTP/"):
            return Tongue.HTTP
    with contextlib.suppress(OSError), dial() as connection:
        agree(connection, trusting_all(), None)
        return Tongue.TLS
    with contextlib.suppress(OSError):
        if _said(dial, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/"):
            return Tongue.HTTP
    return Tongue.UNKNOWN


def _said(dial: Dial, words: bytes) -> bytes:
    """Return the first bytes of an answer."""
    with dial() as connection:
        connection.sendall(words)
        return connection.recv(64)


def agree(connection: socket.socket, context: ssl.SSLContext, name: str | None) -> ssl.SSLObject:
    """Agree on TLS, over a connection that may be one of TLS itself: that to a proxy.

    Parameters
    ----------
    connection : socket.socket
        Just made.
    context : ssl.SSLContext
        What is trusted.
    name : str or None
        Whose certificate is asked for.

    Returns
    -------
    ssl.SSLObject
        After the handshake; only to be looked at.

    Raises
    ------
    OSError
        If they do not agree.
    """
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    except ValueError as error:  # a name that no certificate can have
        raise OSError(str(error)) from None
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            connection.sendall(outgoing.read())
            if block := connection.recv(1 << 14):
                incoming.write(block)
            else:
                incoming.write_eof()
        else:
            return tls
        finally:
            if outgoing.pending:  # our last word, or the alert that says why not
                with contextlib.suppress(OSError):
                    connection.sendall(outgoing.read())


def trusting_all() -> ssl.SSLContext:
    """Return a context that takes any certificate: nothing but the handshake is sent over it."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def for_grpc(host: str, port: int) -> str:
    """Return the advice of which commands speak gRPC with a server."""
    place = f"{host}:{port}"
    return (
        f"For named tensors: `predsession tensor info grpc://{place}`; "
        f"for a camera's runtime: `predsession edge stats --endpoint {place}`. "
        "The server's HTTP, if it has one, is at another port."
    )
