"""The client of a long run, a process of its own: so that its memory is only its own.

Prints one JSON object: what came, counted, how the memory grew, and the session's report.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from predsession import PredictionSession
from predsession.testing import box_number, number_picture

WARM_UP = 2000
"""Images after which memory is measured: by then every cache and buffer has its size."""
READ_TIMEOUT = 2.0


def resident() -> int:
    """Return the bytes of memory in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def run(url: str, count: int) -> dict[str, object]:
    """Send so many numbered pictures, and count what comes."""
    seen: Counter[int] = Counter()
    swapped = first = most = 0
    pictures: Iterator[object] = (number_picture(number) for number in range(count))
    with PredictionSession(url, pictures, timeout=READ_TIMEOUT) as session:
        for place, prediction in enumerate(session):
            number = box_number(prediction.boxes[0])
            seen[number] += 1
            swapped += number != place or prediction.index != place
            if place == min(WARM_UP, count // 2):
                first = most = resident()
            elif place % 100 == 0:
                most = max(most, resident())
    return {
        "items": count,
        "predictions": seen.total(),
        "lost": count - len(seen),
        "doubled": seen.total() - len(seen),
        "swapped": swapped,
        "grown_mib": round((most - first) / 2**20, 1),
        "report": asdict(session.report()),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(sys.argv[1], int(sys.argv[2]))))
