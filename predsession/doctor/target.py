"""What the address means: its text, its name, the proxy that it is reached through."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from predsession.doctor.findings import Finding, bad, ok
from predsession.errors import ConnectError
from predsession.http.auth import Secret, check_endpoint, show_url
from predsession.http.loopback import is_loopback
from predsession.http.surroundings import proxy_for

GRPC = frozenset({"grpc", "grpcs"})
_PORTS = {"http": 80, "https": 443, "grpc": 8001, "grpcs": 8001}
_WANTED = "Pass the server's base URL, such as http://192.168.1.20:8000."


@dataclass(frozen=True, slots=True)
class Target:
    """Where the server is.

    Parameters
    ----------
    url : str
        The base URL, as it is sent to.
    shown : str
        As it may be shown.
    scheme, host, port
        Its parts; the port is the scheme's own where the URL has none.
    proxy : str or None
        The proxy that requests to it go through.
    """

    url: str = field(repr=False)
    shown: str
    scheme: str
    host: str
    port: int
    proxy: str | None = field(default=None, repr=False)

    @property
    def is_grpc(self) -> bool:
        """Whether the address is one of gRPC's."""
        return self.scheme in GRPC

    @property
    def next_url(self) -> str:
        """Where a connection goes to, as a URL: the proxy's, where there is one."""
        if self.proxy is None:
            return self.url
        return Secret(self.proxy if "://" in self.proxy else f"http://{self.proxy}")

    @property
    def shown_proxy(self) -> str:
        """The proxy, as it may be shown; empty where there is none."""
        return show_url(self.next_url) if self.proxy is not None else ""

    @property
    def next_hop(self) -> tuple[str, int]:
        """Host and port that a connection goes to: the proxy's, where there is one."""
        if self.proxy is None:
            return self.host, self.port
        parts = urlsplit(self.next_url)
        return parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 1080)


def read_target(url: str, proxies: Mapping[str, str] | None) -> tuple[Target | None, Finding]:
    """Read the address.

    Parameters
    ----------
    url : str
        As it was given.
    proxies : mapping or None
        Proxy by scheme; the environment's for None.

    Returns
    -------
    Target or None
        What it means; None where it means nothing.
    Finding
        What is to be said of it.
    """
    parts = split_url(url.strip())
    if parts is not None and parts.scheme in GRPC:
        return _grpc(parts)
    try:
        endpoint = check_endpoint(url)
        usable = proxy_for(endpoint, proxies)
    except (ConnectError, ValueError):  # brackets
        return None, bad("address", *_no_address(url, parts))
    parts = urlsplit(endpoint)
    if any(each.isspace() for each in parts.netloc):
        return None, bad("address", *_no_address(url, parts))
    if usable is not None and not _is_name(parts.hostname or ""):  # here nobody looks it up, who would notice
        advice = "Look for a typing mistake: dots in a row, or more than 63 characters between two."
        return None, bad("address", f"{parts.hostname} is no name that a host can have.", advice)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    target = Target(Secret(endpoint), show_url(endpoint), parts.scheme, host, port, usable)
    where = "this machine" if is_loopback(host) else host
    return target, ok("address", f"{target.shown} means port {port} of {where}, over {parts.scheme.upper()}.")


def _is_name(host: str) -> bool:
    """Whether a host's name can be written as the name service, and HTTP, want it."""
    try:
        return ":" in host or bool(host.encode("idna"))
    except UnicodeError:
        return False


def split_url(url: str) -> SplitResult | None:
    """Return the parts of a URL, None where it is none at all."""
    try:
        parts = urlsplit(url)
        return parts if parts.port != 0 else None
    except ValueError:
        return None


def _grpc(parts: SplitResult) -> tuple[Target | None, Finding]:
    """Read an address of gRPC's."""
    host = parts.hostname or ""
    if not host:
        return None, bad("address", f"{parts.scheme}:// names no host.", "Pass such as grpc://host:8001.")
    port = parts.port or _PORTS[parts.scheme]
    shown = f"{parts.scheme}://{host}:{port}"
    return Target(shown, shown, parts.scheme, host, port), ok("address", f"{shown} is an address for gRPC.")


def _no_address(url: str, parts: SplitResult | None) -> tuple[str, str]:
    """Say why a text is no address, and what is meant perhaps."""
    text = url.strip()
    if not text:
        return "The address is empty.", _WANTED
    if parts is None or any(not each.isprintable() or each.isspace() for each in text):
        return "The address cannot be read as a URL: its port, its brackets or a blank in it.", _WANTED
    if parts.scheme in ("http", "https"):
        if not parts.hostname:
            return "The URL names no host.", _WANTED
        return "The URL has a query or a fragment (? or #), which a base URL has not.", _WANTED
    if text.startswith("unix:"):
        return "A socket of this machine needs no network to be looked at.", "Is its server running?"
    if "://" in text:
        advice = "Pass one that begins with http://, https://, or grpc:// for a look at the network alone."
        return f"{parts.scheme}:// is no way to speak with an inference server.", advice
    if split_url(f"http://{text}") is None:
        return "The address cannot be read as a URL: its port or its brackets.", _WANTED
    shown = show_url(f"http://{text}")
    return "The address has no scheme: http:// or https:// is missing.", f"Did you mean {shown} ?"


def resolve(host: str, port: int, *, patience: float) -> list[str]:
    """Return the addresses that a name has, the first to try first.

    Parameters
    ----------
    host : str
        A name or an address.
    port : int
        Where on it.
    patience : float
        Seconds; the system's own may be a minute.

    Returns
    -------
    list of str
        Addresses.

    Raises
    ------
    OSError
        If there are none.
    TimeoutError
        If the name service does not answer.
    """
    outcome: list[list[str] | OSError] = []

    def ask() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            outcome.append(list(dict.fromkeys(str(each[4][0]) for each in found)))
        except (OSError, UnicodeError) as error:  # a label of more than 63 characters
            outcome.append(error if isinstance(error, OSError) else OSError(str(error)))

    asking = threading.Thread(target=ask, daemon=True)  # cannot be interrupted, only left behind
    asking.start()
    asking.join(patience)
    if not outcome:
        raise TimeoutError("no answer")
    if isinstance(outcome[0], OSError):
        raise outcome[0]
    return outcome[0]


def look_at_name(host: str, port: int, *, patience: float) -> tuple[list[str], Finding]:
    """Look the name up.

    Parameters
    ----------
    host : str
        A name or an address.
    port : int
        Where on it.
    patience : float
        Seconds.

    Returns
    -------
    list of str
        Its addresses; empty where it has none.
    Finding
        What is to be said of it.
    """
    try:
        addresses = resolve(host, port, patience=patience)
    except TimeoutError:
        text = f"The name service gave no answer about {host} within {patience:.0f} s."
        return [], bad("name", text, "Is this machine on the network? Try the server's IP address instead.")
    except OSError as error:
        text = f"There is no host {host}: {error.strerror or error}."
        advice = "Look for a typing mistake, a missing VPN or domain; or pass the server's IP address."
        return [], bad("name", text, advice)
    if addresses == [host]:
        return addresses, ok("name", f"{host} is an address; there is nothing to look up.")
    return addresses, ok("name", f"{host} is {', '.join(addresses)}.")
