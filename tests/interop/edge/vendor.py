"""A program under the vendor's interpreter, from a test's side: a line of JSON a task, one an answer."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

PATIENCE = 60.0
END_TIMEOUT = 10.0


class Vendor:
    """A program of this folder, run by their interpreter; a context manager.

    Parameters
    ----------
    python : str
        Their interpreter.
    program : str
        Its name; or its path, from elsewhere.
    folder : Path
        Where it may write, and pictures are put for it.
    """

    endpoint: str = ""
    """Where it serves, if it does."""

    def __init__(self, python: str, program: str, folder: Path) -> None:
        self._folder = folder
        self._log = (folder / "log.txt").open("w+")
        self._process = subprocess.Popen(
            [python, str(Path(__file__).parent / program)],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()

    def _read_lines(self) -> None:
        """Read until it ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def picture(self, array: np.ndarray) -> str:
        """Put a picture where it finds it, and return the path."""
        path = self._folder / f"{len(list(self._folder.glob('*.npy')))}.npy"
        np.save(path, array)
        return str(path)

    def start(self, do: str, **task: Any) -> None:
        """Begin a task."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **task}) + "\n")
        self._process.stdin.flush()

    def read(self) -> Any:
        """Return the next line's value."""
        try:
            line = self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            line = ""
        assert line, f"no answer: {Path(self._log.name).read_text()[-3000:]}"
        return json.loads(line)

    def run(self, do: str, **task: Any) -> Any:
        """Do a task, and return its answer; ``{"error": ...}`` where their client raised."""
        self.start(do, **task)
        return self.read()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, and wait for it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._process.stdout.close()
        self._log.close()
