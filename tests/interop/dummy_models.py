"""Models for Supervisely's own serving classes, whose answers follow from the pixels alone.

Runs under their interpreter, never under ours. Every score holds a checksum of its picture: an answer that
was given to another picture's place, or computed from another's pixels, differs from the direct computation.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import supervisely as sly
from supervisely.geometry.cuboid import CuboidFace
from supervisely.geometry.graph import KeypointsTemplate
from supervisely.geometry.oriented_bbox import OrientedBBox
from supervisely.nn.prediction_dto import PredictionBBox, PredictionMask
from supervisely.nn.utils import CheckpointInfo

BRIGHT = 150
SMALLEST = 30
SETTINGS = {"conf": 0.1, "max_objects": 8, "delay": 0.0, "fail_width": 0, "fail_objects": 0, "key": ""}
"""``delay``: seconds for each picture. ``key``: the name under which pictures are counted. ``fail_width``,
``fail_objects``: the width of a picture, and the number of objects in one, at which the model raises."""


class Counts:
    """How many pictures were computed, by the setting ``key``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, key: str) -> None:
        """Count one more."""
        with self._lock:
            self._counts[key] += 1

    def get(self, key: str) -> int:
        """Return a count."""
        with self._lock:
            return self._counts[key]


@dataclass(frozen=True)
class Blob:
    """A bright spot: what these models find."""

    class_name: str
    score: float
    mask: np.ndarray
    top: int
    left: int
    bottom: int
    right: int


def find_blobs(image: np.ndarray, settings: dict[str, Any]) -> list[Blob]:
    """Return the bright spots of a picture, the largest first."""
    _, bright = cv2.threshold(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), BRIGHT, 255, cv2.THRESH_BINARY)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(bright, connectivity=8)
    order = sorted(range(1, count), key=lambda number: (-int(stats[number][4]), number))
    score = 0.7 + zlib.crc32(np.ascontiguousarray(image).tobytes()) % 2900 / 10_000
    found = []
    for number in order[: int(settings["max_objects"])]:
        left, top, width, height, area = (int(value) for value in stats[number])
        if area >= SMALLEST and score >= float(settings["conf"]):
            name = "tall" if height > width else "wide"
            box = (top, left, top + height - 1, left + width - 1)
            found.append(Blob(name, round(score, 4), labels == number, *box))
    return found


class Dummy:
    """What the models have in common."""

    counts: Counts

    @property
    def api(self) -> None:
        """No platform: the stock property would make an Api, and fail without an address."""
        return

    def deploy(self, counts: Counts) -> None:
        """Get ready without weights."""
        self.counts = counts
        self.device = "cpu"
        self._model_served = True
        self._describe_deployment()
        self._describe_classes()

    def _describe_deployment(self) -> None:
        """Say what loading a checkpoint would have said."""
        name = type(self).__name__
        self.checkpoint_info = CheckpointInfo(
            checkpoint_name=f"{name}.pt",
            model_name=name,
            architecture="dummy",
            checkpoint_url="",
            custom_checkpoint_path="",
            model_source="Pretrained models",
        )
        self.runtime, self.model_precision, self._hardware = "PyTorch", "FP32", "CPU"
        self._deploy_params = {"device": "cpu", "runtime": "PyTorch"}
        self.pretrained_models = [{"meta": {"model_name": name, "task_type": "any"}}]

    def _describe_classes(self) -> None:
        self.classes = ["wide", "tall"]
        self._set_model_meta_from_classes()

    def get_classes(self) -> list[str]:
        """Return the names of the classes."""
        return self.classes

    def predict_batch(self, images_np: list[np.ndarray], settings: dict[str, Any]) -> list[list[Any]]:
        """Return what is found in each picture, slowly or not at all if the settings say so."""
        found = []
        for image in images_np:
            self.counts.add(settings["key"])
            time.sleep(float(settings["delay"]))
            if image.shape[1] == int(settings["fail_width"]):
                raise ValueError(f"told to fail at a width of {image.shape[1]}")
            found.append(self._find(image, settings))
            if len(found[-1]) == int(settings["fail_objects"]) > 0:
                raise ValueError(f"told to fail at {len(found[-1])} objects")
        return found


class Segmenter(Dummy, sly.nn.inference.InstanceSegmentation):
    """Bright spots as masks."""

    def _find(self, image: np.ndarray, settings: dict[str, Any]) -> list[PredictionMask]:
        return [
            PredictionMask(blob.class_name, blob.mask, blob.score) for blob in find_blobs(image, settings)
        ]


class Detector(Dummy, sly.nn.inference.ObjectDetection):
    """Bright spots as boxes."""

    def _find(self, image: np.ndarray, settings: dict[str, Any]) -> list[PredictionBBox]:
        return [
            PredictionBBox(blob.class_name, [blob.top, blob.left, blob.bottom, blob.right], blob.score)
            for blob in find_blobs(image, settings)
        ]


@dataclass(frozen=True)
class Exhibit:
    """One geometry that the zoo is to show, moved by so many pixels."""

    class_name: str
    shift: int
    size: tuple[int, int]


class Zoo(Dummy, sly.nn.inference.ObjectDetection):
    """One object of each geometry, on every picture, at a place that follows from its pixels."""

    def _describe_classes(self) -> None:
        bones = KeypointsTemplate()
        for name, row, col in (("head", 5, 5), ("hip", 5, 35), ("foot", 30, 50)):
            bones.add_point(name, row, col)
        bones.add_edge("head", "hip")
        bones.add_edge("hip", "foot")
        shapes = {
            "rectangle": sly.Rectangle, "bitmap": sly.Bitmap, "polygon": sly.Polygon, "line": sly.Polyline,
            "point": sly.Point, "alpha_mask": sly.AlphaMask, "cuboid": sly.Cuboid, "any": sly.AnyGeometry,
            "oriented_bbox": OrientedBBox,
        }  # fmt: skip
        described = [sly.ObjClass(name, shape) for name, shape in shapes.items()]
        described.append(sly.ObjClass("graph", sly.GraphNodes, geometry_config=bones))
        self.classes = [*shapes, "graph"]
        self._model_meta = sly.ProjectMeta(described)
        self._get_confidence_tag_meta()

    def _find(self, image: np.ndarray, settings: dict[str, Any]) -> list[Exhibit]:
        shift = zlib.crc32(np.ascontiguousarray(image).tobytes()) % 20
        return [Exhibit(name, shift, image.shape[:2]) for name in self.classes]

    def _create_label(self, dto: Exhibit) -> sly.Label:
        tag = sly.Tag(self._get_confidence_tag_meta(), 0.5 + dto.shift / 100)
        described = self.model_meta.get_obj_class(dto.class_name)
        return sly.Label(_geometry(dto.class_name, dto.size), described, [tag]).translate(
            dto.shift, dto.shift
        )


def _geometry(name: str, size: tuple[int, int]) -> Any:
    """Make one of each kind."""

    def points(*pairs: tuple[int, int]) -> list[sly.PointLocation]:
        return [sly.PointLocation(row, col) for row, col in pairs]

    mask = np.zeros(size, bool)
    mask[8:24, 12:40] = True
    mask[12:16, 20:30] = False
    alpha = np.zeros(size, np.uint8)
    alpha[8:24, 12:40] = np.arange(28)[None] * 9
    makers = {
        "rectangle": lambda: sly.Rectangle(8, 12, 23, 39),
        "bitmap": lambda: sly.Bitmap(mask),
        "polygon": lambda: sly.Polygon(
            points((8, 12), (8, 39), (23, 39), (23, 12)), [points((12, 20), (12, 29), (15, 29))]
        ),
        "line": lambda: sly.Polyline(points((8, 12), (14, 30), (23, 39))),
        "point": lambda: sly.Point(8, 12),
        "alpha_mask": lambda: sly.AlphaMask(alpha),
        "cuboid": lambda: sly.Cuboid(
            points((10, 10), (10, 40), (40, 40), (40, 10), (5, 20), (5, 50), (35, 50)),
            [CuboidFace(0, 1, 2, 3), CuboidFace(0, 4, 5, 1), CuboidFace(1, 5, 6, 2)],
        ),
        "any": lambda: sly.Rectangle(1, 2, 3, 4),
        "oriented_bbox": lambda: OrientedBBox(8, 12, 23, 39, angle=0.4),
        "graph": lambda: sly.GraphNodes(
            [
                sly.Node(sly.PointLocation(8, 12), label="head"),
                sly.Node(sly.PointLocation(20, 16), label="hip"),
                sly.Node(sly.PointLocation(30, 44), label="foot", disabled=True),
            ]
        ),
    }
    return makers[name]()


MODELS = {"seg": Segmenter, "det": Detector, "zoo": Zoo}
