"""The one border for foreign exceptions, and what is sent where."""

from __future__ import annotations

import io
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
import requests
import responses
import urllib3

from predsession import errors
from predsession.http.surroundings import proxies_for
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.inputs.uploads import Part, PartChangedError, PartReader
from predsession.wire import calls

URL = "http://server.example:8000"


def _foreign() -> Iterator[type[Exception]]:
    """Every exception class of requests, and of urllib3 that requests may let through."""
    todo: list[type[Exception]] = [requests.RequestException]
    while todo:
        kind = todo.pop()
        yield kind
        todo.extend(kind.__subclasses__())


@pytest.mark.parametrize("kind", sorted(set(_foreign()), key=lambda kind: kind.__name__))
@responses.activate
def test_no_foreign_exception_leaves(kind: type[Exception]) -> None:
    """Whatever requests raises becomes one of ours, without the address that may hold a secret."""
    error = kind("s3cr3t", "", 0) if kind is requests.exceptions.JSONDecodeError else kind("s3cr3t")
    responses.post(f"{URL}/get_session_info", body=error)
    with pytest.raises(errors.TransportError) as caught:
        HttpTransport(URL).send(calls.session_info())
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is None


@responses.activate
def test_urllib3s_own_exceptions_are_translated_too() -> None:
    """Requests lets some through while a body is read."""
    responses.post(f"{URL}/get_session_info", body=urllib3.exceptions.DecodeError("x"))
    with pytest.raises(errors.TransportError):
        HttpTransport(URL).send(calls.session_info())


@responses.activate
def test_the_token_is_a_header_for_the_endpoint() -> None:
    """It is sent to the endpoint, and is in no repr."""
    responses.post(f"{URL}/get_session_info", json={})
    transport = HttpTransport(URL, token="s3cr3t")
    transport.send(calls.session_info())
    assert responses.calls[0].request.headers["x-api-key"] == "s3cr3t"
    assert "s3cr3t" not in repr(transport)


@responses.activate
def test_a_fetched_url_never_gets_the_token() -> None:
    """Nor does the place that it redirects to."""
    responses.get("http://pictures.example/a.jpg", status=302, headers={"Location": "http://other.example/b"})
    responses.get("http://other.example/b", body=b"picture")
    answer = HttpTransport(URL, token="s3cr3t").fetch("http://pictures.example/a.jpg", max_bytes=99)
    assert answer.body == b"picture"
    assert all("s3cr3t" not in str(call.request.headers) for call in responses.calls)


@responses.activate
def test_a_fetched_url_has_a_limit() -> None:
    """An endless body is not read to its end."""
    responses.get("http://pictures.example/a.jpg", body=b"x" * 1000)
    with pytest.raises(errors.TransportError, match="larger than 99 bytes"):
        HttpTransport(URL).fetch("http://pictures.example/a.jpg", max_bytes=99)


def test_a_refused_connection_is_a_connect_error() -> None:
    """Nothing was sent; the error says so by its type, and what to look at."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        with pytest.raises(errors.ConnectError, match="Is the server running"):
            HttpTransport(url).send(calls.session_info())


def test_an_unknown_host_is_a_connect_error() -> None:
    """A name that does not resolve: nothing was sent."""
    with pytest.raises(errors.ConnectError, match=r"nowhere\.invalid"):
        HttpTransport("http://nowhere.invalid").send(calls.session_info())


class _Silent(BaseHTTPRequestHandler):
    """Reads and never answers, or answers half, or a byte at a time, until it is over."""

    over: ClassVar[threading.Event]

    def do_GET(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        with suppress(OSError):  # the client has had enough
            while not self.over.wait(0.05):
                self.wfile.write(b"x")
                self.wfile.flush()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("get_model_meta"):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        elif self.path.endswith("get_session_info"):
            self.over.wait(30)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that does not do its work."""
    _Silent.over = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Silent) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        _Silent.over.set()
        server.shutdown()
        thread.join()


def test_a_late_answer_is_a_timeout(silent: str) -> None:
    """Also a `TimeoutError` for those who catch that."""
    transport = HttpTransport(silent, options=ConnectionOptions(read_timeout=0.2))
    with pytest.raises(errors.RequestTimeoutError) as caught:
        transport.send(calls.session_info())
    assert isinstance(caught.value, TimeoutError)


def test_a_broken_answer_is_a_transport_error(silent: str) -> None:
    """Half an answer, or none, may have been acted on: neither a timeout nor a refused connection."""
    for call in (calls.model_meta(), calls.custom_settings()):
        with pytest.raises(errors.TransportError) as caught:
            HttpTransport(silent).send(call)
        assert not isinstance(caught.value, errors.ConnectError | errors.RequestTimeoutError)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:1", "localhost:1", "LOCALHOST.", "[::1]:1", "127.9.9.9", "127.1", "x.localhost", "0.0.0.0",
        "[::ffff:127.0.0.1]",
    ],
)  # fmt: skip
def test_the_loopback_never_goes_through_a_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that was passed, nor the environment's."""
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    assert proxies_for(f"http://{host}/x", {"http": "http://proxy.example:3128"}) == {}
    assert proxies_for(f"http://{host}/x", None) == {}


def test_proxies_come_from_the_caller_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's win; an empty mapping means none."""
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    assert proxies_for("http://far.example/x", None)["http"] == "http://proxy.example:3128"
    assert proxies_for("http://far.example/x", {}) == {}


@responses.activate
def test_no_token_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Not at DEBUG, and not the one in the endpoint's path either."""
    endpoint = "https://platform.example/net/s3cr3t"
    responses.post(f"{endpoint}/get_session_info", json={})
    with caplog.at_level(logging.DEBUG):
        HttpTransport(endpoint, token="t0ken").send(calls.session_info())
    lines = [record.getMessage() for record in caplog.records]
    assert lines
    assert not any("s3cr3t" in line or "t0ken" in line for line in lines)


def test_no_secret_is_in_another_librarys_log(silent: str, caplog: pytest.LogCaptureFixture) -> None:
    """urllib3 logs paths at DEBUG: ours are shown without what works like a token, others' are left alone."""
    transport = HttpTransport(f"{silent}/net/s3cr3t", options=ConnectionOptions(read_timeout=0.2))
    with caplog.at_level(logging.DEBUG):
        for fetch in (
            lambda: transport.send(calls.model_meta()),
            lambda: transport.fetch(f"{silent}/a.jpg?signature=s3cr3t", max_bytes=99),
        ):
            with pytest.raises(errors.TransportError):
                fetch()
        logging.getLogger("urllib3.connectionpool").debug("%s", "/net/kept?kept")
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("urllib3")]
    assert any("/net/***" in line for line in lines)
    assert not any("s3cr3t" in line for line in lines)
    assert "/net/kept?kept" in lines


def test_a_part_is_opened_when_it_is_read_and_closed_at_its_end() -> None:
    """At most one file is open; the length is right at every moment."""
    streams: list[io.BytesIO] = []

    def opened() -> io.BytesIO:
        streams.append(io.BytesIO(b"0123456789"))
        return streams[-1]

    reader = PartReader(Part("a.jpg", "image/jpeg", 10, opened))
    assert not streams
    assert (reader.read(4), reader.len) == (b"0123", 6)
    assert not streams[0].closed
    assert (reader.read(-1), reader.len, reader.read(5)) == (b"456789", 0, b"")
    assert streams[0].closed


def test_a_part_that_is_shorter_than_announced_is_an_error() -> None:
    """An encoder would wait for the rest for ever."""
    reader = PartReader(Part("a.jpg", "image/jpeg", 11, lambda: io.BytesIO(b"0123456789")))
    reader.read(10)
    with pytest.raises(PartChangedError, match=r"a\.jpg"):
        reader.read(1)
