"""A session whose calls come in any order."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stream_kit import Recorded, double, samples

from predsession.errors import SessionClosedError
from predsession.stream import StreamSession


class Caller:
    """Calls whatever comes to mind.

    Parameters
    ----------
    store : Path
        Where results go.
    seed : int
        Of what comes to mind.
    """

    def __init__(self, store: Path, seed: int) -> None:
        self._chance = random.Random(seed)
        self.source = Recorded(*[samples(2, first) for first in range(0, 20, 2)])
        self.session = StreamSession(double, self.source, store, batch_size=3, flush_after=0.001)
        self._loops = [iter(self.session), iter(self.session)]
        self._batches = self.session.source
        self.by_hand = 0

    def call(self) -> None:
        """Call something."""
        weights: dict[Callable[[], object], int] = {
            self._loop: 6, self._from_source: 4, self._hand: 3, self._look: 2, self._read: 2,
            self.session.stop: 1, self.session.close: 1,
        }  # fmt: skip
        self._chance.choices(list(weights), list(weights.values()))[0]()

    def _loop(self) -> None:
        next(self._loops[self._chance.randrange(2)], None)

    def _from_source(self) -> None:
        batch = next(self._batches, None)
        if batch is not None and self._chance.random() < 0.7:
            self.session.process(batch)

    def _hand(self) -> None:
        self.session.process({"object_id": [f"h{self.by_hand}"], "x": np.ones((1, 3), np.float32)})
        self.by_hand += 1

    def _look(self) -> None:
        self.session.peek(0.001)

    def _read(self) -> None:
        assert len(self.session.dataset) == self.session.counts.stored


@pytest.mark.parametrize("seed", range(15))
def test_any_order(tmp_path: Path, seed: int) -> None:
    """In whatever order: what is told is what is stored, once; after the end all else is refused."""
    caller = Caller(tmp_path / "r.parquet", seed)
    closed = False
    for _ in range(25):
        try:
            caller.call()
            assert not closed or caller.session.dataset is caller.session.close()
        except SessionClosedError:
            closed = True
            assert caller.source.closes == 1
    found = caller.session.close().ids()
    assert len(set(found)) == len(found) == caller.session.counts.stored
    assert sorted(f"t:0:{name[1:]}" for name in found if name[0] == "o") == sorted(caller.source.positions)
    assert caller.by_hand == len([name for name in found if name[0] == "h"])
    assert caller.source.closes == 1
