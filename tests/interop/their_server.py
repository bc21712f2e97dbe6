"""Supervisely's server as a process, from a test's side, and what its model answers when called directly."""

from __future__ import annotations

import base64
import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import requests

from predsession import Prediction

PROGRAM = Path(__file__).with_name("supervisely_server.py")
START_TIMEOUT = 120.0
PATIENCE = 60.0
END_TIMEOUT = 10.0


@dataclass(frozen=True)
class Truth:
    """What the model answers for one picture when it is called directly, as their own client shows it."""

    annotation: dict[str, Any]
    boxes: npt.NDArray[np.int64]
    """Rows, then columns, both corners inside: top, left, bottom, right."""
    scores: list[float]
    classes: list[str]
    masks: list[npt.NDArray[np.bool_]]
    """Of the bitmaps only, each in a full picture."""
    track_ids: list[int] | None


class TheirServer:
    """A running server; ended by its process id.

    Parameters
    ----------
    python : str
        Their interpreter.
    folder : Path
        Where it keeps what it keeps.
    model, mode : str
        See supervisely_server.
    """

    def __init__(self, python: str, folder: Path, *, model: str = "seg", mode: str = "production") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.mode = mode
        self.folder = folder
        self._before: set[str] = set()
        self._log = (folder / "log.txt").open("w+")
        arguments = ["--folder", str(folder), "--model", model, "--mode", mode]
        self._process = subprocess.Popen(
            [python, str(PROGRAM), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        try:
            self.url = self._wait()
        except BaseException:
            self.close()
            raise

    def _wait(self) -> str:
        """Read lines until one announces the address; their package may write others."""
        stdout = self._process.stdout
        assert stdout is not None
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=read_lines, args=(stdout, lines), daemon=True).start()
        end = time.monotonic() + START_TIMEOUT
        while True:
            try:
                line = lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                line = ""
            if line.startswith('{"url"'):
                return str(json.loads(line)["url"])
            if not line:
                raise RuntimeError(f"Supervisely's server did not start:\n{self.log()[-3000:]}")

    def log(self) -> str:
        """Return what it wrote to standard error so far."""
        return Path(self._log.name).read_text()

    def close(self) -> None:
        """End it, and wait for it."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        self._log.close()

    def post(self, endpoint: str, **body: Any) -> Any:
        """Ask something that must succeed."""
        reply = requests.post(f"{self.url}/{endpoint}", json=body, timeout=PATIENCE)
        assert reply.status_code == 200, (endpoint, reply.status_code, reply.text[:500])
        return reply.json()

    def direct(self, images: Iterable[Path], **settings: Any) -> list[Truth]:
        """Compute what the model answers for pictures in files."""
        paths = [str(path) for path in images]
        return _truths(self.post("__direct", images=paths, settings=settings))

    def direct_frames(
        self,
        clip: Path,
        frames: Sequence[int],
        *,
        tracker_settings: dict[str, Any] | None = None,
        **settings: Any,
    ) -> list[Truth]:
        """Compute what the model answers for frames of a clip, one after the other."""
        answer = self.post(
            "__direct",
            video=str(clip),
            frames=list(frames),
            settings=settings,
            tracker_settings=tracker_settings,
        )
        return _truths(answer)

    def computed(self, key: str) -> int:
        """Return how many pictures were computed under a key."""
        return int(self.post("__computed", key=key))

    def mark(self) -> None:
        """Forget about the jobs so far."""
        self._before = set(self.post("__jobs"))

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Return what became of each job since the mark."""
        return {uuid: job for uuid, job in self.post("__jobs").items() if uuid not in self._before}

    def live(self) -> list[str]:
        """Return the jobs since the mark that are not cleared, or neither ended nor stopped."""
        return [
            uuid
            for uuid, job in self.jobs().items()
            if not (job["cleared"] and (job["finished"] or job["stopped"]))
        ]

    def wait_until_idle(self) -> None:
        """Wait until every job has ended."""
        until(lambda: all(job["finished"] for job in self.jobs().values()), "the end of all jobs")


def read_lines(stream: Any, lines: queue.Queue[str]) -> None:
    """Hand on each line, then an empty one."""
    for line in stream:
        lines.put(line)
    lines.put("")


def until(happens: Callable[[], object], what: str) -> Any:
    """Wait until something is true, and return it."""
    end = time.monotonic() + PATIENCE
    while not (found := happens()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)
    return found


def truths_of(answer: dict[str, Any]) -> list[Truth]:
    """Return what a client of theirs was told, in the words of the direct computation."""
    assert "error" not in answer, answer
    return _truths(answer["predictions"])


def _truths(answer: list[dict[str, Any]]) -> list[Truth]:
    """Read what the server computed."""
    return [_truth(one) for one in answer]


def _truth(one: dict[str, Any]) -> Truth:
    """Read one picture's."""
    size = one["annotation"]["size"]["height"], one["annotation"]["size"]["width"]
    pixels = size[0] * size[1]
    packed = [np.frombuffer(base64.b64decode(mask), np.uint8) for mask in one["masks"]]
    masks = [np.unpackbits(mask, count=pixels).astype(bool).reshape(size) for mask in packed]
    return Truth(
        annotation=one["annotation"],
        boxes=np.array(one["boxes"], np.int64).reshape(-1, 4),
        scores=one["scores"],
        classes=one["classes"],
        masks=masks,
        track_ids=one["track_ids"],
    )


def assert_equal(prediction: object, truth: Truth) -> None:
    """Hold a prediction of ours against what the model answers: boxes, scores, classes, masks, track ids."""
    assert isinstance(prediction, Prediction), prediction
    height, width = truth.annotation["size"]["height"], truth.annotation["size"]["width"]
    assert prediction.size == (width, height)
    top, left, bottom, right = truth.boxes.T
    np.testing.assert_array_equal(prediction.boxes, np.stack([left, top, right + 1, bottom + 1], axis=1))
    np.testing.assert_array_equal(prediction.scores, np.array(truth.scores, np.float32))
    assert list(prediction.classes) == truth.classes
    bitmaps = [
        mask for mask, shape in zip(prediction.masks, prediction.shapes, strict=True) if shape == "bitmap"
    ]
    np.testing.assert_array_equal(np.array(bitmaps), np.array(truth.masks))
    tracks = None if prediction.track_ids is None else prediction.track_ids.tolist()
    assert tracks == truth.track_ids


def assert_all_equal(predictions: Sequence[object], truths: Sequence[Truth]) -> None:
    """Hold predictions against what the model answers, one to one, in order."""
    assert len(predictions) == len(truths)
    for prediction, truth in zip(predictions, truths, strict=True):
        assert_equal(prediction, truth)
