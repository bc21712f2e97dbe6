"""Samples to batches: by size or by time, whichever comes first."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from predsession.clock import Clock
from predsession.stream.samples import DeadLetter, Sample
from predsession.stream.source import Source, Taken

_SLICE = 0.25
"""Seconds after which a waiting source is asked whether it may stop."""


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
    stopped : threading.Event
        Set when no further batch is wanted; what was taken becomes a batch.
    """

    def __init__(
        self, source: Source, size: int, seconds: float, *, clock: Clock, stopped: threading.Event
    ) -> None:
        self._source = source
        self._size = size
        self._seconds = seconds
        self._clock = clock
        self._stopped = stopped
        self._waiting: deque[Taken] = deque()
        self._ended = False

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
            At least one, all with the same fields; None at the end.
        """
        batch: list[Sample] = []
        ends: float | None = None
        while True:
            while self._waiting and len(batch) < self._size:
                first = self._waiting[0]
                if isinstance(first, DeadLetter):
                    dead(first)
                elif batch and list(first.fields) != list(batch[0].fields):
                    return batch  # other fields begin another batch
                else:
                    batch.append(first)
                self._waiting.popleft()
            if ends is None and batch:
                ends = self._clock.now() + self._seconds
            left = _SLICE if ends is None else ends - self._clock.now()
            if len(batch) == self._size or self._ended or self._stopped.is_set() or left <= 0:
                if batch or self._ended or self._stopped.is_set():
                    return batch or None
                continue
            self._more(self._size - len(batch), min(left, _SLICE))

    def _more(self, most: int, seconds: float) -> None:
        """Ask the source."""
        taken = self._source.take(most, seconds)
        if taken is None:
            self._ended = True
        else:
            self._waiting.extend(taken)
