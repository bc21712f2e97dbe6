"""The servers that are measured, or measured against: ours, and Supervisely's own."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from benchmarks.process import ROOT
from predsession.testing import RunningServer
from predsession.wire.jsontypes import JSON

PROGRAM = Path(__file__).parent / "theirs" / "server.py"
START_TIMEOUT = 120.0
END_TIMEOUT = 10.0
CACHE_SIZE = 6000
"""Pictures that Supervisely's server is told to keep: with its default of 256 the ancestor fails beyond."""


@contextmanager
def our_server(model: str) -> Iterator[str]:
    """Run an embedded server.

    Parameters
    ----------
    model : str
        A class of ``models``.

    Yields
    ------
    str
        Its address.
    """
    with RunningServer(f"{ROOT / 'benchmarks' / 'models.py'}:{model}") as server:
        yield server.url


@dataclass(frozen=True, slots=True)
class StockServer:
    """A running server of Supervisely's.

    Parameters
    ----------
    url : str
        Its address.
    """

    url: str

    def wait_until_idle(self) -> None:
        """Wait until it has computed what it was sent, which it does even if its client has gone."""
        requests.post(f"{self.url}/__idle", timeout=600.0).raise_for_status()

    def polls(self) -> dict[str, JSON]:
        """Return what the calls that ask after a job took since the last time: see ``theirs/server.py``."""
        answer = requests.post(f"{self.url}/__polls", timeout=60.0)
        answer.raise_for_status()
        found: dict[str, JSON] = answer.json()
        return found


@contextmanager
def stock_server(python: Path, model: str) -> Iterator[StockServer]:
    """Run Supervisely's server.

    Parameters
    ----------
    python : Path
        Its interpreter.
    model : str
        ``bars`` or ``idle``, as ``theirs/server.py`` has them.

    Yields
    ------
    StockServer
        Ready.

    Raises
    ------
    RuntimeError
        If it does not start.
    """
    with tempfile.TemporaryDirectory(prefix="predsession-bench-") as folder:
        log = Path(folder, "log.txt")
        with log.open("w") as errors:
            process = subprocess.Popen(
                [str(python), str(PROGRAM), "--folder", folder, "--model", model],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "SMART_CACHE_SIZE": str(CACHE_SIZE)},
            )
        try:
            url = _address(process)
            if url is None:
                raise RuntimeError(f"Supervisely's server did not start:\n{log.read_text()[-2000:]}")
            yield StockServer(url)
        finally:
            _end(process)


def _address(process: subprocess.Popen[str]) -> str | None:
    """Read lines until one announces the address; Supervisely's package may write others."""
    lines: queue.Queue[str] = queue.Queue()
    stdout = process.stdout
    assert stdout is not None

    def follow() -> None:
        for line in stdout:
            lines.put(line)
        lines.put("")

    threading.Thread(target=follow, daemon=True).start()
    try:
        while line := lines.get(timeout=START_TIMEOUT):
            if line.startswith('{"url"'):
                return str(json.loads(line)["url"])
    except queue.Empty:
        pass
    return None


def _end(process: subprocess.Popen[str]) -> None:
    """End it, and wait for it."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(END_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
