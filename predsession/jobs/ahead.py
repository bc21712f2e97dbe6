"""Encoding pixels ahead of sending them, on several threads, with the order kept.

Rule: a source that takes its time is not looked ahead in: its last image would wait for the next.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from predsession.clock import Clock
from predsession.inputs.items import ArrayContent
from predsession.jobs.batch import Ready, Slot
from predsession.jobs.submit import Submitter

WORKERS = min(4, os.cpu_count() or 1)
QUICK = 0.02
"""Seconds that a source may take for an item, to be looked ahead in."""

Prepared = tuple[Slot, Ready | None]


class Ahead:
    """Makes slots ready to be sent, arrays a few at a time.

    Parameters
    ----------
    submitter : Submitter
        Prepares one.
    clock : Clock
        Time.
    """

    def __init__(self, submitter: Submitter, clock: Clock) -> None:
        self._submitter = submitter
        self._clock = clock
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[tuple[Slot, Future[Ready | None] | None]] = deque()

    def prepared(self, slots: Iterable[Slot]) -> Iterator[Prepared]:
        """Yield each slot with what is to be sent for it, None where nothing is.

        Parameters
        ----------
        slots : iterable of Slot
            In order. Where taking one raises, what was taken before comes first.

        Yields
        ------
        tuple of Slot and Ready or None
            In the same order.
        """
        source, depth = iter(slots), 0  # the first goes out at once
        failure: BaseException | None = None
        try:
            while failure is None:
                began = self._clock.now()
                try:
                    slot = next(source, None)
                except Exception as error:  # noqa: BLE001 - the caller's own iterator may raise anything; raised below
                    failure = error
                    break
                quick = self._clock.now() - began < QUICK
                if slot is None:
                    break
                self._waiting.append((slot, self._begin(slot)))
                # A slow caller's time is not spent: what is next in line and is no array is made ready now.
                while self._waiting and (len(self._waiting) > depth or self._waiting[0][1] is None):
                    yield self._done()
                depth = WORKERS if quick else 0
            while self._waiting:
                yield self._done()
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
        if failure is not None:
            raise failure

    def _begin(self, slot: Slot) -> Future[Ready | None] | None:
        """Start encoding an array; anything else is made ready when its turn comes."""
        if slot.outcome is not None or not isinstance(slot.item.content, ArrayContent):
            return None
        if self._pool is None:
            self._pool = ThreadPoolExecutor(WORKERS, "predsession-encode")
        return self._pool.submit(self._submitter.prepare, slot)

    def _done(self) -> Prepared:
        """Return the slot that is next in line, ready."""
        slot, future = self._waiting.popleft()
        if future is not None:
            return slot, future.result()
        return slot, None if slot.outcome is not None else self._submitter.prepare(slot)
