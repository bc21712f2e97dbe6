"""The doctor finds what is wrong, on real sockets, and says what to do; it leaves nothing behind."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import trustme
from doctor_kit import Answer, info, listening, says
from server_kit import Server

from predsession.doctor import Finding, Verdict, examine
from predsession.testing import Fault, FaultyServer, RunningServer
from predsession.wire import calls

TOKEN = "a-token-of-the-tests"


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    """A server that no other test leaves a job on: some kill their clients, whose jobs live on a while."""
    with RunningServer("pixels") as server:
        yield server.url


def test_a_server_of_ours_is_well(ours: str, ask: Callable[[str, Any], Any]) -> None:
    """All is ok, each check is made once, and the server has no job more than before."""
    told: list[Finding] = []
    examination = examine(ours, on_finding=told.append)
    assert examination.verdict is Verdict.OK, examination
    assert tuple(told) == examination.findings
    assert not examination.unseen
    says(examination, "server", Verdict.OK, "embedded", "predsession/1")
    says(examination, "features", Verdict.OK, "ack", "lease")
    says(examination, "model", Verdict.OK, "10 classes")
    says(examination, "upload", Verdict.OK, "32 MiB")
    says(examination, "latency", Verdict.OK, "kept")
    says(examination, "jobs", Verdict.OK, "No job")
    assert ask(ours, calls.list_jobs()) == {"requests": []}


def test_a_stock_server_is_well_and_its_limits_are_told(stock: str) -> None:
    """What the absence of each feature costs is said; it is no warning, for nobody can change it."""
    examination = examine(stock)
    assert examination.verdict is Verdict.OK, examination
    says(examination, "server", Verdict.OK, "stock")
    says(examination, "features", Verdict.OK, "without ack:", "without lease:", "computed again")
    says(examination, "jobs", Verdict.OK, "cannot say")


def test_a_job_that_is_live_is_told(ours: str) -> None:
    """Somebody else's job is counted, and survives the examination."""
    from server_kit import Caller, png

    with Caller(ours) as caller:
        uuid = caller.submit([png(3)])
        says(examine(ours), "jobs", Verdict.OK, "1 live", "predsession jobs")
        assert len(caller.drain(uuid)[0]) == 1
        caller.clear(uuid)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", ["empty"]),
        ("localhost:8000", ["no scheme", "http://localhost:8000"]),
        ("user:secret-word@host:80", ["no scheme", "http://host:80"]),
        ("unix:/run/x.sock", ["socket", "running"]),
        ("ftp://host", ["ftp://", "http://"]),
        ("http://", ["no host"]),
        ("http://host:99999", ["cannot be read"]),
        ("http://host name", ["cannot be read"]),
        ("http://host/?key=secret-word", ["query"]),
        ("grpc://", ["no host"]),
    ],
)
def test_an_address_that_is_none(url: str, words: list[str]) -> None:
    """Nothing is sent; the finding says what is missing, without a secret."""
    examination = examine(url)
    says(examination, "address", Verdict.BAD, *words)
    assert "answer" in examination.unseen
    assert "secret-word" not in json.dumps(examination.to_json()) + repr(examination)


def test_a_name_that_nobody_knows() -> None:
    """RFC 6761 keeps .invalid from ever being a name."""
    examination = examine("http://no-such-host.invalid:8000")
    says(examination, "name", Verdict.BAD, "no host no-such-host.invalid")
    assert "connection" in examination.unseen
    assert "certificate" not in examination.unseen  # there is none to be seen
    assert "certificate" in examine("https://no-such-host.invalid").unseen


def test_a_port_at_which_nothing_listens() -> None:
    """A refused connection is told from one without a sign."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        port = taken.getsockname()[1]
        says(examine(f"http://127.0.0.1:{port}"), "connection", Verdict.BAD, "refuses", "Start the server")


def test_a_port_that_gives_no_sign() -> None:
    """A full backlog drops what comes, as a firewall does; each look ends in time."""
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for each in (first, second):
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        says(examine(url, timeout=1.0), "connection", Verdict.BAD, "no sign", "firewall")


def test_a_server_that_takes_connections_and_says_nothing() -> None:
    """It is told from one that cannot be reached."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        says(examine(url, timeout=1.0), "answer", Verdict.BAD, "no answer within 1 s")


ANSWERS: dict[str, tuple[Answer, Verdict, list[str]]] = {
    "login page": (
        (200, {"Content-Type": "text/html; charset=utf-8"}, b"<html><title>Sign in</title></html>"),
        Verdict.BAD, ["login page", "text/html", "Sign in"]),
    "other JSON": ((200, {}, b'{"hello": "world"}'), Verdict.BAD, ["not as an inference server", "hello"]),
    "redirect to TLS": (
        (301, {"Location": "https://models.example.com/get_session_info"}, b""),
        Verdict.BAD, ["redirects", "Use that address: https://models.example.com"]),
    "redirect to login": ((302, {"Location": "https://sso.example.com/login?next=x"}, b""), Verdict.BAD,
        ["redirects", "--token"]),
    "401": ((401, {}, b"{}"), Verdict.BAD, ["wants a token", "--token"]),
    "403": ((403, {}, b"<title>Forbidden</title>"), Verdict.BAD, ["403", "--token"]),
    "404": ((404, {}, b"<html>"), Verdict.BAD, ["no inference server at this path", "Check the path"]),
    "413": ((413, {}, b""), Verdict.BAD, ["413"]),
    "429": ((429, {}, b""), Verdict.WARNING, ["429"]),
    "500": ((500, {}, b"Internal Server Error"), Verdict.BAD, ["fails", "log"]),
    "no model": (
        (500, {}, b'{"detail": {"message": "The model has not yet been deployed. Please select"}}'),
        Verdict.BAD, ["no model yet", "Deploy"]),
    "502": ((502, {}, b"<html><title>502 Bad Gateway</title></html>"), Verdict.BAD,
        ["proxy answers in the server's place", "502 Bad Gateway"]),
    "503": ((503, {}, b"<html>"), Verdict.BAD, ["proxy answers in the server's place"]),
    "503 of its own": ((503, {}, b'{"message": "The models are being loaded; try again."}'), Verdict.BAD,
        ["not ready", "being loaded"]),
    "504": ((504, {}, b""), Verdict.BAD, ["proxy answers in the server's place"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_the_first_answer_is_something_else(name: str) -> None:
    """Each is told from the others, and nothing is asked after it."""
    answer, verdict, words = ANSWERS[name]
    with listening(lambda _: answer) as port:
        examination = examine(f"http://127.0.0.1:{port}")
    says(examination, "answer", verdict, *words)
    assert "upload" in examination.unseen


def test_a_path_too_much_is_taken_off(ours: str) -> None:
    """The server is found where it is, one or two parts up."""
    for path in ("docs", "api/v1", "get_session_info"):
        says(examine(f"{ours}/{path}"), "answer", Verdict.BAD, f"The server is at {ours}: use that")


def test_a_server_of_tensors_is_pointed_out(tensors: Server) -> None:
    """Over gRPC the network is all that is looked at; HTTP at its gRPC port is told."""
    place = tensors.oip[0]
    examination = examine(f"grpc://{place}")
    assert examination.verdict is Verdict.OK
    assert not examination.unseen
    says(examination, "answer", Verdict.OK, "gRPC", f"predsession tensor info grpc://{place}")
    says(examine(f"http://{place}"), "answer", Verdict.BAD, "not HTTP", f"tensor info grpc://{place}")
    says(examine(f"grpcs://{place}"), "answer", Verdict.BAD, "Write grpc://")


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, b'{"error": "not found"}'), (400, b""), (400, b'{"error": "bad URL"}'), (410, b"")],
)
def test_a_server_of_tensors_over_http_is_pointed_out(status: int, body: bytes) -> None:
    """What answers v2/health/ready and nothing of ours is a Triton or its like, old ones with 400."""

    def triton(handler: BaseHTTPRequestHandler) -> Answer:
        return (200, {}, b"") if handler.path == "/v2/health/ready" else (status, {}, body)

    with listening(triton) as port:
        says(examine(f"http://127.0.0.1:{port}"), "answer", Verdict.BAD,
             "Open Inference Protocol", f"predsession tensor info http://127.0.0.1:{port}")  # fmt: skip


def test_http_where_grpc_is_meant(ours: str) -> None:
    """An address of gRPC's that leads to an HTTP port."""
    place = ours.removeprefix("http://")
    says(examine(f"grpc://{place}"), "answer", Verdict.BAD, "HTTP/1.1", f"http://{place}")


@pytest.fixture
def guarded() -> Iterator[str]:
    """A server that wants a token."""
    with RunningServer("pixels", arguments=["--token", TOKEN]) as server:
        yield server.url


def test_a_token(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """None, a wrong one, the right one by keyword and from the environment; it is in nothing that is said."""
    says(examine(guarded), "answer", Verdict.BAD, "wants a token")
    wrong = examine(guarded, token="another-token-of-the-tests")
    says(wrong, "answer", Verdict.BAD, "refuses the token")
    right = examine(guarded, token=TOKEN)
    says(right, "token", Verdict.OK, "accepted")
    monkeypatch.setenv("PREDSESSION_TOKEN", TOKEN)
    says(examine(guarded), "token", Verdict.OK, "accepted")
    for each in (wrong, right):
        assert TOKEN not in repr(each)
        assert "another-token" not in repr(each)


def test_a_token_that_nobody_wants(ours: str) -> None:
    """It is told that the server is open all the same."""
    says(examine(ours, token=TOKEN), "token", Verdict.OK, "without one")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """An authority that nobody knows."""
    return trustme.CA()


@contextmanager
def certified(authority: trustme.CA, *names: str, until: datetime | None = None) -> Iterator[str]:
    """Serve over TLS."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names, not_after=until).configure_cert(context)
    with listening(context=context) as port:
        yield f"https://localhost:{port}"


def test_certificates(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown, trusted by file and by environment, not looked at, for another host, soon to end, over."""
    ca = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(ca)
    with certified(authority, "localhost", until=datetime.now(UTC) + timedelta(days=90)) as url:
        says(examine(url), "certificate", Verdict.BAD, "not trusted", "--ca")
        good = examine(url, verify=str(ca))
        says(good, "certificate", Verdict.OK, "good until")
        assert good.verdict is Verdict.OK
        with pytest.warns(Warning, match="Unverified HTTPS"):  # urllib3's own word
            says(examine(url, verify=False), "certificate", Verdict.WARNING, "not checked")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(ca))
        says(examine(url), "certificate", Verdict.OK, "good until")
        says(examine(url.replace("https", "http")), "answer", Verdict.BAD, "speaks TLS", "https://")
        says(examine(url.replace("https", "grpcs")), "answer", Verdict.OK, "TLS")
    with certified(authority, "models.example.com") as url:
        says(examine(url), "certificate", Verdict.BAD, "not for localhost")
    with certified(authority, "localhost", until=datetime.now(UTC) + timedelta(days=3, hours=1)) as url:
        says(examine(url), "certificate", Verdict.WARNING, "3 more days", "renew")
    with certified(authority, "localhost", until=datetime.now(UTC) - timedelta(days=1)) as url:
        says(examine(url), "certificate", Verdict.BAD, "expired", "renew")


def test_tls_at_a_plain_port(ours: str) -> None:
    """What speaks no TLS is told from a bad certificate."""
    says(examine(ours.replace("http", "https")), "certificate", Verdict.BAD, "no TLS", "http://")


def test_proxies(ours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never to this machine; to others, which is told, and is a warning if they are near."""

    def through(handler: BaseHTTPRequestHandler) -> Answer:
        paths.append(handler.path)
        return info(handler)

    paths: list[str] = []
    with listening(through) as port:
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, f"http://somebody:secret-word@127.0.0.1:{port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        says(examine(ours), "proxy", Verdict.OK, "never reached through one")
        near = examine("http://10.1.2.3:8000")
        says(near, "proxy", Verdict.WARNING, "through the proxy", "no_proxy")
        assert "secret-word" not in repr(near)
        assert paths[0] == "http://10.1.2.3:8000/get_session_info"
        far = examine("http://models.example.com:8000", proxies={"http": f"http://127.0.0.1:{port}"})
        says(far, "proxy", Verdict.OK, "handed in")
        says(far, "answer", Verdict.OK, "inference server")
    says(examine("http://models.example.com:8000", proxies={"http": "http://127.0.0.1:1"}),
         "connection", Verdict.BAD, "refuses")  # fmt: skip


@pytest.mark.parametrize(("hours", "word"), [(2, "2 hours ahead"), (-72, "3 days behind")])
def test_a_clock_that_is_wrong(hours: int, word: str) -> None:
    """The server's Date is compared with our clock, in both directions."""
    with listening(date=formatdate(time.time() + hours * 3600, usegmt=True)) as port:
        examination = examine(f"http://127.0.0.1:{port}")
    says(examination, "clock", Verdict.WARNING, word, "NTP")
    assert examination.verdict is Verdict.WARNING


@pytest.mark.parametrize("date", ["never", "Mon, 99 Foo 20260 00:00:00 GMT"])
def test_a_date_that_is_none(date: str) -> None:
    """It is no reason to fail."""
    with listening(date=date) as port:
        says(examine(f"http://127.0.0.1:{port}"), "clock", Verdict.OK, "no time")


@pytest.mark.parametrize(("least", "span"), [(500_000, "below 1 MiB"), (5_000_000, "between 1 and 8 MiB")])
def test_an_upload_limit(least: int, span: str) -> None:
    """A proxy's 413 is found between two sizes, and what a session makes of it is told."""

    def bounded(handler: BaseHTTPRequestHandler) -> Answer:
        large = int(handler.headers.get("Content-Length", 0)) > least
        return (413, {}, b"<title>413</title>") if large else info(handler)

    with listening(bounded) as port:
        examination = examine(f"http://127.0.0.1:{port}")
    says(examination, "upload", Verdict.WARNING, span, "413", "client_max_body_size")
    assert examination.verdict is Verdict.WARNING


def test_uploads_that_break(ours: str) -> None:
    """A reset in the midst of a larger upload is a limit, too."""
    reset = Fault("reset", "inference_batch_async", nth=2, times=9, after_bytes=3_000_000)
    with FaultyServer(ours, [reset]) as faulty:
        says(examine(faulty.url), "upload", Verdict.WARNING, "no answer", "between 1 and 8 MiB")


def test_padding_that_is_taken_for_an_image(ours: str, ask: Callable[[str, Any], Any]) -> None:
    """A server that starts a job against the protocol is told to stop and to forget it."""

    def started(handler: BaseHTTPRequestHandler) -> Answer:
        asked.append(handler.path)
        if handler.path == "/inference_batch_async":
            return 200, {}, b'{"inference_request_uuid": "abc"}'
        return info(handler)

    asked: list[str] = []
    with listening(started) as port:
        examine(f"http://127.0.0.1:{port}")
    for name in ("inference_batch_async", "stop_inference", "clear_inference_request"):
        assert asked.count(f"/{name}") == 3


def test_connections_that_are_not_kept() -> None:
    """An HTTP/1.0 server opens one for each call; so does one that closes without a word."""
    with listening(protocol="HTTP/1.0") as port:
        says(
            examine(f"http://127.0.0.1:{port}"),
            "latency",
            Verdict.WARNING,
            "connection of its own",
            "keep-alive",
        )


def test_a_server_that_fails_now_and_then(ours: str) -> None:
    """One call of ten in a row that fails is told."""
    for fault, word in ((Fault("drop_before", "get_session_info", nth=4), "failed"),
                        (Fault("status", "get_session_info", nth=4, status=502), "502")):  # fmt: skip
        with FaultyServer(ours, [fault]) as faulty:
            says(examine(faulty.url), "latency", Verdict.WARNING, word)


def rewritten(**changes: object) -> Callable[[bytes], bytes]:
    """Return what changes keys of a JSON answer."""
    return lambda body: json.dumps({**json.loads(body), **changes}).encode()


@pytest.mark.parametrize(
    ("extension", "check", "words"),
    [
        ({"version": 2, "features": ["ack"]}, "server", ["predsession/2", "Update"]),
        (
            {"version": 1, "features": ["ack", "wait"]},
            "features",
            ["2 of the 8", "without lease", "update it"],
        ),
    ],
)
def test_versions_that_differ(ours: str, extension: dict[str, Any], check: str, words: list[str]) -> None:
    """A later version of the extension, and an older server with some of it, are warnings."""
    fault = Fault("rewrite", "get_session_info", times=99, rewrite=rewritten(predsession=extension))
    with FaultyServer(ours, [fault]) as faulty:
        says(examine(faulty.url), check, Verdict.WARNING, *words)


def test_a_later_server_has_more_features(ours: str) -> None:
    """What is not known here is named, with the advice to update this side."""
    features = ["ack", "after", "wait", "idempotency", "item_errors", "lease", "list", "float_boxes", "new"]
    change = rewritten(predsession={"version": 1, "features": features})
    with FaultyServer(ours, [Fault("rewrite", "get_session_info", times=99, rewrite=change)]) as faulty:
        says(examine(faulty.url), "features", Verdict.WARNING, "not known here: new", "pip install --upgrade")


@pytest.mark.parametrize(
    ("endpoint", "change", "verdict", "word"),
    [
        ("get_status", {"is_deployed": False, "progress": {"message": "Loading"}}, Verdict.BAD, "Loading"),
        ("get_model_meta", {"classes": []}, Verdict.WARNING, "no classes"),
        ("get_model_meta", {"classes": 7}, Verdict.BAD, "cannot be read"),
    ],
)
def test_a_model_that_is_not_there(
    ours: str, endpoint: str, change: dict[str, Any], verdict: Verdict, word: str
) -> None:
    """Not deployed is bad; deployed without classes is odd."""
    with FaultyServer(ours, [Fault("rewrite", endpoint, times=9, rewrite=rewritten(**change))]) as faulty:
        says(examine(faulty.url), "model", verdict, word)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    command = [sys.executable, "-m", "predsession", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_command(ours: str) -> None:
    """Exit codes 0, 3 and 2; lines for people, JSON for programs, and no secret in either."""
    well = run(ours)
    assert well.returncode == 0, well
    assert "0 bad, 0 warnings, 13 ok" in well.stdout
    broken = run("http://somebody:secret-word@127.0.0.1:1", "--token", TOKEN)
    assert broken.returncode == 3, broken
    assert "not seen" in broken.stdout
    as_json = json.loads(run("http://127.0.0.1:1", "--json").stdout)
    assert as_json["verdict"] == "bad"
    assert as_json["findings"][-1]["check"] == "connection"
    for each in (broken.stdout, broken.stderr):
        assert "secret-word" not in each
        assert TOKEN not in each
    for arguments in (["--nothing"], [ours, "--ca", "/no/such/file"], [ours, "--timeout", "0"]):
        assert run(*arguments).returncode == 2
