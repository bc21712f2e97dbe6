"""A server that answers each call with what it was told to, down to the bytes of the status line."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from hostile import GOOD


@dataclass(frozen=True)
class Raw:
    """An answer with all that is before its body; the connection is closed after it."""

    data: bytes
    trickle: float = 0.0
    """Seconds after which one more byte follows, and so on, until the client has had enough."""


Answer = bytes | Raw


class HostileServer:
    """Answers soundly but for what `answers` says, by endpoint; a context manager."""

    def __init__(self, answers: Mapping[str, Answer] | None = None) -> None:
        self.answers: dict[str, Answer] = dict(answers or {})
        self.seen: list[tuple[str, dict[str, str]]] = []
        """Path and headers, names in lower case, of every request."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # head and body are written apart: 40 ms a call otherwise

            def do_POST(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.seen.append((self.path, headers))
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.answer(self)

            do_GET = do_POST

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class has it
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one call."""
        endpoint = handler.path.partition("?")[0].rpartition("/")[2]
        answer = self.answers.get(endpoint, json.dumps(GOOD.get(endpoint, {})).encode())
        try:
            if isinstance(answer, Raw):
                handler.close_connection = True
                handler.wfile.write(answer.data)
                while answer.trickle:
                    time.sleep(answer.trickle)
                    handler.wfile.write(b" ")
                return
            handler.send_response(200)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(answer)))
            handler.end_headers()
            handler.wfile.write(answer)
        except OSError:
            pass  # the client has had enough

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
