"""The benchmarks run: what they find is in docs/benchmarks.md, and no test's business."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_two_cases_run_and_are_written_down(tmp_path: Path) -> None:
    """Two cases, quickly: a table on standard output, and every row, with its single runs, as JSON."""
    found = tmp_path / "found.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "import", "one_image", "--json", str(found)]
    # Without Supervisely's interpreter: what is measured against the ancestor is left out.
    environment = {**os.environ, "PREDSESSION_CACHE": str(tmp_path / "cache"), "PREDSESSION_INTEROP": ""}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(found.read_text())["rows"]
    assert [row["case"] for row in rows] == ["one_image", "import", "import", "import"]
    assert all(len(row["runs"]["ours"]) == 1 and row["ours"] > 0 for row in rows)
    assert len(done.stdout.splitlines()) == len(rows) + 2


def test_a_case_that_is_not_there_is_refused() -> None:
    """A mistyped case measures nothing."""
    command = [sys.executable, "-m", "benchmarks", "one_imaeg"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2
    assert "one_imaeg" in done.stderr
