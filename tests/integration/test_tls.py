"""Certificates: a company's own authority, and a client's own certificate."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import trustme

from predsession import ConnectError
from predsession.http.caller import Caller
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.wire import calls
from predsession.wire.replies import parse_info


class _Info(BaseHTTPRequestHandler):
    """Answers every call with a server's information."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"app_name": "behind TLS"}')

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class _QuietServer(HTTPServer):
    """Reports no failed handshake: that is what the tests are about."""

    def handle_error(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """A certificate authority that nobody knows."""
    return trustme.CA()


@pytest.fixture
def files(authority: trustme.CA, tmp_path: Path) -> dict[str, str]:
    """The authority's certificate, and a client's certificate and key, as files."""
    client = authority.issue_cert("client@example.org")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    client.private_key_and_cert_chain_pem.write_to_path(tmp_path / "client.pem")
    return {name: str(tmp_path / f"{name}.pem") for name in ("ca", "client")}


def _serve(authority: trustme.CA, *, wants_client: bool) -> Iterator[str]:
    """Serve over TLS with a certificate of the authority."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    if wants_client:
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    with _QuietServer(("127.0.0.1", 0), _Info) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"https://localhost:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def url(authority: trustme.CA) -> Iterator[str]:
    """A server with a certificate of an unknown authority."""
    yield from _serve(authority, wants_client=False)


@pytest.fixture
def strict_url(authority: trustme.CA) -> Iterator[str]:
    """The same, which asks its clients for theirs."""
    yield from _serve(authority, wants_client=True)


def name_of(url: str, options: ConnectionOptions) -> str:
    """Ask a server for its name."""
    transport = HttpTransport(url, options=options)
    try:
        return parse_info(Caller(transport).call(calls.session_info())).app_name
    finally:
        transport.close()


def test_an_unknown_authority_fails_at_once_with_a_hint(url: str) -> None:
    """It is not tried again, and the message says how to trust it."""
    with pytest.raises(ConnectError, match="verify=") as caught:
        name_of(url, ConnectionOptions())
    assert caught.value.permanent


def test_an_authority_can_be_trusted(
    url: str, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `verify=path`, by the environment, or not at all by `verify=False`."""
    assert name_of(url, ConnectionOptions(verify=files["ca"])) == "behind TLS"
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", files["ca"])
    assert name_of(url, ConnectionOptions()) == "behind TLS"


def test_a_client_certificate_is_shown(strict_url: str, files: dict[str, str]) -> None:
    """A server that asks for one refuses without it."""
    trusting = ConnectionOptions(verify=files["ca"], cert=files["client"])
    assert name_of(strict_url, trusting) == "behind TLS"
    with pytest.raises(Exception, match=r"localhost"):
        name_of(strict_url, ConnectionOptions(verify=files["ca"], read_timeout=1.0))
