"""Growth: from 100 to 100,000 images time must grow with their number, and memory not at all.

Tiny images, and a model that takes no time. The exponent is that of the wall between 1,000 and 100,000: 1 is
proportional, 2 is hopeless. Before the first upload stands the listing of the folder; it is measured at the
adapter through which requests sends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks import sessions
from benchmarks.bench import Bench, Pairs
from benchmarks.cases.memory import imported, more_memory
from benchmarks.pictures import TINY, folder
from benchmarks.row import Of, Row, at_most
from benchmarks.servers import our_server

NAME = "growth"
COUNTS = (100, 1000, 10_000, 100_000)
QUICK = (10, 20, 50, 100)
EXPONENT = 1.05
FIRST_UPLOAD = 1.0


def measure(bench: Bench) -> Iterator[Row]:
    """Yield rows for each count, and for the growth between them."""
    counts = QUICK if bench.quick else COUNTS
    found: list[Pairs] = []
    with our_server("Idle") as url:
        modules = imported(url, folder(TINY, 3))
        for count in counts:
            source = folder(TINY, count)
            run = partial(sessions.ours, url, source, expect=count, imports=modules)
            found.append(bench.measured(run, partial(sessions.bare, url, source, expect=count)))
            yield found[-1].row(NAME, f"{count:,} tiny images; bare loop", "last")
            yield found[-1].row(NAME, f"{count:,} tiny images, memory; bare loop", "peak", unit="MB")
        begin = partial(sessions.ours, url, folder(TINY, counts[3]), expect=1, stop_after=1, watch=True)
        pairs = bench.measured(begin)
    exponents = _exponents(found[1].ours("last"), found[3].ours("last"), counts[3] / counts[1])
    what = f"exponent of the time, {counts[1]:,} to {counts[3]:,}"
    yield Row(NAME, what, "", exponents, target=at_most(EXPONENT, Of.OURS))
    what = f"{counts[3]:,} tiny images beyond {counts[1]:,}"
    yield more_memory(NAME, what, found[1].ours("peak"), found[3].ours("peak"))
    what = f"{counts[3]:,} files: to the first upload"
    yield pairs.row(NAME, what, "first_upload", target=at_most(FIRST_UPLOAD, Of.OURS))


def _exponents(small: Sequence[float], large: Sequence[float], times: float) -> list[float]:
    """Return the growth exponent, run by run."""
    return [math.log(more / less) / math.log(times) for less, more in zip(small, large, strict=True)]
