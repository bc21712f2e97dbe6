"""A video of 300 frames, with boxes read: and how much of it Supervisely's server spends on being asked.

1280x720, a model that takes 20 ms for each frame. The ancestor only iterates; it looks once a second, so
asking costs it nothing, and ours, which looks more often, must not be slower for it. How long a poll keeps
the server is measured there: from the request's arrival to the answer's last byte. Polls that bring results
write them, too, which is no waste; so those that bring nothing have a line of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import sessions
from benchmarks.bench import Bench, Figures
from benchmarks.clips import ordinary
from benchmarks.row import Of, Row, at_most
from benchmarks.servers import our_server, stock_server
from predsession.wire.jsontypes import JSON

NAME = "video"
SETTINGS: dict[str, JSON] = {"delay": 0.02}
PERCENT = 2.0


def measure(bench: Bench) -> Iterator[Row]:
    """Yield rows for the time and for the polls."""
    frames = bench.count(300, 30)
    clip = ordinary(frames)

    def ours(url: str) -> Figures:
        return sessions.ours(url, clip, expect=frames, read=["boxes"], keywords={"settings": SETTINGS})

    with our_server("Bars") as url:
        pairs = bench.measured(
            lambda: ours(url), lambda: sessions.bare(url, clip, expect=frames, settings=SETTINGS)
        )
        yield pairs.row(NAME, f"{frames} frames with boxes; bare loop, not parsing, our server", "last")
    if bench.theirs is None:
        return
    python = bench.theirs
    with stock_server(python, "bars") as server:

        def ours_there() -> Figures:
            server.polls()
            return {**ours(server.url), **_shares(server.polls())}

        def ancestor() -> Figures:
            server.polls()
            found = sessions.ancestor(
                python, server.url, clip, expect=frames, settings={"settings": SETTINGS}
            )
            return {**found, **_shares(server.polls())}

        pairs = bench.measured(ours_there, ancestor)
        yield pairs.row(
            NAME, f"{frames} frames with boxes; ancestor, only iterating", "last", target=at_most(1.0)
        )
        yield pairs.row(
            NAME, "of the run in polls, on its server", "polls", unit="%", target=at_most(PERCENT, Of.OURS)
        )
        yield pairs.row(NAME, "of the run in polls that brought nothing", "empty", unit="%")
        yield pairs.row(NAME, "polls", "count of polls", unit="")


def _shares(polls: dict[str, JSON]) -> dict[str, float]:
    """Return what share of the run, in percent, the server spent in polls."""
    whole = float(str(polls["whole"]))
    return {
        "polls": 100 * float(str(polls["seconds"])) / whole,
        "empty": 100 * float(str(polls["empty_seconds"])) / whole,
        "count of polls": float(str(polls["polls"])),
    }
