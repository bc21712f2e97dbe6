"""The first of 1,000 predictions: how long until the caller has something to work with.

Photos, and a model that takes 20 ms for each. The ancestor sends all of them before anything is computed;
ours sends one, then some, then more. Both stop after the first. Supervisely's server goes on computing what
it was sent, so the next measurement waits until it is idle.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import sessions
from benchmarks.bench import Bench, Figures
from benchmarks.pictures import PHOTO, folder
from benchmarks.row import Of, Row, at_most
from benchmarks.servers import our_server, stock_server
from predsession.wire.jsontypes import JSON

NAME = "first_prediction"
SETTINGS: dict[str, JSON] = {"delay": 0.02}
WITHIN = 0.4
SOONER = 40


def measure(bench: Bench) -> Iterator[Row]:
    """Yield a row for each server."""
    count = bench.count(1000, 40)
    photos = folder(PHOTO, count)
    with our_server("Bars") as url:

        def ours() -> Figures:
            return sessions.ours(url, photos, expect=1, stop_after=1, keywords={"settings": SETTINGS})

        pairs = bench.measured(ours)
        yield pairs.row(NAME, f"of {count:,}; our server", "first", target=at_most(WITHIN, Of.OURS))
    if bench.theirs is None:
        return
    python = bench.theirs
    with stock_server(python, "bars") as server:

        def ours_there() -> Figures:
            server.wait_until_idle()
            return sessions.ours(server.url, photos, expect=1, stop_after=1, keywords={"settings": SETTINGS})

        def ancestor() -> Figures:
            server.wait_until_idle()
            return sessions.ancestor(
                python, server.url, photos, expect=1, stop_after=1, settings={"settings": SETTINGS}
            )

        pairs = bench.measured(ours_there, ancestor)
        yield pairs.row(NAME, f"of {count:,}; Supervisely's server", "first", target=at_most(WITHIN, Of.OURS))
        yield pairs.row(NAME, f"of {count:,}; ancestor, its server", "first", target=at_most(1 / SOONER))
