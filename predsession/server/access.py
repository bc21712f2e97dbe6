"""The door: who may come in, and one line a request in the log. Neither line nor answer shows a token."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from predsession.server.answers import dump
from predsession.server.config import is_loopback
from predsession.server.connection import HEALTH
from predsession.server.metrics import Metrics
from predsession.server.refusal import explained
from predsession.wire.jsontypes import JSON

_CLOSED = "This server wants a token, in the header x-api-key, or as Authorization: Bearer."
_NO_PAGE = "Pages of other origins may not call this server; --cors-origin lets them."
_NO_NAME = "This server is for its own machine, under the names of that; with a token it goes by any name."
_QUIET_CALLS = frozenset({"pop_inference_results", "inference_image", "inference_batch"})
"""Calls whose time says nothing about the server: they wait for a model."""
_DRAIN, _DRAIN_S = 4 << 20, 5.0
_log = logging.getLogger("predsession.access")


@dataclass(slots=True)
class _Traffic:
    """What one request came to."""

    status: int = 0
    received: int = 0
    sent: int = 0


class Access:
    """ASGI middleware.

    Parameters
    ----------
    app : ASGI application
        What lies behind the door.
    token : str or None
        What a caller must show, where set.
    origins : tuple of str
        Other web origins whose pages may call.
    metrics : Metrics
        Counts requests.
    calls : frozenset of str
        The known calls; others are counted together.
    open_paths : frozenset of str
        What is answered without a token, beside health.
    local : bool
        Whether only this machine reaches the server; without a token it then goes by local names only.
    most : int
        How many calls are answered at the same time.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str | None,
        origins: tuple[str, ...],
        metrics: Metrics,
        calls: frozenset[str],
        open_paths: frozenset[str] = frozenset(),
        local: bool = False,
        most: int,
    ) -> None:
        self._app = app
        self._token = None if token is None else token.encode()
        self._origins = origins
        self._metrics = metrics
        self._calls = calls
        self._open = HEALTH | open_paths
        self._local = local
        self._most = most
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it; log and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        traffic = _Traffic()

        async def watched_receive() -> Message:
            message = await receive()
            traffic.received += len(message.get("body", b""))
            return message

        async def watched_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                traffic.status = message["status"]
            traffic.sent += len(message.get("body", b""))
            await send(message)

        self._inside += 1
        try:
            refusal = self._refusal(scope["path"], Headers(scope=scope))
            if refusal is None:
                await self._app(scope, watched_receive, watched_send)
            else:
                await _drain(watched_receive)
                status, text = refusal
                tensors = scope["path"] == "/v2" or scope["path"].startswith("/v2/")
                await _refuse(watched_send, status, {"error": text} if tensors else explained(text))
        finally:
            self._inside -= 1
            self._note(scope, traffic, time.perf_counter() - began)

    def _refusal(self, path: str, headers: Headers) -> tuple[int, str] | None:
        """Return status and words for a request that may not come in."""
        if self._local and self._token is None and not is_loopback(_name_in(headers.get("host", ""))):
            # A foreign name that was made to point here: the page it came from may read our answers.
            return 403, _NO_NAME
        origin = headers.get("origin")
        if origin is not None and not self._may_call(origin, headers.get("host", "")):
            return 403, _NO_PAGE
        if path not in self._open and self._inside > self._most:
            return 429, f"{self._most} calls are being answered; try again."
        if self._token is None or path in self._open:
            return None
        scheme, _, rest = headers.get("authorization", "").partition(" ")
        shown = headers.get("x-api-key") or (rest if scheme.lower() == "bearer" else "")
        # In constant time, so that the time taken tells nothing about the token; Latin-1 gives back the bytes
        # that were sent.
        if hmac.compare_digest(shown.encode("latin-1"), self._token):
            return None
        return 401, _CLOSED

    def _may_call(self, origin: str, host: str) -> bool:
        """Whether a browser's page may call: our own, or one that was let in."""
        # A browser sends a page's POST to any address, also to one that only this machine can reach. So a
        # page of another origin is refused, and so is one that reached us under a name that is not ours to
        # know: a foreign name that was made to point here.
        if origin in self._origins:
            return True
        page = urlsplit(origin)
        named = (page.hostname or "").strip("[]")
        local = named == "localhost" or named.replace(".", "").isdigit() or ":" in named
        return page.netloc == host and (local or self._token is not None)

    def _note(self, scope: Scope, traffic: _Traffic, seconds: float) -> None:
        """Write the line, and count."""
        path: str = scope["path"]
        client = scope["client"][0] if scope.get("client") else ""
        name = path.rsplit("/", 1)[-1]
        call = name if name in self._calls else "other"
        self._metrics.count("requests_total", call=call, status=str(traffic.status))
        if call not in _QUIET_CALLS:
            self._metrics.observe("request_seconds", seconds, call=call)
        # The path only, for a query may hold anything; and a token where a model's name belongs is a mistake.
        parts = ("***" if part.encode() == self._token else part for part in path.split("/"))
        shown = ascii("/".join(parts))[1:-1]
        fields = {
            "client": client,
            "method": scope["method"],
            "path": shown,
            "status": traffic.status,
            "ms": round(seconds * 1000, 1),
            "received": traffic.received,
            "sent": traffic.sent,
        }
        text = "%(client)s %(method)s %(path)s %(status)d %(ms)s ms, %(received)d in, %(sent)d out"
        _log.info(text, fields, extra={"fields": fields})


def _name_in(host: str) -> str:
    """Return the name or address in a Host header; without one, as in HTTP/1.0, no browser has sent it."""
    return urlsplit(f"//{host}").hostname or "localhost"


async def _drain(receive: Receive) -> None:
    """Read a little of a body that nobody wants: most senders read the answer only when they have sent it."""
    left = _DRAIN
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_S):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return


async def _refuse(send: Send, status: int, answer: JSON) -> None:
    """Answer a request that may not come in."""
    body = dump(answer)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 429:
        headers.append((b"retry-after", b"1"))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
