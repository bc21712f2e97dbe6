"""Whether a connection can be made, what is spoken on it, and whether its certificate is good.

Bare sockets, on purpose: a request tells a refused connection from a bad certificate, but not a certificate
that ends tomorrow from a good one, nor a gRPC server from one that is broken.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from predsession.doctor.findings import Finding, bad, ok, warning
from predsession.http.loopback import is_loopback

SOON_DAYS = 14
"""A certificate that ends sooner is worth a word."""
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


def tongue_of(address: str, port: int, *, patience: float) -> Tongue:
    """Find out what a port speaks, by what it says to the first words of several protocols.

    Parameters
    ----------
    address : str
        A host's.
    port : int
        Where on it.
    patience : float
        Seconds for each.

    Returns
    -------
    Tongue
        What it speaks.
    """
    with contextlib.suppress(OSError):
        head = _said(address, port, _HTTP2, patience)
        if len(head) >= 4 and head[3] == _SETTINGS and not head.startswith(b"HTTP"):
            return Tongue.GRPC
        if head.startswith(b"HTTP/"):
            return Tongue.HTTP
    with contextlib.suppress(OSError, ssl.SSLError):
        _handshake(address, port, None, patience)
        return Tongue.TLS
    with contextlib.suppress(OSError):
        if _said(address, port, b"GET / HTTP/1.0\r\n\r\n", patience).startswith(b"HTTP/"):
            return Tongue.HTTP
    return Tongue.UNKNOWN


def _said(address: str, port: int, words: bytes, patience: float) -> bytes:
    """Return the first bytes of an answer."""
    with socket.create_connection((address, port), timeout=patience) as connection:
        connection.sendall(words)
        return connection.recv(64)


def _handshake(
    address: str, port: int, name: str | None, patience: float, ca: str | None = None
) -> str | None:
    """Agree on TLS; return when the certificate ends, None where nobody asks (no name)."""
    context = trusting(ca)
    if name is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection((address, port), timeout=patience) as bare,
        context.wrap_socket(bare, server_hostname=name or address) as wrapped,
    ):
        ends = (wrapped.getpeercert() or {}).get("notAfter")
        return ends if isinstance(ends, str) else None


def for_grpc(host: str, port: int) -> str:
    """Return the advice of which commands speak gRPC with a server."""
    place = f"{host}:{port}"
    return (
        f"For named tensors: `predsession tensor info grpc://{place}`; "
        f"for a camera's runtime: `predsession edge stats --endpoint {place}`. "
        "The server's HTTP, if it has one, is at another port."
    )


def trusting(ca: str | None) -> ssl.SSLContext:
    """Return a context that trusts the authorities of a file or a folder, and, as requests, no others."""
    if ca is not None and Path(ca).is_dir():
        return ssl.create_default_context(capath=ca)
    return ssl.create_default_context(cafile=ca)


def look_at_certificate(
    address: str, port: int, *, name: str, ca: str | None, patience: float
) -> tuple[bool, Finding]:
    """Agree on TLS as a request would.

    Parameters
    ----------
    address : str
        The address that took a connection.
    port : int
        Where on it.
    name : str
        Whose certificate it must be.
    ca : str or None
        The authorities that are trusted, a file or a folder; None trusts everybody.
    patience : float
        Seconds.

    Returns
    -------
    bool
        Whether a request can go on.
    Finding
        What is to be said of it.
    """
    unusable = look_at_authorities(ca)
    if unusable is not None:
        return False, unusable
    try:
        ends = _handshake(address, port, None if ca is None else name, patience, ca)
    except ssl.SSLCertVerificationError as error:
        return False, bad("certificate", *_distrusted(error, name))
    except (OSError, ssl.SSLError) as error:
        if "WRONG_VERSION_NUMBER" in str(error) or "record layer" in str(error).lower():
            spoken = tongue_of(address, port, patience=patience)
            return False, bad("certificate", *_without_tls(name, port, spoken))
        reason = getattr(error, "reason", None) or error.strerror or type(error).__name__
        text = f"No TLS connection comes about with port {port}: {str(reason).replace('_', ' ').lower()}."
        return False, bad("certificate", text, "Is it the right port? An old server may offer old TLS only.")
    if ca is None:
        text = (
            "Certificates are not checked (verify=False): anybody in between can read and change everything."
        )
        return True, warning("certificate", text, "Pass the authority's certificate instead: --ca FILE.")
    return True, _ending(ends)


def look_at_authorities(ca: str | None) -> Finding | None:
    """Load what is trusted, before anything is sent.

    Parameters
    ----------
    ca : str or None
        A file or a folder of authorities.

    Returns
    -------
    Finding or None
        What is wrong with it.
    """
    advice = "--ca FILE, verify= in Python, or REQUESTS_CA_BUNDLE named it: correct that."
    try:
        trusting(ca)
    except ssl.SSLError:
        text = f"{ca}, whose authorities are to be trusted, holds no certificate that can be read."
        return bad("certificate", text, "It must be PEM: text with a line BEGIN CERTIFICATE. " + advice)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        text = f"{ca}, whose authorities are to be trusted, cannot be read: {reason}."
        return bad("certificate", text, advice)
    return None


def _without_tls(name: str, port: int, spoken: Tongue) -> tuple[str, str]:
    """Say what is at a port that knows no TLS."""
    if spoken is Tongue.HTTP:
        return (
            f"Port {port} speaks no TLS: it is a plain HTTP server's.",
            "Write http:// instead of https://.",
        )
    if spoken is Tongue.GRPC:
        return f"Port {port} speaks no TLS, but {spoken.value}.", for_grpc(name, port)
    return f"Port {port} speaks no TLS, and {spoken.value}.", "Is it the right port?"


def _distrusted(error: ssl.SSLCertVerificationError, name: str) -> tuple[str, str]:
    """Say what is wrong with a certificate; the numbers are OpenSSL's X509_V_ERR_*."""
    code = error.verify_code
    if code == 10:
        return "The server's certificate has expired.", "Whoever runs the server must renew it."
    if code == 9:
        advice = "Set this machine's clock right; if it is right, the certificate was made too early."
        return "The server's certificate is not valid yet.", advice
    if code in (62, 64):
        advice = "Use the name that the certificate was made for in the URL; it was made for another host."
        return f"The server's certificate is not for {name}.", advice
    if code in (18, 19, 20, 21):
        advice = (
            "If it is your company's own, pass that authority's certificate: --ca FILE, verify='FILE' in "
            "Python, or REQUESTS_CA_BUNDLE=FILE in the environment."
        )
        return "The server's certificate was made by an authority that is not trusted here.", advice
    return f"The server's certificate is refused: {error.verify_message}.", "Ask whoever runs the server."


def _ending(ends: str | None) -> Finding:
    """Say how long a good certificate is valid."""
    if ends is None:
        return ok("certificate", "The server's certificate is good.")
    until = datetime.fromtimestamp(ssl.cert_time_to_seconds(ends), UTC)
    days = (until - datetime.now(UTC)).days
    text = f"The server's certificate is good until {until:%Y-%m-%d}"
    if days < SOON_DAYS:
        return warning(
            "certificate", f"{text}: {days} more days.", "Whoever runs the server must renew it soon."
        )
    return ok("certificate", f"{text}.")
