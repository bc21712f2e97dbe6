"""Processes that write to stores: killed at any moment, two at once, on disks that are full or read-only."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stream_kit import KINDS, Recorded, double, drain, ids, named, numbered, reasons, samples

from predsession.errors import StoreError
from predsession.stream import StreamSession, open_results

TESTS = Path(__file__).parents[1]
pytestmark = pytest.mark.parametrize("kind", KINDS)


def start(store: Path, first: int, count: int, size: int, pause: float = 0.0) -> subprocess.Popen[str]:
    """Start a writer, and wait until it works."""
    words = map(str, (store, first, count, size, pause))
    process = subprocess.Popen(
        [sys.executable, TESTS / "stream_writer.py", *words], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def end(process: subprocess.Popen[str]) -> int:
    """Wait for a writer; return how many it stored."""
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return int(said)


def check(store: Path, wanted: list[str]) -> None:
    """Every row is whole, and there once."""
    dataset = open_results(store)
    found = dataset.ids()
    assert sorted(found) == sorted(wanted)
    rows = dataset.to_arrays()
    numbers = np.array([int(name[1:]) for name in found])
    assert (rows["first"] == numbers).all()
    assert (rows["twice"] == 2 * numbers[:, None]).all()


def test_killed(tmp_path: Path, kind: str) -> None:
    """SIGKILL at a random moment, three times: readable at once, whole rows; the next run does the rest."""
    store = tmp_path / f"r.{kind}"
    chance = random.Random(7)
    before: set[str] = set()
    for _ in range(3):
        process = start(store, 0, 200, 5, 0.01)
        time.sleep(chance.uniform(0.02, 0.25))
        process.kill()
        process.communicate()
        if (store.exists() and any(store.rglob("*.manifest"))) or any(store.glob("rows-*")):
            now = ids(store)
            assert len(now) % 5 == 0 or len(now) == 200
            assert before <= set(now)
            before = set(now)
            check(store, now)
    assert end(start(store, 0, 200, 5)) == 200 - len(before)
    check(store, named(200))
    assert len(reasons(store)) == 5
    assert not list(store.glob(".rows-*")), "what killed ones left unfinished is gone"


def test_two_at_once(tmp_path: Path, kind: str) -> None:
    """Two processes that write the same objects into one store: each is there once."""
    store = tmp_path / f"r.{kind}"
    one = start(store, 0, 120, 5, 0.005)
    two = start(store, 60, 120, 7, 0.005)
    assert end(one) + end(two) == 180
    check(store, named(180))
    assert len(reasons(store)) == len({f"bad {n}" for n in range(180) if n % 40 == 7})


FAILING = """
import os, resource, sys
import lance, pyarrow.dataset, pyarrow.parquet
from predsession.errors import StoreError
from predsession.stream import StreamSession
from predsession.stream import attempts, config, dataset, exporting, lancetable, parquettable, sources, writer
from predsession.model import DeployedModel
from stream_kit import Recorded, drain, noise, samples
store, count, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
source = Recorded(samples(count))
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
elif not os.geteuid():
    os.setgid(65534), os.setuid(65534)  # root may write everywhere
try:
    with StreamSession(noise, source, store, batch_size=count) as session:
        drain(session)
except StoreError as error:
    print("StoreError", len(source.positions), source.closes, error)
"""


def failing(store: Path, count: int, limit: int) -> str:
    """Run a stream that cannot write; return what it says."""
    done = subprocess.run(
        [sys.executable, "-c", FAILING, store, str(count), str(limit)],
        capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}"},
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may look into: pytest's own are for their owner only."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_read_only(open_folder: Path, kind: str) -> None:
    """A folder that cannot be written to is a StoreError, with a store in it or without; nothing is told."""
    store = open_folder / f"r.{kind}"
    for _ in range(2):
        open_folder.chmod(0o555)
        said = failing(store, 4, 0)
        open_folder.chmod(0o755)
        assert said.startswith("StoreError 0 1"), said
        assert "cannot be written to" in said
        with StreamSession(double, numbered(2, 10), store) as session:
            drain(session)
    assert ids(store) == ["o10", "o11"]


def test_full_disk(tmp_path: Path, kind: str) -> None:
    """Where a file cannot be written whole, it is a StoreError, nothing is told; later all is there, once."""
    store = tmp_path / f"r.{kind}"
    with StreamSession(double, numbered(3, 100), store) as session:
        drain(session)
    said = failing(store, 20_000, 100_000)
    assert said.startswith("StoreError 0 1"), said
    assert "cannot be written to" in said
    assert ids(store) == named(3, 100)
    with StreamSession(double, numbered(3, 102), store) as session:
        drain(session)
    assert ids(store) == named(5, 100)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_full_file_system(small_disk: Path, kind: str) -> None:
    """Where no space is left, what was told is in the store, and the store opens and reads."""
    store = small_disk / f"r.{kind}"
    source = Recorded(samples(100_000))
    chance = np.random.default_rng(0)
    with (
        pytest.raises(StoreError, match="No space left"),
        StreamSession(lambda b: chance.random((len(b["x"]), 50)), source, store, batch_size=500) as session,
    ):
        drain(session)
    stored = ids(store)
    assert len(stored) > 1000
    assert [f"t:0:{name[1:]}" for name in stored] == source.positions


def test_append_that_fails_once(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an append that failed, the same session may try again: stored once."""
    store = tmp_path / f"r.{kind}"
    with StreamSession(double, store=store) as session:
        table = session._writer.table
        append = type(table).append

        def failing(self: Any, rows: Any) -> None:
            monkeypatch.setattr(type(table), "append", append)
            raise StoreError("the disk is full")

        monkeypatch.setattr(type(table), "append", failing)
        one = {"object_id": ["a"], "x": np.ones((1, 3), np.float32)}
        with pytest.raises(StoreError, match="full"):
            session.process(one)
        assert len(session.process(one)) == 1
        assert len(session.process(one)) == 0
    assert ids(store) == ["a"]


def test_compaction_that_fails(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If pieces cannot be put together at the end, that loses nothing, and is a warning."""
    store = tmp_path / f"r.{kind}"
    session = StreamSession(double, numbered(4), store, batch_size=1)
    drain(session)

    def failing(self: Any) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(type(session._writer.table), "compact", failing)
    assert session.close().ids() == named(4)
