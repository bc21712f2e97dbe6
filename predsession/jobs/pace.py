"""How long to wait before the next poll, and how much to send at once. Plain arithmetic, no clock."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_POLL = 0.004
"""Seconds before the second poll of a job: a small model has answered by then."""
SLOWEST_POLL = 1.0
UPLOAD_SECONDS = 2.0
"""Seconds of the server's work in one upload: what was sent is computed, even if the caller leaves."""
STOCK_WINDOW = 64
"""Images that are sent and not yet answered, over all jobs of a session: a stock server keeps 256 by
name, for all its clients together (docs/protocol.md)."""
FIRST_IMAGES, SECOND_IMAGES = 1, 8
MOST_IMAGES, MOST_BYTES = 32, 16 << 20


class PollPace:
    """Quick at first, then in step with how fast results come.

    Formula: after an answer with results the delay is nine tenths of the mean time between such answers (an
    exponential average with weight 0.3). After an empty one it doubles, up to a quarter of that time or of
    the time waited so far, whichever is more; never above `SLOWEST_POLL`.
    """

    def __init__(self) -> None:
        self._delay = FIRST_POLL
        self._waited = 0.0
        self._rhythm = 0.0

    def after_results(self) -> float:
        """Return the seconds to wait after an answer that held results."""
        self._rhythm = 0.7 * self._rhythm + 0.3 * self._waited
        self._waited = 0.0
        self._delay = min(max(FIRST_POLL, 0.9 * self._rhythm), SLOWEST_POLL)
        return self._spend()

    def after_nothing(self) -> float:
        """Return the seconds to wait after an empty answer."""
        delay = self._spend()
        ceiling = max(self._waited / 4, self._rhythm / 4, FIRST_POLL)
        self._delay = min(self._delay * 2, ceiling, SLOWEST_POLL)
        return delay

    def _spend(self) -> float:
        """Account for a wait."""
        self._waited += self._delay
        return self._delay


@dataclass(slots=True)
class UploadSize:
    """How many images the next upload should hold.

    Parameters
    ----------
    batch_size : int or None
        What the model takes at once; an upload is a whole number of batches where that is no more.
    """

    batch_size: int | None = None
    _uploads: int = 0
    _rate: float | None = None

    def next(self) -> int:
        """Return the number of images for the next upload, and count it as made."""
        self._uploads += 1
        if self._uploads == 1:
            return FIRST_IMAGES
        if self._rate is None:
            return SECOND_IMAGES
        images = int(min(max(1.0, self._rate * UPLOAD_SECONDS), MOST_IMAGES))
        batch = self.batch_size or 1
        return images - images % batch if images > batch else images

    def measured(self, images: int, seconds: float) -> None:
        """Learn from a job that is done: so many images took so many seconds."""
        rate = images / max(seconds, 1e-3)
        self._rate = rate if self._rate is None else 0.5 * self._rate + 0.5 * rate
