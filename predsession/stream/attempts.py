"""A batch through a model: results of what it can do, dead letters of what it fails at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from predsession.stream.models import Outcome, Runner, WrongAnswerError
from predsession.stream.outputs import MisfitError
from predsession.stream.samples import Batch, DeadLetter
from predsession.stream.schema import Results, Schema
from predsession.stream.source import lasting_position

Done = tuple[Batch, Results] | None
"""What was processed, and what came of it; None if there is nothing."""

# No sample's fault: the next ones would go the same way, and all would be dead that a server is gone from.
_NOBODYS = (
    StoreError, TransportError, AuthError, NotFoundError, RateLimitError, SessionClosedError,
    MissingExtraError, MemoryError, WrongAnswerError,
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
    settled : callable
        Returns what the store's rows are; None while that is not settled.
    """

    def __init__(self, runner: Runner, *, skip: bool, settled: Callable[[], Schema | None]) -> None:
        self._runner = runner
        self._skip = skip
        self._settled_schema = settled

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
        if not self._skip:
            return self._settled(batch, self._runner.run(batch))
        schema = self._settled_schema()
        try:
            return self._fitting(batch, schema)
        except Exception as error:
            if self._is_nobodys(error):
                raise
            if batch.count == 1:
                return None, [_letter(batch, 0, error)]
        return self._one_by_one(batch, schema)  # which of them it is, they say alone

    def _fitting(self, batch: Batch, schema: Schema | None) -> tuple[Done, list[DeadLetter]]:
        """Run the model; raise if its results do not fit the store."""
        done, letters = self._settled(batch, self._runner.run(batch))
        if done is not None:
            kept, results = done
            (schema or Schema.of(results, kept.count)).check(results, kept.count)
        return done, letters

    def _one_by_one(self, batch: Batch, schema: Schema | None) -> tuple[Done, list[DeadLetter]]:
        """Run samples alone, and put together what comes of it; all must fit the store, or the first."""
        letters: list[DeadLetter] = []
        parts: dict[int, Results] = {}
        errors: list[Exception] = []
        for row in range(batch.count):
            alone = batch.only([row])
            try:
                done, dead = self._fitting(alone, schema)
            except Exception as error:
                if self._is_nobodys(error):
                    raise
                errors.append(error)
                letters.append(_letter(batch, row, error))
                continue
            letters += dead
            if done is not None:
                parts[row] = done[1]
                schema = schema or Schema.of(done[1], 1)
        if schema is None and len(errors) == batch.count and len({repr(each) for each in errors}) == 1:
            raise errors[0]  # nothing was ever stored, and all fail alike: that is a mistake in what was set
        if not parts:
            return None, letters
        return (batch.only(list(parts)), joined(list(parts.values()))), letters

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

    def _is_nobodys(self, error: Exception) -> bool:
        """Whether an error is no sample's fault."""
        if isinstance(error, MisfitError):
            return False
        if isinstance(error, ServerFaultError):
            return error.status in _GATEWAY
        return isinstance(error, (*_NOBODYS, *self._runner.faults))


def _letter(batch: Batch, row: int, error: Exception) -> DeadLetter:
    """Return the dead letter of a sample that a model failed at."""
    name = batch.ids[row]
    position = lasting_position(batch.positions[row], name)
    return DeadLetter(position, f"{type(error).__name__}: {error}", b"", name)


def joined(parts: Sequence[Results]) -> Results:
    """Put results together.

    Parameters
    ----------
    parts : sequence of (ndarray, mapping of str to ndarray, or sequence of Prediction)
        At least one; all of one kind.

    Returns
    -------
    ndarray, dict of ndarray, or list of Prediction
        All their rows, in order.

    Raises
    ------
    StoreError
        If they differ.
    """
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
