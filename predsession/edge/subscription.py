"""A camera's results as they come: a thread reads, a short queue keeps the newest, the caller iterates.

Invariants: what is full drops its oldest frame, never the end or the error that closes it. The thread holds
the queue and the call, not the subscription: one that nobody holds any more is cancelled.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from predsession.edge.result import InferenceResult
from predsession.errors import PredSessionError, ProtocolError, RequestTimeoutError, SessionClosedError
from predsession.rpc.flight import Stream
from predsession.wire.edge import inference_pb2 as pb

_log = logging.getLogger("predsession.edge")
_LOGGED_EVERY = 10
_CLOCKS = (time.time_ns, time.monotonic_ns)
_PLAUSIBLE_NS = 3600 * 10**9


class _Queue:
    """What lies between the reader and the caller."""

    def __init__(self, size: int) -> None:
        self.dropped = 0
        self._frames: deque[InferenceResult] = deque()
        self._size = size
        self._ended = False
        self._error: PredSessionError | SessionClosedError | None = None
        self._changed = threading.Condition()

    def put(self, frame: InferenceResult) -> None:
        """Add a frame, at the cost of the oldest."""
        with self._changed:
            if len(self._frames) >= self._size:
                self._frames.popleft()
                self.dropped += 1
            self._frames.append(frame)
            self._changed.notify()

    def end(
        self, error: PredSessionError | SessionClosedError | None = None, *, at_once: bool = False
    ) -> None:
        """Say that nothing more comes; the first word counts."""
        with self._changed:
            if not self._ended:
                self._ended, self._error = True, error
            if at_once:
                self._frames.clear()
            self._changed.notify_all()

    def get(self, seconds: float | None) -> InferenceResult | None:
        """Return the next frame, None after the last one; raise the error that ended it."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._frames or self._ended, seconds):
                raise TimeoutError
            if self._frames:
                return self._frames.popleft()
            error, self._error = self._error, None
        if error is not None:
            raise error
        return None


class Subscription:
    """Iterates ``(frame_sequence, InferenceResult)``. Made by `InferenceClient.subscribe`.

    Leaving its ``with`` block, `close`, `cancel` and the last reference to it end the call on the server.

    Parameters
    ----------
    stream : Stream
        The call.
    read : callable
        A message to a result; one that failed has its error.
    what : str
        For messages: which stream, which model.
    queue_size : int
        Frames that are kept for a slow caller.
    max_consecutive_failures : int or None
        Failed frames in a row that end it; 0 or None for no limit.
    idle_timeout : float or None
        Seconds without a frame that end it.

    Notes
    -----
    Iterating raises `RequestTimeoutError` after `idle_timeout`, the error of the last of too many failed
    frames in a row, `SessionClosedError` in a process that was forked, and any other error that
    `InferenceClient` lists.
    """

    def __init__(
        self,
        stream: Stream[pb.StreamInferResponse],
        read: Callable[[pb.StreamInferResponse], InferenceResult],
        *,
        what: str,
        queue_size: int,
        max_consecutive_failures: int | None,
        idle_timeout: float | None,
    ) -> None:
        self._queue = _Queue(queue_size)
        self._pid = os.getpid()
        self._idle_timeout = idle_timeout
        self._what = what
        self.last_latency_ms: float | None = None
        self._cancel = weakref.finalize(self, _cancel, stream, self._queue)
        self._thread = threading.Thread(
            target=_read,
            args=(stream, read, self._queue, what, max_consecutive_failures or 0),
            name="predsession-edge-subscription",
            daemon=True,
        )
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Frames that came and were dropped because newer ones came before they were taken."""
        return self._queue.dropped

    def __iter__(self) -> Iterator[tuple[int, InferenceResult]]:
        """Return itself."""
        return self

    def __next__(self) -> tuple[int, InferenceResult]:
        """Wait for the next frame."""
        if self._pid != os.getpid():
            raise SessionClosedError("this subscription belongs to the process that was forked")
        try:
            result = self._queue.get(self._idle_timeout)
        except TimeoutError:
            self.cancel()
            raise RequestTimeoutError(f"{self._what}: no frame within {self._idle_timeout:g} s") from None
        if result is None:
            raise StopIteration
        self.last_latency_ms = _latency_ms(result.timestamp_ns)
        return result.frame_sequence, result

    def cancel(self) -> None:
        """End it, from any thread; who waits for a frame is let go."""
        if self._pid == os.getpid():
            self._cancel()

    def close(self) -> None:
        """End it, and wait until its thread has ended."""
        self.cancel()
        if self._pid == os.getpid() and self._thread is not threading.current_thread():
            self._thread.join(5.0)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.close()


def _cancel(stream: Stream[pb.StreamInferResponse], queue: _Queue) -> None:
    """End the call, here and on the server."""
    queue.end(at_once=True)
    stream.cancel()


def _read(
    stream: Stream[pb.StreamInferResponse],
    read: Callable[[pb.StreamInferResponse], InferenceResult],
    queue: _Queue,
    what: str,
    limit: int,
) -> None:
    """Read until the end: frames to the queue, failed ones to the log."""
    failures = 0
    try:
        for result in _results(stream, read):
            if result.error is None:
                failures = 0
                queue.put(result)
                continue
            failures += 1
            if failures % _LOGGED_EVERY == 1:
                _log.warning("%s: frame %d failed: %s", what, result.frame_sequence, result.error)
            if failures == limit:
                result.error.add_note(
                    f"{what}: frame {result.frame_sequence} was failure {failures} in a row"
                )
                queue.end(result.error)
                return
        queue.end()
    except (PredSessionError, SessionClosedError) as error:
        queue.end(error)
    finally:
        queue.end(SessionClosedError(f"{what}: reading it failed"))
        stream.cancel()


def _results(
    stream: Stream[pb.StreamInferResponse], read: Callable[[pb.StreamInferResponse], InferenceResult]
) -> Iterator[InferenceResult]:
    """Yield a result for each message, and for each that cannot be read."""
    while True:
        try:
            message = next(stream, None)
        except ProtocolError as error:
            if stream.ended:
                raise
            yield InferenceResult(status_message=str(error), error=error)
        else:
            if message is None:
                return
            yield read(message)


def _latency_ms(timestamp_ns: int) -> float | None:
    """Return a frame's age; None where its clock is none of this machine's."""
    # Some runtimes stamp with the time of day, some with the clock that runs since the start: which, can only
    # be told by what makes sense; a camera with a clock of its own cannot be told at all.
    if timestamp_ns:
        for clock in _CLOCKS:
            age = clock() - timestamp_ns
            if 0 <= age < _PLAUSIBLE_NS:
                return age / 1e6
    return None
