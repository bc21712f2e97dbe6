"""The edge client: calls a second, and processor time a call, against the vendor's client on our server.

Pictures of 640 x 480 through a model that takes no time, over a unix socket, as on a camera: what is measured
is the clients. Then a model of 5 ms a picture, with four requests in flight against one at a time, ours both:
while the model works, the next picture is on its way.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench, Figures, say
from benchmarks.process import ROOT, figures, run_client, run_theirs
from benchmarks.row import Row, at_least, at_most
from predsession.testing import RunningServer
from predsession.wire.jsontypes import JSON

NAME = "edge"
VARIABLE = "PREDSESSION_INTEROP_EDGE"
"""The environment variable with the vendor's interpreters, as for the tests in ``tests/interop/edge``."""
DEPTH = 4
DELAY = 0.005


def measure(bench: Bench) -> Iterator[Row]:
    """Yield rows against each of the vendor's clients, and one for the depth."""
    count = bench.count(1000, 20)
    with _server() as endpoint:
        task: dict[str, JSON] = {"endpoint": endpoint, "count": count, "width": 640, "height": 480}
        for release, python in _vendors():
            for depth in (1, DEPTH):
                yield from _against(bench, release, python, task={**task, "depth": depth})
        slow: dict[str, JSON] = {**task, "count": bench.count(400, 20), "delay": DELAY}
        pairs = bench.measured(lambda: _ours({**slow, "depth": DEPTH}), lambda: _ours({**slow, "depth": 1}))
        what = f"{DEPTH} in flight, model of 5 ms; ours, one at a time"
        yield pairs.row(NAME, what, "rate", unit="calls/s", target=at_least(1.3))


def _against(bench: Bench, release: str, python: Path, *, task: dict[str, JSON]) -> Iterator[Row]:
    """Yield calls a second and processor time against one release."""
    pairs = bench.measured(lambda: _ours(task), lambda: figures(run_theirs(python, "edge", task)))
    how = "one at a time" if task["depth"] == 1 else f"{task['depth']} in flight"
    what = f"640 x 480, {how}; vendor's client {release}"
    yield pairs.row(NAME, f"calls, {what}", "rate", unit="calls/s", target=at_least(1.0))
    yield pairs.row(NAME, f"processor time, {what}", "cpu", unit="ms", target=at_most(1.0))


def _ours(task: dict[str, JSON]) -> Figures:
    """Measure our client."""
    return figures(run_client("edge", task))


def _vendors() -> list[tuple[str, Path]]:
    """Return the vendor's releases that are there, each with its interpreter."""
    words = [word.split("=", 1) for word in os.environ.get(VARIABLE, "").split(os.pathsep) if word]
    found = [(release, Path(python)) for release, python in words if os.access(python, os.X_OK)]
    if not found:
        say(f"without the vendor's client: {VARIABLE} names no interpreter; scripts/interop edge makes them")
    return found


@contextmanager
def _server() -> Iterator[str]:
    """Run an embedded server with a gRPC door, and yield its address."""
    with tempfile.TemporaryDirectory(prefix="predsession-bench-") as folder:
        endpoint = f"unix:{folder}/door.sock"
        with RunningServer(f"{ROOT / 'benchmarks' / 'models.py'}:Idle", arguments=["--grpc", endpoint]):
            yield endpoint
