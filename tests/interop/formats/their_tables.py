"""What pandas, Polars, DuckDB and PyArrow read in a table: columns, types, rows. Prints it as JSON."""

from __future__ import annotations

import json
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as ds

SUMS = ("x1", "score", "class_id")


def main(path: str) -> dict[str, object]:
    """Read a table with each of them."""
    kind = "parquet" if path.endswith(".parquet") else "csv"
    frames = {
        "pandas": pd.read_parquet(path) if kind == "parquet" else pd.read_csv(path),
        "polars": (pl.read_parquet(path) if kind == "parquet" else pl.read_csv(path)).to_pandas(),
        "duckdb": duckdb.query(f"select * from '{path}'").df(),
        "pyarrow": ds.dataset(path, format=kind).to_table().to_pandas(),
    }
    return {name: described(frame) for name, frame in frames.items()}


def described(frame: pd.DataFrame) -> dict[str, object]:
    """Return what there is to compare."""
    return {
        "columns": [str(name) for name in frame.columns],
        "classes": [str(title) for title in frame["class"]],
        "names": [str(name) for name in frame["name"]],
        "tracks": [None if pd.isna(track) else int(track) for track in frame["track_id"]],
        "sums": [round(float(frame[name].sum()), 3) for name in SUMS],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1])) + "\n")
