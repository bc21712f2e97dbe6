"""What the tests of the doctor share: a server with one answer, and what a finding says."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from predsession.doctor import Examination, Finding, Verdict

INFO = json.dumps({"app_name": "raw", "task type": "object detection", "session_id": None}).encode()
META = json.dumps(
    {"classes": [{"title": "cat", "shape": "rectangle", "color": "#112233"}], "tags": []}
).encode()
Answer = tuple[int, Mapping[str, str], bytes]


def info(_: BaseHTTPRequestHandler) -> Answer:
    """Answer as an inference server does."""
    return 200, {"Content-Type": "application/json"}, INFO


@contextmanager
def listening(
    answer: Callable[[BaseHTTPRequestHandler], Answer] = info,
    *,
    context: ssl.SSLContext | None = None,
    protocol: str = "HTTP/1.1",
    date: str | None = None,
) -> Iterator[int]:
    """Serve one answer to all calls on a free port; other calls than the first question have their own."""

    class Handler(BaseHTTPRequestHandler):
        """Serves one connection."""

        protocol_version = protocol
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, body = answer(self)
            if status == 200 and body is INFO:
                body = {"get_model_meta": META, "get_status": b"{}"}.get(self.path.rpartition("/")[2], INFO)
                status = 422 if self.path.endswith("inference_batch_async") else 200
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST

        def date_time_string(self, timestamp: float | None = None) -> str:
            return date or super().date_time_string(timestamp)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with _quiet(Handler, context) as port:
        yield port


def found(examination: Examination, check: str) -> Finding:
    """Return the one finding of a check."""
    [one] = [each for each in examination if each.check == check]
    return one


def says(examination: Examination, check: str, verdict: Verdict, *words: str) -> None:
    """The finding has this verdict, and each of these words in what it says or advises."""
    one = found(examination, check)
    assert one.verdict is verdict, one
    for word in words:
        assert word in " ".join((one.text, one.advice, *one.details)), one


@contextmanager
def proxy(
    answer: Callable[[str, Mapping[str, str]], int | bytes],
    *,
    to: int = 0,
    context: ssl.SSLContext | None = None,
) -> Iterator[int]:
    """Stand between on a free port: a way that `answer` opens, with 200, leads to a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        """Serves one connection."""

        def do_CONNECT(self) -> None:
            status = answer(self.path, self.headers)
            if isinstance(status, bytes):
                self.wfile.write(status)
            elif status != 200:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                with socket.create_connection(("127.0.0.1", to)) as there:
                    back = threading.Thread(target=_pour, args=(there, self.connection))
                    back.start()
                    _pour(self.connection, there)
                    back.join()
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with _quiet(Handler, context) as port:
        yield port


def _pour(one: socket.socket, other: socket.socket) -> None:
    """Pass on what one side says, until it is silent for good."""
    with contextlib.suppress(OSError):
        while block := one.recv(1 << 16):
            other.sendall(block)
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_WR)


@contextmanager
def _quiet(handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None) -> Iterator[int]:
    """Serve on a free port."""

    class Quiet(ThreadingHTTPServer):
        """Reports no failed handshake: that is what the tests are about."""

        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Say nothing."""

    with Quiet(("127.0.0.1", 0), handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
