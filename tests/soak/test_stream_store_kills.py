"""A stream that is killed fifty times on its way through 5,000 samples, for each kind of store."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from stream_kit import KINDS, named, reasons

from predsession.stream import open_results

WRITER = Path(__file__).parents[1] / "stream_writer.py"
KILLS, COUNT = 50, 5000


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_killed_fifty_times(tmp_path: Path, kind: str) -> None:
    """After each kill the store opens, with whole rows and none twice; in the end all is there, once."""
    store = tmp_path / f"r.{kind}"
    chance = random.Random(5)
    for kill in range(KILLS + 1):
        process = subprocess.Popen(
            [sys.executable, WRITER, store, "0", str(COUNT), "16", "0.003"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        if kill < KILLS:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.005, 0.04 * (1 + kill % 3)))
            process.kill()
        process.communicate()
        if kill == KILLS or (store.is_dir() and any(store.iterdir())):
            check(store)
    assert sorted(open_results(store).ids()) == sorted(named(COUNT))
    assert len(reasons(store)) == COUNT // 40


def check(store: Path) -> None:
    """Every row is whole, and there once."""
    dataset = open_results(store)
    names = dataset.ids()
    assert len(set(names)) == len(names)
    numbers = np.array([int(name[1:]) for name in names])
    rows = dataset.to_arrays()
    assert (rows["first"] == numbers).all()
    assert (rows["twice"] == 2 * numbers[:, None]).all()
