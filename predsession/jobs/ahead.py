"""Encoding arrays ahead of sending them, on several threads, with the order kept.

Rule: only a list is looked ahead in. An iterator may fill one buffer again and again, and may take its time:
its array is encoded before the next one is asked for, and is not held back by it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from predsession.inputs.items import ArrayContent
from predsession.jobs.batch import Ready, Slot
from predsession.jobs.submit import Submitter

WORKERS = min(4, os.cpu_count() or 1)

Prepared = tuple[Slot, Ready | None]


def prepared(slots: Iterable[Slot], submitter: Submitter, *, ahead: bool) -> Iterator[Prepared]:
    """Yield each slot with what is to be sent for it, None where nothing is.

    Parameters
    ----------
    slots : iterable of Slot
        In order.
    submitter : Submitter
        Prepares one.
    ahead : bool
        Whether more slots may be taken before the first is ready.

    Yields
    ------
    tuple of Slot and Ready or None
        In the same order.
    """
    pool: ThreadPoolExecutor | None = None
    waiting: deque[tuple[Slot, Future[Ready | None] | None]] = deque()
    try:
        for slot in slots:
            future = None
            if ahead and slot.outcome is None and isinstance(slot.item.content, ArrayContent):
                pool = pool or ThreadPoolExecutor(WORKERS, "predsession-encode")
                future = pool.submit(submitter.prepare, slot)
            waiting.append((slot, future))
            while waiting and (len(waiting) > WORKERS or waiting[0][1] is None):
                yield _ready(submitter, *waiting.popleft())
        while waiting:
            yield _ready(submitter, *waiting.popleft())
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _ready(submitter: Submitter, slot: Slot, future: Future[Ready | None] | None) -> Prepared:
    """Return a slot, ready."""
    if future is not None:
        return slot, future.result()
    return slot, None if slot.outcome is not None else submitter.prepare(slot)
