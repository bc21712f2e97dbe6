"""The least that a client can do: a loop of requests, in jobs of 32; nothing checked but the JSON.

The task: ``url``, ``input`` (a path; a file of PNGs' arrays is not for it), and optionally ``settings``,
``poll`` (seconds between two polls), ``ahead`` (jobs that are sent before the first of them is read).

The next job is sent while the one before is computed; its files are read whole, one job at a time.
"""

from __future__ import annotations

import collections
import gc
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import requests
from requests_toolbelt import MultipartEncoder

from benchmarks.clients import memory
from benchmarks.process import answer, read_task
from predsession.wire.jsontypes import JSON, as_object

JOB = 32
TIMEOUT = 600.0


@dataclass(slots=True)
class Loop:
    """The loop, and what it has noticed so far.

    Parameters
    ----------
    url : str
        The server.
    state : str
        Of each submit, as JSON.
    poll : float
        Seconds between two polls that bring nothing.
    """

    url: str
    state: str
    poll: float
    count: int = 0
    first: float = 0.0
    last: float = 0.0
    _http: requests.Session = field(default_factory=requests.Session)
    began: float = field(default_factory=time.monotonic)

    def images(self, paths: list[Path], ahead: int) -> None:
        """Run images."""
        jobs: collections.deque[str] = collections.deque()
        for place in range(0, len(paths), JOB):
            jobs.append(self._send_images(paths[place : place + JOB], place))
            if len(jobs) > ahead:
                self._drain(jobs.popleft())
        while jobs:
            self._drain(jobs.popleft())

    def video(self, path: Path) -> None:
        """Run a video."""
        with path.open("rb") as stream:
            body = MultipartEncoder({"files": (path.name, stream, "video/mp4"), "state": self.state})
            headers = {"Content-Type": body.content_type}
            answer = self._http.post(
                f"{self.url}/inference_video_async", data=body, headers=headers, timeout=TIMEOUT
            )
        self._drain(answer.json()["inference_request_uuid"])

    def _send_images(self, paths: list[Path], place: int) -> str:
        """Start a job; the names are nobody else's."""
        files = [
            ("files", (f"{os.getpid()}_{place + number}{path.suffix}", path.read_bytes()))
            for number, path in enumerate(paths)
        ]
        answer = self._http.post(
            f"{self.url}/inference_batch_async", files=files, data={"state": self.state}, timeout=TIMEOUT
        )
        return str(answer.json()["inference_request_uuid"])

    def _drain(self, uuid: str) -> None:
        """Take a job's results until there are no more."""
        state = {"state": {"inference_request_uuid": uuid}}
        while True:
            got = self._http.post(f"{self.url}/pop_inference_results", json=state, timeout=TIMEOUT).json()
            if got["exception"]:
                raise RuntimeError(got["exception"])
            if got["pending_results"]:
                self.last = time.monotonic() - self.began
                self.first = self.first or self.last
                self.count += len(got["pending_results"])
            elif not got["finished"]:
                time.sleep(self.poll)
            if got["finished"]:
                break
        self._http.post(f"{self.url}/clear_inference_request", json=state, timeout=TIMEOUT)


def run(task: dict[str, JSON]) -> dict[str, JSON]:
    """Do the task."""
    source = Path(str(task["input"]))
    gc.collect()
    base = memory.held()
    memory.forget_most()
    state = json.dumps({"settings": as_object(task.get("settings"))})
    loop = Loop(str(task["url"]), state, float(str(task.get("poll", 0.02))))
    if source.is_dir():
        loop.images(sorted(source.iterdir()), int(str(task.get("ahead", 1))))
    elif source.suffix == ".jpg":
        loop.images([source], 1)
    else:
        loop.video(source)
    closed = time.monotonic() - loop.began
    return {
        "count": loop.count,
        "first": loop.first,
        "last": loop.last,
        "closed": closed,
        "peak": memory.most() - base,
    }


if __name__ == "__main__":
    answer(run(read_task()))
