"""The ancestor: Supervisely's own session over a source; run by the interpreter that scripts/interop makes.

The task and the answer are those of ``clients/ours.py``, as far as they apply: ``url``, ``input``,
``settings``, ``read``, ``stop_after``; importing it is in none of the figures.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Do the task."""
    from supervisely.nn.model.prediction_session import PredictionSession

    logging.disable(logging.CRITICAL)
    gc.collect()
    base = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    began, first, last, count = time.monotonic(), 0.0, 0.0, 0
    session = PredictionSession(task["url"], task["input"], **task.get("settings", {}))
    for prediction in session:
        first = first or time.monotonic() - began
        for name in task.get("read", ()):
            getattr(prediction, name)
        last = time.monotonic() - began
        count += 1
        if count == task.get("stop_after"):
            break
    closed = time.monotonic() - began
    peak = _memory("VmHWM") - base
    return {"count": count, "first": first, "last": last, "closed": closed, "peak": peak}


def _memory(name: str) -> float:
    """Return a line of the process's status, in megabytes of 1024 KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) / 1024


if __name__ == "__main__":
    found = run(json.loads(sys.argv[1]))
    sys.stdout.write("FIGURES " + json.dumps(found) + "\n")
    sys.stdout.flush()
    os._exit(0)  # their package's threads are nobody's concern here
