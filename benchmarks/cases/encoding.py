"""100 arrays, encoded and sent: how long until the server has them all.

Photographs of 1280x720. The ancestor encodes all of them with OpenCV's PNG, one after the other, and then
sends them in one request; ours encodes while it sends. The server looks at nothing, so that its own decoding
does not take part; a second row has a server that does. Nothing may be lost on the way: where ``encoding=``
can be chosen, each lossless one has its row, and the default is held against the target.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial

from benchmarks import sessions
from benchmarks.bench import Bench, Figures
from benchmarks.pictures import arrays
from benchmarks.process import figures, run_theirs
from benchmarks.row import Row, at_most
from benchmarks.servers import our_server
from benchmarks.sink import sink
from predsession import PredictionSession
from predsession.wire.jsontypes import JSON

NAME = "encoding"
LOSSLESS = ("webp", "png", "bmp")
WEBP = "webp"
"""The best one for a server that is somewhere else: it has the target, too, whatever the default is here."""


def measure(bench: Bench) -> Iterator[Row]:
    """Yield a row for each encoding, and one with a server that decodes."""
    if bench.theirs is None:
        return
    python = bench.theirs
    count = bench.count(100, 6)
    source = arrays(count)

    def ours(url: str, keywords: dict[str, JSON]) -> Figures:
        return sessions.ours(url, source, expect=count, watch=True, keywords=keywords)

    def ancestor(url: str) -> Figures:
        return figures(run_theirs(python, "encode", {"url": url, "input": str(source)}))

    with sink() as url:
        pairs = bench.measured(partial(ours, url, {}), partial(ancestor, url))
        what = f"{count} arrays to a server that only takes them"
        yield pairs.row(NAME, f"{what}; ancestor", "sent", target=at_most(0.9))
        yield pairs.row(NAME, f"{what}; ancestor's encoding alone", "sent", peer_key="encoded")
        for encoding in LOSSLESS if _can_choose() else ():
            pairs = bench.measured(partial(ours, url, {"encoding": encoding}), partial(ancestor, url))
            target = at_most(0.9) if encoding == WEBP else None
            yield pairs.row(NAME, f"the same, encoding={encoding!r}; ancestor", "sent", target=target)
    with our_server("Idle") as url:
        pairs = bench.measured(partial(ours, url, {}), partial(ancestor, url))
        yield pairs.row(NAME, f"{count} arrays to the last prediction, our server; ancestor's way", "last")


def _can_choose() -> bool:
    """Whether the session has ``encoding=``; a keyword it does not know would become the model's setting."""
    return "encoding" in inspect.signature(PredictionSession).parameters
