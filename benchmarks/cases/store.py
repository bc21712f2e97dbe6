"""The stream's store: rows a second against a bare loop, and what 10,000 small batches leave behind.

The bare loop writes the same columns with ``lance.write_dataset``, looks for nothing twice, and never puts
pieces together.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.process import figures, run_client
from benchmarks.row import Row, at_least, at_most
from predsession.wire.jsontypes import JSON

NAME = "store"


def measure(bench: Bench) -> Iterator[Row]:
    """Yield rows a second, size and reading."""
    task: dict[str, JSON] = {"batches": bench.count(1000, 20), "rows": 256, "width": 64}
    pairs = bench.measured(
        lambda: figures(run_client("store", {**task, "how": "session"})),
        lambda: figures(run_client("store", {**task, "how": "bare"})),
    )
    yield pairs.row(NAME, "rows, batches of 256; bare lance", "rate", unit="rows/s", target=at_least(0.9))
    small: dict[str, JSON] = {"batches": bench.count(10_000, 50), "rows": 4, "width": 64}
    pairs = bench.measured(
        lambda: figures(run_client("store", {**small, "how": "session"})),
        lambda: figures(run_client("store", {**small, "how": "bare"})),
    )
    what = "10,000 batches of 4; bare lance"
    yield pairs.row(NAME, f"rows, {what}", "rate", unit="rows/s", target=at_least(0.9))
    yield pairs.row(NAME, f"size of the store, {what}", "size", unit="MB", target=at_most(1.0))
    yield pairs.row(NAME, f"reading all of it, {what}", "read", target=at_most(1.0))
    yield pairs.row(NAME, f"opening, and one id, {what}", "open", target=at_most(1.0))
