"""1,000 images, with boxes, scores and classes read: the ordinary batch job.

Photos, and a model that finds four masks and takes 20 ms for each photo. The bare loop neither reads a box
nor checks anything; ours does both, and must keep step with it all the same, because sending, computing,
parsing and the caller's loop overlap. The ancestor decodes every mask into a full picture to tell a box.

Nobody can be faster than the model. So against the ancestor there is a second row, with a model that takes
no time of its own: there the clients' part shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks import sessions
from benchmarks.bench import Bench, Figures
from benchmarks.pictures import PHOTO, folder
from benchmarks.row import Row, at_most
from benchmarks.servers import our_server, stock_server
from predsession.wire.jsontypes import JSON

NAME = "thousand_images"
DELAY = 0.02


def measure(bench: Bench) -> Iterator[Row]:
    """Yield a row against each, and one for the bare loop on Supervisely's server."""
    count = bench.count(1000, 40)
    photos = folder(PHOTO, count)

    def ours(url: str, delay: float = DELAY) -> Figures:
        settings: dict[str, JSON] = {"delay": delay}
        return sessions.ours(
            url, photos, expect=count, read=[*sessions.READ], keywords={"settings": settings}
        )

    def bare(url: str) -> Figures:
        return sessions.bare(url, photos, expect=count, settings={"delay": DELAY})

    with our_server("Bars") as url:
        pairs = bench.measured(lambda: ours(url), lambda: bare(url))
        what = f"{count:,} read, 20 ms; bare loop, not parsing, our server"
        yield pairs.row(NAME, what, "last", target=at_most(1.05))
    if bench.theirs is None:
        return
    python = bench.theirs
    with stock_server(python, "bars") as server:
        pairs = bench.measured(lambda: ours(server.url), lambda: bare(server.url))
        what = f"{count:,} read, 20 ms; bare loop, not parsing, Supervisely's server"
        yield pairs.row(NAME, what, "last")

        def ancestor(delay: float) -> Figures:
            settings: dict[str, JSON] = {"settings": {"delay": delay}}
            return sessions.ancestor(
                python, server.url, photos, expect=count, read=[*sessions.READ], settings=settings
            )

        for delay in (DELAY, 0.0):
            pairs = bench.measured(partial(ours, server.url, delay), partial(ancestor, delay))
            what = f"{count:,} read, {delay * 1e3:.0f} ms; ancestor, its server"
            yield pairs.row(NAME, what, "last", target=at_most(1 / 3))
