"""The uploads between sender and receiver, with a bound on what is in flight."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

from predsession.jobs.pace import STOCK_WINDOW

T = TypeVar("T")

MOST_UPLOADS = 2
"""One that the server works on, one that is being sent or waits: what is sent is computed, wanted or not."""


class Flight(Generic[T]):
    """A queue of uploads; a place in it is taken before sending and given back when all is settled."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._uploads: deque[T] = deque()
        self._taken = 0
        self._images = 0
        self._ended = False
        self._error: BaseException | None = None

    def take_room(self, images: int) -> bool:
        """Wait for room for one more upload of so many images; False if the flight has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._fits(images))
            self._taken += 1
            self._images += images
            return not self._ended

    def _fits(self, images: int) -> bool:
        """Whether an upload of so many images may be sent now; one alone always may."""
        return self._taken == 0 or (self._taken < MOST_UPLOADS and self._images + images <= STOCK_WINDOW)

    def give_back(self, images: int) -> None:
        """Give back the room of one upload."""
        with self._changed:
            self._taken -= 1
            self._images -= images
            self._changed.notify_all()

    def put(self, upload: T) -> None:
        """Add an upload that was sent."""
        with self._changed:
            self._uploads.append(upload)
            self._changed.notify_all()

    def get(self) -> T | None:
        """Take the oldest upload; None, or the error it ended with, once nothing is left."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or bool(self._uploads))
            if self._uploads:
                return self._uploads.popleft()
            if self._error is not None:
                raise self._error
            return None

    def end(self, error: BaseException | None = None) -> None:
        """Nothing will be added any more; the first error given is raised after what is in flight."""
        with self._changed:
            self._ended = True
            self._error = self._error or error
            self._changed.notify_all()
