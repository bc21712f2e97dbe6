"""Prints the table of docs/reliability.md: what becomes of each fault on each server.

Runs as ``scripts/soak --table``. The figures are counted from the answers, each of which holds the number of
its picture; jobs left are the server's own count of jobs that have not ended.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from fault_kit import live_jobs
from integration.test_faults import CLEAR, COUNT, FAULTS, HTML, PAGE, POP, SUBMIT, TRACKED
from number_clips import write_numbers

from predsession import PredictionSession
from predsession.testing import Fault, FaultyServer, RunningServer, box_number, number_picture

HEAD = (
    "fault",
    "server",
    "in",
    "predictions",
    "item errors",
    "doubled",
    "swapped",
    "retries",
    "resent",
    "jobs left",
)
STATUSES = (429, 500, 502, 503, 504, 507)
MORE = {
    **{
        f"{status} twice on submit, pop, clear": [
            Fault("status", name, nth=2, times=2, status=status, body=PAGE) for name in (SUBMIT, POP, CLEAR)
        ]
        for status in STATUSES
    },
    **{
        f"{status} with Retry-After": [
            Fault("status", name, nth=2, times=2, status=status, headers={"Retry-After": "0.1"})
            for name in (SUBMIT, POP, CLEAR)
        ]
        for status in STATUSES
    },
    "stall beyond the read timeout": [
        Fault("stall", name, nth=2, seconds=1.5) for name in (SUBMIT, POP, CLEAR)
    ],
    "a page with 200 for everything, once": [
        Fault("answer", name, body=PAGE, headers=HTML) for name in ("get_session_info", SUBMIT, POP, CLEAR)
    ],
}


def row(name: str, kind: str, url: str, faults: Sequence[Fault], clip: Path | None) -> tuple[str, ...]:
    """Run a source against a server that makes the faults, and count."""
    count = 12 if clip else COUNT
    source = str(clip) if clip else [number_picture(number) for number in range(count)]
    numbers: list[int] = []
    swapped = errors = 0
    with FaultyServer(url, faults) as faulty:
        options = {"tracking": True} if clip else {"batch_size": 4}
        with PredictionSession(faulty.url, source, timeout=1.0, on_error="yield", **options) as session:
            for place, outcome in enumerate(session):
                errors += not outcome
                if outcome and len(outcome.boxes):
                    numbers.append(box_number(outcome.boxes[0]))
                    swapped += numbers[-1] != place
        report = session.report()
    ends = time.monotonic() + 10
    while live_jobs(url) and time.monotonic() < ends:
        time.sleep(0.05)
    doubled = sum(times - 1 for times in Counter(numbers).values())
    retries, left = sum(report.retries.values()), live_jobs(url)
    figures = (
        count, report.predictions, errors, doubled, swapped, retries, report.resent_items, left
    )  # fmt: skip
    return (name, kind, *map(str, figures))


def rows() -> Iterator[tuple[str, ...]]:
    """Run everything on both servers."""
    with tempfile.TemporaryDirectory() as folder:
        clip = write_numbers(Path(folder) / "clip.mp4", 12)
        for kind in ("embedded", "stock"):
            with RunningServer("pixels", stock=kind == "stock") as server:
                for name, faults in (FAULTS | MORE).items():
                    yield row(name, kind, server.url, faults, None)
                for name, faults in TRACKED.items():
                    yield row(f"tracked clip: {name}", kind, server.url, faults, clip)


def main() -> None:
    """Print the table as Markdown."""
    write = sys.stdout.write
    write(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}\n")
    for cells in rows():
        write(f"| {' | '.join(cells)} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
