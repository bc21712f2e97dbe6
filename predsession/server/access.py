"""The door: who may come in, and one line a request in the log. Neither line nor answer shows a token."""

from __future__ import annotations

import hmac
import logging
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger("predsession.access")
_REFUSED = (
    b'{"detail":"This server wants a token: header x-api-key, or Authorization: Bearer.","success":false}'
)


class Access:
    """ASGI middleware.

    Parameters
    ----------
    app : ASGI application
        What lies behind the door.
    token : str or None
        What a caller must show, where set.
    """

    def __init__(self, app: ASGIApp, *, token: str | None) -> None:
        self._app = app
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it, and log it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 0

        async def watching(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            if self._allowed(Headers(scope=scope)):
                await self._app(scope, receive, watching)
            else:
                await _refuse(watching)
        finally:
            # The path only: a query may hold anything.
            milliseconds = (time.perf_counter() - began) * 1000
            _log.info("%s %s %d %.1f ms", scope["method"], ascii(scope["path"])[1:-1], status, milliseconds)

    def _allowed(self, headers: Headers) -> bool:
        """Compare in constant time, so that the time taken tells nothing about the token."""
        if self._token is None:
            return True
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        shown = headers.get("x-api-key") or bearer
        return hmac.compare_digest(shown.encode(), self._token)


async def _refuse(send: Send) -> None:
    """Answer 401 without reading the body."""
    headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
    headers.append((b"content-length", str(len(_REFUSED)).encode()))
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": _REFUSED})
