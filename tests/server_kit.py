"""An embedded server as a process that a test may treat badly, and a caller that speaks the bare protocol."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import requests
from PIL import Image

from predsession.server.models.pixels import box_number, number_picture

PATIENCE = 60.0
"""Seconds after which something that should happen is taken not to happen."""


def png(number: int) -> bytes:
    """Return a picture of a number, encoded."""
    buffer = io.BytesIO()
    Image.fromarray(number_picture(number)).save(buffer, "PNG")
    return buffer.getvalue()


def numbers(items: Iterable[dict[str, Any]]) -> list[int | str]:
    """Return the number that each item answers, or the type of its error."""
    return [item["error"]["type"] if "error" in item else _number(item) for item in items]


def _number(item: dict[str, Any]) -> int:
    """Read the number from a box; one of whole, inclusive pixels on a server that imitates a stock one."""
    figure = item["annotation"]["objects"][0]
    if "box" in figure:
        return box_number(figure["box"])
    (left, top), (right, bottom) = figure["points"]["exterior"]
    return box_number(np.array([left, top, right + 1, bottom + 1]))


def until(happens: Callable[[], object], what: str) -> Any:
    """Wait until something is true, and return it."""
    end = time.monotonic() + PATIENCE
    while not (found := happens()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)
    return found


class Server:
    """``predsession serve`` as a process; a context manager."""

    def __init__(self, *arguments: str, port: int = 0, env: dict[str, str] | None = None) -> None:
        command = [
            sys.executable,
            "-m",
            "predsession",
            "serve",
            "--port",
            str(port),
            "--announce",
            "--follow-stdin",
        ]
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )
        self._errors: list[str] = []
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait(PATIENCE)
            self._reader.join(PATIENCE)
            self._close()
            raise RuntimeError(f"the server ended with {code}: {self.log}")
        announced = json.loads(line)
        self.announced: dict[str, object] = announced
        self.url: str = announced["url"]
        self.grpc: list[str] = announced.get("grpc", [])
        self.oip: list[str] = announced.get("oip", [])
        self.port = int(self.url.rsplit(":", 1)[1])

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._errors.append(line)

    @property
    def log(self) -> str:
        """What it wrote to stderr so far."""
        return "".join(self._errors)

    def workers(self) -> list[int]:
        """Return the ids of its worker processes."""
        text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(number) for number in text.split()]

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.wait()

    def terminate(self) -> int:
        """End it as an operator does, and return its exit code."""
        self.process.terminate()
        return self.wait()

    def hang_up(self) -> int:
        """Close its stdin, as happens when its parent dies, and return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.wait()

    def wait(self) -> int:
        """Wait for its end and return its exit code."""
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self._close()
        return code

    def _close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.terminate()


class Caller:
    """Sends bare calls; a context manager."""

    def __init__(self, url: str, *, token: str | None = None) -> None:
        self.url = url
        self.http = requests.Session()
        self.http.trust_env = False
        if token is not None:
            self.http.headers["x-api-key"] = token

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def post(self, endpoint: str, **arguments: Any) -> requests.Response:
        """Send any POST."""
        return self.http.post(f"{self.url}/{endpoint}", timeout=PATIENCE, **arguments)

    def ask(self, endpoint: str, **state: Any) -> Any:
        """Send a JSON call that must succeed, and return its answer."""
        reply = self.post(endpoint, json={"state": state, "context": {}})
        assert reply.status_code == 200, (endpoint, reply.status_code, reply.text)
        return reply.json()

    def upload(
        self,
        files: Sequence[bytes | tuple[str, bytes]],
        *,
        endpoint: str = "inference_batch_async",
        headers: dict[str, str] | None = None,
        **state: Any,
    ) -> requests.Response:
        """Send pictures; where they have no names they get some that nobody else has."""
        stamp = time.monotonic_ns()
        named = [
            each if isinstance(each, tuple) else (f"{stamp}_{place}.png", each)
            for place, each in enumerate(files)
        ]
        parts = [("files", part) for part in named]
        return self.post(endpoint, files=parts, data={"state": json.dumps(state)}, headers=headers)

    def submit(self, files: Sequence[bytes | tuple[str, bytes]], **arguments: Any) -> str:
        """Start a job and return its uuid."""
        reply = self.upload(files, **arguments)
        assert reply.status_code == 200, (reply.status_code, reply.text)
        uuid: str = reply.json()["inference_request_uuid"]
        return uuid

    def pop(self, uuid: str, **state: Any) -> Any:
        """Pop."""
        return self.ask("pop_inference_results", inference_request_uuid=uuid, **state)

    def progress(self, uuid: str) -> Any:
        """Ask for the progress."""
        return self.ask("get_inference_progress", inference_request_uuid=uuid)

    def stop(self, uuid: str) -> None:
        """Stop."""
        self.ask("stop_inference", inference_request_uuid=uuid)

    def clear(self, uuid: str) -> None:
        """Clear."""
        self.ask("clear_inference_request", inference_request_uuid=uuid)

    def drain(self, uuid: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Pop as a stock client does until the job has ended; return the items and the last answer."""
        items: list[dict[str, Any]] = []
        last: dict[str, Any] = {}

        def ended() -> bool:
            last.update(self.pop(uuid))
            items.extend(last["pending_results"])
            return bool(last["finished"])

        until(ended, f"the end of job {uuid}")
        return items, last

    def read(
        self, uuid: str, *, ack: int = 0, limit: int = 1000
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Read by number until the job has ended and all is read; return the items and the last answer."""
        items: list[dict[str, Any]] = []
        last: dict[str, Any] = {}

        def ended() -> bool:
            last.update(self.pop(uuid, ack=ack + len(items), wait=5, limit=limit))
            items.extend(last["pending_results"])
            return bool(last["finished"] and not last["pending_results"])

        until(ended, f"the end of job {uuid}")
        return items, last
