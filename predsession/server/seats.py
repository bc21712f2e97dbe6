"""Seats for uploads: so many are received at once, and one that hardly moves makes room for one that waits.

Without that, a few dozen senders of a byte a second would keep all others out, each byte of theirs in time.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator

from predsession.server.refusal import Refusal, explained

SLOWEST = 1024
"""Bytes a second; an upload that brings less loses its seat once somebody else wants it."""
_LOOK_S = 1.0  # the pace is measured over so long at least


class Seat:
    """One upload's place, and how fast the upload moves."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._moved = 0
        self._waiting: asyncio.Timeout | None = None
        self.lost = False
        """Whether somebody else has it now."""

    @contextlib.asynccontextmanager
    async def patience(self, seconds: float) -> AsyncIterator[None]:
        """Wait for the next piece for so long, or until the seat is lost; raises TimeoutError then."""
        async with asyncio.timeout(0 if self.lost else seconds) as self._waiting:
            yield

    def moved(self, size: int) -> None:
        """Note that a piece has come."""
        now = time.monotonic()
        if now - self._since > 2 * _LOOK_S:  # what came long ago says nothing of the pace
            self._since, self._moved = now - _LOOK_S, 0
        self._moved += size

    @property
    def idles(self) -> bool:
        """Whether so little has come lately that others need not wait."""
        elapsed = time.monotonic() - self._since
        return elapsed >= _LOOK_S and self._moved < SLOWEST * elapsed

    def lose(self) -> None:
        """End the waiting for the next piece."""
        self.lost = True
        if self._waiting is not None:
            self._waiting.reschedule(0)


class Seats:
    """The seats of a server.

    Parameters
    ----------
    count : int or None
        How many; None for as many as come.
    """

    def __init__(self, count: int | None) -> None:
        self._count = count
        self._taken: dict[Seat, None] = {}

    @contextlib.contextmanager
    def take(self) -> Iterator[Seat]:
        """Take a seat for as long as the block lasts, perhaps that of an upload that hardly moves.

        Yields
        ------
        Seat
            Taken.

        Raises
        ------
        Refusal
            If all are taken.
        """
        if self._count is not None and len(self._taken) >= self._count:
            idle = next((seat for seat in self._taken if seat.idles), None)
            if idle is None:
                raise self.full()
            del self._taken[idle]
            idle.lose()
        seat = Seat()
        self._taken[seat] = None
        try:
            yield seat
        finally:
            self._taken.pop(seat, None)

    def full(self) -> Refusal:
        """Return the refusal for who has no seat."""
        return Refusal(429, explained(f"{self._count} uploads are being received; try again."), retry_after=1)
