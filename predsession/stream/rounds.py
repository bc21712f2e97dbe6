"""A batch into the store: each object once, and each with its result or its dead letter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from predsession.stream.attempts import Attempts, Done, joined
from predsession.stream.models import Runner
from predsession.stream.samples import Batch, DeadLetter
from predsession.stream.schema import Results
from predsession.stream.writer import Writer


class Rounds:
    """Processes and stores; where an object fails, what comes next under its id has a round of its own.

    Parameters
    ----------
    attempts : Attempts
        Run the model.
    writer : Writer
        Has the store.
    runner : Runner
        Knows which model it is.
    by_id : bool
        Whether an object is processed once; else what came from one place.
    """

    def __init__(self, attempts: Attempts, writer: Writer, runner: Runner, *, by_id: bool) -> None:
        self._attempts = attempts
        self._writer = writer
        self._runner = runner
        self._by_id = by_id

    def run(self, batch: Batch, bury: Callable[[Sequence[DeadLetter]], None]) -> tuple[int, Done]:
        """Process what is not stored yet.

        Parameters
        ----------
        batch : Batch
            Samples.
        bury : callable
            Puts dead letters away.

        Returns
        -------
        tuple of int, and (Batch, results) or None
            How many were stored, and what was processed.
        """
        batch = self._unstored(batch)
        keys = [(row.id if self._by_id else row.position) or object() for row in batch.rows]
        waiting = list(range(batch.count))
        stored = 0
        rounds: list[tuple[Batch, Results]] = []
        while waiting:
            first = sorted({keys[row]: row for row in reversed(waiting)}.values())
            done, letters = self._attempts.run(batch if len(first) == batch.count else batch.only(first))
            if done is not None:
                stored += self._writer.store(done[0].rows, done[1], self._runner.maker)
                rounds.append(done)
            bury(letters)
            tried = set(first)
            dead = {each.object_id for each in letters}
            failed = {keys[row] for row in first if batch.ids[row] in dead}
            waiting = [row for row in waiting if keys[row] in failed and row not in tried]
        return stored, _together(rounds)

    def _unstored(self, batch: Batch) -> Batch:
        """Return a batch without what is stored."""
        there = self._writer.there(batch.rows)
        return batch.only([row for row, each in enumerate(there) if not each]) if any(there) else batch


def _together(rounds: Sequence[tuple[Batch, Results]]) -> Done:
    """Return what several rounds have done as one."""
    if len(rounds) < 2:
        return rounds[0] if rounds else None
    return Batch.joined([batch for batch, _ in rounds]), joined([results for _, results in rounds])
