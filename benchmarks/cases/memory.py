"""Memory: what a run takes, at its most, beyond what is held once everything it uses is imported.

A first process runs a few of the inputs and tells what it has imported in the end. Each measurement imports
that first, notes what it holds, and runs; the most it ever held from then on is Linux's own figure (VmHWM).
The model takes no time, so that results come as fast as they can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import sessions
from benchmarks.bench import Bench, Figures
from benchmarks.clips import FRAME, endless, large, ordinary
from benchmarks.pictures import PHOTO, folder
from benchmarks.process import run_client
from benchmarks.row import Of, Row, at_most
from benchmarks.servers import our_server, stock_server
from predsession.wire.jsontypes import JSON

NAME = "memory"
MEGABYTES, MORE = 40, 5
RESULTS_MEGABYTES = 60


def measure(bench: Bench) -> Iterator[Row]:
    """Yield a row for each kind of source."""
    with our_server("Idle") as url:
        photos = _Runs(url, imported(url, folder(PHOTO, 3)))
        few, many = bench.count(1000, 40), bench.count(10_000, 80)
        small = bench.measured(lambda: photos.run(folder(PHOTO, few), few))
        yield small.row(NAME, f"{few:,} photos", "peak", unit="MB", target=at_most(MEGABYTES, Of.OURS))
        big = bench.measured(lambda: photos.run(folder(PHOTO, many), many))
        yield big.row(NAME, f"{many:,} photos", "peak", unit="MB", target=at_most(MEGABYTES, Of.OURS))
        yield more_memory(NAME, f"{many:,} photos beyond {few:,}", small.ours("peak"), big.ours("peak"))

        clips = _Runs(url, imported(url, ordinary(30)))
        megabytes, results = bench.count(1024, 20), bench.count(200_000, 1000)
        clip = large(megabytes)
        pairs = bench.measured(lambda: clips.run(clip, megabytes))
        what = f"a clip of {megabytes:,} MB, {FRAME.width}x{FRAME.height}"
        yield pairs.row(NAME, what, "peak", unit="MB", target=at_most(MEGABYTES, Of.OURS))
        pairs = bench.measured(lambda: clips.run(endless(results), results))
        yield pairs.row(
            NAME,
            f"{results:,} results of one clip",
            "peak",
            unit="MB",
            target=at_most(RESULTS_MEGABYTES, Of.OURS),
        )
    if bench.theirs is not None:
        yield beside_ancestor(bench, bench.theirs)


def beside_ancestor(bench: Bench, python: Path) -> Row:
    """Return the row of a folder that the ancestor can run: its server keeps 256 pictures of a job.

    Parameters
    ----------
    bench : Bench
        How often.
    python : Path
        The interpreter with the ancestor.

    Returns
    -------
    Row
        Both on Supervisely's server.
    """
    count = bench.count(250, 20)
    photos = folder(PHOTO, count)
    with stock_server(python, "bars") as server:
        ours = _Runs(server.url, imported(server.url, folder(PHOTO, 3)))

        def ancestor() -> Figures:
            server.wait_until_idle()
            return sessions.ancestor(python, server.url, photos, expect=count, read=[*sessions.READ])

        pairs = bench.measured(lambda: ours.run(photos, count), ancestor)
        return pairs.row(
            NAME, f"{count:,} photos; ancestor, its server", "peak", unit="MB", target=at_most(0.5)
        )


def more_memory(case: str, what: str, small: Sequence[float], large: Sequence[float]) -> Row:
    """Return the row that says how much more memory the larger source took.

    Parameters
    ----------
    case, what : str
        As for `Row`.
    small, large : sequence of float
        Megabytes, run by run.

    Returns
    -------
    Row
        At most five megabytes is as good as none.
    """
    more = tuple(one - other for one, other in zip(large, small, strict=True))
    return Row(case, what, "MB", more, target=at_most(MORE, Of.OURS))


def imported(url: str, source: Path) -> list[JSON]:
    """Return the modules that a session over such a source has imported in the end."""
    found = run_client("ours", {"url": url, "input": str(source), "read": [*sessions.READ], "modules": True})
    modules = found["modules"]
    assert isinstance(modules, list)
    return modules


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs on one server, with one list of modules."""

    url: str
    modules: list[JSON]

    def run(self, source: Path, expect: int) -> Figures:
        """Run a source."""
        return sessions.ours(self.url, source, expect=expect, read=[*sessions.READ], imports=self.modules)
