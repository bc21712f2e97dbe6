"""How far a stream is: counts, rate, how much waits."""

from __future__ import annotations

from predsession.clock import Clock
from predsession.progress import CountBar


class StreamProgress:
    """A bar: what was stored, how fast, how far behind the source."""

    def __init__(self) -> None:
        self._bar: CountBar | None = None

    def update(self, counts: Counts) -> None:
        """Show the present state."""
        if self._bar is None:
            self._bar = CountBar("rows")
        words = [f"{counts.behind} behind"] if counts.behind is not None else []
        words += [f"{counts.skipped} skipped"] if counts.skipped else []
        words += [f"{counts.dead} dead"] if counts.dead else []
        self._bar.show(counts.stored, ", ".join(words))

    def close(self) -> None:
        """Show no more; it may be done twice."""
        if self._bar is not None:
            self._bar.close()


class Counts:
    """What became of the samples so far.

    Parameters
    ----------
    progress : StreamProgress or None
        Is shown each change.
    clock : Clock
        What time it is.
    """

    def __init__(self, progress: StreamProgress | None, clock: Clock) -> None:
        self.batches: int = 0
        """Batches that were processed, also those of which nothing was left to be stored."""
        self.stored: int = 0
        """Rows that this session has added to the store."""
        self.skipped: int = 0
        """Samples whose object was stored already: by a run before, by another process, in their batch."""
        self.dead = 0
        """Dead letters of this session, also those that are in the table from a run before."""
        self.behind: int | None = None
        """How many samples wait in the source; None where it does not say."""
        self._progress = progress
        self._clock = clock
        self._began = clock.now()

    @property
    def rate(self) -> float:
        """Rows a second, from the beginning."""
        return self.stored / max(self._clock.now() - self._began, 1e-9)

    def add(self, stored: int, skipped: int, behind: int | None) -> None:
        """Count a batch.

        Parameters
        ----------
        stored, skipped : int
            Of its samples.
        behind : int or None
            How many wait in the source.
        """
        self.batches += 1
        self.stored += stored
        self.skipped += skipped
        self.behind = behind
        if self._progress is not None:
            self._progress.update(self)

    def close(self) -> None:
        """Show no more."""
        if self._progress is not None:
            self._progress.close()

    def __repr__(self) -> str:
        """Return the counts."""
        return (
            f"<Counts: {self.stored} stored, {self.skipped} skipped, {self.dead} dead, "
            f"{self.batches} batches, {self.rate:.1f} a second>"
        )
