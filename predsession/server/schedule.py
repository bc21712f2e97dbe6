"""Which items go next: fair between jobs, batches filled across jobs.

The rule is start-time fair queueing: each job counts the items it was served, and the one that was served
least goes next. A new job starts at the count that is being served now, so a job of three images waits for at
most one batch of each job before it, whether those have ten images left or ten thousand. Room that is left in
a batch goes to the next jobs in that order which want the same settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from predsession.server.job import Job


@dataclass(frozen=True, slots=True)
class Piece:
    """Successive items of one job.

    Parameters
    ----------
    job : Job
        Whose items they are.
    first : int
        The number of the first; numbers start at 1.
    count : int
        How many.
    """

    job: Job
    first: int
    count: int


class Schedule:
    """The queue of one model.

    Parameters
    ----------
    one_at_a_time : bool
        As a stock server works: the next job starts when the one before has ended, whatever its size.
    """

    def __init__(self, *, one_at_a_time: bool = False) -> None:
        self._one_at_a_time = one_at_a_time
        self._jobs: dict[Job, None] = {}
        self.clock = 0.0
        """How far the job that is served least has been served; one that comes starts there."""
        self.freed: Callable[[], None] = lambda: None
        """Called when a job has left the queue: on a stock server it may have held up the next one."""

    def add(self, job: Job) -> None:
        """Queue a job."""
        job.served = self.clock
        self._jobs[job] = None

    def discard(self, job: Job) -> None:
        """Forget a job that has ended or was stopped."""
        if job in self._jobs:
            del self._jobs[job]
            self.freed()

    def waiting(self, *, sent: bool = False) -> int:
        """Return how many items no worker has taken yet; of those that were sent one by one, if so asked."""
        return sum(job.waiting for job in self._jobs if not sent or len(job.facts.sizes) == job.facts.total)

    @property
    def least(self) -> float | None:
        """How much the job was served that goes next; None where none waits."""
        return min((job.served for job in self._jobs if job.waiting), default=None)

    def take(self, most: int) -> list[Piece]:
        """Take the next batch out of the queue.

        Parameters
        ----------
        most : int
            The largest batch the model takes.

        Returns
        -------
        list of Piece
            Items with the same settings; empty where nothing waits.
        """
        batch: list[Piece] = []
        count = 0
        for job in self._in_turn():
            # A job's own batch size bounds every batch it is in, so one that wants less ends the filling.
            room = min(most, job.facts.batch_size) - count
            if room <= 0 or (batch and job.settings_key != batch[0].job.settings_key):
                continue
            most = min(most, job.facts.batch_size)
            batch.append(self._cut(job, room))
            count += batch[-1].count
        return batch

    def _in_turn(self) -> Iterator[Job]:
        """Yield jobs with items left, the least served first."""
        if self._one_at_a_time:
            yield from (job for job in list(self._jobs)[:1] if job.waiting)
            return
        yield from sorted((job for job in self._jobs if job.waiting), key=lambda job: job.served)

    def _cut(self, job: Job, most: int) -> Piece:
        """Take so many items of a job at most."""
        count = min(most, job.waiting)
        piece = Piece(job, job.taken + 1, count)
        job.taken += count
        job.in_flight += count
        self.clock = max(self.clock, job.served)
        job.served += count
        return piece
