"""The outline of an object as polygons, whatever its geometry is: for formats that know nothing else."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from predsession.prediction import Prediction
from predsession.wire.rings import mask_rings

MASKS = frozenset(("bitmap", "alpha_mask"))
Points = npt.NDArray[np.float64]


class Outline(NamedTuple):
    """A connected part of an object: its outer ring and its holes, each (M, 2) float64: x, y, not closed."""

    outer: Points
    holes: tuple[Points, ...] = ()


def outlines_of(prediction: Prediction, row: int) -> list[Outline]:
    """Return an object's outline.

    Parameters
    ----------
    prediction : Prediction
        What was found.
    row : int
        Which object.

    Returns
    -------
    list of Outline
        Of a mask, its connected parts along the edges of pixels; of a polygon, itself; of a rectangle, its
        corners. Empty for what has no area, such as a line or a mask without a pixel.
    """
    if prediction.shapes[row] in MASKS:
        crop = prediction.mask_crops[row]
        pieces = mask_rings(crop.mask, x=crop.x, y=crop.y)
        return [Outline(_floats(each.outline), tuple(map(_floats, each.holes))) for each in pieces]
    rings = prediction.polygons[row]
    if rings:
        return [Outline(_floats(rings[0]), tuple(map(_floats, rings[1:])))]
    if prediction.shapes[row] != "rectangle":
        return []
    x1, y1, x2, y2 = prediction.boxes[row].tolist()
    return [Outline(np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]]))]


def _floats(points: npt.NDArray[np.generic]) -> Points:
    """Return points as float64."""
    return points.astype(np.float64)
