"""1,000 images, with boxes, scores and classes read: the ordinary batch job.

Photos, and a model that takes 20 ms for each and finds four masks. The bare loop neither reads a box nor
checks anything; ours does both, and must keep step with it all the same, because sending, computing, parsing
and the caller's loop overlap. The ancestor decodes every mask into a full picture to tell a box.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import sessions
from benchmarks.bench import Bench, Figures
from benchmarks.pictures import PHOTO, folder
from benchmarks.row import Row, at_most
from benchmarks.servers import our_server, stock_server
from predsession.wire.jsontypes import JSON

NAME = "thousand_images"
SETTINGS: dict[str, JSON] = {"delay": 0.02}


def measure(bench: Bench) -> Iterator[Row]:
    """Yield a row against each, and one for the bare loop on Supervisely's server."""
    count = bench.count(1000, 40)
    photos = folder(PHOTO, count)

    def ours(url: str) -> Figures:
        return sessions.ours(
            url, photos, expect=count, read=[*sessions.READ], keywords={"settings": SETTINGS}
        )

    def bare(url: str) -> Figures:
        return sessions.bare(url, photos, expect=count, settings=SETTINGS)

    with our_server("Bars") as url:
        pairs = bench.measured(lambda: ours(url), lambda: bare(url))
        yield pairs.row(
            NAME, f"{count:,} read; bare loop, not parsing, our server", "last", target=at_most(1.05)
        )
    if bench.theirs is None:
        return
    python = bench.theirs
    with stock_server(python, "bars") as server:
        pairs = bench.measured(lambda: ours(server.url), lambda: bare(server.url))
        yield pairs.row(NAME, f"{count:,} read; bare loop, not parsing, Supervisely's server", "last")

        def ancestor() -> Figures:
            return sessions.ancestor(
                python,
                server.url,
                photos,
                expect=count,
                read=[*sessions.READ],
                settings={"settings": SETTINGS},
            )

        pairs = bench.measured(lambda: ours(server.url), ancestor)
        yield pairs.row(NAME, f"{count:,} read; ancestor, its server", "last", target=at_most(1 / 3))
