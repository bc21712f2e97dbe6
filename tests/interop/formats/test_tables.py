"""Our CSV and Parquet, read by pandas, Polars, DuckDB and PyArrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from interop.formats.conftest import Theirs

from predsession import Prediction
from predsession.export.saving import save_predictions
from predsession.export.table import COLUMNS

TITLES = ["plain", 'a,"b"', "two\nlines", "😀 ünï", "=1+1"]


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_a_table_is_the_same_to_all_of_them(theirs: Theirs, tmp_path: Path, name: str) -> None:
    """Columns, texts with commas, quotes and line ends, missing numbers, sums of the others."""
    many = [
        Prediction.from_arrays(
            size=(640, 480),
            boxes=[[number + 0.5, 2, 90, 91.25] for number in range(5)],
            scores=[0.25] * 5,
            classes=TITLES,
            track_ids=[4, -1, 5, -1, 6],
            path=f"in/{index}, 'a'.jpg",
            index=index,
        )
        for index in range(3)
    ]
    save_predictions(many, tmp_path / name)
    read: Any = theirs("their_tables.py", tmp_path / name)
    columns = [*COLUMNS, "json"] if name.endswith("parquet") else list(COLUMNS)
    for tool, said in read.items():
        assert said["columns"] == columns, tool
        assert said["classes"] == TITLES * 3, tool
        assert said["names"] == [f"{index}, 'a'.jpg" for index in range(3) for _ in range(5)], tool
        assert said["tracks"] == [4, None, 5, None, 6] * 3, tool
        assert said["sums"] == [37.5, 3.75, 30.0], tool
