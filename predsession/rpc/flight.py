"""One call, and what becomes of it: its deadline, its further tries, its future; and a stream of answers.

Invariant: a call is sent again only if it never left (`ConnectError`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import grpc
from google.protobuf.message import DecodeError

from predsession.errors import (
    ConnectError,
    PredSessionError,
    ProtocolError,
    SessionClosedError,
    TransportError,
)
from predsession.rpc.process import PROCESS

R = TypeVar("R")
T = TypeVar("T")

Metadata = tuple[tuple[str, str], ...]

PAUSES = (0.05, 0.1, 0.2, 0.4)
"""Seconds before each further try of a call that never left; a deadline cuts them short."""


@dataclass(frozen=True, slots=True)
class Ask(Generic[R]):
    """One request.

    Parameters
    ----------
    path : str
        Which call: "/aipc.inference.InferenceService/Infer".
    payload : bytes
        The request, written.
    read : callable
        From the answer's bytes to what they mean.
    seconds : float or None
        Its deadline; None for a stream without one.
    many : bool
        Whether the service takes a stream of requests, of which this is the only one.
    """

    path: str
    payload: bytes = field(repr=False)
    read: Callable[[bytes], R]
    seconds: float | None
    many: bool = False

    @property
    def method(self) -> str:
        """The call's own name, for messages."""
        return self.path.rpartition("/")[2]


class Line(Protocol):
    """What a call needs of the connection."""

    reached: bool

    @property
    def metadata(self) -> Metadata:
        """What is sent along with every call."""

    def unary(self, ask: Ask[R]) -> grpc.UnaryUnaryMultiCallable[bytes, R]:
        """Return gRPC's own way to make a call."""

    def failure(self, error: grpc.RpcError, ask: Ask[R]) -> PredSessionError:
        """Translate what gRPC raised."""


class Awaited(Future[T]):
    """A future that ends in the child of a fork, too, where no answer comes.

    Parameters
    ----------
    method : str
        For the message.
    """

    def __init__(self, method: str) -> None:
        super().__init__()
        self._method = method
        PROCESS.watch(self)

    def abandon(self) -> None:
        """End with an error that says so."""
        # A thread of the parent may have held the lock at that moment, and what it was to call is the
        # parent's business: neither is touched.
        self._condition = threading.Condition()
        self._done_callbacks: list[Callable[[Future[T]], object]] = []
        self._waiters = []
        if not self.done():
            self.set_exception(
                SessionClosedError(f"this {self._method} belongs to the process that was forked")
            )


class Flight(Generic[R, T]):
    """One call on its way, with its further tries.

    Parameters
    ----------
    line : Line
        The connection.
    ask : Ask
        What is asked.
    then : callable
        From the answer to what the future gives; it runs in gRPC's own thread.
    instead : callable
        From what went wrong to what the future gives instead, or it raises.
    patience : float
        Seconds for which a connection is tried.
    """

    def __init__(
        self,
        line: Line,
        ask: Ask[R],
        then: Callable[[R], T],
        instead: Callable[[Exception], T],
        *,
        patience: float = sum(PAUSES),
    ) -> None:
        self._line = line
        self._ask = ask
        self._then = then
        self._instead = instead
        self._begun = time.monotonic()
        self._patience = patience
        self._tries = 0

    @cached_property
    def future(self) -> Future[T]:
        """What becomes of it; a call that somebody waits for needs none."""
        return Awaited(self._ask.method)

    def left(self) -> float | None:
        """Return the seconds that are left of the deadline.

        Returns
        -------
        float or None
            None if it has none.
        """
        if self._ask.seconds is None:
            return None
        return max(0.0, self._begun + self._ask.seconds - time.monotonic())

    def pause_after(self, failure: PredSessionError) -> float | None:
        """Tell whether the call is tried again.

        Parameters
        ----------
        failure : PredSessionError
            What became of it.

        Returns
        -------
        float or None
            Seconds to wait before; None if it is not.
        """
        if not isinstance(failure, ConnectError):
            return None
        pause = PAUSES[min(self._tries, len(PAUSES) - 1)]
        self._tries += 1
        spent = time.monotonic() - self._begun + pause
        left = self.left()
        return None if spent > self._patience or (left is not None and left <= pause) else pause

    def start(self) -> None:
        """Send the call, in the background.

        Raises
        ------
        SessionClosedError
            If the connection was closed.
        """
        try:
            ask = self._line.unary(self._ask).future
            call = ask(self._ask.payload, timeout=self.left(), metadata=self._line.metadata)
        except ValueError:
            raise SessionClosedError("the client was closed") from None
        PROCESS.begin()
        # The caller's cancel has to reach the call; what the call does reaches the caller by `_finish`.
        self.future.add_done_callback(lambda future: _cancel_if(future, call.cancel))
        call.add_done_callback(self._finish)

    def _restart(self) -> None:
        """Send the call again."""
        try:
            self.start()
        except (PredSessionError, SessionClosedError) as error:
            self._settle(error)

    def _finish(self, call: grpc.Future[R]) -> None:
        """Take what became of the call, in gRPC's own thread."""
        PROCESS.end()
        try:
            reply = call.result()
        except grpc.FutureCancelledError:
            self._settle(TransportError(f"{self._ask.method}: the client was closed"))
        except grpc.RpcError as error:
            failure = self._line.failure(error, self._ask)
            pause = self.pause_after(failure)
            if pause is None:
                self._settle(failure)
            else:
                timer = threading.Timer(pause, self._restart)
                timer.daemon = True
                timer.start()
        else:
            self._line.reached = True
            self._give(lambda: self._read(reply))

    def _read(self, reply: R) -> T:
        """Return what the answer means, or what is to be had if it means nothing."""
        try:
            return self._then(reply)
        except Exception as error:  # noqa: BLE001 - raised again, if it is nobody's to take
            return self._instead(error)

    def _settle(self, failure: Exception) -> None:
        """End with an error, or with what is to be had instead."""
        self._give(lambda: self._instead(failure))

    def _give(self, made: Callable[[], T]) -> None:
        """End, once only, for it is here that a cancelled future learns of its end."""
        if self.future.set_running_or_notify_cancel():
            try:
                result = made()
            except Exception as error:  # noqa: BLE001 - it is raised where the future is asked
                self.future.set_exception(error)
            else:
                self.future.set_result(result)


def _cancel_if(future: Future[T], cancel: Callable[[], object]) -> None:
    """Cancel the call of a future that was cancelled."""
    if future.cancelled():
        cancel()


class Stream(Generic[R]):
    """Answers as they come. It may be cancelled from any thread.

    Parameters
    ----------
    line : Line
        The connection.
    ask : Ask
        What was asked.
    call : iterator
        gRPC's own.
    """

    def __init__(self, line: Line, ask: Ask[R], call: grpc._CallIterator[bytes]) -> None:
        self._line = line
        self._ask = ask
        self._call = call
        self._pid = os.getpid()
        self._end_noted = threading.Lock()
        self.cancelled: bool = False
        PROCESS.begin()

    def __iter__(self) -> Iterator[R]:
        """Return itself."""
        return self

    def __next__(self) -> R:
        """Return the next answer, end after the last one; raise at one that cannot be read, and go on."""
        if self.ended:
            raise StopIteration
        if self._pid != os.getpid():
            raise SessionClosedError(f"this {self._ask.method} belongs to the process that was forked")
        try:
            raw = next(self._call)
        except StopIteration:
            self._end()
            raise
        except grpc.RpcError as error:
            self._end()
            if self.cancelled:
                raise StopIteration from None
            raise self._line.failure(error, self._ask) from None
        self._line.reached = True
        try:
            return self._ask.read(raw)
        except DecodeError as error:
            raise ProtocolError(f"{self._ask.method}: an answer cannot be read ({error})") from None

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""
        return self._end_noted.locked()

    def cancel(self) -> None:
        """End the call, here and on the server."""
        self.cancelled = True
        if self._pid == os.getpid():
            self._call.cancel()
            self._end()

    def _end(self) -> None:
        """Note that it has ended; of several threads one does."""
        if self._end_noted.acquire(blocking=False):
            PROCESS.end()
