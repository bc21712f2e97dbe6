"""Send a call, get a reply. The only room, with its parts, that knows requests and requests_toolbelt.

Every foreign exception is translated here, at one border. A redirect is never followed for a call: a
redirected POST would become a GET. Environment proxies and CA bundles are honoured, ``.netrc`` is not
(it would send a password nobody asked for), and the loopback never goes through a proxy.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypedDict

import requests
from requests_toolbelt import MultipartEncoder

from predsession import errors
from predsession.http.auth import Credentials, Secret, check_endpoint, secrets_in, show_url
from predsession.http.patience import PatientAdapter
from predsession.http.reading import REDIRECTS, TARGET, Untempted, prepared, read_reply, redirected
from predsession.http.surroundings import proxies_for, verify_with
from predsession.http.translation import translated
from predsession.inputs.uploads import Part, PartReader
from predsession.wire.calls import Call
from predsession.wire.httpreply import Reply, check_status
from predsession.wire.jsontypes import JSON

log = logging.getLogger(__name__)

MOSTREDIRECTS = 10
"""Addresses that a picture's URL may be passed on to."""


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How to reach the server.

    Parameters
    ----------
    connect_timeout, read_timeout : float
        Seconds to connect (and to get a block of an upload accepted), and to wait for an answer.
    verify : bool or str
        Whether to check certificates, or the path of a CA bundle.
    cert : str or tuple of str, optional
        A client certificate: one file, or certificate and key.
    proxies : mapping, optional
        Proxy by scheme; the environment's by default. An empty mapping uses none.
    """

    connect_timeout: float = 10.0
    read_timeout: float = 60.0
    verify: bool | str = True
    cert: str | tuple[str, str] | None = None
    proxies: Mapping[str, str] | None = field(default=None, repr=False)  # may hold a password


class Transport(Protocol):
    """The seam: one try of one call, no retries."""

    def send(
        self,
        call: Call,
        parts: Sequence[Part] = (),
        *,
        on_bytes: Callable[[int], None] | None = None,
        read_timeout: float | None = None,
    ) -> Reply:
        """Send the call, with files if there are any; return the answer, whatever its status."""

    def fetch(self, url: str, *, max_bytes: int, cancelled: Callable[[], bool]) -> Reply:
        """Get what is at another URL, without the endpoint's secrets."""

    def close(self) -> None:
        """Close the connections."""


class HttpTransport:
    """Calls over a pool of kept connections.

    Parameters
    ----------
    endpoint : str
        The server's base URL.
    token : str, optional
        Sent to the endpoint's own origin only.
    options : ConnectionOptions, optional
        Timeouts, certificates, proxies.
    """

    def __init__(
        self, endpoint: str, *, token: str | None = None, options: ConnectionOptions | None = None
    ) -> None:
        self._endpoint = Secret(check_endpoint(endpoint))
        self._shown = show_url(self._endpoint)
        self._credentials = Credentials(self._endpoint, token)
        self._secrets = secrets_in(self._endpoint, token)
        self._options = options or ConnectionOptions()
        self._pool = self._new_session()
        self._foreign: requests.Session | None = None

    def __repr__(self) -> str:
        return f"HttpTransport({self._shown!r})"

    def send(
        self,
        call: Call,
        parts: Sequence[Part] = (),
        *,
        on_bytes: Callable[[int], None] | None = None,
        read_timeout: float | None = None,
    ) -> Reply:
        """Send the call once.

        Parameters
        ----------
        call : Call
            What to say.
        parts : sequence of Part
            Files; with any, the call travels as multipart/form-data.
        on_bytes : callable, optional
            Called with the number of file bytes, as they are sent.
        read_timeout : float, optional
            Seconds to wait for the answer, if that is less than the options say.

        Returns
        -------
        Reply
            The answer, whatever its status.

        Raises
        ------
        ConnectError
            If nothing was sent.
        RequestTimeoutError
            If no answer came in time.
        TransportError
            If the connection, or the answer, broke.
        """
        shown = f"{self._shown}/{call.endpoint}"
        url = Secret(f"{self._endpoint}/{call.endpoint}")
        readers = [PartReader(part, on_bytes) for part in parts]
        body, content_type = _encode(call, parts, readers, token=self._credentials.token)
        headers = {**call.headers, "Content-Type": content_type, **self._credentials.headers_for(url)}
        began = time.perf_counter()
        how = self._how(url, read_timeout)
        try:
            with (
                translated(shown),
                self._pool.post(
                    url, data=body, headers=headers, allow_redirects=False, stream=True, **how
                ) as answer,
            ):
                reply = read_reply(answer, shown, secrets=self._secrets)
        finally:
            for reader in readers:
                reader.close()
        log.debug("%s %s in %.0f ms", shown, reply.status, (time.perf_counter() - began) * 1e3)
        return reply

    def ask(
        self,
        method: str,
        place: str,
        *,
        body: bytes | PartReader = b"",
        headers: Mapping[str, str] | None = None,
        read_timeout: float | None = None,
    ) -> Reply:
        """Send any request once, for protocols other than that of jobs.

        Parameters
        ----------
        method : str
            "GET".
        place : str
            Below the endpoint: "v2/health/ready".
        body : bytes or PartReader
            Sent as it is. What reading it raises ends the call.
        headers : mapping, optional
            Beside the endpoint's own credentials.
        read_timeout : float, optional
            Seconds to wait for the answer, if that is less than the options say.

        Returns
        -------
        Reply
            The answer, whatever its status.

        Raises
        ------
        TransportError
            As `send` does.
        """
        shown = f"{self._shown}/{place}"
        url = Secret(f"{self._endpoint}/{place}")
        how = self._how(url, read_timeout)
        with (
            translated(shown),
            self._pool.request(
                method,
                url,
                data=body,
                headers={**(headers or {}), **self._credentials.headers_for(url)},
                allow_redirects=False,
                stream=True,
                **how,
            ) as answer,
        ):
            return read_reply(answer, shown, secrets=self._secrets)

    def fetch(self, url: str, *, max_bytes: int, cancelled: Callable[[], bool] = lambda: False) -> Reply:
        """Get what is at a URL; redirects are followed, the endpoint's token never travels along.

        Parameters
        ----------
        url : str
            http or https.
        max_bytes : int
            More is refused.
        cancelled : callable
            Asked while the body comes; True breaks off.

        Returns
        -------
        Reply
            The answer, whatever its status.

        Raises
        ------
        TransportError
            If it cannot be reached, is too large, or takes longer than the read timeout as a whole.
        """
        if self._foreign is None:
            self._foreign = self._new_session()
        for _ in range(MOSTREDIRECTS + 1):
            reply = self._get(self._foreign, url, {}, max_bytes=max_bytes, cancelled=cancelled)
            target = reply.headers.get(TARGET)
            if target is None:
                return reply
            url = Secret(target)
        shown = show_url(url)
        raise errors.TransportError(f"{shown} comes after {MOSTREDIRECTS} redirects, too many", url=shown)

    def fetch_own(self, place: str, *, max_bytes: int) -> bytes:
        """Get what is at a place below the endpoint, with its token; redirects are not followed.

        Parameters
        ----------
        place : str
            Such as ``library/images/3``.
        max_bytes : int
            More is refused.

        Returns
        -------
        bytes
            The body.

        Raises
        ------
        TransportError
            If it cannot be reached, or is too large.
        ResponseError
            If the answer is an error.
        """
        url = Secret(f"{self._endpoint}/{place}")
        headers = self._credentials.headers_for(url)
        reply = self._get(self._pool, url, headers, max_bytes=max_bytes, cancelled=lambda: False)
        check_status(reply)
        return reply.body

    def _get(
        self,
        session: requests.Session,
        url: str,
        headers: dict[str, str],
        *,
        max_bytes: int,
        cancelled: Callable[[], bool],
    ) -> Reply:
        """Get a body, bounded in size and time; no redirect is followed."""
        shown, ends = show_url(url), time.monotonic() + self._options.read_timeout
        with (
            translated(shown),
            session.get(
                url, headers=headers, stream=True, allow_redirects=False, **self._how(url, None)
            ) as answer,
        ):
            if session is self._foreign and answer.status_code in REDIRECTS:
                return Reply(answer.status_code, redirected(answer, url), b"", shown)
            data = bytearray()
            # Not `iter_content`: it waits for a whole block, and a server that trickles would hold us.
            while block := answer.raw.read1(1 << 16, decode_content=True):
                data += block
                if len(data) > max_bytes:
                    raise errors.TransportError(f"{shown} is larger than {max_bytes} bytes", url=shown)
                if cancelled() or time.monotonic() > ends:
                    raise errors.RequestTimeoutError(f"{shown} took too long", url=shown)
            secrets = secrets_in(url, self._credentials.token)
            return Reply(answer.status_code, prepared(answer.headers), bytes(data), shown, secrets)

    def watch_connections(self) -> Callable[[], int]:
        """Return what counts the connections that answers come over from now on: one, where it is kept."""
        names: set[object] = set()

        def note(answer: requests.Response, **_: object) -> None:
            connection = getattr(answer.raw, "connection", None)
            socket = getattr(connection, "sock", None)  # None where it was said that it will be closed
            socket = getattr(socket, "socket", socket)  # TLS within that of a proxy
            names.add(object() if socket is None else socket.getsockname())

        self._pool.hooks["response"].append(note)
        return lambda: len(names)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()
        if self._foreign is not None:
            self._foreign.close()

    def _new_session(self) -> requests.Session:
        """Return a session that reads nothing from the environment by itself."""
        session = Untempted()
        session.trust_env = False
        session.headers["User-Agent"] = "predsession"
        adapter = PatientAdapter(pool_connections=4, pool_maxsize=8, max_retries=0)
        session.mount("http://", adapter)
        session.mount("https://", adapter)
        return session

    def _how(self, url: str, read_timeout: float | None) -> _Keywords:
        """Return timeouts, certificates and proxies for a request to this URL."""
        options, verify = self._options, verify_with(self._options.verify)
        if isinstance(verify, str) and not os.path.exists(verify):  # noqa: PTH110 - asked with each call
            text = f"the certificates to trust are not there: no file or folder {verify}"
            raise errors.ConnectError(text, url=show_url(url), permanent=True)
        return {
            "timeout": (
                min(options.connect_timeout, read_timeout or options.connect_timeout),
                min(options.read_timeout, read_timeout or options.read_timeout),
            ),
            "verify": verify,
            "cert": options.cert,
            "proxies": proxies_for(url, options.proxies),
        }


class _Keywords(TypedDict):
    """Keyword arguments that requests takes with every request."""

    timeout: tuple[float, float]
    verify: bool | str
    cert: str | tuple[str, str] | None
    proxies: dict[str, str]


def _encode(
    call: Call, parts: Sequence[Part], readers: Sequence[PartReader], *, token: str | None
) -> tuple[bytes | MultipartEncoder, str]:
    """Return the body and its content type: JSON, or multipart with the state before the files."""
    if not parts:
        body: dict[str, JSON] = {"state": call.state, "context": {}}
        if call.token_in_body and token is not None:
            body["api_token"] = token
        return json.dumps(body).encode(), "application/json"
    fields: list[tuple[str, str | tuple[str, PartReader, str]]] = [("state", json.dumps(call.state))]
    fields += [
        ("files", (part.filename, reader, part.content_type))
        for part, reader in zip(parts, readers, strict=True)
    ]
    encoder = MultipartEncoder(fields)
    return encoder, str(encoder.content_type)
