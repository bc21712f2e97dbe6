"""What the documents' code and commands find around them: servers, and a folder as a fresh clone."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import documents
import edge_kit
import numpy as np
from documents import ROOT
from server_kit import Server

URL = "http://127.0.0.1:8000"
TENSORS = "grpc://127.0.0.1:8001"
RUNTIMES = ("192.168.1.20:50051", "127.0.0.1:50051")
SOCKET = "/tmp/ai-runtime.sock"
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
            **dict.fromkeys(RUNTIMES, self.runtime),
            SOCKET: f"{self.folder}/r.sock",
        }
        for shown, real in places.items():
            text = text.replace(shown, real)
        return text

    def furnish(self, place: Path, document: Path) -> None:
        """Put into a folder what a fresh clone has, and what a page calls the reader's own."""
        (place / "examples").symlink_to(ROOT / "examples")
        for name in documents.yours(document):
            STAND_INS[name](place / name)


def _linked(original: Path) -> Callable[[Path], None]:
    """Return what links to a file or folder."""
    return lambda path: path.symlink_to(original)


def _model(path: Path) -> None:
    """Write the ten lines, with another name for their class."""
    path.write_text((ROOT / "examples" / "serve_ten_lines.py").read_text().replace("Brightest", "MyModel"))


STAND_INS: dict[str, Callable[[Path], None]] = {
    "photos": _linked(PHOTOS),
    "a.jpg": _linked(PHOTOS / "coffee.jpg"),
    "b.png": _linked(PHOTOS / "coffee.jpg"),
    "clip.mp4": _linked(CLIP),
    "my_model.py": _model,
    "frame.npy": lambda path: np.save(path, np.zeros((72, 128, 3), np.uint8)),
}
"""What may be the reader's own, and what makes one."""


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
