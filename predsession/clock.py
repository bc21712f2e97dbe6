"""Time as a value that is handed in, so that polling and retries can be tested in milliseconds."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """What the package knows of time."""

    def now(self) -> float:
        """Return seconds on a clock that never goes back."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Sleep until the event is set or the seconds have passed; return whether it is set."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Return `time.monotonic`, in seconds."""
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for the event, at most so many seconds."""
        return event.wait(max(0.0, seconds))
