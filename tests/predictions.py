"""Predictions that tests of several files need. Importable as ``import predictions`` (``pythonpath``)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from predsession.prediction import Prediction
from predsession.wire.meta import ModelMeta

ZOO = json.loads((Path(__file__).parent / "samples" / "geometry_zoo.json").read_text())
META = ModelMeta.from_json(ZOO["get_model_meta"])
WIDTH, HEIGHT = 1280, 720


def zoo_item() -> dict[str, object]:
    """Return a copy of the recorded result item: one object of each geometry."""
    return json.loads(json.dumps(ZOO["pop_inference_results"]["pending_results"][0]))


def zoo(**more: object) -> Prediction:
    """Return the recorded result as a prediction."""
    item = {**zoo_item(), **more}
    return Prediction.from_wire(item, meta=META, index=4, name="zoo.jpg", path="photos/zoo.jpg", url=None)


def found(**more: object) -> Prediction:
    """Return a prediction of two boxes on a picture of 64 x 48 pixels."""
    arrays = {"size": (64, 48), "boxes": [[1.5, 2, 30, 40], [10, 10, 20, 20.25]], **more}
    return Prediction.from_arrays(**arrays)


class Black:
    """A loader that can be pickled: a black picture, and it counts."""

    def __init__(self, width: int = 64, height: int = 48) -> None:
        self.shape = (height, width, 3)
        self.calls = 0

    def __call__(self) -> np.ndarray:
        """Return the picture."""
        self.calls += 1
        return np.zeros(self.shape, np.uint8)
