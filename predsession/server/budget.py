"""Room for decoded pictures, so that memory is bounded however large they are."""

from __future__ import annotations

import threading


class PixelBudget:
    """Room for pixels, given out in order.

    Parameters
    ----------
    room : int
        Pixels.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._used = 0
        self._turn = 0
        self._changed = threading.Condition()
        self._short = False

    @property
    def short(self) -> bool:
        """Whether somebody whose turn it is waits for room."""
        return self._short

    def take(self, turn: int, pixels: int) -> None:
        """Wait for one's turn and for room; a picture larger than all room waits until nothing is held."""
        with self._changed:
            self._changed.wait_for(lambda: self._turn == turn)
            self._short = not self._fits(pixels)
            self._changed.wait_for(lambda: self._fits(pixels))
            self._short = False
            self._used += pixels
            self._turn += 1
            self._changed.notify_all()

    def give_back(self, pixels: int) -> None:
        """Return room."""
        with self._changed:
            self._used -= pixels
            self._changed.notify_all()

    def _fits(self, pixels: int) -> bool:
        """Whether there is room for so many."""
        return not self._used or self._used + pixels <= self._room
