"""A measurement is a process of its own: what it is to do goes in as JSON, what came out comes back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from predsession.wire.jsontypes import JSON

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 3600.0
MARK = "FIGURES "
"""What the line with the answer begins with: whatever is measured may print, too."""


class MeasurementError(Exception):
    """A measuring process failed; the text is what it said last."""


def run_client(name: str, task: dict[str, JSON]) -> dict[str, JSON]:
    """Run one of ``clients``.

    Parameters
    ----------
    name : str
        Its file.
    task : JSON object
        What it is to do.

    Returns
    -------
    JSON object
        What it answered.
    """
    return run([sys.executable, "-m", f"benchmarks.clients.{name}", json.dumps(task)])


def run_theirs(python: Path, name: str, task: dict[str, JSON]) -> dict[str, JSON]:
    """Run one of ``theirs`` with Supervisely's interpreter, likewise."""
    program = Path(__file__).with_name("theirs") / f"{name}.py"
    return run([str(python), str(program), json.dumps(task)])


def run(command: Sequence[str]) -> dict[str, JSON]:
    """Run a process that answers in one line.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.

    Returns
    -------
    JSON object
        What it answered.

    Raises
    ------
    MeasurementError
        If it did not answer.
    """
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not lines:
        raise MeasurementError(f"{command[:3]} ended with {done.returncode}: {done.stderr[-2000:]}")
    answer: dict[str, JSON] = json.loads(lines[-1][len(MARK) :])
    return answer


def figures(answer: dict[str, JSON]) -> dict[str, float]:
    """Return the numbers of an answer."""
    return {key: float(value) for key, value in answer.items() if isinstance(value, int | float)}


def read_task() -> dict[str, JSON]:
    """Return, in such a process, what it is to do."""
    task: dict[str, JSON] = json.loads(sys.argv[1])
    return task


def answer(found: dict[str, JSON]) -> None:
    """Tell, in such a process, what came out."""
    print(MARK + json.dumps(found), flush=True)
