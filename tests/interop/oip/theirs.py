"""Somebody else's server as a process, from a test's side."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE = 90.0
END_TIMEOUT = 40.0


class Theirs:
    """One of the programs of this folder, run by an interpreter that has their software; a context manager.

    Parameters
    ----------
    python : str
        Their interpreter.
    program : str
        Its name: it prints a line of JSON once it is ready, and ends when its stdin does.
    folder : Path
        Where it may write; its log goes there.
    """

    name: str
    """Which it is: "triton" or "mlserver"."""
    http: str
    """Its URL, without a path."""
    grpc: str
    """Its address, in gRPC's form."""
    token: str
    """Opens what it restricts; empty where it restricts nothing."""
    pid: int
    """Of the server itself, of which `program` is the parent."""

    def __init__(self, python: str, program: str, folder: Path) -> None:
        self.name = program.partition("_")[0]
        self._path = folder / "log.txt"
        self._log = self._path.open("w")
        self._process = subprocess.Popen(
            [python, str(Path(__file__).with_name(program))],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read_line, daemon=True)
        self._reader.start()
        try:
            line = self._lines.get(timeout=PATIENCE)
            assert line, "it ended"
        except (queue.Empty, AssertionError):
            self.close()
            raise AssertionError(f"{program} did not start: {self.log[-3000:]}") from None
        ready = json.loads(line)
        self.http, self.grpc, self.token, self.pid = (
            ready[word] for word in ("http", "grpc", "token", "server")
        )

    def _read_line(self) -> None:
        """Wait for the line, in a thread: pipes have no timeout."""
        assert self._process.stdout is not None
        self._lines.put(self._process.stdout.readline())

    @property
    def log(self) -> str:
        """What it wrote so far, its models' words among it."""
        return self._path.read_text(errors="replace")

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What a call over gRPC carries to be let in everywhere."""
        return (("triton-grpc-protocol-triton-access-token", self.token),) if self.token else ()

    @property
    def headers(self) -> dict[str, str]:
        """What a call over HTTP carries to be let in everywhere."""
        return {"triton-access-token": self.token} if self.token else {}

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
            with contextlib.suppress(AttributeError, ProcessLookupError):  # it never said who it is; it ended
                os.kill(self.pid, signal.SIGKILL)
        self._reader.join()
        self._process.stdout.close()
        self._log.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.close()
