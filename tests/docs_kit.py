"""What the documents' code and commands find around them: servers, and a folder that looks like the clone."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import documents
import edge_kit
import numpy as np
from documents import ROOT
from onnx_maker import YOLOV8, described
from server_kit import Server

URL = "http://127.0.0.1:8000"
TENSORS = "grpc://127.0.0.1:8001"
RUNTIME = "192.168.1.20:50051"
SOCKET = "/run/aipc/ai-runtime.sock"
PHOTOS = ROOT / "examples" / "photos"
CLIP = ROOT / "examples" / "pedestrians.mp4"


@dataclass(frozen=True)
class Surroundings:
    """Servers, and where the documents say that they are."""

    url: str
    runtime: str
    tensors: str
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment in which `predsession` is what is tested, and knows the servers."""
        return {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PREDSESSION_URL": self.url,
            "AI_RUNTIME_ENDPOINT": self.runtime,
        }

    def located(self, text: str) -> str:
        """Put the servers' own addresses in the place of those that the documents show."""
        places = {
            URL: self.url,
            TENSORS: self.tensors,
            RUNTIME: self.runtime,
            SOCKET: f"{self.folder}/r.sock",
        }
        for shown, real in places.items():
            text = text.replace(shown, real)
        return text

    def furnish(self, place: Path) -> None:
        """Put into a folder what the documents take to be there."""
        (place / "examples").symlink_to(ROOT / "examples")
        (place / "photos").symlink_to(PHOTOS)
        for name in ("clip.mp4", "street.mp4"):
            (place / name).symlink_to(CLIP)
        for name in ("a.jpg", "b.png"):
            (place / name).symlink_to(PHOTOS / "coffee.jpg")
        np.save(place / "frame.npy", np.zeros((72, 128, 3), np.uint8))
        ten_lines = (ROOT / "examples" / "serve_ten_lines.py").read_text()
        for name in ("my_model.py", "cars.py"):
            (place / name).write_text(
                re.sub("class Brightest", f"class {'MyModel' if 'my' in name else 'Model'}", ten_lines)
            )
        (scale,) = [
            block for block in documents.of(ROOT / "docs" / "models.md", "python") if "class Scale" in block
        ]
        (place / "scale.py").write_text(scale)
        description = described(place, {"out": YOLOV8.T})  # and net.onnx beside it
        for name in ("yolo.toml", "signs.toml"):
            shutil.copy(description, place / name)


@contextmanager
def surroundings() -> Iterator[Surroundings]:
    """Start a server of images, with the library of docs/howto/ids.md, and of tensors; an edge runtime."""
    models = [f"{name}={ROOT}/examples/serve_tensors.py:{name.title()}" for name in ("shrink", "brightness")]
    with (
        tempfile.TemporaryDirectory(prefix="docs-") as folder,  # short: it holds a unix socket
        edge_kit.demonstration() as runtime,
    ):
        beach = Path(folder) / "library" / "holiday" / "beach"
        beach.mkdir(parents=True)
        for path in (PHOTOS / "astronaut.jpg", PHOTOS / "coffee.jpg", CLIP):
            shutil.copy(path, beach)
        words = ["--library", f"{folder}/library", "--oip-grpc", "127.0.0.1:0"]
        words += [word for model in models for word in ("--tensor-model", model)]
        with Server("detect", *words) as server:
            yield Surroundings(server.url, runtime.endpoint, f"grpc://{server.oip[0]}", Path(folder))
