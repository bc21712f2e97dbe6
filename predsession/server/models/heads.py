"""The ways in which detectors write down what they found.

Each head takes the outputs for one picture, by name, and a threshold, and returns candidates in the pixels of
the network's input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Outputs = Mapping[str, Floats]


class Candidates(NamedTuple):
    """Boxes that may overlap: (N, 4) xyxy, (N,) scores, (N,) class ids, and whether boxes are 0..1."""

    boxes: Floats
    scores: Floats
    class_ids: npt.NDArray[np.int64]
    normalized: bool


class Head(Protocol):
    """Reads the outputs for one picture."""

    def __call__(self, outputs: Outputs, conf: float) -> Candidates:
        """Return the candidates above a threshold."""


def _yolov8(outputs: Outputs, conf: float, *, normalized: bool) -> Candidates:
    """Read [4 + classes, N]: centre x, centre y, width, height, then a score for each class."""
    rows = next(iter(outputs.values())).T
    return _of_classes(rows[:, :4], rows[:, 4:], conf, normalized=normalized)


def _yolov5(outputs: Outputs, conf: float, *, normalized: bool) -> Candidates:
    """Read [N, 5 + classes]: the same with an objectness that multiplies the scores."""
    rows = next(iter(outputs.values()))
    return _of_classes(rows[:, :4], rows[:, 5:] * rows[:, 4:5], conf, normalized=normalized)


def _of_classes(centred: Floats, scores: Floats, conf: float, *, normalized: bool) -> Candidates:
    """Return the best class of each row above the threshold."""
    class_ids = scores.argmax(axis=1)
    best = scores[np.arange(len(scores)), class_ids]
    keep = best >= conf
    centre, half = centred[keep, :2], centred[keep, 2:] / 2
    return Candidates(np.hstack((centre - half, centre + half)), best[keep], class_ids[keep], normalized)


def _end2end(outputs: Outputs, conf: float, *, normalized: bool) -> Candidates:
    """Read [N, 6]: x1, y1, x2, y2, score, class; nothing overlaps any more."""
    rows = next(iter(outputs.values()))
    rows = rows[rows[:, 4] >= conf]
    return Candidates(rows[:, :4], rows[:, 4], rows[:, 5].astype(np.int64), normalized)


def _separate(outputs: Outputs, conf: float, *, names: Mapping[str, str], normalized: bool) -> Candidates:
    """Read an output each for boxes [N, 4] xyxy, scores [N] and labels [N]."""
    boxes, scores, labels = (outputs[names.get(key, key)] for key in ("boxes", "scores", "labels"))
    keep = scores >= conf
    return Candidates(boxes[keep], scores[keep], labels[keep].astype(np.int64), normalized)


def _unnamed(read: Callable[..., Candidates]) -> Callable[..., Head]:
    """Make a head of one that takes its only output, whatever its name."""
    return lambda _names, *, normalized: partial(read, normalized=normalized)


HEADS: dict[str, Callable[..., Head]] = {
    "yolov8": _unnamed(_yolov8),
    "yolov5": _unnamed(_yolov5),
    "end2end": _unnamed(_end2end),
    "separate": lambda names, *, normalized: partial(_separate, names=names, normalized=normalized),
}
"""Kind to maker; a maker takes the names of the outputs, and whether boxes are in 0..1."""
