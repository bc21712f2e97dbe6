"""A thread of a model's own: what is handed to it is done in order, on the processors that it was given."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

Value = TypeVar("Value")


class ModelThread:
    """One thread, which ends with `end`, or with the process.

    Parameters
    ----------
    name : str
        The model's.
    cores : iterable of int
        The processors it may use, it and the threads that it makes; none for all.
    """

    def __init__(self, name: str, cores: Iterable[int] = ()) -> None:
        self._cores = frozenset(cores)
        self._orders: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # A daemon, for a model that never returns must not keep the server from ending.
        self._thread = threading.Thread(target=self._run, name=f"tensor-{name}", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], Value]) -> asyncio.Future[Value]:
        """Hand something over; it is left out if its future is cancelled before it begins.

        Parameters
        ----------
        work : callable
            May raise.

        Returns
        -------
        asyncio.Future
            Of the running loop.
        """
        done: Future[Value] = Future()

        def order() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                value = work()
            except BaseException as error:  # noqa: BLE001 - it is raised where the future is awaited
                done.set_exception(error)
            else:
                done.set_result(value)

        self._orders.put(order)
        return asyncio.wrap_future(done)

    def end(self) -> None:
        """Have it end once everything is done that was handed over."""
        self._orders.put(None)

    def _run(self) -> None:
        """Do one thing after another."""
        if self._cores:
            os.sched_setaffinity(0, self._cores)  # of this thread; those that it makes inherit it
        while (order := self._orders.get()) is not None:
            order()
            del order  # with it go the arrays of a call that is over


def processors() -> frozenset[int]:
    """Return the processors that this process may use; those that are there where the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))
