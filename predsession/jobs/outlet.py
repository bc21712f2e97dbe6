"""The way to the caller: a bounded queue of outcomes in order, with one end.

Invariant: what was put before the end is handed out before the end, whichever end it is.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable

from predsession.clock import Clock
from predsession.jobs.batch import Outcome

Handled = Callable[[], None]
"""Called once the caller has dealt with an outcome: when the next one is asked for."""
ROOM = 64
"""Outcomes that may wait for a slow caller; beyond, the pipeline waits, and memory stays flat."""


class Outlet:
    """A queue between the receiving thread and the caller.

    Parameters
    ----------
    clock : Clock
        Time, for the caller's own timeouts.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Outcome, Handled | None]] = deque()
        self._with_caller: Handled | None = None
        self._ended = False
        self._error: BaseException | None = None
        self.passed: int = 0
        """Outcomes put so far."""

    def put(self, outcome: Outcome, *, timeout: float, handled: Handled | None = None) -> bool:
        """Hand over an outcome; False if there was no room in time. After the end it is dropped."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._ended or len(self._waiting) < ROOM, timeout):
                return False
            if not self._ended:
                self._waiting.append((outcome, handled))
                self.passed += 1
                self._changed.notify_all()
            return True

    def end(self, error: BaseException | None = None) -> None:
        """Mark the end; the first call counts."""
        with self._changed:
            if not self._ended:
                self._ended, self._error = True, error
                self._changed.notify_all()

    @property
    def ended(self) -> bool:
        """Whether nothing more will be put."""
        return self._ended

    @property
    def full(self) -> bool:
        """Whether nothing can be put before something is taken."""
        return len(self._waiting) >= ROOM

    def discard(self) -> None:
        """End, and drop what waits."""
        self.end()
        with self._changed:
            self._waiting.clear()

    def settle(self) -> None:
        """Take it that the caller has dealt with the outcome taken last."""
        if self._with_caller is not None:
            self._with_caller()
            self._with_caller = None

    def get(self, timeout: float | None, refresh: Callable[[], None]) -> Outcome | None:
        """Take the next outcome.

        Parameters
        ----------
        timeout : float or None
            Seconds to wait; None waits as long as it takes.
        refresh : callable
            Called about ten times a second while waiting, on the caller's own thread: progress bars are
            not to be touched from another.

        Returns
        -------
        Prediction, ItemError or None
            None at the regular end.

        Raises
        ------
        queue.Empty
            If nothing came in time.
        """
        self.settle()
        deadline = None if timeout is None else self._clock.now() + timeout
        while True:
            left = 0.1 if deadline is None else min(0.1, deadline - self._clock.now())
            with self._changed:
                self._changed.wait_for(lambda: self._ended or bool(self._waiting), max(0.0, left))
                if self._waiting:
                    self._changed.notify_all()
                    outcome, self._with_caller = self._waiting.popleft()
                    return outcome
                if self._ended:
                    break
            refresh()
            if deadline is not None and self._clock.now() >= deadline:
                raise queue.Empty
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return None
