"""The same bare calls to their server, and to ours as it imitates theirs: the same status, the same keys.

What differs, differs on purpose, and is listed here and in docs/protocol.md.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from interop.pictures import SIZE, spots, write_clip
from interop.test_their_sessions import MODEL
from interop.their_server import TheirServer, until
from PIL import Image

from predsession import Size
from predsession.testing import RunningServer

INFO = (
    "get_session_info",
    "get_model_meta",
    "get_output_classes_and_tags",
    "get_status",
    "is_deployed",
    "is_ready",
)
OF_A_JOB = (
    "get_inference_progress",
    "get_inference_status",
    "get_preparing_progress",
    "pop_inference_results",
    "get_inference_result",
    "stop_inference",
    "clear_inference_request",
)


@pytest.fixture(scope="module")
def imitation() -> Iterator[str]:
    """Our server as it imitates theirs in production."""
    with RunningServer(MODEL, stock=True) as server:
        yield server.url


@pytest.fixture(scope="module")
def plain_imitation() -> Iterator[str]:
    """Our server as it imitates theirs in development."""
    with RunningServer(MODEL, stock=True, arguments=["--plain-errors"]) as server:
        yield server.url


def encoded(number: int, kind: str = "PNG", *, width: int = SIZE.width) -> bytes:
    """Return an encoded picture."""
    buffer = io.BytesIO()
    Image.fromarray(spots(number, Size(width, SIZE.height))).save(buffer, kind)
    return buffer.getvalue()


def shape(value: Any) -> Any:
    """Return keys and the kinds of the values; of a list its first."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    if isinstance(value, bool) or value is None:
        return type(value).__name__
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def ask(url: str, endpoint: str, **arguments: Any) -> Any:
    """Send a call; return status, content type and the shape of the answer."""
    reply = requests.post(f"{url}/{endpoint}", timeout=60, **arguments)
    kind = reply.headers["content-type"]
    return reply.status_code, kind, shape(reply.json()) if kind == "application/json" else reply.text


def both(theirs: TheirServer, ours: str, endpoint: str, **arguments: Any) -> tuple[Any, Any]:
    """Send a call to both."""
    return ask(theirs.url, endpoint, **arguments), ask(ours, endpoint, **arguments)


def body(**state: Any) -> dict[str, Any]:
    """Return the arguments of a JSON call."""
    return {"json": {"state": state, "context": {}}}


@pytest.mark.parametrize("endpoint", INFO)
def test_what_the_server_is(production: TheirServer, imitation: str, endpoint: str) -> None:
    """With a body and without one."""
    for arguments in (body(), {}):
        theirs, ours = both(production, imitation, endpoint, **arguments)
        if endpoint == "get_session_info":
            theirs, ours = (_without_numbers(one) for one in (theirs, ours))
        assert ours == theirs


def _without_numbers(answer: Any) -> Any:
    """Leave out what a server may know or not: its own number, and the largest batch."""
    status, kind, keys = answer
    return status, kind, {**keys, "session_id": "any", "max_batch_size": "any"}


def test_settings(production: TheirServer, imitation: str) -> None:
    """Settings are below ``settings``, those of a tracker below its name."""
    for url in (production.url, imitation):
        settings = requests.post(f"{url}/get_custom_inference_settings", timeout=30, **body()).json()
        assert list(settings) == ["settings"]
        assert settings["settings"]["conf"] == 0.1
        tracking = requests.post(f"{url}/get_tracking_settings", timeout=30, **body()).json()
        assert tracking["botsort"]["track_high_thresh"] > 0


def test_what_is_deployed(production: TheirServer, imitation: str) -> None:
    """The same keys; what we do not know of a model of the user's own is null."""
    theirs, ours = both(production, imitation, "get_deploy_info", **body())
    assert ours[:2] == theirs[:2]
    assert list(ours[2]) == list(theirs[2])
    for endpoint in ("list_pretrained_models", "freeze_model"):
        for arguments in (body(), {"json": {}}):
            theirs, ours = both(production, imitation, endpoint, **arguments)
            assert ours == theirs


def test_fetching_what_a_caller_names(
    production: TheirServer, imitation: str, web: str, tmp_path: Path
) -> None:
    """Their server fetches, then fails on the slashes of the address, which it takes for a file's name."""
    (tmp_path / "picture.png").write_bytes(encoded(1))
    state = body(image_url=f"{web}/picture.png")
    theirs = requests.post(f"{production.url}/inference_image_url", timeout=60, **state)
    assert (theirs.status_code, "FileNotFoundError" in theirs.text) == (500, True)
    ours = requests.post(f"{imitation}/inference_image_url", timeout=60, **state)
    assert (ours.status_code, "inference_image" in ours.json()["message"]) == (403, True)


JOBS: dict[str, tuple[str, dict[str, Any]]] = {
    "pictures": ("inference_batch_async", {"settings": {"conf": 0.2}, "batch_size": 1}),
    "clip": ("inference_video_async", {"startFrameIndex": 2, "framesCount": 9, "stride": 3}),
    "tracked clip": (
        "inference_video_async",
        {"tracker": "botsort", "tracker_settings": {"with_reid": False}, "framesCount": 12},
    ),
    "failing": ("inference_batch_async", {"batch_size": 1}),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_job(production: TheirServer, imitation: str, tmp_path: Path, name: str) -> None:
    """Every call of a job's life, from its submit to the pop after its clear."""
    endpoint, state = JOBS[name]
    clip = write_clip(tmp_path / "clip.mp4", 14).read_bytes()
    answers = []
    for url in (production.url, imitation):
        # Only the second picture has this width, and two spots: both models can be told to fail there.
        fails = {"fail_width": 170} if url == production.url else {"fail_at": 2}
        settings = {**state.get("settings", {}), **(fails if name == "failing" else {})}
        stamp = time.monotonic_ns()
        pictures = [encoded(0), encoded(1, width=170), encoded(4)]
        files = [("files", (f"{stamp}_{place}.png", picture)) for place, picture in enumerate(pictures)]
        if "clip" in name:
            files = [("files", (f"{stamp}.mp4", clip))]
        answers.append(_life(url, endpoint, files, {**state, "settings": settings}))
    theirs, ours = answers
    assert list(ours) == list(theirs)
    for step, answer in theirs.items():
        assert ours[step] == answer, step


def _life(url: str, endpoint: str, files: list[Any], state: dict[str, Any]) -> dict[str, Any]:
    """Start a job, wait for its end, and make every call; return the shapes of the answers."""
    reply = requests.post(f"{url}/{endpoint}", files=files, data={"state": json.dumps(state)}, timeout=60)
    job = body(inference_request_uuid=reply.json()["inference_request_uuid"])

    def progress() -> Any:
        return requests.post(f"{url}/get_inference_progress", timeout=60, **job).json()

    until(lambda: progress()["finished"], "the end of the job")
    answers = {"submit": (reply.status_code, shape(reply.json()))}
    answers |= {step: ask(url, step, **job) for step in OF_A_JOB}
    return answers | {"pop again": ask(url, "pop_inference_results", **job)}


def test_ids_without_a_platform(production: TheirServer, imitation: str) -> None:
    """The job is there, and fails at once."""
    for endpoint, state in (
        ("inference_batch_ids_async", {"images_ids": [1, 2]}),
        ("inference_image_id_async", {"image_id": 1}),
        ("inference_video_id_async", {"video_id": 1}),
        ("inference_project_id_async", {"project_id": 1}),
    ):
        stages = []
        for url in (production.url, imitation):
            reply = requests.post(f"{url}/{endpoint}", timeout=60, **body(**state))
            assert reply.status_code == 200, endpoint
            assert shape(reply.json()) == {"message": "str", "inference_request_uuid": "str"}
            popped = _popped_at_the_end(url, reply.json()["inference_request_uuid"])
            stages.append((popped["stage"], shape(popped["exception"]), popped["pending_results"]))
        assert stages[0] == stages[1], endpoint


def test_ids_at_once_without_a_platform(production: TheirServer, imitation: str) -> None:
    """The call fails; of a clip theirs answers that it has no frames, which ours does not."""
    for endpoint, state in (
        ("inference_image_id", {"image_id": 1}),
        ("inference_batch_ids", {"batch_ids": [1]}),
    ):
        theirs, ours = both(production, imitation, endpoint, **body(**state))
        assert ours == theirs
        assert theirs[0] == 500
    theirs, ours = both(production, imitation, "inference_video_id", **body(video_id=1))
    assert (theirs[0], theirs[2]) == (200, {"ann": []})
    assert ours[0] == 500


def _popped_at_the_end(url: str, uuid: str) -> Any:
    """Wait until a job has ended, and return what it gives then."""
    job = body(inference_request_uuid=uuid)
    url = f"{url}/pop_inference_results"
    return until(
        lambda: (found := requests.post(url, timeout=60, **job).json())["finished"] and found, "its end"
    )


def _refused() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return calls that are refused."""
    one = [("files", ("a.png", encoded(1)))]
    state = {"state": "{}"}
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "no such call": ("no_such_call", body()),
        "no files": ("inference_batch_async", {"data": state}),
        "other part": ("inference_batch_async", {"files": [("other", ("a.png", encoded(1)))], "data": state}),
        "JSON": ("inference_batch_async", body()),
        "state is no JSON": ("inference_batch_async", {"files": one, "data": {"state": "{nope"}}),
        "state is a list": ("inference_batch_async", {"files": one, "data": {"state": "[1]"}}),
        "long state": ("inference_batch_async", {"files": one, "data": {"state": " " * (1 << 20) + "{}"}}),
        "too many": ("inference_batch_async", {"files": [("files", ("a", b""))] * 1001, "data": state}),
        "empty": ("inference_batch_async", {"files": [*one, ("files", ("b.png", b""))], "data": state}),
        "text": ("inference_batch_async", {"files": [("files", ("b.png", b"text"))], "data": state}),
        "slash": ("inference_batch_async", {"files": [("files", ("a/b.png", encoded(1)))], "data": state}),
        "GIF": ("inference_batch_async", {"files": [("files", ("b.gif", encoded(1, "GIF")))], "data": state}),
        "no clip": ("inference_video_async", {"data": state}),
        "no body": ("get_inference_progress", {}),
        "no state": ("get_inference_progress", {"json": {}}),
    }
    for endpoint in OF_A_JOB:
        cases[f"{endpoint}, no uuid"] = (endpoint, body())
        cases[f"{endpoint}, unknown uuid"] = (endpoint, body(inference_request_uuid="deadbeef"))
    return cases


REFUSED = _refused()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(production: TheirServer, imitation: str, name: str) -> None:
    """In production: the same status, the same JSON."""
    endpoint, arguments = REFUSED[name]
    theirs, ours = both(production, imitation, endpoint, **arguments)
    assert ours == theirs


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_in_development(development: TheirServer, plain_imitation: str, name: str) -> None:
    """Faults are a plain text there."""
    endpoint, arguments = REFUSED[name]
    theirs, ours = both(development, plain_imitation, endpoint, **arguments)
    assert ours == theirs


def test_getting(production: TheirServer, imitation: str) -> None:
    """A call is a POST."""
    replies = [requests.get(f"{url}/get_session_info", timeout=30) for url in (production.url, imitation)]
    assert replies[0].status_code == replies[1].status_code == 405
    assert replies[0].json() == replies[1].json()


@pytest.fixture(scope="module")
def extended() -> Iterator[str]:
    """Our server as it is."""
    with RunningServer(MODEL) as server:
        yield server.url


ADDED = {"box", "tracker"}
"""Floats beside an object's whole pixels; which tracker runs, in a job's status."""


def test_what_the_extension_adds(extended: str, imitation: str, tmp_path: Path) -> None:
    """To a client that does not ask: a key in the session info, floats beside a box, the tracker's name."""
    info = [requests.post(f"{url}/get_session_info", timeout=30).json() for url in (extended, imitation)]
    assert [key for key in info[0] if key not in info[1]] == ["predsession"]
    files = [("files", ("clip.mp4", write_clip(tmp_path / "clip.mp4", 14).read_bytes()))]
    for url_state in ({}, {"tracker": "botsort"}):
        lives = [
            _life(url, "inference_video_async", files, {"framesCount": 6, **url_state})
            for url in (imitation, extended)
        ]
        _note_added(lives[0], lives[1], found := set[str]())
        assert found <= ADDED, found


def _note_added(stock: Any, more: Any, found: set[str]) -> None:
    """Note the keys that one has and the other has not; all else must be the same."""
    if isinstance(stock, dict) and isinstance(more, dict):
        found |= set(more) - set(stock)
        assert set(stock) <= set(more)
        for key, value in stock.items():
            _note_added(value, more[key], found)
    elif isinstance(stock, (list, tuple)) and isinstance(more, (list, tuple)) and len(stock) == len(more):
        for one, other in zip(stock, more, strict=True):
            _note_added(one, other, found)
    else:
        assert stock == more
