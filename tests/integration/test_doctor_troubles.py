"""What the doctor says of troubles that look like others: uploads, proxies, files, ports, odd answers."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import trustme
from doctor_kit import Answer, found, info, listening, says
from hypothesis import given
from hypothesis import strategies as st
from server_kit import Server

from predsession.doctor import Verdict, examine, examining
from predsession.doctor.proxies import look_at_proxy
from predsession.doctor.target import read_target


@contextmanager
def answering_uploads(answer: Callable[[BaseHTTPRequestHandler], Answer]) -> Iterator[str]:
    """Serve with another answer to uploads."""

    def either(handler: BaseHTTPRequestHandler) -> Answer:
        return answer(handler) if handler.path.endswith("inference_batch_async") else info(handler)

    with listening(either) as port:
        yield f"http://127.0.0.1:{port}"


UPLOADS: dict[str, tuple[Answer, Verdict, list[str]]] = {
    "busy": ((503, {}, b'{"message": "too many"}'), Verdict.WARNING, ["put off", "503", "too many"]),
    "too often": ((429, {}, b""), Verdict.WARNING, ["put off", "429"]),
    "fails": ((500, {}, b"oops"), Verdict.WARNING, ["fails", "500", "oops", "log"]),
    "forbidden": ((403, {}, b"<title>Forbidden</title>"), Verdict.BAD, ["forbidden", "403"]),
    "not there": ((404, {}, b""), Verdict.BAD, ["404", "inference_batch_async"]),
    "elsewhere": ((302, {"Location": "/v2/"}, b""), Verdict.BAD, ["redirected to http://127.0.0.1:", "/v2/"]),
}


@pytest.mark.parametrize("name", UPLOADS)
def test_an_upload_is_refused_for_another_reason_than_its_size(name: str) -> None:
    """It is told as what it is; no limit is spoken of, and no setting of a proxy."""
    answer, verdict, words = UPLOADS[name]
    with answering_uploads(lambda _: answer) as url:
        examination = examine(url)
    says(examination, "upload", verdict, *words)
    assert "limit" not in found(examination, "upload").text
    assert "nginx" not in found(examination, "upload").advice
    assert "jobs" not in examination.unseen


def test_uploads_that_hang() -> None:
    """No answer in time is no limit either."""
    over = threading.Event()

    def late(handler: BaseHTTPRequestHandler) -> Answer:
        over.wait(5.0)
        return info(handler)

    with answering_uploads(late) as url:
        examination = examine(url, timeout=0.5)
        over.set()
    says(examination, "upload", Verdict.WARNING, "no answer in time", "hangs")
    assert "limit" not in found(examination, "upload").text


def test_the_servers_own_limit() -> None:
    """Who refuses in JSON is the server itself: the advice is for that, not for a proxy."""

    def bounded(handler: BaseHTTPRequestHandler) -> Answer:
        if int(handler.headers["Content-Length"]) < 4 << 20:
            return info(handler)
        return 413, {}, b'{"detail": {"message": "The upload is larger than 4194304 bytes."}}'

    with answering_uploads(bounded) as url:
        examination = examine(url)
    says(examination, "upload", Verdict.WARNING, "between 1 and 8 MiB", "413", "--limit-body")
    assert "nginx" not in found(examination, "upload").advice


@pytest.mark.parametrize("url", ["http://[::1", "grpc://[::1", "https://[zz]:1", "[::1", "http://a]b"])
def test_brackets_that_do_not_fit(url: str) -> None:
    """An address that not even Python's own parser reads is a finding like others."""
    says(examine(url), "address", Verdict.BAD, "cannot be read")


@given(st.text(st.sampled_from("htpsgrc:/[]@.%?#-1a \u00e9\ud800\n"), max_size=12))
def test_no_address_is_an_exception(text: str) -> None:
    """Whatever stands behind the scheme is an address, or a finding."""
    for url in (text, f"http://{text}", f"https://a:b@{text}", f"grpcs://{text}"):
        for proxies in (None, {"http": f"http://{text}", "https": text}):
            target, finding = read_target(url, proxies)
            assert (target is None) == (finding.verdict is Verdict.BAD)
            if target is not None and look_at_proxy(target, proxies).verdict is not Verdict.BAD:
                assert target.next_hop[1] > 0


@pytest.mark.parametrize("seconds", [-1, 0, float("inf"), float("nan"), 86401, "1", None, True])
def test_no_time(seconds: Any) -> None:
    """A timeout that is none is the caller's mistake, told by its name before anything is sent."""
    with pytest.raises(ValueError, match="timeout must be"):
        examine("http://127.0.0.1:1", timeout=seconds)


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"url": None}, TypeError, "url must be a text, not NoneType"),
        ({"url": b"http://127.0.0.1:1"}, TypeError, "url must be a text, not bytes"),
        ({"token": 5}, TypeError, "token must be a text, not int"),
        ({"token": b"secret-word"}, TypeError, "token must be a text, not bytes"),
        ({"verify": None}, TypeError, "verify must be"),
        ({"verify": 1}, TypeError, "verify must be"),
        ({"proxies": "http://x"}, ValueError, "proxies must be a mapping"),
        ({"proxies": {"http": None}}, TypeError, "proxies must map texts to texts"),
        ({"on_finding": 5}, TypeError, "on_finding must be callable"),
    ],
)
def test_arguments_of_another_kind(arguments: dict[str, Any], kind: type[Exception], words: str) -> None:
    """Each is refused by its name before anything is sent, and no value that may be secret is repeated."""
    with pytest.raises(kind, match=words) as caught:
        examine(**{"url": "http://127.0.0.1:1", **arguments})
    assert "secret-word" not in str(caught.value)


def test_authorities_by_path(tmp_path: Path) -> None:
    """A path of Python's kind is used, not passed over."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with listening(context=context) as port:
        says(examine(f"https://localhost:{port}", verify=tmp_path / "ca.pem"), "certificate", Verdict.OK)


ESCAPES = "\x1b[31mred\x1b]0;pwned\x07\x9b1m\u202e"


def test_what_a_terminal_would_take_for_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes, tasks, pages, wherever a server's words are printed, arrive as they are written, unheard."""
    meta = {"classes": [{"title": ESCAPES, "shape": "rectangle", "color": "#112233"}], "tags": []}
    monkeypatch.setattr("doctor_kit.META", json.dumps(meta).encode())
    with listening() as port:
        well = _printed(f"http://127.0.0.1:{port}")
    assert r"red\x1b]0;pwned\x07\x9b1m\u202e" in "".join(well.split())
    with listening(lambda _: (500, {}, ESCAPES.encode())) as port:
        _printed(f"http://127.0.0.1:{port}")
    with listening(lambda _: (200, {"Content-Type": "text/\x9b1m"}, b"")) as port:
        _printed(f"http://127.0.0.1:{port}")


def _printed(url: str) -> str:
    """Return what the command prints, which has no sign but those that are seen, and ends of lines."""
    command = [sys.executable, "-m", "predsession", "doctor", url]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False,
                          env={**os.environ, "PYTHONUTF8": "1"})  # fmt: skip
    assert [sign for sign in done.stdout if not sign.isprintable() and sign != "\n"] == []
    assert "answer" in done.stdout, done
    return done.stdout


@pytest.mark.parametrize("token", ["secret\nword", "secret word", "s\u00e9cret"])
def test_a_token_that_no_header_carries(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line break in it is said to be one, from the environment, too; the token is in nothing."""
    monkeypatch.setenv("PREDSESSION_TOKEN", token)
    for given_token in (token, None):
        examination = examine("http://127.0.0.1:1", token=given_token)
        says(examination, "token", Verdict.BAD, "line break", "--token")
        assert token not in repr(examination)


FAR = "models.example.com"


def test_a_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the proxy that is told of, and how to go past it; not the server."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for proxy, check in (
        ("http://somebody:secret-word@127.0.0.1:1", "connection"),
        ("http://no-such-proxy.invalid:3128", "name"),
        ("http://[::1", "proxy"),
        ("http://127.0.0.1:port", "proxy"),
    ):
        monkeypatch.setenv("http_proxy", proxy)
        examination = examine(f"http://{FAR}:8000")
        says(examination, check, Verdict.BAD, "The proxy", f"add {FAR} to no_proxy")
        assert "Start the server" not in found(examination, check).advice
        assert "secret-word" not in repr(examination)


def test_a_proxy_that_is_none() -> None:
    """A server that knows no CONNECT: its status is told, and no exception's name."""
    with listening(lambda _: (404, {}, b"")) as port:
        examination = examine(f"https://{FAR}", proxies={"https": f"http://127.0.0.1:{port}"})
    says(examination, "answer", Verdict.BAD, "through the proxy", "501", "no_proxy")
    assert "Error" not in found(examination, "answer").text


def test_authorities_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without a certificate, one that is not there: each is named before anything is sent."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"https://localhost:{mute.getsockname()[1]}"
        empty = tmp_path / "notes.txt"
        empty.write_text("no certificate")
        says(
            examine(url, verify=str(empty)), "certificate", Verdict.BAD, "notes.txt", "no certificate", "PEM"
        )
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "gone.pem"))
        says(examine(url), "certificate", Verdict.BAD, "gone.pem", "cannot be read: No such file")
        by_proxy = examine(f"https://{FAR}", proxies={"https": url.replace("https", "http")})
        says(by_proxy, "certificate", Verdict.BAD, "gone.pem")
        says(examine(url, verify=""), "certificate", Verdict.BAD, "cannot be read: No such file")
        says(examine(url, verify=tmp_path / "no.pem"), "certificate", Verdict.BAD, "no.pem", "cannot be read")


def test_a_redirect_to_a_path() -> None:
    """A relative Location is told as the whole address that it means."""
    answer: Answer = (301, {"Location": "/v1/get_session_info"}, b"")
    with listening(lambda _: answer) as port:
        says(examine(f"http://127.0.0.1:{port}"), "answer", Verdict.BAD,
             f"Use that address: http://127.0.0.1:{port}/v1")  # fmt: skip


def test_schemes_at_a_port_of_grpc(tensors: Server) -> None:
    """TLS and HTTP where there is neither: what is there is told, without contradiction."""
    place = tensors.oip[0]
    says(examine(f"https://{place}"), "certificate", Verdict.BAD, "as gRPC servers do", f"grpc://{place}")
    examination = examine(f"grpcs://{place}")
    says(examination, "answer", Verdict.BAD, "grpcs:// means it with TLS", "Write grpc://")
    assert "not gRPC" not in found(examination, "answer").text


ODD: dict[str, tuple[Answer, list[str], str]] = {
    "long header": ((200, {"X-A": "a" * 70_000}, b"{}"), ["headers is too long", "does speak"], "is no HTTP"),
    "many headers": (
        (200, {f"X-{n}": "a" for n in range(150)}, b"{}"), ["too many", "does speak"], "is no HTTP"),
    "broken JSON": ((200, {"Content-Type": "application/json"}, b'{"app'), ["is no JSON", "{\"app"], "login"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_an_answer_that_is_odd(name: str) -> None:
    """HTTP is called HTTP, and half of a JSON text is no login page."""
    answer, words, never = ODD[name]
    with listening(lambda _: answer) as port:
        examination = examine(f"http://127.0.0.1:{port}")
    says(examination, "answer", Verdict.BAD, *words)
    assert never not in found(examination, "answer").text + found(examination, "answer").advice


def test_a_slow_server_takes_no_longer_for_all_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the time for all, and for one answer, no further look is begun, and that is said."""

    def slow(handler: BaseHTTPRequestHandler) -> Answer:
        asked.append(handler.path)
        time.sleep(0.6)
        return info(handler)

    asked: list[str] = []
    monkeypatch.setattr(examining, "TOTAL_S", -0.5)
    with listening(slow) as port:
        examination = examine(f"http://127.0.0.1:{port}", timeout=1.0)
    last = examination.findings[-1]
    assert last.verdict is Verdict.WARNING
    assert "took so long" in last.text
    assert asked == ["/get_session_info"]
    assert examination.unseen[-1] == "jobs"
    assert last.check not in examination.unseen


def test_calls_that_are_slow_are_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few calls tell of a slow server what ten would."""

    def slow(handler: BaseHTTPRequestHandler) -> Answer:
        time.sleep(0.06)
        return info(handler)

    monkeypatch.setattr("predsession.doctor.load.ENOUGH_S", 0.1)
    with listening(slow) as port:
        examination = examine(f"http://127.0.0.1:{port}")
    calls = found(examination, "latency").text.partition(" ")[0]
    assert calls in ("A", "2"), examination  # the first alone, where the machine is busy


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_nobody_listens_to_the_command(arguments: list[str]) -> None:
    """With its standard output closed the exit code alone tells; nothing is a traceback."""
    command = [sys.executable, "-m", "predsession", "doctor", "http://127.0.0.1:1", *arguments]
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *command], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (3, ""), done


@pytest.mark.parametrize("address", ["http://[::1", "", " "])
def test_json_of_an_address_that_is_none(address: str) -> None:
    """Programs get their JSON whatever they asked of; an empty text is not the environment's address."""
    command = [sys.executable, "-m", "predsession", "doctor", address, "--json"]
    environment = {**os.environ, "PREDSESSION_URL": "http://127.0.0.1:1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 3, done
    assert [each["check"] for each in json.loads(done.stdout)["findings"]] == ["address"]
