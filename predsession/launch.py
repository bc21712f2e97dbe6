"""Start an embedded server as a process of its own, wait until it is ready, end it.

The server follows our end of its standard input: when this process is gone, however it went, the pipe
closes, and the server ends itself. A Ctrl-C in a terminal, or an interrupted cell of a notebook, is for this
process alone: it ends its jobs on a server that still listens. Nothing of ``server/`` is imported here.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import IO

from predsession.errors import ConnectError, MissingExtraError

NEEDED = ("av", "onnxruntime", "python_multipart", "scipy", "starlette", "uvicorn")
"""Modules of the extra ``server``."""
NO_TOKEN = ("--token", "")
"""What the environment has for a server that others call is not for one that is this process's own."""
READY_TIMEOUT = 60.0
END_TIMEOUT = 10.0


class EmbeddedServer:
    """A running embedded server.

    Parameters
    ----------
    arguments : sequence of str
        More of ``predsession serve``'s arguments, such as ``["--model", "segment"]``.
    purpose : str
        What it is wanted for, where the extra is missing.

    Raises
    ------
    MissingExtraError
        If the extra ``server`` is not installed.
    ConnectError
        If it does not become ready.
    """

    def __init__(self, arguments: Sequence[str] = (), *, purpose: str = "An embedded server") -> None:
        if any(importlib.util.find_spec(name) is None for name in NEEDED):
            raise MissingExtraError("server", purpose)
        self._owner = os.getpid()
        command = [sys.executable, "-m", "predsession", "serve", "--port", "0", "--ephemeral", *NO_TOKEN]
        # The errors go to a file, not a pipe: nobody would empty a pipe while the server runs.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop()
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter, a list, no shell
            [*command, "--announce", "--follow-stdin", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # out of the group that a terminal and a notebook interrupt as a whole
        )
        try:
            announced = self._wait_until_ready()
            self.url: str = str(announced["url"])
            self.grpc: list[str] = _texts(announced.get("grpc"))
            """Where it speaks the edge runtimes' interface."""
            self.oip: list[str] = _texts(announced.get("oip"))
            """Where it speaks the Open Inference Protocol over gRPC."""
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    def lost(self) -> str | None:
        """Return what it said last if the server has ended by itself, None while it runs."""
        return None if self._process.poll() is None else self._last_words()

    def stop(self) -> None:
        """End the server and wait for it. Idempotent; a forked child leaves its parent's server alone."""
        if os.getpid() != self._owner:
            return
        process = self._process
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        if not self._ended():
            process.terminate()
        if not self._ended():
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        self._errors.close()

    def _ended(self) -> bool:
        """Wait a while for the process to end; whether it has."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_TIMEOUT)
        return self._process.returncode is not None

    def _wait_until_ready(self) -> dict[str, object]:
        """Read the line that announces the addresses."""
        lines: queue.Queue[bytes] = queue.Queue()
        stdout = self._process.stdout
        assert stdout is not None
        threading.Thread(target=lambda: lines.put(stdout.readline()), daemon=True).start()
        try:
            line = lines.get(timeout=READY_TIMEOUT)
        except queue.Empty:
            line = b""
        try:
            announced: dict[str, object] = json.loads(line)
            announced["url"] = str(announced["url"])
        except (ValueError, KeyError, TypeError):
            raise ConnectError(f"the embedded server did not start: {self._last_words()}") from None
        return announced

    def _last_words(self) -> str:
        """Return the last line that the server wrote to its standard error."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def _texts(value: object) -> list[str]:
    """Return a list of texts, empty where there is none."""
    return [str(each) for each in value] if isinstance(value, list) else []
