"""The page for people: ``GET /``, its files, the overview that it polls, and the description of the calls.

The files say nothing about this server, so they are open to everybody, also where a token is wanted: a
browser cannot show one when it opens an address. The overview is behind the same check as every call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from predsession.server import answers
from predsession.server.openapi import describe
from predsession.server.openapi_page import render
from predsession.server.overview import Overview
from predsession.server.refusal import Refusal, detail
from predsession.server.service import Service

_FOLDER = Path(__file__).parent / "page"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FILES = {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}

OPEN_PATHS = frozenset({"/", "/docs", "/openapi.json", *(f"/page/{name}" for name in _FILES)})
"""What is answered without a token."""

_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class PageRoutes:
    """One method a path, all of them GET.

    Parameters
    ----------
    service : Service
        The server that it shows.
    """

    def __init__(self, service: Service) -> None:
        self._overview = Overview(service)
        description = describe(stock=service.stock, token=service.config.door.token is not None)
        self._openapi = answers.dump(description)
        self._docs = render(description).encode()

    def reads(self) -> dict[str, Callable[[Request], Awaitable[Response]]]:
        """Return each path, without its first slash, with its handler."""
        return {
            "": self.index,
            "page/{name}": self.file,
            "overview.json": self.overview,
            "openapi.json": self.openapi,
            "docs": self.docs,
        }

    async def index(self, _: Request) -> Response:
        """Answer with the page."""
        return _answer(_FILES["index.html"], ".html")

    async def file(self, request: Request) -> Response:
        """Answer with one of the page's files, by its name in a fixed table."""
        name = str(request.path_params["name"])
        if name not in _FILES:
            raise Refusal(404, detail("Not Found"))
        return _answer(_FILES[name], Path(name).suffix)

    async def overview(self, _: Request) -> Response:
        """Answer with a snapshot."""
        return _answer(answers.dump(self._overview.to_json()), ".json")

    async def openapi(self, _: Request) -> Response:
        """Answer with the description of all calls."""
        return _answer(self._openapi, ".json")

    async def docs(self, _: Request) -> Response:
        """Answer with the same, to be read."""
        return _answer(self._docs, ".html")


def _answer(body: bytes, suffix: str) -> Response:
    """Return an answer that a browser may do little with."""
    return Response(body, 200, _HEADERS, _TYPES.get(suffix, "application/json"))
