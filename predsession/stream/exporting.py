"""A store's rows, written into files that other programs read."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from predsession.errors import SourceError
from predsession.prediction import Prediction
from predsession.stream.dataset import Item, ResultDataset
from predsession.stream.schema import DATA, ID, PREDICTIONS

_BOX = ("class", "score", "x1", "y1", "x2", "y2")


def export(dataset: ResultDataset, path: str | os.PathLike[str]) -> int:
    """Write all rows into a file, which is there when it is whole.

    Parameters
    ----------
    dataset : ResultDataset
        What to write.
    path : str or PathLike
        ``.jsonl``: a row a line. ``.csv``: a row a line with a column for each number, or, for predictions, a
        line for each object that was found: class, score, xyxy in pixels. ``.parquet``: the store's own
        columns. ``.npz``, for arrays: ``object_id``, and an array for each output.

    Returns
    -------
    int
        How many rows there are.

    Raises
    ------
    SourceError
        If the name ends in something else, or the results do not go into such a file.
    """
    out = Path(path)
    kinds: dict[str, Callable[[ResultDataset, Path], None]] = {
        ".jsonl": _jsonl,
        ".csv": _csv,
        ".parquet": _parquet,
        ".npz": _npz,
    }
    write = kinds.get(out.suffix.lower())
    if write is None:
        raise SourceError(f"{out}: the name says the kind; wanted one of {', '.join(kinds)}")
    if out.is_dir():
        raise SourceError(f"{out} is a folder, perhaps a store; wanted a file")
    unfinished = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write(dataset, unfinished)
        unfinished.replace(out)
    except OSError as error:
        raise SourceError(f"{out} cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()
    return len(dataset)


def _jsonl(dataset: ResultDataset, path: Path) -> None:
    """Write JSON lines."""
    with path.open("w", encoding="utf-8") as file:
        for object_id, item in dataset.items():
            if isinstance(item, Prediction):
                line: dict[str, object] = {**item.to_json()}
            else:
                line = {name: _as_json(value) for name, value in _named(item).items()}
            file.write(json.dumps({ID: object_id, **line}, separators=(",", ":")) + "\n")


def _named(item: Item) -> dict[str, npt.NDArray[np.generic]]:
    """Return a row's outputs by name."""
    assert not isinstance(item, Prediction), "rows are of one kind"
    return item if isinstance(item, dict) else {DATA: item}


def _as_json(array: npt.NDArray[np.generic]) -> object:
    """Return an array as lists; JSON has no NaN, and none of the infinite."""
    return _finite(np.asarray(array).tolist())


def _finite(value: object) -> object:
    """Return a value with None for numbers that are none."""
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _csv(dataset: ResultDataset, path: Path) -> None:
    """Write comma-separated values."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if dataset.kind == PREDICTIONS:
            writer.writerow([ID, *_BOX])
            for object_id, item in dataset.items():
                assert isinstance(item, Prediction), "the schema says so"
                for name, score, box in zip(item.classes, item.scores, item.boxes, strict=True):
                    writer.writerow([object_id, name, float(score), *map(float, box)])
            return
        names = [
            each.name + "".join(f"[{side}]" for side in place)
            for each in dataset.outputs
            for place in np.ndindex(each.shape)
        ]
        writer.writerow([ID, *names])
        for object_id, item in dataset.items():
            numbers = [
                number for value in _named(item).values() for number in np.asarray(value).ravel().tolist()
            ]
            writer.writerow([object_id, *numbers])


def _parquet(dataset: ResultDataset, path: Path) -> None:
    """Write Parquet."""
    batches = dataset.to_batches()
    first = next(batches, None)
    if first is None:
        pq.write_table(pa.table({ID: pa.array([], pa.string())}), path)
        return
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


def _npz(dataset: ResultDataset, path: Path) -> None:
    """Write NumPy's."""
    if dataset.kind == PREDICTIONS:
        raise SourceError("predictions do not go into .npz; wanted .jsonl, .csv or .parquet")
    columns = {ID: np.array(dataset.ids(), np.str_), **dataset.to_arrays()}
    # Not np.savez: an output may be called "file".
    with zipfile.ZipFile(path, "w") as archive:
        for name, column in columns.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, column, allow_pickle=False)
