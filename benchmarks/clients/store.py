"""Rows into a Lance store: through a stream session, or by a bare loop of ``lance.write_dataset``.

The task: ``how`` ("session" or "bare"), ``batches``, ``rows`` (of a batch), ``width`` (numbers of a row). The
answer: ``rate``, rows a second; ``size``, megabytes in the end; ``read``, seconds to read all of it back;
``open``, seconds to open it and find one id.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.process import answer, read_task
from predsession.stream import StreamSession, open_results

Floats = npt.NDArray[np.float32]


def batches(count: int, rows: int, width: int) -> Iterator[tuple[list[str], Floats]]:
    """Yield ids and numbers."""
    values = np.random.default_rng(0).random((rows, width), np.float32)
    for number in range(count):
        yield [f"object-{number * rows + row}" for row in range(rows)], values


def by_session(path: Path, count: int, rows: int, width: int) -> float:
    """Write through a session, and return the seconds until everything is stored."""
    with StreamSession(lambda batch: batch["x"], store=path) as session:
        began = time.perf_counter()
        for ids, values in batches(count, rows, width):
            session.process({"object_id": ids, "x": values})
        return time.perf_counter() - began


def bare(path: Path, count: int, rows: int, width: int) -> float:
    """Write the same columns by a loop, and return the seconds."""
    own = [("object_id", pa.string()), ("position", pa.string()), ("stored_at", pa.timestamp("us", tz="UTC"))]
    schema = pa.schema(
        [*own, ("model", pa.string()), ("model_version", pa.string()), ("x", pa.list_(pa.float32(), width))]
    )
    began = time.perf_counter()
    for ids, values in batches(count, rows, width):
        columns = [
            pa.array(ids),
            pa.nulls(rows, pa.string()),
            pa.repeat(pa.scalar(datetime.now(UTC), pa.timestamp("us", tz="UTC")), rows),
            pa.repeat("model", rows),
            pa.nulls(rows, pa.string()),
            pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), width),
        ]
        table = pa.Table.from_arrays(columns, schema=schema)
        lance.write_dataset(table, str(path), mode="append" if path.exists() else "create")
    return time.perf_counter() - began


def main() -> None:
    """Do the task."""
    task = read_task()
    count, rows, width = (int(str(task[key])) for key in ("batches", "rows", "width"))
    with tempfile.TemporaryDirectory(prefix="predsession-bench-") as folder:
        path = Path(folder) / "results.lance"
        seconds = (by_session if task["how"] == "session" else bare)(path, count, rows, width)
        size = sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
        began = time.perf_counter()
        read = lance.dataset(str(path)).to_table().num_rows
        reading = time.perf_counter() - began
        assert read == count * rows
        began = time.perf_counter()
        if task["how"] == "session":
            open_results(path).get(f"object-{read // 2}")
        else:
            lance.dataset(str(path)).to_table(filter=f"object_id = 'object-{read // 2}'")
        answer({
            "rate": read / seconds,
            "size": size / 1e6,
            "read": reading,
            "open": time.perf_counter() - began,
        })  # fmt: skip


if __name__ == "__main__":
    main()
