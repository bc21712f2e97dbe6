"""A batch through a model: results of what it can do, dead letters of what it fails at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from predsession.errors import (
    AuthError,
    ItemError,
    MissingExtraError,
    NotFoundError,
    RateLimitError,
    ServerFaultError,
    SessionClosedError,
    StoreError,
    TransportError,
)
from predsession.prediction import Prediction
from predsession.stream.models import Outcome, Runner
from predsession.stream.samples import Batch, DeadLetter
from predsession.stream.schema import Results
from predsession.stream.source import lasting_position

Done = tuple[Batch, Results] | None
"""What was processed, and what came of it; None if there is nothing."""

# No sample's fault: the next ones would go the same way, and all would be dead that a server is gone from.
_NOBODYS = (
    StoreError, TransportError, AuthError, NotFoundError, RateLimitError, SessionClosedError,
    MissingExtraError, MemoryError,
)  # fmt: skip
_GATEWAY = frozenset({502, 503, 504})


class Attempts:
    """Runs batches, and settles what failed.

    Parameters
    ----------
    runner : Runner
        The model.
    skip : bool
        Whether what it fails at becomes a dead letter; else it is raised.
    """

    def __init__(self, runner: Runner, *, skip: bool) -> None:
        self._runner = runner
        self._skip = skip

    def run(self, batch: Batch) -> tuple[Done, list[DeadLetter]]:
        """Run the model.

        Parameters
        ----------
        batch : Batch
            At least one sample.

        Returns
        -------
        tuple of (Batch, results) or None, and list of DeadLetter
            Each sample is in one of them.

        Raises
        ------
        ItemError
            If an item failed, and is not to be skipped. Whatever else the model raises, likewise, and what is
            no sample's fault in any case.
        """
        try:
            return self._settled(batch, self._runner.run(batch))
        except Exception as error:
            if not self._skip or _is_nobodys(error):
                raise
            if batch.count == 1:
                return None, [_letter(batch, 0, error)]
        return self._one_by_one(batch)  # which of them it is, they say alone

    def _one_by_one(self, batch: Batch) -> tuple[Done, list[DeadLetter]]:
        """Run samples alone, and put together what comes of it."""
        letters: list[DeadLetter] = []
        parts: dict[int, Results] = {}
        for row in range(batch.count):
            done, dead = self.run(batch.only([row]))
            letters += dead
            if done is not None:
                parts[row] = done[1]
        if not parts:
            return None, letters
        return (batch.only(list(parts)), _joined(list(parts.values()))), letters

    def _settled(self, batch: Batch, outcome: Outcome) -> tuple[Done, list[DeadLetter]]:
        """Part results and errors of single items."""
        if not isinstance(outcome, Sequence) or not any(isinstance(each, ItemError) for each in outcome):
            return (batch, cast("Results", outcome)), []
        if len(outcome) != batch.count:
            raise StoreError(f"the model returned {len(outcome)} results for {batch.count} objects")
        failed = {row: each for row, each in enumerate(outcome) if isinstance(each, ItemError)}
        if not self._skip:
            raise next(iter(failed.values()))
        letters = [_letter(batch, row, each) for row, each in failed.items()]
        keep = [row for row in range(batch.count) if row not in failed]
        kept = [each for each in outcome if isinstance(each, Prediction)]
        if len(kept) != len(keep):
            raise StoreError("the model returned errors among what is no Prediction")
        return ((batch.only(keep), kept) if keep else None), letters


def _is_nobodys(error: Exception) -> bool:
    """Whether an error is no sample's fault."""
    return isinstance(error, _NOBODYS) or (isinstance(error, ServerFaultError) and error.status in _GATEWAY)


def _letter(batch: Batch, row: int, error: Exception) -> DeadLetter:
    """Return the dead letter of a sample that a model failed at."""
    name = batch.ids[row]
    position = lasting_position(batch.positions[row], name)
    return DeadLetter(position, f"{type(error).__name__}: {error}", b"", name)


def _joined(parts: Sequence[Results]) -> Results:
    """Put results together, all of one kind."""
    first = parts[0]
    if isinstance(first, Mapping):
        if any(not isinstance(one, Mapping) or one.keys() != first.keys() for one in parts):
            raise StoreError("the model returned other outputs for one object than for the next")
        same = [one for one in parts if isinstance(one, Mapping)]
        return {name: _concatenated([one[name] for one in same], name) for name in first}
    if isinstance(first, Sequence):
        return [
            each for one in parts if isinstance(one, Sequence) for each in one if isinstance(each, Prediction)
        ]
    return _concatenated(parts, "data")


def _concatenated(parts: Sequence[object], name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Put arrays together that differ in their first side only."""
    arrays = [np.asarray(one) for one in parts]
    kinds = {(one.dtype if one.dtype.kind != "U" else "U", one.shape[1:]) for one in arrays}
    if len(kinds) > 1:
        found = ", ".join(sorted(f"{dtype} {list(shape)}" for dtype, shape in kinds))
        raise StoreError(f"output {name!r} differs from object to object: {found}")
    return np.concatenate(arrays)
