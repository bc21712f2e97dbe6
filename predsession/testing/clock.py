"""A clock that jumps instead of waiting."""

from __future__ import annotations

import threading


class FakeClock:
    """Time that passes only when somebody waits.

    Parameters
    ----------
    start : float
        Seconds; the time at first.
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self.waits: list[float] = []
        """Every wait so far, in seconds."""

    def now(self) -> float:
        """Return the present time, in seconds."""
        return self._now

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Let the time pass at once, unless the event is set; return whether it is."""
        if event.is_set():
            return True
        self.waits.append(seconds)
        self._now += max(0.0, seconds)
        return event.is_set()
