"""Several calls on their way at once: a thread takes from the source and sends, the caller gets in order.

Invariants: at most `depth` are on their way; what was sent before the source failed comes first; a result
comes as soon as it is there, however long the source takes for its next.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")

JOIN_SECONDS = 1.0
"""Seconds for which leaving waits for a source that is just asked; it is then left to itself."""


class Pipeline(Generic[S, T]):
    """Iterates what becomes of each item of a source, in order.

    Parameters
    ----------
    source : iterable
        Taken one by one, in a thread of its own.
    send : callable
        From an item to the future of what becomes of it.
    depth : int
        How many are on their way at once.
    """

    def __init__(self, source: Iterable[S], send: Callable[[S], Future[T]], depth: int) -> None:
        self._source = source
        self._send = send
        self._free = threading.Semaphore(depth)
        self._changed = threading.Condition()
        self._going: deque[Future[T]] = deque()
        self._stopped = self._ended = False
        self._error: Exception | None = None

    def __iter__(self) -> Iterator[T]:
        """Yield results; leaving cancels what is on its way."""
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(self._feed,), name="predsession-source", daemon=True
        )
        thread.start()
        try:
            while (future := self._first()) is not None:
                result = future.result()  # it stays in the row until then: whatever interrupts, cancels it
                self._going.popleft()
                self._free.release()
                yield result
            if self._error is not None:
                raise self._error
        finally:
            self._stop()
            thread.join(JOIN_SECONDS)

    def _first(self) -> Future[T] | None:
        """Wait for the oldest call; None after the last one."""
        with self._changed:
            self._changed.wait_for(lambda: self._going or self._ended)
            return self._going[0] if self._going else None

    def _feed(self) -> None:
        """Take from the source, and send."""
        try:
            source = iter(self._source)
            while self._room():
                self._add(self._send(next(source)))
        except StopIteration:
            pass
        except Exception as error:  # noqa: BLE001 - it is raised where the results are taken
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify()

    def _room(self) -> bool:
        """Wait until one more may be on its way; False if nobody wants it any more."""
        self._free.acquire()
        return not self._stopped

    def _add(self, future: Future[T]) -> None:
        """Line up a call."""
        with self._changed:
            if not self._stopped:
                self._going.append(future)
                self._changed.notify()
                return
        future.cancel()

    def _stop(self) -> None:
        """End it: nothing more is taken, and what is on its way is cancelled."""
        with self._changed:
            self._stopped = True
            going = list(self._going)
        self._free.release()
        for future in going:
            future.cancel()
