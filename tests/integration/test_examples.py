"""Every example script runs as a user calls it; the notebooks do in test_notebook.py."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import makers

from predsession import Prediction
from predsession.testing import RunningServer

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run an example's script, and check its exit code."""
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_a_batch_folder(detector: str, tmp_path: Path) -> None:
    """A line a picture, the bad one noted, and said so in the report and the exit code."""
    folder = tmp_path / "photos"
    shutil.copytree(EXAMPLES / "photos", folder)
    makers.write(folder / "bad.jpg", makers.truncated_jpeg())
    done = run("batch_folder.py", folder, tmp_path / "out.jsonl", detector, code=1)
    assert "out.jsonl: 4 predictions, 1 item without one" in done.stdout
    assert "bad.jpg" in done.stderr
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sum("error" in line for line in lines) == 1
    assert len([Prediction.from_json(line) for line in lines if "error" not in line]) == 4


def test_by_ids(tmp_path: Path) -> None:
    """The server's own pictures, and the predictions written back beside them."""
    shutil.copytree(EXAMPLES / "photos", tmp_path / "project" / "dataset")
    with RunningServer("detect", arguments=["--library", str(tmp_path)]) as server:
        done = run("by_ids.py", server.url)
        with urllib.request.urlopen(f"{server.url}/library/images/1/annotation", timeout=10) as answer:
            annotation = json.load(answer)
    assert sum("person" in line for line in done.stdout.splitlines()) == 2
    assert [each["classTitle"] for each in annotation["objects"]] == ["person"]
