"""The command line: which cases, how often; one table in the end. ``scripts/bench`` calls it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.bench import Bench, say
from benchmarks.cases import CASES
from benchmarks.row import Row
from benchmarks.table import lines, read_rows, table, write_json

RUNS = 5
VARIABLE = "PREDSESSION_INTEROP"
"""The environment variable with Supervisely's interpreter, as for the tests in ``tests/interop``."""


def main() -> int:
    """Measure what is asked for.

    Returns
    -------
    int
        0; a target that is missed is a result, not a failure.
    """
    parser = _parser()
    args = parser.parse_args()
    unknown = set(args.cases) - {case.NAME for case in CASES}
    if unknown:
        parser.error(f"there is no case {', '.join(sorted(unknown))}")
    if args.show:
        print(table(lines(read_rows(args.show), [case.NAME for case in CASES])))
        return 0
    theirs = os.environ.get(VARIABLE, "")
    bench = Bench(
        runs=1 if args.quick else args.runs,
        quick=args.quick,
        theirs=Path(theirs) if theirs and os.access(theirs, os.X_OK) else None,
    )
    if bench.theirs is None:
        say(f"without the ancestor: {VARIABLE} names no interpreter; scripts/interop makes one")
    rows: list[Row] = []
    for case in CASES:
        if not args.cases or case.NAME in args.cases:
            say(case.NAME)
            for row in case.measure(bench):
                rows.append(row)
                say(f"  {' | '.join(row.cells()[1:])}")
                if args.json:  # after every row: hours of measuring are not lost to the last of them
                    write_json(args.json, rows, quick=bench.quick)
    print(table([row.cells() for row in rows]))
    return 0


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure, and print one table.")
    names = [case.NAME for case in CASES]
    parser.add_argument("cases", nargs="*", metavar="case", help=f"one of {', '.join(names)}; all by default")
    parser.add_argument("--runs", type=int, default=RUNS, help="how often (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="only look whether it works: once, few inputs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write everything, as JSON")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print the table of such a file, no more")
    return parser


if __name__ == "__main__":
    sys.exit(main())
