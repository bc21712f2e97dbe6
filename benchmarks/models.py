"""Models for our server, whose own time is known: what is measured is everything around them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from predsession.server.models.base import Arrays, Pixels, Settings
from predsession.wire.jsontypes import JSON


class Idle:
    """Finds nothing, in no time.

    Settings: ``delay``, seconds for each picture; ``trace``, a file to which the beginning and the end of
    each batch are added, with its length.
    """

    classes = ("wide", "tall")
    default_settings: ClassVar[Mapping[str, JSON]] = {"conf": 0.0, "delay": 0.0, "trace": ""}

    def predict(self, images: list[Pixels], settings: Settings) -> list[Arrays]:
        """Return nothing for each picture, after the delay."""
        began = time.monotonic()
        time.sleep(float(str(settings["delay"])) * len(images))
        found = [self.find(image) for image in images]
        if settings["trace"]:
            _note(str(settings["trace"]), began, len(images))
        return found

    def find(self, image: Pixels) -> Arrays:  # noqa: ARG002 - `Bars` does
        """Return what is found in one picture."""
        return {"boxes": np.zeros((0, 4)), "scores": np.zeros(0), "class_ids": np.zeros(0, int)}


class Bars(Idle):
    """Finds four masks, as the model on Supervisely's server does, but without looking."""

    shape = "bitmap"

    def find(self, image: Pixels) -> Arrays:
        """Return four bars, two of them upright."""
        height, width = image.shape[:2]
        boxes = np.array([_bar(number, width, height) for number in range(4)])
        masks = np.zeros((4, height, width), bool)
        for mask, (x1, y1, x2, y2) in zip(masks, boxes, strict=True):
            mask[y1:y2, x1:x2] = True
        return {
            "masks": masks,
            "boxes": boxes.astype(np.float32),
            "scores": np.linspace(0.9, 0.6, 4, dtype=np.float32),
            "class_ids": np.array([0, 1, 0, 1]),
        }


def _bar(number: int, width: int, height: int) -> npt.NDArray[np.int64]:
    """Return a bar's box: xyxy, pixels."""
    across, down = (width // 14, height // 18) if number % 2 else (width // 32, height // 8)
    left, top = width // 16 + number * width // 5, height // 12 + number * height // 5
    return np.array([left, top, left + across, top + down])


def _note(path: str, began: float, images: int) -> None:
    """Add a line to the trace; one write each, so that processes do not mix theirs."""
    line = json.dumps([began, time.monotonic(), images]) + "\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)
