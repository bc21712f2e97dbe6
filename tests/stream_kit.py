"""What tests of streams share: sources of numbers, models that double them, a store's content."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from predsession.stream import DeadLetter, Sample, StreamSession, open_results
from predsession.stream.writer import read_letters

KINDS = ("lance", "parquet")


def numbered(count: int, first: int = 0) -> Iterator[dict[str, Any]]:
    """Samples ``o0``, ``o1``, ... with ``x``, three float32 of that number."""
    for number in range(first, first + count):
        yield {"object_id": f"o{number}", "x": np.full(3, number, np.float32)}


def named(count: int, first: int = 0) -> list[str]:
    """Return the ids of such samples."""
    return [f"o{number}" for number in range(first, first + count)]


def double(batch: Any) -> npt.NDArray[Any]:
    """The model: twice ``x``."""
    twice: npt.NDArray[Any] = batch["x"] * 2
    return twice


def noise(batch: Any) -> npt.NDArray[Any]:
    """A model whose answers cannot be compressed."""
    return np.random.default_rng(0).random((len(batch["x"]), 3)).astype(np.float32)


def drain(session: StreamSession) -> list[str]:
    """Iterate to the end; return the ids that came, in order."""
    return [each for batch, _ in session for each in batch["object_id"]]


def ids(store: Path) -> list[str]:
    """Return the ids in a store."""
    return open_results(store).ids()


def reasons(store: Path) -> dict[str, str]:
    """Return a store's dead letters: position to reason."""
    return {each.position: each.reason for each in read_letters(store)}


class Recorded:
    """A source that counts what is asked of it; gives `batches`, one at each call.

    Parameters
    ----------
    batches : sequence of lists
        Of samples and dead letters.
    ends : bool
        Whether it ends after them; else it waits.
    """

    def __init__(self, *batches: Sequence[Sample | DeadLetter], ends: bool = True) -> None:
        self._batches = list(batches)
        self._ends = ends
        self._closing = threading.Event()
        self.waited_for = threading.Event()
        self.positions: list[str] = []
        self.letters: list[DeadLetter] = []
        self.closes = 0

    def take(self, most: int, seconds: float) -> list[Sample | DeadLetter] | None:
        """Return the next ones."""
        if self._closing.is_set():
            return None
        if self._batches:
            first = list(self._batches.pop(0))
            if len(first) > most:
                self._batches.insert(0, first[most:])
            return first[:most]
        if self._ends:
            return None
        self.waited_for.set()
        self._closing.wait(seconds)
        return []

    def done(self, positions: Sequence[str]) -> None:
        """Take down."""
        self.positions += positions

    def dead(self, letters: Sequence[DeadLetter]) -> None:
        """Take down."""
        self.letters += letters

    def behind(self) -> int:
        """Return how many wait."""
        return sum(map(len, self._batches))

    def close(self) -> None:
        """Count."""
        self.closes += 1
        self._closing.set()


def samples(count: int, first: int = 0) -> list[Sample | DeadLetter]:
    """Return samples at ``t:0:<number>``, as a broker's would be."""
    return [
        Sample(fields, f"t:0:{number}") for number, fields in enumerate(numbered(count, first), start=first)
    ]
