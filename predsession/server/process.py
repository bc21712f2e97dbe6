"""A worker process, as the server's loop sees it: start, send, receive, end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import predsession
from predsession.server import pipe
from predsession.server.config import TOKEN_VARIABLE
from predsession.wire.jsontypes import JSON, JSONObject

_MODULE = "predsession.server.worker"


class WorkerProcess:
    """A started worker; make one with `start`.

    Parameters
    ----------
    process : asyncio.subprocess.Process
        Running, with pipes.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._sink = process.stdin
        self._source = process.stdout

    @classmethod
    async def start(cls, setup: JSONObject) -> WorkerProcess:
        """Start a worker and tell it what to load."""
        # -P keeps a stray json.py in the current folder from shadowing Python's own.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            _MODULE,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=_environment(),
        )
        worker = cls(process)
        await worker.send(setup)
        return worker

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    async def send(self, header: JSONObject, body: Sequence[bytes] = ()) -> None:
        """Send one frame, its body in parts; a worker that is gone is noticed by `receive`."""
        with contextlib.suppress(ConnectionError):
            self._sink.write(pipe.begin(header, sum(map(len, body))))
            for part in body:
                self._sink.write(part)
            await self._sink.drain()

    async def receive(self) -> tuple[dict[str, JSON], bytes]:
        """Wait for the next frame.

        Returns
        -------
        tuple
            Header and body.

        Raises
        ------
        EOFError
            If the worker is gone.
        """
        return await pipe.read_async(self._source)

    def kill(self) -> None:
        """End the process at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def gone(self, grace: float) -> str:
        """Wait for the end of the process, kill it if that takes longer, and say how it ended.

        Parameters
        ----------
        grace : float
            Seconds.

        Returns
        -------
        str
            Its exit code or the signal, in words.
        """
        try:
            async with asyncio.timeout(grace):
                await self._process.wait()
        except TimeoutError:
            self.kill()
        code = await self._process.wait()
        return f"signal {-code}, {_signal_name(-code)}" if code < 0 else f"exit code {code}"

    async def end(self, grace: float) -> None:
        """Close the worker's stdin, which ends it; kill it if that takes longer than so many seconds."""
        self._sink.close()
        try:
            async with asyncio.timeout(grace):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()


def _signal_name(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _environment() -> dict[str, str]:
    """Return our environment, with the package found where ours is even if it is not installed."""
    home = str(Path(predsession.__file__).parent.parent)
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop(TOKEN_VARIABLE, None)  # a model has no use for it
    return environment
