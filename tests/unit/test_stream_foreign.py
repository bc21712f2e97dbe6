"""Tables that somebody else made, and Lance tables of many pieces."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stream_kit import double, drain, ids, named, numbered

from predsession.errors import StoreError
from predsession.stream import StreamSession, lancetable, open_results


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
