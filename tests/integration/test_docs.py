"""What the documents show works as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import edge_kit
import numpy as np
import pytest
from tensor_models import arithmetic

from predsession.testing import RunningServer

TENSORS = "grpc://127.0.0.1:8001"
ROOT = Path(__file__).parents[2]
DOCUMENTS = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if path.exists()]
BLOCKS = [
    pytest.param(block, id=f"{document.name}-{number}")
    for document in DOCUMENTS
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```", document.read_text(), re.DOTALL | re.MULTILINE)
    )
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder that looks like the clone, and can be written to."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "clip.mp4").symlink_to(ROOT / "tests" / "samples" / "pedestrians.mp4")
    (tmp_path / "photos").symlink_to(ROOT / "examples" / "photos")
    return tmp_path


def test_the_network_of_the_examples() -> None:
    """examples/add.onnx is what `tensor_models.arithmetic` makes: there are no other tools for it."""
    assert (ROOT / "examples" / "add.onnx").read_bytes() == arithmetic()


@pytest.fixture(scope="module")
def runtime() -> Iterator[str]:
    """An edge runtime's address."""
    with edge_kit.demonstration() as made:
        yield made.endpoint


@pytest.fixture(scope="module")
def tensors() -> Iterator[str]:
    """The address of the server that docs/tensor.md starts."""
    models = [f"{name}={ROOT}/examples/serve_tensors.py:{name.title()}" for name in ("shrink", "brightness")]
    arguments = [
        "--oip-grpc",
        "127.0.0.1:0",
        *(word for model in models for word in ("--tensor-model", model)),
    ]
    with RunningServer("pixels", arguments=arguments) as server:
        yield f"grpc://{server.oip[0]}"


@pytest.mark.parametrize("block", BLOCKS)
def test_every_python_block_runs(block: str, place: Path, detector: str, runtime: str, tensors: str) -> None:
    """In a process of its own, against the bundled detector, an edge runtime and a server of tensors."""
    environment = {**os.environ, "PREDSESSION_URL": detector, "AI_RUNTIME_ENDPOINT": runtime}
    text = block.replace(TENSORS, tensors)
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_readmes_commands_run(place: Path, detector: str) -> None:
    """Each `predsession predict` and `info` line, with the server that is running here."""
    for name in ("a.jpg", "b.png"):
        (place / name).symlink_to(ROOT / "examples" / "photos" / "coffee.jpg")
    text = (ROOT / "README.md").read_text()
    lines = re.findall(r"^\$ predsession ((?:predict|info) [^#\n]*)", text, re.MULTILINE)
    assert len(lines) >= 3
    for line in lines:
        words = shlex.split(line.replace("http://127.0.0.1:8000", detector))
        done = subprocess.run(
            [sys.executable, "-m", "predsession", *words],
            cwd=place,
            env={**os.environ, "PREDSESSION_URL": detector},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_the_tensor_commands_run(place: Path, tensors: str) -> None:
    """Each `predsession tensor` line of docs/tensor.md."""
    np.save(place / "frame.npy", np.zeros((72, 128, 3), np.uint8))
    text = (ROOT / "docs" / "tensor.md").read_text()
    lines = re.findall(r"^\$ predsession (tensor .*)", text, re.MULTILINE)
    assert len(lines) == 4
    for line in lines:
        done = subprocess.run(
            [sys.executable, "-m", "predsession", *shlex.split(line.replace(TENSORS, tensors))],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert np.load(place / "small.npz")["small"].shape == (9, 16, 3)
