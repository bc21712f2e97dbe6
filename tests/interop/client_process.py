"""Supervisely's clients as a process, from a test's side."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("their_client.py")
PATIENCE = 110.0


class TheirClient:
    """Runs their clients, each in a process of its own.

    Parameters
    ----------
    python : str
        Their interpreter.
    folder : Path
        Where they may write.
    """

    def __init__(self, python: str, folder: Path) -> None:
        self._python = python
        self._folder = folder

    def start(self, do: str, url: str, **task: Any) -> subprocess.Popen[str]:
        """Start a task; `read` gives its answer."""
        process = subprocess.Popen(
            [self._python, str(PROGRAM)],
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps({"do": do, "url": url, **task}, default=str))
        process.stdin.close()
        process.stdin = None
        return process

    @staticmethod
    def read(process: subprocess.Popen[str]) -> dict[str, Any]:
        """Return a task's answer; it has ``error`` where their client raised."""
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"their client did not end: {err[-2000:]}") from None
        assert out, err[-3000:]
        answer: dict[str, Any] = json.loads(out)
        return answer

    def run(self, do: str, url: str, **task: Any) -> dict[str, Any]:
        """Do a task."""
        return self.read(self.start(do, url, **task))
