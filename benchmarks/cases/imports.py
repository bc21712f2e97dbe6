"""Importing: what a script pays before it has said anything.

A new interpreter each: seconds for the import statement alone, and the megabytes it added. The name
``PredictionSession`` is imported, not only the package, which by itself imports nothing. The peer imports
what any client would need, numpy and requests. For the command line whole processes are timed, from start to
end.
"""

from __future__ import annotations

import compileall
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.bench import Bench, Figures
from benchmarks.process import ROOT, figures, run
from benchmarks.row import Row, at_most

NAME = "import"
TIMES = 9
_PROGRAM = """
import json, time
def held():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")) / 1024
before, began = held(), time.perf_counter()
{statement}
took = time.perf_counter() - began
print("FIGURES " + json.dumps({{"seconds": took, "megabytes": held() - before}}))
"""


def measure(bench: Bench) -> Iterator[Row]:
    """Yield rows for the import and for the command line."""
    times = bench.count(TIMES, 3)

    def ours() -> Figures:
        return _imported("from predsession import PredictionSession", times)

    def peer() -> Figures:
        return _imported("import numpy, requests", times)

    # Compiled, as an installer leaves a package; what is imported from a clone may not be.
    compileall.compile_dir(ROOT / "predsession", quiet=1)
    ours(), peer()  # so that nobody pays for reading the files
    pairs = bench.measured(ours, peer)
    yield pairs.row(NAME, "PredictionSession; numpy and requests", "seconds", target=at_most(1.15))
    yield pairs.row(NAME, "the same, memory", "megabytes", unit="MB", target=at_most(1.15))

    program = str(Path(sys.executable).with_name("predsession"))
    pairs = bench.measured(
        lambda: _timed([program, "--help"], times),
        lambda: _timed([sys.executable, "-c", "import requests"], times),
    )
    yield pairs.row(NAME, "predsession --help; python -c 'import requests'", "seconds", target=at_most(2.0))


def _imported(statement: str, times: int) -> Figures:
    """Return the median cost of an import."""
    found = [figures(run([sys.executable, "-c", _PROGRAM.format(statement=statement)])) for _ in range(times)]
    return {key: median(each[key] for each in found) for key in found[0]}


def _timed(command: list[str], times: int) -> Figures:
    """Return the median time of a process."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        found.append(time.perf_counter() - began)
    return {"seconds": median(found)}
