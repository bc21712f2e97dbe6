"""The models in examples/ are served as they stand; what is not installed is stood in for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from server_kit import Caller, Server

ROOT = Path(__file__).parents[2]
PHOTO = ROOT / "examples" / "photos" / "coffee.jpg"

ULTRALYTICS = """
import numpy as np

class Tensor(np.ndarray):
    def cpu(self): return self
    def numpy(self): return np.asarray(self)

def tensor(values): return np.array(values, np.float32).view(Tensor)

class Boxes:
    xyxy, conf, cls = tensor([[10, 20, 110, 120]]), tensor([0.75]), tensor([1.0])
    def cpu(self): return self
    def numpy(self): return self

class Masks:
    def __init__(self, shape):
        mask = np.zeros((1, *shape), np.float32)
        mask[0, 20:120, 10:110] = 1
        self.data = mask.view(Tensor)

class Points:
    data = tensor([[[12, 22, 0.9], [30, 40, 0.0]]])

class Result:
    def __init__(self, picture, task):
        self.boxes, self.orig_shape = Boxes(), picture.shape[:2]
        self.masks = Masks(self.orig_shape) if task == "segment" else None
        self.keypoints = Points() if task == "pose" else None

class Head:
    kpt_shape = [2, 3]

class YOLO:
    names = {0: "person", 1: "cup"}
    def __init__(self, weights):
        self.task = weights.split(".")[0]
        self.model = type("Net", (), {"model": [Head()]})()
    def predict(self, pictures, *, conf, iou, max_det, retina_masks, verbose):
        assert (conf, iou, max_det) == (0.25, 0.7, 300)
        assert all(picture.flags["C_CONTIGUOUS"] for picture in pictures)
        return [Result(picture, self.task) for picture in pictures]
"""

TORCH = """
import contextlib
import numpy as np

class Tensor(np.ndarray):
    def permute(self, *axes): return self.transpose(axes)
    def cpu(self): return self
    def numpy(self): return np.asarray(self)

def from_numpy(array): return array.view(Tensor)
inference_mode = contextlib.nullcontext
"""

TORCHVISION = """
import numpy as np
from torch import Tensor

def tensor(values, kind): return np.array(values, kind).view(Tensor)

class Weights:
    class DEFAULT:
        meta = {"categories": ["__background__", "cup", "N/A", "N/A"]}

def get_model_weights(name): return Weights

class Network:
    def eval(self): return self
    def __call__(self, tensors):
        assert all(each.shape[0] == 3 and each.max() <= 1 for each in tensors)
        found = {"boxes": tensor([[10, 20, 110, 120]] * 2, float), "scores": tensor([0.75, 0.1], float),
                 "labels": tensor([1, 1], int)}
        return [found for _ in tensors]

def get_model(name, weights): return Network()
"""


def figures(server: Server) -> list[tuple[str, str, list[float]]]:
    """Return class, geometry and box of what is found in a photograph."""
    with Caller(server.url) as caller:
        reply = caller.upload([PHOTO.read_bytes()], endpoint="inference_image")
        assert reply.status_code == 200, reply.text
        objects = reply.json()["annotation"]["objects"]
        return [(each["classTitle"], each["geometryType"], each["box"]) for each in objects]


def test_ten_lines() -> None:
    """The model of the document is the one in examples/, and boxes something."""
    code = (ROOT / "examples" / "serve_ten_lines.py").read_text()
    shown, *_ = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / "models.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert code.endswith(shown)
    with Server(str(ROOT / "examples" / "serve_ten_lines.py") + ":Brightest") as server:
        ((title, kind, box),) = figures(server)
        assert (title, kind) == ("brightest", "rectangle")
        assert box[2] > box[0]


@pytest.mark.parametrize(
    ("task", "kind"), [("detect", "rectangle"), ("segment", "bitmap"), ("pose", "graph")]
)
def test_ultralytics(tmp_path: Path, task: str, kind: str) -> None:
    """The adapter hands over boxes, masks or keypoints in the picture's own frame."""
    (tmp_path / "ultralytics.py").write_text(ULTRALYTICS)
    env = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "YOLO_WEIGHTS": f"{task}.pt"}
    with Server(str(ROOT / "examples" / "serve_ultralytics.py") + ":Yolo", env=env) as server:
        assert figures(server) == [("cup", kind, [10, 20, 110, 120])]


def test_torchvision(tmp_path: Path) -> None:
    """The adapter hands over boxes above the threshold; classes that were never used have names too."""
    for name, text in (("torch", TORCH), ("torchvision", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
    (tmp_path / "torchvision" / "models.py").write_text(TORCHVISION)
    env = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    with Server(str(ROOT / "examples" / "serve_torchvision.py") + ":Detector", env=env) as server:
        assert figures(server) == [("cup", "rectangle", [10, 20, 110, 120])]
        with Caller(server.url) as caller:
            assert caller.ask("get_session_info")["number_of_classes"] == 4
