"""A server that makes faults: it stands before a real one and spoils chosen answers, on a real socket."""

from __future__ import annotations

import contextlib
import http.client
import random
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Literal, Self
from urllib.parse import urlsplit

Kind = Literal[
    "status",
    "answer",
    "drop_before",
    "drop_after",
    "reset",
    "truncate",
    "chunks",
    "stall",
    "close",
    "rewrite",
]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong.

    Parameters
    ----------
    kind : str
        ``status`` answers `status` without asking the real server; ``answer`` does so with status 200.
        ``drop_before`` closes the connection before, ``drop_after`` after the real server has acted.
        ``reset`` resets the connection once `after_bytes` of the body have been read. ``truncate`` sends
        half of the real answer; ``chunks`` sends it in chunks, and breaks off in the second. ``stall`` holds
        the real answer back for `seconds`. ``close`` sends it, and closes the connection without having said
        so, as a server does that has no patience for idle ones. ``rewrite`` sends what `rewrite` makes of it.
    endpoint : str
        The last part of the URL; any for "".
    nth : int
        Which call to the endpoint is the first to be spoilt, counted from 1.
    times : int
        How many calls in a row are spoilt.
    status : int
        For ``status``.
    body : bytes
        For ``status`` and ``answer``.
    headers : mapping
        For ``status`` and ``answer``.
    after_bytes : int
        For ``reset``; a negative number counts from the body's end.
    seconds : float
        For ``stall``.
    rewrite : callable
        For ``rewrite``: the real answer's body to the one that is sent, which need not be another.
    """

    kind: Kind
    endpoint: str = ""
    nth: int = 1
    times: int = 1
    status: int = 503
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    after_bytes: int = 0
    seconds: float = 0.0
    rewrite: Callable[[bytes], bytes] = bytes

    def strikes(self, endpoint: str, count: int) -> bool:
        """Whether the count-th call to the endpoint is spoilt."""
        return self.endpoint in ("", endpoint) and self.nth <= count < self.nth + self.times


@dataclass(frozen=True, slots=True)
class RandomFaults:
    """Faults that are drawn: the same for the same seed, whichever thread comes first.

    Parameters
    ----------
    kinds : sequence of Fault
        What may happen, each equally often; a fault with an `Fault.endpoint` only to calls of that, and never
        mind its `Fault.nth` and `Fault.times`.
    share : float
        How many of all calls are spoilt, from 0 to 1.
    seed : int
        Of the draw.
    """

    kinds: Sequence[Fault]
    share: float
    seed: int

    def __call__(self, endpoint: str, count: int) -> Fault | None:
        """Draw what happens to the count-th call to the endpoint."""
        draw = random.Random(f"{self.seed} {endpoint} {count}")  # noqa: S311 - guards nothing
        if draw.random() >= self.share:
            return None
        fitting = [fault for fault in self.kinds if fault.endpoint in ("", endpoint)]
        return draw.choice(fitting) if fitting else None


@dataclass(frozen=True, slots=True)
class Seen:
    """A call that arrived.

    Parameters
    ----------
    endpoint : str
        The last part of the URL.
    headers : mapping
        As they came, names in lower case.
    body : bytes
        As far as it was read.
    fault : Fault or None
        What was made of it.
    """

    endpoint: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    fault: Fault | None


class _Listener(ThreadingHTTPServer):
    """Knows its open connections, so that it can end like a process that is killed."""

    daemon_threads = True

    def __init__(self, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), handler)

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], address: object) -> None:
        """Serve a connection on a thread of its own."""
        if isinstance(request, socket.socket):
            self._open.add(request)
        super().process_request(request, address)

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Close a connection."""
        if isinstance(request, socket.socket):
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Say nothing of a client that has left; anything else is this server's own fault."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def hang_up(self) -> None:
        """Close every connection that is open."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class FaultyServer:
    """Passes calls on to a real server, and spoils those that its faults name.

    Parameters
    ----------
    target : str
        The real server's URL.
    faults : sequence of Fault, or callable
        What goes wrong; for each call the first that strikes. Or what decides, called with the endpoint and
        the number of the call to it, such as `RandomFaults`.
    port : int
        Where to listen; any free port for 0. Another one that was closed can be followed on its port, as a
        server that was restarted.
    keep_bodies : bool
        Whether `seen` holds the bodies. Without them a long run does not fill the memory.

    Examples
    --------
    >>> with FaultyServer(url, [Fault("drop_after", "pop_inference_results")]) as faulty:  # doctest: +SKIP
    ...     predictions = list(PredictionSession(faulty.url, "photos/"))
    """

    def __init__(
        self,
        target: str,
        faults: Sequence[Fault] | Callable[[str, int], Fault | None] = (),
        *,
        port: int = 0,
        keep_bodies: bool = True,
    ) -> None:
        self._target = urlsplit(target)
        self._choose = faults if callable(faults) else _first_of(tuple(faults))
        self._keep_bodies = keep_bodies
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self.seen: list[Seen] = []
        """Every call so far, in the order in which it was read."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            """Serves one connection."""

            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # head and body are written apart: 40 ms a call otherwise

            def do_POST(self) -> None:
                outer._serve(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
                """Say nothing."""

        self._server = _Listener(port, Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self.port}{self._target.path.rstrip('/')}"

    @property
    def target(self) -> str:
        """The real server's URL."""
        return self._target.geturl()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def calls(self, endpoint: str) -> list[Seen]:
        """Return the calls to one endpoint."""
        return [call for call in self.seen if call.endpoint == endpoint]

    def close(self) -> None:
        """Stop serving, and close every connection."""
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        """Read a call, and answer it or spoil it."""
        endpoint = handler.path.rpartition("/")[2]
        with self._lock:
            self._counts[endpoint] += 1
            count = self._counts[endpoint]
        fault = self._choose(endpoint, count)
        length = int(handler.headers.get("Content-Length", 0))
        if fault is not None and fault.kind == "reset":
            length = min(length, fault.after_bytes + (length if fault.after_bytes < 0 else 0))
        body = handler.rfile.read(max(0, length))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self._lock:
            self.seen.append(Seen(endpoint, headers, body if self._keep_bodies else b"", fault))
        with contextlib.suppress(OSError):
            if len(body) < length:  # the client broke off: the real server would wait for the rest
                _hang_up(handler, reset=False)
            else:
                self._act(handler, body, fault)

    def _act(self, handler: BaseHTTPRequestHandler, body: bytes, fault: Fault | None) -> None:
        """Do what the fault says."""
        kind = fault.kind if fault else None
        if fault and kind in ("status", "answer"):
            _answer(handler, fault.status if kind == "status" else 200, fault.headers, fault.body)
        elif kind in ("reset", "drop_before"):
            _hang_up(handler, reset=kind == "reset")
        else:
            status, headers, answer = self._forward(handler, body)
            if kind == "drop_after":
                _hang_up(handler, reset=False)
                return
            if fault and kind == "stall":
                time.sleep(fault.seconds)
            if fault and kind == "rewrite":
                answer = fault.rewrite(answer)
            if kind in ("truncate", "chunks", "close"):
                handler.close_connection = True
            if kind == "chunks":
                _break_chunks(handler, status, headers, answer)
            else:
                _answer(handler, status, headers, answer, cut=kind == "truncate")

    def _forward(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Ask the real server."""
        connection = http.client.HTTPConnection(self._target.hostname or "", self._target.port, timeout=120)
        try:
            headers = {name: value for name, value in handler.headers.items() if name.lower() != "host"}
            connection.request("POST", handler.path, body, headers)
            reply = connection.getresponse()
            kept = {name: value for name, value in reply.getheaders() if name.lower() == "content-type"}
            return reply.status, kept, reply.read()
        finally:
            connection.close()


def _first_of(faults: Sequence[Fault]) -> Callable[[str, int], Fault | None]:
    """Return what chooses the first fault that strikes."""
    return lambda endpoint, count: next((one for one in faults if one.strikes(endpoint, count)), None)


def _answer(
    handler: BaseHTTPRequestHandler,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    cut: bool = False,
) -> None:
    """Send an answer, or half of it under the whole's length."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2] if cut else body)


def _break_chunks(
    handler: BaseHTTPRequestHandler, status: int, headers: Mapping[str, str], body: bytes
) -> None:
    """Send the first half of an answer as a chunk, and then what is no chunk."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    half = body[: len(body) // 2]
    handler.wfile.write(b"%x\r\n%s\r\nno length\r\n" % (len(half), half) if half else b"no length\r\n")


def _hang_up(handler: BaseHTTPRequestHandler, *, reset: bool) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True
    if reset:
        # A zero linger time makes the close a reset (RST), which the client sees as such.
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()
    else:
        handler.connection.shutdown(socket.SHUT_RDWR)
