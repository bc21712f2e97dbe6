"""From a reply to arrays: what the client itself adds once the answer is there.

Boxes, scores and classes of a prediction with four masks, of which nothing need be unpacked; all four masks,
decoded and placed in full pictures, against Pillow decoding the same four PNGs; and a reply of 60 MB as an
object, against the JSON library that is fastest here. What each of them does stands in ``clients/reply.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.bench import Bench, Figures
from benchmarks.pictures import kept
from benchmarks.process import figures, run_client
from benchmarks.replies import write_reply
from benchmarks.row import Of, Row, at_most

NAME = "reply"


def measure(bench: Bench) -> Iterator[Row]:
    """Yield a row for each."""
    pairs = bench.measured(partial(_run, "arrays"))
    what = "boxes, scores, classes of one image with 4 masks"
    yield pairs.row(NAME, what, "milliseconds", unit="ms", target=at_most(0.1, Of.OURS))
    for size in ("mixed", "small"):
        pairs = bench.measured(partial(_run, f"masks {size}"), partial(_run, f"pillow {size}"))
        what = f"4 masks ({size}) decoded and placed; Pillow, only decoding"
        yield pairs.row(NAME, what, "milliseconds", unit="ms", target=at_most(1.5))
    megabytes = bench.count(60, 2)
    path = _reply(megabytes)
    libraries = ("orjson", "msgspec", "json")
    best = min(libraries, key=lambda name: _run(name, path)["milliseconds"])
    pairs = bench.measured(partial(_run, "parse", path), partial(_run, best, path))
    yield pairs.row(NAME, f"{megabytes} MB of JSON; {best}", "milliseconds", unit="ms", target=at_most(1.2))


def _reply(megabytes: int) -> Path:
    """Return the file of a pop's answer that is so long."""

    def fill(target: Path) -> None:
        write_reply(target / "reply.json", megabytes)

    return kept(f"reply-{megabytes}", fill) / "reply.json"


def _run(do: str, path: Path | None = None) -> Figures:
    """Run one task of the client."""
    return figures(run_client("reply", {"do": do, "path": str(path)}))
