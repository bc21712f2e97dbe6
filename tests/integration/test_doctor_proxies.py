"""What the doctor says of proxies: which of the two is at fault, the proxy or the server behind it."""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import trustme
from doctor_kit import Answer, found, info, listening, proxy, says

from predsession.doctor import Examination, Verdict, examine

FAR = "models.example.com"


def ways(*_: object) -> int:
    """Open every way."""
    return 200


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """An authority that nobody knows."""
    return trustme.CA()


@pytest.fixture(scope="module")
def trusted(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The authority's certificate, in a file."""
    path = tmp_path_factory.mktemp("authority") / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


def certified(authority: trustme.CA, name: str, *, days: float = 90) -> ssl.SSLContext:
    """Return what shows a certificate for a name."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    until = datetime.now(UTC) + timedelta(days=days)
    authority.issue_cert(name, not_after=until).configure_cert(context)
    return context


def behind(port: int, *, verify: bool | Path = True, scheme: str = "http") -> Examination:
    """Examine a server of TLS behind a proxy."""
    proxies = {"https": f"{scheme}://somebody:secret-word@localhost:{port}"}
    examination = examine(f"https://{FAR}", proxies=proxies, verify=verify)
    assert "secret-word" not in repr(examination)
    return examination


def test_a_certificate_behind_a_proxy(authority: trustme.CA, trusted: Path) -> None:
    """It is the server's, or that of a proxy that looks into it: --ca is the advice; trusted, all is well."""
    with listening(context=certified(authority, FAR)) as server, proxy(ways, to=server) as port:
        unknown = behind(port)
        says(
            unknown, "certificate", Verdict.BAD, "not trusted", "--ca", "through the proxy http://localhost:"
        )
        assert "no_proxy" not in found(unknown, "certificate").advice
        assert "answer" in unknown.unseen
        well = behind(port, verify=trusted)
        says(well, "certificate", Verdict.OK, "good until")
        assert well.verdict is Verdict.OK, well
        with pytest.warns(Warning, match="Unverified HTTPS"):  # urllib3's own word
            says(behind(port, verify=False), "certificate", Verdict.WARNING, "not checked")


@pytest.mark.parametrize(
    ("name", "days", "verdict", "words"),
    [
        ("elsewhere.example.com", 90.0, Verdict.BAD, ["not for models.example.com", "Use the name"]),
        (FAR, -1.0, Verdict.BAD, ["expired"]),
        (FAR, 3.1, Verdict.WARNING, ["3 more days"]),
    ],
)
def test_what_is_wrong_with_it(
    name: str, days: float, verdict: Verdict, words: list[str], authority: trustme.CA, trusted: Path
) -> None:
    """Another name, an end that is near or past: told as it is without a proxy."""
    context = certified(authority, name, days=days)
    with listening(context=context) as server, proxy(ways, to=server) as port:
        says(behind(port, verify=trusted), "certificate", verdict, *words)


def test_no_tls_behind_a_proxy() -> None:
    """What is at the far end is looked at, not the proxy."""
    with listening() as server, proxy(ways, to=server) as port:
        says(behind(port), "certificate", Verdict.BAD, "no TLS", "http://", "through the proxy")


REFUSALS: dict[str, tuple[int | bytes, list[str]]] = {
    "wrong password": (407, ["refuses the name and the password", "https_proxy: http://name:password@host"]),
    "no server": (503, ["cannot reach models.example.com:443 (503)", "Is the server running"]),
    "forbidden": (403, ["lets nobody through", "Ask whoever runs the proxy"]),
    "web server": (404, ["no way through the proxy", "CONNECT with 404", "no_proxy"]),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.6\r\n", ["no way through the proxy", "no HTTP"]),
    "silence": (b"", ["no way through the proxy", "no HTTP"]),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_way_that_is_refused(name: str) -> None:
    """The proxy is named, what it said, and what that means."""
    answer, words = REFUSALS[name]
    with proxy(lambda *_: answer) as port:
        examination = behind(port)
    says(examination, "answer", Verdict.BAD, *words)
    assert "certificate" in examination.unseen


def test_a_proxy_that_wants_a_password(authority: trustme.CA, trusted: Path) -> None:
    """Without one the form is told; with the right one, signs escaped, all is well."""

    def guarded(place: str, headers: Mapping[str, str]) -> int:
        places.add(place)
        return 200 if headers.get("Proxy-Authorization") == right else 407

    right = f"Basic {base64.b64encode('a:b@:/ä'.encode('latin-1')).decode()}"  # as requests writes it
    places: set[str] = set()
    with listening(context=certified(authority, FAR)) as server, proxy(guarded, to=server) as port:
        for user, verdict in (("", Verdict.BAD), ("a:b%40%3A%2F%C3%A4@", Verdict.OK)):
            url = f"http://{user}127.0.0.1:{port}"
            examination = examine(f"https://{FAR}", proxies={"https": url}, verify=trusted)
            says(examination, "answer", verdict)
            if verdict is Verdict.BAD:
                says(
                    examination, "answer", verdict, "wants a name and a password", "http://name:password@host"
                )
    assert places == {f"{FAR}:443"}


def test_a_proxy_that_never_answers() -> None:
    """A way that does not come about ends in time, and the proxy is named."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        proxies = {"http": f"http://127.0.0.1:{port}", "https": f"http://127.0.0.1:{port}"}
        words = ["proxy http://127.0.0.1:", "within 1 s"]
        says(examine(f"https://{FAR}", proxies=proxies, timeout=1.0), "answer", Verdict.BAD, *words)
        says(examine(f"http://{FAR}", proxies=proxies, timeout=1.0), "answer", Verdict.BAD, *words)


def test_a_proxy_that_is_spoken_with_over_tls(authority: trustme.CA, trusted: Path) -> None:
    """Its own certificate is told from the server's; TLS goes through TLS; one without any is told."""
    own = certified(authority, "localhost")
    with listening(context=certified(authority, FAR)) as server:
        with proxy(ways, to=server, context=own) as port:
            says(behind(port, scheme="https"), "certificate", Verdict.BAD, "The proxy's certificate", "--ca")
            well = behind(port, scheme="https", verify=trusted)
            assert well.verdict is Verdict.OK, well
        with proxy(ways, to=server) as port:
            for scheme in ("http", "https"):
                proxies = {scheme: f"https://localhost:{port}"}
                examination = examine(f"{scheme}://{FAR}", proxies=proxies, verify=trusted)
                words = [
                    "TLS with the proxy",
                    "speaks no TLS",
                    "Write http:// instead",
                    "the proxy that is meant",
                ]
                says(examination, "certificate", Verdict.BAD, *words)


@pytest.mark.parametrize(
    "answer",
    [(501, {}, b""), (404, {}, b"<html>"), (200, {}, b"<title>Sign in</title>"), (403, {}, b""),
     (302, {"Location": "http://portal.example.com/login"}, b"")],
)  # fmt: skip
def test_what_is_no_proxy_for_http(answer: Answer) -> None:
    """A web server, or a portal, in the proxy's place answers for hosts that there are not, too."""
    with listening(lambda _: answer) as port:
        url = f"http://127.0.0.1:{port}"
        examination = examine(f"http://{FAR}", proxies={"http": url})
    says(examination, "answer", Verdict.BAD, url, f"({answer[0]})", "passes nothing on", "no_proxy")
    assert "--token" not in found(examination, "answer").advice


def forwarding(answer: Answer) -> Callable[[BaseHTTPRequestHandler], Answer]:
    """Return what answers as a proxy does: for a server, and for a host that it does not find."""
    return lambda handler: answer if FAR in handler.path else (502, {}, b"<title>No such host</title>")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((404, {}, b"<html>"), ["no inference server at this path", "It came through the proxy"]),
        ((401, {}, b"{}"), ["wants a token", "--token"]),
        ((502, {}, b""), ["A proxy answers in the server's place", "It came through the proxy"]),
        ((407, {}, b""), ["wants a name and a password", "http_proxy"]),
    ],
)
def test_an_answer_of_a_server_behind_a_proxy(answer: Answer, words: list[str]) -> None:
    """What comes from the server, as far as can be told, is spoken of as the server's; the proxy is named."""
    with listening(forwarding(answer)) as port:
        examination = examine(f"http://{FAR}", proxies={"http": f"http://127.0.0.1:{port}"})
    says(examination, "answer", Verdict.BAD, *words)
    assert "passes nothing on" not in found(examination, "answer").text


def test_a_server_behind_a_proxy_is_well() -> None:
    """Over plain HTTP nothing is said of the proxy but that it is there."""
    with listening(info) as port:
        examination = examine(f"http://{FAR}", proxies={"http": f"http://127.0.0.1:{port}"})
    assert examination.verdict is Verdict.OK, examination
    assert "proxy" not in found(examination, "answer").text


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("ftp://proxy:21", ["of no kind that is known", "http://"]),
        ("socks5h://proxy:1080", ["PySocks", "pip install"]),
        ("http://%E2%82%AC:x@proxy:3128", ["no header can carry"]),
        ("http://", ["cannot be read"]),
    ],
)
def test_a_proxy_that_cannot_be_used(named: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind that nobody speaks, a package that is missing, a password of odd letters: told first."""
    monkeypatch.setattr("predsession.doctor.proxies.find_spec", lambda _: None)
    for scheme in ("http", "https"):
        says(examine(f"{scheme}://{FAR}", proxies={scheme: named}), "proxy", Verdict.BAD, *words)


def test_a_name_that_no_proxy_can_look_up() -> None:
    """Nobody here looks it up, so it is looked at as it is written."""
    says(examine("http://a..b", proxies={"http": "http://127.0.0.1:1"}), "address", Verdict.BAD, "no name")
