"""Supervisely's clients in a process of their own, from a test's side."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any

from interop.their_server import read_lines

PROGRAM = Path(__file__).with_name("their_client.py")
PATIENCE = 110.0
END_TIMEOUT = 10.0


class TheirClient:
    """A process that runs their clients; it does one task after the other.

    Parameters
    ----------
    python : str
        Their interpreter.
    folder : Path
        Where they may write.
    """

    def __init__(self, python: str, folder: Path) -> None:
        self._log = (folder / "log.txt").open("w+")
        self._process = subprocess.Popen(
            [python, str(PROGRAM)],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=read_lines, args=(self._process.stdout, self._lines), daemon=True).start()

    def start(self, do: str, url: str, **task: Any) -> None:
        """Begin a task; `read` gives its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, "url": url, **task}, default=str) + "\n")
        self._process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """Return a task's answer; it has ``error`` where their client raised."""
        try:
            line = self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            line = ""
        assert line, f"their client gave no answer: {Path(self._log.name).read_text()[-3000:]}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run(self, do: str, url: str, **task: Any) -> dict[str, Any]:
        """Do a task."""
        self.start(do, url, **task)
        return self.read()

    def close(self) -> None:
        """End it, and wait for it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()
