"""Every example runs: scripts as a user calls them, notebooks in a real kernel."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import makers
import nbformat
import pytest
from nbclient import NotebookClient
from PIL import Image

from predsession import Prediction
from predsession.testing import RunningServer

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run an example's script, and check its exit code."""
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == code, done.stderr
    return done


def execute(name: str, url: str) -> list[nbformat.NotebookNode]:
    """Run a notebook in its own folder; return the outputs of all its cells."""
    notebook = nbformat.read(EXAMPLES / "notebooks" / name, as_version=4)
    client = NotebookClient(
        notebook, timeout=100, kernel_name="python3", resources={"metadata": {"path": EXAMPLES / "notebooks"}}
    )
    client.execute(env={**os.environ, "PREDSESSION_URL": url})
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def pictures(outputs: list[nbformat.NotebookNode]) -> list[Image.Image]:
    """Return the PNG pictures among the outputs."""
    data = [output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    return [Image.open(io.BytesIO(base64.b64decode(each))) for each in data]


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


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_folder_notebook(detector: str) -> None:
    """Its predictions show pictures inline."""
    outputs = execute("folder.ipynb", detector)
    pages = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert any("data:image/" in page and "person" in page for page in pages)
    text = "".join(output.get("text", "") for output in outputs)
    assert "dining table" in text


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_tracking_notebook(detector: str) -> None:
    """It finds tracks, and plots them on a frame."""
    outputs = execute("tracking.ipynb", detector)
    plain = [output.data["text/plain"] for output in outputs if "text/plain" in output.get("data", {})]
    frames, tracks = next(eval(each) for each in plain if each.startswith("("))
    assert frames == 120
    assert 3 <= tracks <= 40
    (plot,) = pictures(outputs)
    assert plot.width > 300
