"""A model for our own server that finds bright spots, for `predsession.testing.RunningServer`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import ndimage

BRIGHT = 150
SMALLEST = 30


class Spots:
    """Masks of the bright spots; ``fail_at``: the number of spots at which it raises."""

    classes = ("wide", "tall")
    shape = "bitmap"
    default_settings: ClassVar[dict[str, Any]] = {"conf": 0.1, "max_objects": 8, "delay": 0.0, "fail_at": 0}

    def predict(
        self, images: list[npt.NDArray[np.uint8]], settings: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Return masks, boxes, scores and classes for each picture."""
        return [self._find(image, settings) for image in images]

    def _find(self, image: npt.NDArray[np.uint8], settings: Mapping[str, Any]) -> dict[str, Any]:
        """Find the spots of one picture, the largest first."""
        time.sleep(float(settings["delay"]))
        labels, count = ndimage.label(image[:, :, 1] > BRIGHT)
        masks = [labels == number for number in range(1, count + 1)]
        masks = sorted((mask for mask in masks if mask.sum() >= SMALLEST), key=lambda mask: -int(mask.sum()))
        masks = masks[: int(settings["max_objects"])]
        if settings["fail_at"] and len(masks) == settings["fail_at"]:
            raise ValueError(f"told to fail at {len(masks)} spots")
        boxes = [_box(mask) for mask in masks]
        return {
            "masks": np.array(masks, bool).reshape(-1, *image.shape[:2]),
            "boxes": np.array(boxes, float).reshape(-1, 4),
            "scores": np.array([0.75 + int(mask.sum()) % 200 / 1000 for mask in masks]),
            "class_ids": np.array([int(y2 - y1 > x2 - x1) for x1, y1, x2, y2 in boxes], int),
        }


def _box(mask: npt.NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Return the box around a mask: xyxy, half-open."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
