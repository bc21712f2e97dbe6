"""Where a server is, and which of the two ways of speaking with it the address means."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from predsession.errors import ConnectError, SourceError
from predsession.http.auth import Secret, check_endpoint, show_url

USUAL_PORT = 8001
"""The port for gRPC on the servers that speak the protocol."""
_KINDS = "grpc://host:8001, http://host:8000, unix:/path/to.sock, or a host"


@dataclass(frozen=True, slots=True)
class Address:
    """A server's address.

    Parameters
    ----------
    target : str
        In gRPC's own form, or the base URL.
    shown : str
        As it may be shown.
    http : bool
        Whether HTTP is spoken.
    secure : bool
        Whether gRPC is spoken over TLS.
    """

    target: str = field(repr=False)
    shown: str
    http: bool = False
    secure: bool = False


def find_address(host: str, grpc_port: int | None = None) -> Address:
    """Read an address.

    Parameters
    ----------
    host : str
        ``"grpc://host:port"``, ``"grpcs://host:port"`` for TLS, ``"http://host:port"``, ``"https://..."``,
        ``"unix:/path"``, ``"host"``, ``"host:port"``; without a scheme gRPC is spoken.
    grpc_port : int or None
        The port for gRPC where `host` has none; 8001 by default.

    Returns
    -------
    Address
        What it means.

    Raises
    ------
    SourceError
        If it means nothing.
    """
    if not isinstance(host, str) or not host.strip():
        raise SourceError(f"{host!r} is no server's address: {_KINDS}")
    text = host.strip()
    if text.lower().startswith(("http://", "https://")):
        if grpc_port is not None:
            raise SourceError(
                f"grpc_port={grpc_port} goes with a host, and {show_url(text)} is HTTP: pass one of the two"
            )
        try:
            endpoint = check_endpoint(text)
        except ConnectError as error:
            raise SourceError(str(error)) from None
        return Address(Secret(endpoint), show_url(endpoint), http=True)
    if text.startswith("unix:"):
        if grpc_port is not None:
            raise SourceError(f"grpc_port={grpc_port} goes with a host; {text} is a socket")
        return Address(text, text)
    return _read_host(text, grpc_port)


def _read_host(text: str, grpc_port: int | None) -> Address:
    """Read the address of a host."""
    parts = urlsplit(text if "://" in text else f"grpc://{text}")
    try:
        name, port = parts.hostname, parts.port
    except ValueError:
        name, port = None, None
    odd = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in {"grpc", "grpcs"} or not name or odd:
        raise SourceError(f"{show_url(text)!r} is no server's address: {_KINDS}")
    if port is not None and grpc_port is not None and grpc_port != port:
        raise SourceError(f"the address has port {port}, grpc_port is {grpc_port}: leave out one of the two")
    number = next((each for each in (port, grpc_port) if each is not None), USUAL_PORT)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 1 << 16:
        raise SourceError(f"the port is {number!r}; wanted 1 to 65535")
    target = f"[{name}]:{number}" if ":" in name else f"{name}:{number}"
    return Address(target, f"{parts.scheme}://{target}", secure=parts.scheme == "grpcs")
