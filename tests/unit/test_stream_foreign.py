"""A table that somebody else made."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from predsession.errors import StoreError
from predsession.stream import open_results


def test_tables_of_others(tmp_path: Path) -> None:
    """A table that is none of ours is refused by name."""
    table = pa.table({"object_id": ["a"], "x": [1]})
    lance.write_dataset(table, tmp_path / "a.lance")
    (tmp_path / "a.parquet").mkdir()
    pq.write_table(table, tmp_path / "a.parquet" / "rows-000000000.parquet")
    for name in ("a.lance", "a.parquet"):
        with pytest.raises(StoreError, match=r"a\..*no store of predsession"):
            open_results(tmp_path / name)
