"""One connection: how long it may say nothing, and what becomes of those that are too many.

A request's own time limits are elsewhere: those of its body where it is read, those of its answer with the
call. Here is what no call sees: a connection before its first request, half a request's head, and the rest of
a body that nobody reads any more.
"""

from __future__ import annotations

import asyncio
import time
from typing import cast

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from predsession.server.answers import dump
from predsession.server.config import Limits
from predsession.server.refusal import explained

HEALTH = frozenset({"/healthz", "/readyz", "/v2/health/live", "/v2/health/ready"})
"""Paths that are answered however many others there are."""
_SPARE = 128  # beyond the limit of calls: those still get an answer that says what to do
_CROWDED = "There are too many connections; try again."


class Connection(H11Protocol):
    """uvicorn's connection, with a clock and a limit; made by the class that `connections` returns."""

    limits = Limits()

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._behind: ASGIApp = self.app
        self.app = self._answer
        self._clock: asyncio.TimerHandle | None = None
        self._most = self.limits.connections + _SPARE
        self._is_one_too_many = False
        self._born = time.monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let it in; where there is no room, the one that has kept silent for longest goes."""
        super().connection_made(cast("asyncio.Transport", transport))
        if len(self.connections) > self._most:
            silent = [one for one in self.connections if isinstance(one, Connection) and one.is_silent]
            oldest = min(silent, key=lambda one: one._born)
            if oldest is self:
                self._is_one_too_many = True
            else:
                self.connections.discard(oldest)
                oldest.transport.close()
        self._watch()

    @property
    def is_silent(self) -> bool:
        """Whether no request has come yet."""
        return self.cycle is None

    def handle_events(self) -> None:
        """Take what has come, and look whether something has to come still."""
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        """Look whether somebody goes on sending what is not read any more."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Keep the clock running while a head, or the rest of an unwanted body, is awaited."""
        limit = self._limit()
        if limit is None or self.transport.is_closing():
            self._unwatch()
        elif self._clock is None:
            self._clock = self.loop.call_later(limit, self.transport.close)

    def _limit(self) -> float | None:
        """Return how long what is awaited may take in all; None where uvicorn or a call looks after it."""
        if self.conn.their_state is h11.IDLE:
            has_begun = bool(self.conn.trailing_data[0])
            return self.limits.head if self.cycle is None or has_begun else None
        is_unwanted = self.conn.their_state is h11.SEND_BODY and self.cycle.response_complete
        return self.limits.idle if is_unwanted else None

    def _unwatch(self) -> None:
        """Stop the clock."""
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or say that there are too many; health is answered all the same."""
        self._is_one_too_many = self._is_one_too_many and len(self.connections) > self._most
        if self._is_one_too_many and scope["path"] not in HEALTH:
            await unavailable(send, _CROWDED)
        else:
            await self._behind(scope, receive, send)


def connections(limits: Limits) -> type[Connection]:
    """Return the class of a server's connections.

    Parameters
    ----------
    limits : Limits
        How many there may be, and how long they may keep silent.

    Returns
    -------
    type
        What uvicorn makes one of for each.
    """
    return type("LimitedConnection", (Connection,), {"limits": limits})


async def unavailable(send: Send, text: str) -> None:
    """Answer with status 503.

    Parameters
    ----------
    send : callable
        ASGI's.
    text : str
        Why.
    """
    body = dump(explained(text))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"retry-after", b"2"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})
