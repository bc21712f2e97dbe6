"""Samples to batches: by size or by time, whichever comes first."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from predsession.clock import Clock
from predsession.errors import SessionBusyError
from predsession.stream.samples import DeadLetter, Sample
from predsession.stream.source import Source, Taken

_SLICE = 0.25
"""Seconds after which a waiting source is asked whether it may stop."""


class Flag:
    """Is set once. Unlike `threading.Event` it has no lock, and may be set in a signal handler."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """Set it."""
        self._set = True

    def is_set(self) -> bool:
        """Return whether it is set."""
        return self._set


class Turn:
    """Whose it is to ask the source: one thread's at a time; another is refused."""

    def __init__(self) -> None:
        self.lock: threading.Lock = threading.Lock()
        self.owner: int | None = None
        """The thread that has it."""

    def __enter__(self) -> None:
        """Have it."""
        if not self.lock.acquire(blocking=False):
            raise SessionBusyError("another thread is asking the source: one at a time")
        self.owner = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self.owner = None
        self.lock.release()


class Batcher:
    """Takes samples from a source until a batch is full, or its first sample has waited long enough.

    Parameters
    ----------
    source : Source
        Where they come from.
    size : int
        Of a batch.
    seconds : float
        For which the first sample of a batch waits for others.
    clock : Clock
        What time it is.
    stopped : Flag
        Set when no further batch is wanted; what was taken becomes a batch.
    """

    def __init__(self, source: Source, size: int, seconds: float, *, clock: Clock, stopped: Flag) -> None:
        self._source = source
        self._size = size
        self._seconds = seconds
        self._clock = clock
        self._stopped = stopped
        self._waiting: deque[Taken] = deque()
        self._ended = False
        self._error: Exception | None = None

    def peek(self, seconds: float) -> Sample | None:
        """Return the first sample without taking it.

        Parameters
        ----------
        seconds : float
            How long to wait for it.

        Returns
        -------
        Sample or None
            None if none came, or the source has ended.
        """
        ends = self._clock.now() + seconds
        while not (first := next((each for each in self._waiting if isinstance(each, Sample)), None)):
            left = ends - self._clock.now()
            if left <= 0 or self._ended or self._stopped.is_set():
                return None
            self._more(1, min(left, _SLICE))
        return first

    def next(self, dead: Callable[[DeadLetter], None]) -> list[Sample] | None:
        """Return the next batch's samples.

        Parameters
        ----------
        dead : callable
            Takes what cannot be processed, as it comes.

        Returns
        -------
        list of Sample or None
            All with the same fields; none of them where all was dead that came in the time; None at the end.
        """
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        batch: list[Sample] = []
        buried = 0
        ends: float | None = None
        while True:
            more, whole = self._fill(batch, dead)
            buried += more
            over = self._ended or self._stopped.is_set()
            if ends is None and (batch or buried):
                ends = self._clock.now() + self._seconds
            left = _SLICE if ends is None else ends - self._clock.now()
            if whole or over or left <= 0 or buried >= self._size:
                return None if over and not (batch or buried) else batch
            if not self._try_more(batch, self._size - len(batch), min(left, _SLICE)):
                return batch

    def _fill(self, batch: list[Sample], dead: Callable[[DeadLetter], None]) -> tuple[int, bool]:
        """Move what waits into a batch; return how many were dead, and whether the batch is whole."""
        buried = 0
        while self._waiting and len(batch) < self._size:
            first = self._waiting[0]
            if isinstance(first, DeadLetter):
                dead(first)
                buried += 1
            elif batch and first.fields.keys() != batch[0].fields.keys():
                return buried, True  # other fields begin another batch
            else:
                batch.append(first)
            self._waiting.popleft()
        return buried, len(batch) >= self._size

    def _try_more(self, batch: list[Sample], most: int, seconds: float) -> bool:
        """Ask the source; return whether the batch may grow. What came before an error comes first."""
        try:
            self._more(most, seconds)
        except Exception as error:
            if not batch:
                raise
            self._error = error
            return False
        except BaseException:
            self._waiting.extendleft(reversed(batch))
            raise
        return True

    def _more(self, most: int, seconds: float) -> None:
        """Ask the source."""
        taken = self._source.take(most, seconds)
        if taken is None:
            self._ended = True
        else:
            self._waiting.extend(taken)
