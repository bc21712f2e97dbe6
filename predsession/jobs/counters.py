"""What a run counts, and the report made of it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from predsession.clock import Clock


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of a run.

    Parameters
    ----------
    items : int or None
        In the source, where that is known.
    predictions, item_errors : int
        Outcomes that were handed to the caller.
    kept : int
        Predictions that the journal had: they were not sent again.
    jobs : int
        Jobs the server started for this session.
    unanswered_submits : int
        Submits that a stock server may have acted on without our learning its job's name; such a job
        cannot be stopped, and runs to its end.
    resent_items : int
        Items that were sent more than once.
    retries : dict of str to int
        Tries beyond the first, by kind of failure.
    cleanup_failures : int
        Stop or clear calls that were not answered well.
    bytes_sent, bytes_begun : int
        Bytes of files sent, repeats included, and bytes of the uploads begun.
    seconds_upload, seconds_wait, seconds_parse : float
        Seconds spent in submits, in waiting for results, and in making predictions of them; they overlap.
    """

    items: int | None = 0
    predictions: int = 0
    item_errors: int = 0
    kept: int = 0
    jobs: int = 0
    unanswered_submits: int = 0
    resent_items: int = 0
    retries: dict[str, int] = field(default_factory=dict)
    cleanup_failures: int = 0
    bytes_sent: int = 0
    bytes_begun: int = 0
    seconds_upload: float = 0.0
    seconds_wait: float = 0.0
    seconds_parse: float = 0.0


class Counters:
    """Counts that several threads add to.

    Parameters
    ----------
    clock : Clock
        Measures the seconds.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.RLock()  # reentrant, as the ledger's: a finalizer may count, too
        self._counts: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}

    def add(self, name: str, amount: int = 1) -> None:
        """Count something under one of the names of `Report`."""
        with self._lock:
            self._counts[name] += amount

    def get(self, name: str) -> int:
        """Return a count."""
        return self._counts[name]

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the seconds that the block takes."""
        began = self._clock.now()
        try:
            yield
        finally:
            spent = self._clock.now() - began
            with self._lock:
                self._seconds[name] = self._seconds.get(name, 0.0) + spent

    def report(self, items: int | None, retries: Counter[str]) -> Report:
        """Return the figures so far."""
        with self._lock:
            figures: dict[str, Any] = {**self._counts, **self._seconds}
        return Report(items=items, retries=dict(retries), **figures)
