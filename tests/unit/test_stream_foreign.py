"""Tables that somebody else made, and Lance tables of many pieces."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stream_kit import KINDS, Recorded, double, drain, ids, named, numbered, samples

from predsession.errors import StoreError
from predsession.stream import DeadLetter, StreamSession, lancetable, open_results, parquettable, writer
from predsession.stream.tables import open_table
from predsession.stream.writer import read_letters


def test_tables_of_others(tmp_path: Path) -> None:
    """A table that is none of ours is refused by name."""
    table = pa.table({"object_id": ["a"], "x": [1]})
    lance.write_dataset(table, tmp_path / "a.lance")
    (tmp_path / "a.parquet").mkdir()
    pq.write_table(table, tmp_path / "a.parquet" / "rows-000000000.parquet")
    for name in ("a.lance", "a.parquet"):
        with pytest.raises(StoreError, match=r"a\..*no store of predsession"):
            open_results(tmp_path / name)


@pytest.mark.parametrize("fails", [False, True])
def test_many_small_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """Pieces are put together while a table grows; if that fails, the rows are there once all the same."""
    monkeypatch.setattr(lancetable, "MOST_PIECES", 5)
    if fails:

        def failing(*_: object) -> None:
            raise StoreError("no room")

        monkeypatch.setattr(lancetable.LanceTable, "_put_together", failing)
    store = tmp_path / "r.lance"
    with StreamSession(double, numbered(30), store, batch_size=1) as session:
        drain(session)
        pieces = len(lance.dataset(str(store)).get_fragments())
        assert pieces == 30 if fails else pieces <= 6
        assert len(session.process({"object_id": ["o3", "o29"], "x": np.ones((2, 3), np.float32)})) == 0
    assert ids(store) == named(30)


@pytest.mark.parametrize("kind", KINDS)
def test_many_pieces_of_the_killed(tmp_path: Path, kind: str) -> None:
    """Pieces that runs have left which were killed are put together when a store is opened, letters too."""
    store = tmp_path / f"r.{kind}"
    for first in (0, 60):
        batches = [(samples(1, n), [DeadLetter(f"t:1:{n}", "bad")]) for n in range(first, first + 60)]
        source = Recorded(*[batch for both in batches for batch in both])
        session = StreamSession(double, source, store, batch_size=1)  # never closed, as if it were killed
        pieces = [open_table(path).pieces for path in (store, tmp_path / f"r.dead.{kind}") if path.exists()]
        assert pieces == ([1, 1] if first else [])
        assert drain(session) == named(60, first)
    table = open_table(store)
    assert (table.pieces, ids(store)) == (61, named(120))
    assert [each.position for each in read_letters(store)] == [f"t:1:{n}" for n in range(120)]


def test_large_pieces_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is put together at opening leaves large files as they are."""
    monkeypatch.setattr(parquettable, "_GROUP_ROWS", 10)
    monkeypatch.setattr(writer, "MANY", 3)
    store = tmp_path / "r.parquet"
    for first, size in ((0, 20), (20, 1), (25, 1)):
        session = StreamSession(double, numbered(max(size, 5), first), store, batch_size=size)
        drain(session)
    files = sorted(path.name for path in store.iterdir())
    assert files == ["rows-000000000.parquet", "rows-000000001-000000005.parquet",
                     *(f"rows-{n:09}.parquet" for n in range(6, 11))]  # fmt: skip
    assert ids(store) == named(30)


def test_many_small_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are put together while a table grows, so that opening it again is never a long work."""
    monkeypatch.setattr(parquettable, "MOST_PIECES", 5)
    store = tmp_path / "r.parquet"
    with StreamSession(double, numbered(33), store, batch_size=1) as session:
        drain(session)
        assert open_table(store).pieces == 4
        assert ids(store) == named(33)
        session.process({"object_id": ["o3"], "x": np.ones((1, 3), np.float32)})
        assert session.counts.skipped == 1
    assert ids(store) == named(33)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sure", [0, 10, 1 << 17])
def test_passing_over_reads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, sure: int
) -> None:
    """What is stored is passed over without reading files, as far as ids are remembered; else with that."""
    monkeypatch.setattr(writer, "_SURE", sure)
    store = tmp_path / f"r.{kind}"
    with StreamSession(double, numbered(20), store, batch_size=10) as session:
        drain(session)
    with StreamSession(double, numbered(20), store, batch_size=1) as session:
        table, looks = session._writer.table, []
        real = table.where
        monkeypatch.setattr(table, "where", lambda *words: [looks.append(1), real(*words)][1])
        drain(session)
    assert (session.counts.skipped, len(looks)) == (20, 0 if sure else 20)
    assert ids(store) == named(20)
