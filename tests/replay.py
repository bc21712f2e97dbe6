"""Recorded traffic, sent again to a server of ours, and what differs in the answers.

A request is rebuilt from its record: files, whose bytes were not recorded, are replaced by files of the same
kind, and uuids by those of our jobs. A call that was answered in a stage of its job is sent in that stage.
"""

from __future__ import annotations

import functools
import io
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import requests
from differences import differences
from PIL import Image
from replay_model import PLUG, STEP

from predsession import Size
from predsession.inputs.video import ClipWriter
from predsession.wire.stages import Stage

FRAMES, RATE = 40, 30.0
_PATIENCE, _NUDGE = 20.0, 0.3
_ALL = 1_000_000
_UUID = "inference_request_uuid"


class Finding(NamedTuple):
    """A difference: at which call of which scenario, and what."""

    scenario: str
    call: str
    what: str


class Gate:
    """How far the model may compute."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.allow(_ALL)

    def allow(self, count: int) -> None:
        """Let the first pictures of a job pass."""
        new = self._folder / "new"
        new.write_text(str(count))
        new.replace(self._folder / "allowed")

    def plug(self, *, shut: bool) -> None:
        """Let the plug wait, or pass."""
        path = self._folder / "plugged"
        path.touch() if shut else path.unlink(missing_ok=True)


class Replay:
    """Sends one scenario to a server.

    Parameters
    ----------
    url : str
        The server.
    gate : Gate
        Of its model.
    name : str
        The scenario.
    """

    def __init__(self, url: str, gate: Gate, name: str) -> None:
        self._url = url
        self._gate = gate
        self._name = name
        self._uuids: dict[str, str] = {}
        self._plugged = ""

    def run(self, steps: list[dict[str, Any]]) -> list[Finding]:
        """Send every request in turn; return what differs."""
        first = next((_stage(step["answer"]) for step in steps if _stage(step["answer"])), "")
        if first == Stage.PREPARING.value:
            self._put_plug()
        self._gate.allow(0 if first else _ALL)
        found: list[Finding] = []
        try:
            for step in steps:
                self._reach(step)
                found += [
                    Finding(self._name, step.get("name", step["call"]), what) for what in self._send(step)
                ]
        finally:
            self._gate.allow(_ALL)
            self._gate.plug(shut=False)
            for uuid in [*self._uuids.values(), *filter(None, [self._plugged])]:
                self._until_ended(uuid)
        return found

    def _put_plug(self) -> None:
        """Keep the worker busy, so that a job that comes now is not begun."""
        self._gate.plug(shut=True)
        files = [("files", (f"plug_{place}.jpg", picture(PLUG))) for place in range(6)]
        data = {"state": '{"batch_size": 1}'}
        reply = requests.post(f"{self._url}/inference_batch_async", files=files, data=data, timeout=30)
        self._plugged = reply.json()[_UUID]
        running = Stage.INFERENCE.value
        wait_for(lambda: self._status(self._plugged)["stage"] == running, "the start of a job")

    def _status(self, uuid: str) -> Any:
        """Say where a job of ours stands; takes nothing."""
        return self._post("get_inference_status", json={"state": {_UUID: uuid}}).json()

    def _until_ended(self, uuid: str) -> None:
        """Stop a job, and wait for its end."""
        self._post("stop_inference", json={"state": {_UUID: uuid}})
        wait_for(lambda: self._status(uuid)["finished"], "the end of a job")

    def _post(self, call: str, **arguments: Any) -> requests.Response:
        """Make a call."""
        return requests.post(f"{self._url}/{call}", timeout=30, **arguments)

    def _reach(self, step: dict[str, Any]) -> None:
        """Wait until our job stands where theirs stood, if it ever does."""
        uuid = self._uuids.get(((step.get("json") or {}).get("state") or {}).get(_UUID, ""))
        stage = _stage(step["answer"])
        if uuid is not None and step["call"] == "get_inference_result" and step["answer"] is not None:
            self._gate.allow(_ALL)
            wait_for(lambda: self._status(uuid)["finished"], "the end of a job")
        if uuid is None or not stage or stage == Stage.PREPARING.value:
            return
        self._gate.plug(shut=False)
        running = stage == Stage.INFERENCE.value
        done = _done(step["answer"]) if running else 0
        allowed = done if running else _ALL
        self._gate.allow(allowed)
        began = time.monotonic()
        while not _is_at(found := self._status(uuid), stage, done):
            assert time.monotonic() < began + _PATIENCE, (self._name, step["call"], stage, found)
            if found["finished"]:
                return
            if time.monotonic() > began + _NUDGE:
                self._gate.allow(allowed := allowed + 1)
            time.sleep(0.01)

    def _send(self, step: dict[str, Any]) -> list[str]:
        """Send one request; return how the answer differs."""
        arguments: dict[str, Any] = {}
        if step.get("json") is not None:
            text = json.dumps(step["json"])
            for there, here in self._uuids.items():
                text = text.replace(there, here)
            arguments["json"] = json.loads(text)
        if "upload" in step:
            arguments = _form(step["upload"])
        method = step.get("method", "POST")
        reply = requests.request(method, f"{self._url}/{step['call']}", timeout=60, **arguments)
        if reply.status_code != step["status"]:
            return [f"status: {step['status']} there, {reply.status_code} here"]
        is_json = reply.headers["content-type"] == "application/json"
        answer = reply.json() if is_json else reply.text
        if isinstance(answer, dict) and _UUID in answer:
            self._uuids[step["answer"][_UUID]] = answer[_UUID]
        return list(differences(step["answer"], answer))


def wait_for(happens: Callable[[], object], what: str) -> None:
    """Wait until something is true."""
    end = time.monotonic() + _PATIENCE
    while not happens():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.01)


def _stage(answer: Any) -> str:
    """Return the stage that an answer tells, empty where it tells none."""
    if not isinstance(answer, dict):
        return ""
    found = answer.get("stage", answer.get("status", ""))
    return found if found in {stage.value for stage in Stage} else ""


def _done(answer: Any) -> int:
    """Return how many items were done; the last of all is left out, with which the stage ends."""
    progress = answer.get("progress", answer)
    return min(int(progress["current"]), int(progress["total"]) - 1)


def _is_at(status: Any, stage: str, done: int) -> bool:
    """Whether a job stands in a stage, and is so far."""
    return status["stage"] == stage and status["progress"]["current"] >= done


def _form(upload: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an upload."""
    named = [*upload.get("files", [])]
    named += [[f"more_{place:05}.jpg", "picture"] for place in range(len(named), upload.get("count", 0))]
    field = upload.get("field", "files")
    files = [(field, (name, _content(kind, place))) for place, (name, kind) in enumerate(named)]
    return {"files": files, "data": {key: upload[key] for key in ("state", "settings") if key in upload}}


def _content(kind: str, place: int) -> bytes:
    """Return a file of a kind; a picture tells its place, modulo a number below the plug's."""
    if kind == "clip":
        return clip()
    if kind == "picture":
        return picture(place % (PLUG - 10))
    return {"empty": b"", "text": b"this is no picture", "corrupt": picture(0)[:20] + bytes(580)}[kind]


@functools.cache
def picture(number: int) -> bytes:
    """Return a JPEG whose gray is its number."""
    buffer = io.BytesIO()
    Image.fromarray(np.full((48, 64, 3), STEP * number, np.uint8)).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


@functools.cache
def clip() -> bytes:
    """Return a clip whose grays are the numbers of its frames."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        with ClipWriter(path, Size(64, 48), rate=RATE) as writer:
            for frame in range(FRAMES):
                writer.write(np.full((48, 64, 3), STEP * frame, np.uint8), frame / RATE)
        return path.read_bytes()
