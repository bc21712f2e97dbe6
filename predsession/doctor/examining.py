"""The order in which things are looked at: each only if those before it let it be seen."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace

from predsession import errors
from predsession.checks import check_connection
from predsession.doctor import answering, certificates, load, proxies, serving, target, tunnel, uploads, wires
from predsession.doctor.findings import Examination, Finding, Verdict, warning
from predsession.doctor.target import Target
from predsession.http.auth import Secret, find_token, is_sendable, show_url
from predsession.http.surroundings import ca_bundle
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.wire.replies import parse_info

CHECKS = (
    "address", "proxy", "name", "connection", "certificate", "answer", "token", "server", "features", "model",
    "clock", "upload", "latency", "jobs",
)  # fmt: skip
TOTAL_S = 60.0
"""For all of it; beyond that, and the time for one answer, no further look is begun."""
LONGEST_S = 86400
"""The longest time for an answer."""
_PATIENCE_S = 5.0
"""For a name, a connection, a certificate."""


def examine(
    url: str,
    *,
    token: str | None = None,
    verify: bool | str | os.PathLike[str] = True,
    proxies: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    on_finding: Callable[[Finding], None] | None = None,
) -> Examination:
    """Look at the way to a server, and at the server, one thing after the other.

    It takes some seconds, most of them for uploads of up to 32 MiB that start nothing. After a minute, and
    `timeout`, no further look is begun. Nothing is left behind on the server.

    Parameters
    ----------
    url : str
        The server's base URL; of an address for gRPC (``grpc://host:port``) only the network is looked at.
    token : str, optional
        For the server; by default the environment's ``PREDSESSION_TOKEN``.
    verify : bool, str or path-like
        Whether to check certificates, or the path of a CA bundle.
    proxies : mapping of str to str, optional
        Proxy by scheme; the environment's by default.
    timeout : float
        Seconds to wait for an answer, from 0.001 to 86,400.
    on_finding : callable, optional
        Called with each finding as soon as it is made.

    Returns
    -------
    Examination
        What was found. Whatever is wrong with the address, the token, the files that are named or the
        server is a finding, never an exception.

    Raises
    ------
    TypeError
        If `url`, `token` or a proxy is no text, `verify` neither a bool nor a path, or `on_finding` cannot
        be called.
    ValueError
        If `timeout` is no such time, or `proxies` no mapping.

    Examples
    --------
    >>> from predsession.doctor import examine
    >>> for finding in examine("localhost:8000"):
    ...     print(finding.verdict.value, finding.text)
    bad The address has no scheme: http:// or https:// is missing.
    """
    for name, text in (("url", url), ("token", "" if token is None else token)):
        if not isinstance(text, str):  # its value is in no message: it may be a token
            raise TypeError(f"{name} must be a text, not {type(text).__name__}")
    if on_finding is not None and not callable(on_finding):
        raise TypeError(f"on_finding must be callable, not {type(on_finding).__name__}")
    options = _checked(verify, proxies, timeout)
    found: list[Finding] = []
    found_token = find_token(token, None, explicit_url=url)
    way = _Way(url, None if found_token is None else Secret(found_token), options)
    for finding in way.findings():
        found.append(finding)
        if on_finding is not None:
            on_finding(finding)
    seen = {each.check for each in found}
    unseen = tuple(name for name in CHECKS if name not in seen and name not in way.needless)
    return Examination(_shown(url.strip()), tuple(found), unseen)


def _checked(
    verify: bool | str | os.PathLike[str], given: Mapping[str, str] | None, timeout: float
) -> ConnectionOptions:
    """Check how the server is to be reached; a file that is not there is a finding, and no exception."""
    path = None if isinstance(verify, bool) else _path(verify)
    usual = verify if isinstance(verify, bool) else True
    options = check_connection(ConnectionOptions(read_timeout=timeout, verify=usual, proxies=given))
    if timeout > LONGEST_S:
        raise ValueError(f"timeout must be a number of seconds from 0.001 to {LONGEST_S}, not {timeout!r}")
    if not all(isinstance(each, str) for pair in (given or {}).items() for each in pair):
        raise TypeError("proxies must map texts to texts, such as {'https': 'http://proxy:3128'}")
    return replace(
        options, connect_timeout=min(timeout, _PATIENCE_S), verify=options.verify if path is None else path
    )


def _path(verify: object) -> str:
    """Return a path as text."""
    if not isinstance(verify, str | os.PathLike):
        raise TypeError(f"verify must be a bool or a path, not {verify!r}")
    return os.fsdecode(verify)


def _shown(text: str) -> str:
    """Return an address without secrets; one whose scheme was forgotten may have some, too."""
    return show_url(text) if "://" in text else show_url(f"http://{text}").removeprefix("http://")


class _Way:
    """The way to one server."""

    def __init__(self, url: str, token: str | None, options: ConnectionOptions) -> None:
        self._url = Secret(url)
        self._token = token
        self._options = options
        self._ends = time.monotonic() + TOTAL_S + options.read_timeout
        self.needless: set[str] = set()
        """Checks that make no sense for this address."""

    def findings(self) -> Iterator[Finding]:
        """Look, until something is in the way of the rest."""
        place, finding = target.read_target(self._url, self._options.proxies)
        yield finding
        if place is None:
            return
        if not is_sendable(self._token):
            yield answering.bad_token()
            return
        if place.scheme != "https" or proxies.proxy_scheme(place) in proxies.SOCKS:
            self.needless.add("certificate")  # through SOCKS the request itself is the only look there is
        if place.is_grpc:
            self.needless.update(CHECKS)
        else:
            finding = proxies.look_at_proxy(place, self._options.proxies)
            yield finding
            if finding.verdict is Verdict.BAD:
                return
        dial = yield from self._network(place)
        if dial is None:
            return
        if place.is_grpc:
            yield answering.look_at_grpc(place, wires.tongue_of(dial))
        else:
            yield from self._server(place, dial)

    def _network(self, place: Target) -> Generator[Finding, None, wires.Dial | None]:
        """Look at name, connection and certificate, of the proxy where there is one; return what connects."""
        patience = self._options.connect_timeout
        host, port = place.next_hop
        addresses, finding = target.look_at_name(host, port, patience=patience)
        yield proxies.blamed_on_proxy(place, finding)
        if not addresses:
            return None
        address, finding = wires.connect(addresses, port, patience=patience)
        yield proxies.blamed_on_proxy(place, finding)
        if address is None:
            return None
        dial = wires.straight(address, port, patience=patience)
        if place.scheme != "https" or "certificate" in self.needless:
            in_the_way = self._plain_proxy(place, dial)
            if in_the_way is not None:
                yield in_the_way
            return dial if in_the_way is None else None
        return (yield from self._certificate(place, dial))

    def _plain_proxy(self, place: Target, dial: wires.Dial) -> Finding | None:
        """Look whether TLS is spoken at all by a proxy that is to; what it forwards it is trusted with."""
        if proxies.proxy_scheme(place) != "https":
            return None
        return tunnel.look_at_proxys_certificate(place, dial, ca=None)

    def _certificate(self, place: Target, dial: wires.Dial) -> Generator[Finding, None, wires.Dial | None]:
        """Look at the certificate, through the proxy where there is one."""
        ca = None if self._options.verify is False else ca_bundle(self._options.verify)
        if place.proxy is not None:
            in_the_way = certificates.look_at_authorities(ca)
            if in_the_way is None and proxies.proxy_scheme(place) == "https":
                in_the_way = tunnel.look_at_proxys_certificate(place, dial, ca=ca)
            if in_the_way is None:
                patience = self._options.connect_timeout
                dial = tunnel.through(place, tunnel.encrypted(place, dial, ca=ca), patience=patience)
                in_the_way = tunnel.look_through(place, dial, patience=patience)
            if in_the_way is not None:
                yield in_the_way
                return None
        good, finding = certificates.look_at_certificate(
            dial, certificates.Peer(place.host, place.port), ca=ca
        )
        yield finding if good else proxies.told_of_proxy(place, finding)
        return dial if good else None

    def _server(self, place: Target, dial: wires.Dial) -> Iterator[Finding]:
        """Look at what answers."""
        transport = HttpTransport(place.url, token=self._token, options=self._options)
        try:
            yield from self._answers(transport, place, dial)
        finally:
            transport.close()

    def _answers(self, transport: HttpTransport, place: Target, dial: wires.Dial) -> Iterator[Finding]:
        """Ask the server, the heavy questions last."""
        sent = serving.now()
        try:
            reply = answering.ask_info(transport)
        except errors.TransportError as error:
            yield answering.look_at_failure(
                error,
                place,
                timeout=self._options.read_timeout,
                spoken=lambda: wires.tongue_of(dial),
            )
            return
        received = serving.now()
        finding = answering.look_at_answer(reply, place, token=self._token, options=self._options)
        yield finding
        if finding.verdict is not Verdict.OK:
            return
        info = parse_info(reply)
        looks: list[tuple[str, Callable[[], Finding]]] = [
            ("token", lambda: answering.look_at_token(place, self._token, options=self._options)),
            ("server", lambda: serving.look_at_server(info)),
            ("features", lambda: serving.look_at_features(info)),
            ("model", lambda: serving.look_at_model(transport, info)),
            ("clock", lambda: serving.look_at_clock(reply, sent, received)),
            ("upload", lambda: self._uploads(transport, place)),
            ("latency", lambda: load.look_at_latency(transport)),
            ("jobs", lambda: serving.look_at_jobs(transport, info)),
        ]
        for name, look in looks:
            if time.monotonic() > self._ends:
                text = (
                    "The answers so far took so long that this, and what comes after it, was not looked at."
                )
                yield warning(name, text, "The server is far or busy: look at its log, or examine it later.")
                return
            yield look()

    def _uploads(self, transport: HttpTransport, place: Target) -> Finding:
        """Look at the sizes of uploads."""
        tried = uploads.try_sizes(transport, patience=self._options.read_timeout)
        return uploads.look_at_sizes(tried, place)
