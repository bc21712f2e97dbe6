"""Iterating from an event loop: each step is handed to a thread, and no outcome is lost on the way."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from concurrent.futures import Future

from predsession.jobs.batch import Outcome

STEP = 1.0
"""Seconds that one step may hold a thread of the event loop's pool."""

Take = Callable[[float | None], Outcome | None]


class AsyncSteps:
    """Takes outcomes on a thread of the loop's pool, one step at a time, whoever asks.

    Invariant: a step is dropped only once its outcome has been handed to a task that goes on with it. A task
    that is cancelled, even in the moment in which the outcome comes, leaves the step to the next.
    """

    def __init__(self) -> None:
        self._step: Future[Outcome | None] | None = None
        self._turn: asyncio.Lock | None = None

    async def next(self, take: Take) -> Outcome:
        """Return the next outcome.

        Parameters
        ----------
        take : callable
            Takes a timeout in seconds; returns an outcome, None at the end; raises `queue.Empty` if nothing
            came in time.

        Returns
        -------
        Prediction or ItemError
            What `take` returned.

        Raises
        ------
        StopAsyncIteration
            At the end.
        """
        if self._turn is None:
            self._turn = asyncio.Lock()
        async with self._turn:
            while True:
                step = self._step = self._step or _begin(take)
                # Unlike `await`, this neither cancels the step nor takes its outcome when it is cancelled.
                waiter = asyncio.wrap_future(step)
                waiter.add_done_callback(_look_at)
                await asyncio.wait([waiter])
                self._step = None
                try:
                    outcome = step.result()
                except queue.Empty:
                    continue
                if outcome is None:
                    raise StopAsyncIteration
                return outcome


def _look_at(waiter: asyncio.Future[Outcome | None]) -> None:
    """Look at a waiter's exception, which is raised from the step itself, so that nobody misses it here."""
    if not waiter.cancelled():
        waiter.exception()


def _begin(take: Take) -> Future[Outcome | None]:
    """Take an outcome on a thread of the running loop's pool."""
    step: Future[Outcome | None] = Future()

    def run() -> None:
        try:
            step.set_result(take(STEP))
        except BaseException as error:  # noqa: BLE001 - raised again to whoever awaits the step
            step.set_exception(error)

    asyncio.get_running_loop().run_in_executor(None, run)
    return step
