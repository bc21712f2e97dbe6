"""One image: how long from the session's making to its only prediction.

A photo of 195 kB, and a model that takes no time, so that what is measured is the conversation. Against the
ancestor both run on Supervisely's own server; it sleeps a second between two looks. Against the bare loop,
which looks every 5 ms, both run on ours; what our session asks beside the job (the server's extension, the
model's classes) must cost next to nothing, because it is asked at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import sessions
from benchmarks.bench import Bench, Figures
from benchmarks.pictures import PHOTO, picture
from benchmarks.row import Row, at_most
from benchmarks.servers import our_server, stock_server

NAME = "one_image"
POLL = 0.005
TIMES = 7
"""Processes for one measurement, of which the median one counts: a tenth of a second is soon disturbed."""


def measure(bench: Bench) -> Iterator[Row]:
    """Yield a row against each."""
    photo, times = picture(PHOTO), bench.count(TIMES, 1)
    with our_server("Bars") as url:

        def ours() -> Figures:
            return _median([sessions.ours(url, photo, expect=1) for _ in range(times)])

        def bare() -> Figures:
            return _median([sessions.bare(url, photo, expect=1, poll=POLL) for _ in range(times)])

        ours()  # the server's first picture takes longer, whoever sends it
        pairs = bench.measured(ours, bare)
        yield pairs.row(
            NAME, "to the last prediction; bare loop, polls of 5 ms, our server", "last", target=at_most(1.3)
        )
    if bench.theirs is None:
        return
    python = bench.theirs
    with stock_server(python, "bars") as server:

        def ours_there() -> Figures:
            return _median([sessions.ours(server.url, photo, expect=1) for _ in range(times)])

        def ancestor() -> Figures:
            return sessions.ancestor(python, server.url, photo, expect=1)

        ours_there()
        pairs = bench.measured(ours_there, ancestor)
        yield pairs.row(NAME, "to the last prediction; ancestor, its server", "last", target=at_most(0.1))


def _median(found: list[Figures]) -> Figures:
    """Return the measurement in the middle."""
    return sorted(found, key=lambda each: each["last"])[len(found) // 2]
