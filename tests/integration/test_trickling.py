"""Answers that come a byte now and then: whatever trickles, plain, by TLS or through a proxy, has an end."""

from __future__ import annotations

import gc
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme
from server_kit import png

from predsession import PredictionSession, errors
from predsession.doctor.uploads import try_sizes
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.wire import calls
from predsession.wire.calls import Call

OK = b"HTTP/1.1 200 OK\r\n"
LONG = OK + b"Transfer-Encoding: chunked\r\n\r\n"
TRICKLES = {
    "status line": (b"", b"H"),
    "header": (OK + b"X-A: ", b"a"),
    "headers": (OK, b"X-A: b\r\n"),
    "go on": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": (OK + b"Content-Length: 99999\r\n\r\n", b"x"),
    "chunks": (LONG, b"1\r\nx\r\n"),
    "size of a chunk": (LONG + b"1;", b"x"),
    "behind the last chunk": (LONG + b"1\r\nx\r\n0\r\n", b"X-A: b\r\n"),
}
"""What comes at once, and what then comes again and again."""
PAUSE = 0.02
PATIENCE = ConnectionOptions(read_timeout=0.1, connect_timeout=0.1)
Speak = Callable[[socket.socket, threading.Event], None]


def request_of(connection: socket.socket) -> bytes:
    """Read a request, its body included, as long as that has a length."""
    data = b""
    while b"\r\n\r\n" not in data:
        block = connection.recv(1 << 16)
        if not block:
            return b""
        data += block
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line[:15] == b"Content-Length:"), 0)
    while len(body) < length:
        body += connection.recv(1 << 16)
    return head


def trickling(first: bytes, again: bytes) -> Speak:
    """Return what answers one request for ever."""

    def speak(connection: socket.socket, over: threading.Event) -> None:
        request_of(connection)
        connection.sendall(first)
        while not over.wait(PAUSE):
            connection.sendall(again)

    return speak


@contextmanager
def speaking(speak: Speak, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Have each connection to a free port spoken to by a thread."""
    over, threads = threading.Event(), list[threading.Thread]()

    def one(connection: socket.socket) -> None:
        with connection:
            try:
                if context is not None:
                    with context.wrap_socket(connection, server_side=True) as wrapped:
                        speak(wrapped, over)
                else:
                    speak(connection, over)
            except OSError:
                pass  # the client has had enough

    def accept() -> None:
        while not over.is_set():
            try:
                threads.append(threading.Thread(target=one, args=(listener.accept()[0],)))
            except OSError:
                return
            threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread in threads:
                thread.join()


@pytest.mark.parametrize("name", TRICKLES)
def test_an_answer_that_trickles_is_late(name: str) -> None:
    """Each is the error of an answer that does not come: for a call, and for a file that is fetched."""
    with speaking(trickling(*TRICKLES[name])) as port:
        url = f"http://127.0.0.1:{port}"
        transport = HttpTransport(url, options=PATIENCE)
        for ask in (
            lambda: transport.send(calls.session_info()),
            lambda: transport.fetch(f"{url}/a.jpg", max_bytes=9999),
        ):
            with pytest.raises(errors.RequestTimeoutError):
                ask()
        transport.close()


def test_over_tls(tmp_path: Path) -> None:
    """A trickled head, and a sound answer after it, over connections with certificates."""
    authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    options = ConnectionOptions(read_timeout=0.25, verify=str(tmp_path / "ca.pem"))
    with speaking(trickling(*TRICKLES["header"]), context) as port:
        transport = HttpTransport(f"https://localhost:{port}", options=options)
        with pytest.raises(errors.RequestTimeoutError):
            transport.send(calls.session_info())
        transport.close()
    options = ConnectionOptions(verify=str(tmp_path / "ca.pem"))
    with speaking(kept(2), context) as port:
        transport = HttpTransport(f"https://localhost:{port}", options=options)
        connections = transport.watch_connections()
        assert [transport.send(calls.session_info()).body for _ in range(2)] == [b"0", b"1"]
        assert connections() == 1
        transport.close()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_through_a_proxy(scheme: str) -> None:
    """A proxy that trickles its answer, or the one to CONNECT, is given up in time like a server."""
    with speaking(trickling(*TRICKLES["header"])) as port:
        proxies = {scheme: f"http://127.0.0.1:{port}"}
        options = ConnectionOptions(read_timeout=0.25, connect_timeout=0.25, proxies=proxies)
        transport = HttpTransport(f"{scheme}://models.example.com", options=options)
        with pytest.raises(errors.RequestTimeoutError):
            transport.send(calls.session_info())
        transport.close()


def kept(count: int, *, pause: float = 0.0) -> Speak:
    """Return what answers some requests of one connection with their number."""

    def speak(connection: socket.socket, over: threading.Event) -> None:
        for number in range(count):
            if not request_of(connection):
                return
            connection.sendall(OK)
            over.wait(pause)
            connection.sendall(b"Content-Length: 1\r\n\r\n%d" % number)
        over.wait(5.0)

    return speak


def test_a_kept_connection_has_its_time_anew() -> None:
    """Two answers, each of which takes more than half of what one may, come over one connection."""
    with speaking(kept(2, pause=1.2)) as port:
        transport = HttpTransport(f"http://127.0.0.1:{port}", options=ConnectionOptions(read_timeout=2.3))
        connections = transport.watch_connections()
        assert [transport.send(calls.session_info()).body for _ in range(2)] == [b"0", b"1"]
        assert connections() == 1
        transport.close()


def test_an_upload_may_take_longer_than_an_answer() -> None:
    """What is sent slowly, because the server reads slowly, takes nothing from the answer's time."""
    size = 8 << 20

    def speak(connection: socket.socket, over: threading.Event) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        got = 0
        while got < size:
            over.wait(0.25 if got < 6 << 20 else 0.0)
            left = 1 << 20
            while left > 0 and (block := connection.recv(left)):
                got, left = got + len(block), left - len(block)
        connection.sendall(OK + b"Content-Length: 1\r\n\r\n1")

    with speaking(speak) as port:
        transport = HttpTransport(f"http://127.0.0.1:{port}", options=ConnectionOptions(read_timeout=1.2))
        began = time.monotonic()
        assert transport.ask("POST", "x", body=bytes(size)).body == b"1"
        assert time.monotonic() - began > 1.2, "the upload was no slower than an answer may be"
        transport.close()


def reading_slowly(pauses: int, seconds: float = 0.03) -> Speak:
    """Return what takes a request in with pauses, a quarter of a MiB between two, and then answers."""

    def speak(connection: socket.socket, over: threading.Event) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        for _ in range(pauses):
            over.wait(seconds)
            left = 1 << 18
            while left > 0 and (block := connection.recv(left)):
                left -= len(block)
            if left > 0:
                return
        last = b""
        while b"the end" not in last and (block := connection.recv(1 << 16)):
            last = (last + block)[-64:]
        connection.sendall(OK + b"Content-Length: 1\r\n\r\n1")

    return speak


@pytest.mark.parametrize("way", ["ask", "send"])
def test_a_body_in_memory_may_take_longer_than_a_block(way: str) -> None:
    """As one from a file may: connect_timeout is for what is handed over at once, not for all of it."""
    with speaking(reading_slowly(40, 0.04)) as port:
        options = ConnectionOptions(connect_timeout=1.2)
        transport = HttpTransport(f"http://127.0.0.1:{port}", options=options)
        text = "x" * (16 << 20) + "the end"
        reply = (
            transport.ask("POST", "x", body=text.encode())
            if way == "ask"
            else transport.send(Call("x", {"text": text}))
        )
        assert reply.body == b"1"
        transport.close()


def test_an_examination_has_an_end_where_uploads_are_taken_drop_by_drop() -> None:
    """Each block of one is taken in time, and the whole never would be."""
    with speaking(reading_slowly(1 << 20)) as port:
        transport = HttpTransport(f"http://127.0.0.1:{port}", options=ConnectionOptions(connect_timeout=5.0))
        [tried] = try_sizes(transport, (16, 32), patience=0.3)
        transport.close()
    assert isinstance(tried.error, errors.RequestTimeoutError)
    assert "not taken in within 0.3 s" in str(tried.error)


def test_a_large_answer_may_take_longer_than_a_small_one() -> None:
    """As long as it comes: more than the read timeout as a whole, and no piece of it late."""

    def speak(connection: socket.socket, over: threading.Event) -> None:
        request_of(connection)
        connection.sendall(OK + b"Content-Length: 50000\r\n\r\n")
        for _ in range(10):
            over.wait(0.15)
            connection.sendall(bytes(5000))

    with speaking(speak) as port:
        transport = HttpTransport(f"http://127.0.0.1:{port}", options=ConnectionOptions(read_timeout=1.2))
        assert len(transport.send(calls.session_info()).body) == 50000
        transport.close()


def test_a_session_ends_in_its_time() -> None:
    """Its deadline is met by a server all of whose answers trickle; no thread and no socket is left."""
    before = set(threading.enumerate())
    with speaking(trickling(*TRICKLES["header"])) as port:
        limits = {"timeout": 0.2, "total_timeout": 0.6}
        with (
            PredictionSession(f"http://127.0.0.1:{port}", [png(3)], settings={}, **limits) as session,
            pytest.raises(TimeoutError),
        ):
            list(session)
    gc.collect()  # a socket that was left open is a warning by now, and warnings are errors
    assert set(threading.enumerate()) <= before
