"""A real server for tests: ready when it is there, gone when the block ends."""

from __future__ import annotations

import argparse
import queue
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from predsession.errors import ConnectError
from predsession.launch import NO_TOKEN, EmbeddedServer
from predsession.wire.jsontypes import JSONObject, as_list

READY_TIMEOUT = 60.0


class RunningServer:
    """An embedded server on a free port of this machine.

    Parameters
    ----------
    model : str
        As for ``predsession serve``: ``pixels`` reads a number from each picture (see `number_picture`), so
        that a test sees which picture an answer belongs to; ``detect``, ``segment``, or a model of your own
        as ``path/to/file.py:name``.
    stock : bool
        Whether to imitate a stock server: its limits, and no extension.
    process : bool
        True runs a process of its own, as users do. False runs the server on a thread of this process, where
        a debugger reaches it; the model's worker is a process all the same.
    arguments : sequence of str
        More of ``predsession serve``'s arguments.

    Raises
    ------
    ConnectError
        If it does not become ready.
    MissingExtraError
        If the extra ``server`` is not installed.

    Examples
    --------
    >>> with RunningServer("pixels") as server:  # doctest: +SKIP
    ...     predictions = list(PredictionSession(server.url, number_picture(7)))
    """

    def __init__(
        self,
        model: str = "pixels",
        *,
        stock: bool = False,
        process: bool = True,
        arguments: Sequence[str] = (),
    ) -> None:
        words = [model, *(["--stock"] if stock else []), *arguments]
        self._server: EmbeddedServer | _ThreadedServer
        self._server = EmbeddedServer(words, purpose="RunningServer") if process else _ThreadedServer(words)

    @property
    def url(self) -> str:
        """The address to give to a client."""
        return self._server.url

    @property
    def oip(self) -> list[str]:
        """The addresses of its gRPC for tensors, with ``--oip-grpc`` among the arguments."""
        return self._server.oip

    def close(self) -> None:
        """End the server and wait for it. Idempotent."""
        self._server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _ThreadedServer:
    """The same server, on a thread."""

    def __init__(self, words: Sequence[str]) -> None:
        from predsession.server import command

        command.check_extra()
        answers: queue.Queue[tuple[JSONObject, Callable[[], None]] | BaseException] = queue.Queue()
        self._thread = threading.Thread(target=self._run, args=(words, answers), name="embedded-server")
        self._thread.daemon = True
        self._thread.start()
        answer = answers.get(timeout=READY_TIMEOUT)
        if isinstance(answer, BaseException):
            raise ConnectError(f"the embedded server did not start: {answer}") from answer
        announced, self._end = answer
        self.url = str(announced["url"])
        self.oip = [str(each) for each in as_list(announced.get("oip"))]

    def _run(
        self,
        words: Sequence[str],
        answers: queue.Queue[tuple[JSONObject, Callable[[], None]] | BaseException],
    ) -> None:
        """Serve until told to end."""
        from predsession.server import command

        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        args = parser.parse_args([*NO_TOKEN, *words, "--port", "0", "--ephemeral", "--quiet"])
        try:
            command.serve_here(args, ready=lambda *ready: answers.put(ready))
        except BaseException as error:  # noqa: BLE001 - raised on the thread that waits for the server
            answers.put(error)

    def stop(self) -> None:
        """End the server and wait for it."""
        if self._thread.is_alive():
            self._end()
            self._thread.join()
