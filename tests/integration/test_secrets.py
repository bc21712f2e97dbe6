"""The token, and the session's token in an endpoint's path, are shown nowhere and go to nobody else."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hostile import GOOD, SIDE, good_item, good_job
from hostile_server import HostileServer, Raw
from PIL import Image
from secret_kit import PATH_TOKEN, TOKEN, everything_logged, leaking_files, leaks, told

from predsession import PredictionSession, connect
from predsession.errors import PredSessionError
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.prediction import Prediction
from predsession.testing import RunningServer, number_picture

PICTURE = np.full((SIDE, SIDE, 3), 128, np.uint8)
PATH = f"/net/{PATH_TOKEN}"


@dataclass
class Api:
    """Bounds the tries of a call."""

    token: str | None = None
    retry_count: int = 2


@pytest.fixture
def other() -> Iterator[HostileServer]:
    """Another host, which must hear of nothing."""
    with HostileServer() as server:
        yield server


def plain(status: str, body: str, *headers: str) -> Raw:
    """Return an answer that is no JSON."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Content-Type: text/html", *headers]
    return Raw("\r\n".join([*lines, "", body]).encode())


def packed(value: object) -> bytes:
    """Return an answer."""
    return json.dumps(value).encode()


ECHO = f"cannot POST {PATH}/x with x-api-key: {TOKEN}"
"""What a server says that repeats what it was asked, as many do."""
LONG = "." * 490
BROKEN = {"type": "RuntimeError", "message": f"bad key {TOKEN}", "traceback": f"File {PATH}"}
FAILED = {**good_job(), "pending_results": [], "stage": "Error", "exception": BROKEN}
WAYS: dict[str, dict[str, bytes | Raw]] = {
    "well": {},
    "a failing job": {"pop_inference_results": packed(FAILED)},
    "an image that is refused": {
        "pop_inference_results": packed(
            {**good_job(), "pending_results": [{"number": 1, "error": {"type": "E", "message": ECHO}}]}
        )
    },
    "401": {"inference_batch_async": plain("401 Unauthorized", ECHO)},
    "404 as a page": {"get_model_meta": plain("404 Not Found", f"<html><pre>{ECHO}</pre>")},
    "404 with a long text": {"get_model_meta": plain("404 Not Found", LONG + ECHO)},
    "500 as JSON": {"pop_inference_results": plain("500 Oops", json.dumps({"message": ECHO}))},
    "a page with status 200": {"get_session_info": plain("200 OK", f"<title>{ECHO}</title>")},
    "no uuid": {"inference_batch_async": packed({"message": ECHO})},
    "no stage": {"pop_inference_results": packed({"message": ECHO})},
    "an odd result": {"pop_inference_results": packed({**good_job(), "pending_results": [ECHO]})},
    "a damaged result": {
        "pop_inference_results": packed(
            {**good_job(), "pending_results": [{**good_item(), "annotation": {"objects": ECHO}}]}
        )
    },
    "half an answer": {"pop_inference_results": Raw(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"sta')},
    "no answer": {"pop_inference_results": Raw(b"")},
    "no HTTP": {"get_session_info": Raw(b"SSH-2.0\r\n")},
    "too slow": {"pop_inference_results": Raw(b"HTTP/1.1 200 OK\r\n\r\n", trickle=0.05)},
    "redirected": {"get_session_info": plain("302 Found", "", "Location: OTHER")},
    "redirected upload": {"inference_batch_async": plain("307 Again", "", "Location: OTHER")},
}


def run(url: str, source: object = PICTURE, *, most: int = 9, **keywords: object) -> list[str]:
    """Run a session with everything looked at; return all that can be read of it, and the error's text."""
    texts: list[str] = []
    options = {"api": Api(), "token": TOKEN, "on_error": "yield", "idle_timeout": 0.3, "timeout": 1.0}
    with PredictionSession(url, source, **{**options, **keywords}) as session:
        texts.append(repr(session))
        try:
            for outcome in session:
                texts += [repr(outcome), json.dumps(outcome.to_json())]
                texts.append(
                    told(outcome) if isinstance(outcome, PredSessionError) else outcome._repr_html_()
                )
                texts.append(repr(pickle.dumps(outcome)))
                if (most := most - 1) <= 0:
                    break
        except PredSessionError as error:
            texts.append(told(error))
        for look in (session.progress, session.status, session.report, lambda: session.errors):
            texts.append(repr(look()))
    try:
        next(session)
    except (StopIteration, RuntimeError) as error:
        texts.append(told(error))
    pipeline = session._pipeline
    texts += [
        repr(vars(pipeline)),
        repr(vars(pipeline.shared)),
        repr(vars(pipeline.course)),
        repr(session.__dict__),
    ]
    return texts


@pytest.mark.parametrize("way", WAYS)
def test_no_run_shows_a_secret(way: str, other: HostileServer, capfd: pytest.CaptureFixture[str]) -> None:
    """However a run ends: no line of a log, no repr, message, note, traceback or variable of ours shows a
    secret, though the server repeats what it was asked; and another host hears of nothing.
    """
    answers = dict(WAYS[way])
    for name, answer in answers.items():
        if isinstance(answer, Raw):
            answers[name] = Raw(
                answer.data.replace(b"OTHER", f"{other.url}{PATH}/x?k={TOKEN}".encode()), answer.trickle
            )
    with everything_logged() as logged, HostileServer(answers) as server:
        texts = run(server.url + PATH)
        assert all(headers["x-api-key"] == TOKEN for _, headers in server.seen)
        assert all(path.startswith(PATH) for path, _ in server.seen)
    assert len(logged.lines) > 5, "urllib3's lines are among them"
    assert [text for text in [*texts, *logged.lines] if leaks(text)] == []
    assert leaks("".join(capfd.readouterr())) == []
    assert other.seen == []


def test_a_run_that_is_left_shows_no_secret() -> None:
    """A session that is closed in the middle, on a real server that wants the token."""
    pictures = [number_picture(number) for number in range(12)]
    arguments = ["--token", TOKEN]
    with everything_logged() as logged, RunningServer("pixels", arguments=arguments) as server:
        texts = run(server.url, pictures, most=3, timeout=30.0, idle_timeout=30.0)
    assert sum("<Prediction" in text for text in texts) == 3
    assert [text for text in [*texts, *logged.lines] if leaks(text)] == []


def test_a_server_that_cannot_be_reached() -> None:
    """No connection, a proxy that is none, an address that is none: the message shows neither secret."""
    with HostileServer() as gone:
        port = gone.url.rpartition(":")[2]
    proxies = {"http": f"http://user:{TOKEN}@127.0.0.1:{port}"}
    with everything_logged() as logged:
        texts = run(f"http://127.0.0.1:{port}{PATH}")
        texts += run(f"http://user:{TOKEN}@127.0.0.1:{port}{PATH}")
        texts += run(f"http://server.invalid{PATH}", proxies=proxies)
        texts.append(repr(ConnectionOptions(proxies=proxies)))
        for url in (
            f"ftp://h{PATH}",
            f"h{PATH}",
            f"http://h{PATH}?k={TOKEN}",
            f"http://user:{TOKEN}@:0{PATH}",
        ):
            with pytest.raises(PredSessionError) as caught:
                PredictionSession(url, PICTURE, token=TOKEN)
            texts += [str(caught.value), "".join(traceback.format_exception_only(caught.value))]
    assert [text for text in [*texts, *logged.lines] if leaks(text)] == []


def test_a_model_shows_no_secret() -> None:
    """Neither the handle, nor what it answers, nor its errors."""
    answers = {
        "get_status": packed({"url": f"http://h{PATH}"}),
        "deploy_from_api": plain("500 Oops", ECHO),
        "inference_image": packed(good_item()),
        "tasks.stop": plain("404 Not Found", ECHO),
    }
    texts = []
    with (
        everything_logged() as logged,
        HostileServer(answers) as server,
        connect(server.url + PATH, token=TOKEN, api=Api()) as model,
    ):
        texts += [repr(model), repr(vars(model._transport)), repr(model.info), repr(model.status())]
        texts += [repr(vars(model)), repr(model.predict_one(PICTURE))]
        for ask in (lambda: model.load("m"), model.shutdown):
            with pytest.raises(PredSessionError) as caught:
                ask()
            texts.append(told(caught.value))
    assert [text for text in [*texts, *logged.lines] if leaks(text)] == []


def test_no_other_host_receives_a_token(other: HostileServer) -> None:
    """A redirect of any call, of a picture's URL and of a library's picture, and the ``url`` of a result:
    whoever is asked there sees neither the token nor the session's path.
    """
    other.answers["x.png"] = Raw(b"HTTP/1.1 200 OK\r\n\r\nno picture")
    away = plain("302 Found", "", f"Location: {other.url}/x.png")
    item = {**good_item(), "url": f"{other.url}/x.png", "path": None, "image_id": 3}
    answers = dict.fromkeys((*GOOD, "stop_inference", "clear_inference_request", "3"), away)
    found = packed({**good_job(), "pending_results": [item]})
    with HostileServer(answers) as server:
        run(server.url + PATH)
        run(server.url + PATH, f"{server.url}{PATH}/3")
        assert [path for path, _ in other.seen] == ["/x.png"], "a picture's URL alone is followed"
        started = packed(GOOD["inference_batch_async"])
        stock = packed({"app_name": "stock"})
        server.answers = {"get_session_info": stock, "pop_inference_results": found, "3": away}
        server.answers["inference_batch_ids_async"] = started
        run(server.url + PATH, None, image_ids=[3])
        with PredictionSession(server.url + PATH, image_ids=[3], token=TOKEN, api=Api()) as session:
            for prediction in session:
                assert isinstance(prediction, Prediction)
                assert prediction.url == f"{other.url}/x.png"
                with pytest.raises(PredSessionError):
                    prediction.load_image()
        asked = [headers for path, headers in server.seen if path.endswith("/library/images/3")]
        assert {headers["x-api-key"] for headers in asked} == {TOKEN}
        transport = HttpTransport(server.url + PATH, token=TOKEN)
        transport.fetch(f"{server.url}{PATH}/3", max_bytes=1000, cancelled=lambda: False)
        transport.close()
    assert leaks(repr(other.seen)) == []


def test_a_signed_url_is_not_shown() -> None:
    """A store that repeats the query of a signed URL in its refusal: the item's error does not."""
    refusal = plain("403 Forbidden", f"<Error><SignatureProvided>{TOKEN}</SignatureProvided></Error>")
    with everything_logged() as logged, HostileServer({"a.png": refusal}) as server:
        texts = run(server.url, f"{server.url}/a.png?X-Signature={TOKEN}", token=None)
    shown = [text for text in texts if text.startswith(("ItemError", "(ItemError"))]
    assert shown
    assert [text for text in [*shown, *logged.lines] if leaks(text)] == []


COMMANDS: dict[str, tuple[list[str], dict[str, bytes | Raw], int]] = {
    "predict": (["predict", "a.png", "--url", "URL", "--out", "preds.jsonl"], {}, 0),
    "predict, refused": (
        ["predict", "a.png", "--url", "URL"],
        {"inference_batch_async": plain("401 No", ECHO)},
        3,
    ),
    "info": (["info", "URL"], {}, 0),
    "info, a page": (["info", "URL"], {"get_model_meta": plain("404 Not Found", ECHO)}, 3),
    "jobs": (["jobs", "URL"], {}, 0),
    "jobs of a stock server": (["jobs", "URL"], {"list_inference_requests": plain("404 No", ECHO)}, 3),
    "no such job": (
        ["jobs", "URL", "--stop", "u"],
        {"get_inference_status": plain("500 Oops", "no such uuid")},
        3,
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_shows_a_secret(command: str, tmp_path: Path) -> None:
    """What the command line prints, on both streams, and writes."""
    words, answers, code = COMMANDS[command]
    Image.fromarray(PICTURE).save(tmp_path / "a.png")
    with HostileServer(answers) as server:
        arguments = [server.url + PATH if word == "URL" else word for word in words]
        done = subprocess.run(
            [sys.executable, "-m", "predsession", *arguments],
            cwd=tmp_path, env={**os.environ, "PREDSESSION_TOKEN": TOKEN},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert leaks(done.stdout + done.stderr) == []
    assert leaking_files([tmp_path]) == []


@pytest.mark.parametrize("way", ["well", "a failing job", "an image that is refused"])
def test_no_journal_holds_a_secret(way: str, tmp_path: Path) -> None:
    """What a run with ``resume`` keeps on disk, whatever the format of its files."""
    with HostileServer(WAYS[way]) as server:
        texts = run(server.url + PATH, [PICTURE], resume=tmp_path / "run.journal")
        assert (tmp_path / "run.journal").exists()
    assert leaking_files([tmp_path]) == []
    assert [text for text in texts if leaks(text)] == []
