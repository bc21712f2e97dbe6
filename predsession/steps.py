"""Iterating from an event loop: each step is handed to a thread, and no outcome is lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from predsession.errors import JobTimeoutError
from predsession.jobs.batch import Outcome

STEP = 1.0
"""Seconds that one step may hold a thread of the event loop's pool."""


class AsyncSteps:
    """Takes outcomes on a thread of the loop's pool.

    A task that is cancelled while its thread is just taking an outcome must not lose it: the step is kept,
    and the next call goes on with it.
    """

    def __init__(self) -> None:
        self._step: asyncio.Future[Outcome | None] | None = None

    async def next(self, take: Callable[[float | None], Outcome | None]) -> Outcome:
        """Return the next outcome.

        Parameters
        ----------
        take : callable
            Takes a timeout in seconds; returns an outcome, or None at the end.

        Returns
        -------
        Prediction or ItemError
            What `take` returned.

        Raises
        ------
        StopAsyncIteration
            At the end.
        """
        while True:
            if self._step is None:
                self._step = asyncio.get_running_loop().run_in_executor(None, take, STEP)
            step = self._step
            try:
                outcome = await asyncio.shield(step)
            except JobTimeoutError:
                self._step = None
                continue
            finally:
                if step.done():
                    self._step = None
            if outcome is None:
                raise StopAsyncIteration
            return outcome
