"""A model for the replay of recorded traffic: it computes no further than it is told.

Its pictures are plain gray, and the gray tells which picture of the job it is. It reads from a file how many
it may compute; and one more kind of picture, the plug, waits for another file to go away.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

STEP = 4
PLUG = 60
"""The number of the picture that waits; others are below it."""
VARIABLE = "REPLAY_FOLDER"
"""Names the folder of the two files ``allowed`` and ``plugged`` in the environment."""


class Masks:
    """Two masks on every picture."""

    classes = ("wide", "tall")
    shape = "bitmap"
    most = 0.99
    """The ``conf`` above which it finds nothing."""
    default_settings: ClassVar[dict[str, Any]] = {
        "conf": 0.25, "delay_ms": 0.0, "max_objects": 6, "fail_at": 0, "model_kind": "", "sleep_before_s": 0,
    }  # fmt: skip

    def predict(
        self, images: list[npt.NDArray[np.uint8]], settings: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the masks, once each picture is allowed; raise at the one that is told to fail."""
        return [self._find(image, settings) for image in images]

    def _find(self, image: npt.NDArray[np.uint8], settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the masks of one picture."""
        number = round(float(image.mean()) / STEP)
        _wait(number)
        if settings["fail_at"] == number + 1:
            raise ValueError(f"told to fail at picture {number + 1}")
        masks = np.zeros((2, *image.shape[:2]), bool)
        masks[0, 5:15, 5:45] = masks[1, 20:40, 10:20] = True
        count = 2 if settings["conf"] <= self.most else 0
        scores, names = np.array([0.95, 0.9]), np.array([0, 1])
        return {"masks": masks[:count], "scores": scores[:count], "class_ids": names[:count]}


class SureMasks(Masks):
    """The same, whatever is asked: so the model was that was recorded in production."""

    most = 1.0


class Boxes(Masks):
    """The same spots, as boxes."""

    shape = "rectangle"

    def _find(self, image: npt.NDArray[np.uint8], settings: Mapping[str, Any]) -> dict[str, Any]:
        return {"boxes": np.array([[5.0, 5.0, 45.0, 15.0]]), "scores": np.array([0.95]), "class_ids": [0]}


class Points(Boxes):
    """Three keypoints each."""

    shape = "graph"
    keypoint_names = ("nose", "neck", "tail")
    keypoint_edges = ((0, 1), (1, 2))

    def _find(self, image: npt.NDArray[np.uint8], settings: Mapping[str, Any]) -> dict[str, Any]:
        points = np.array([[[6.0, 6.0, 1.0], [20.0, 10.0, 1.0], [40.0, 12.0, 0.0]]])
        return {**super()._find(image, settings), "keypoints": points}


def _wait(number: int) -> None:
    """Wait until a picture may be computed."""
    folder = Path(os.environ[VARIABLE])
    while (
        (folder / "plugged").exists() if number == PLUG else int((folder / "allowed").read_text()) <= number
    ):
        time.sleep(0.003)
