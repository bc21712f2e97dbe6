"""Rings joined into one by bridges without width, as formats want an object that know one ring for each.

A bridge is walked there and back, so by the rule of even and odd (which OpenCV and Pillow fill by) the joined
ring has the area of the parts less that of the holes. It is also what Ultralytics makes of several parts: one
object stays one line, with one box; a line for each part would be several objects to whoever trains on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from predsession.wire.geometry import MaskCrop

Points = npt.NDArray[np.float64]

_MOST_SEARCHED = 500
"""Rings for which the nearest place is looked for; of more, each of which looks at all others, the last."""
_NEAR_WHOLE = 1e-3


def join(rings: Sequence[Points]) -> Points:
    """Join rings into one.

    Parameters
    ----------
    rings : sequence of (M, 2) float64 ndarray
        x, y, not closed; at least one.

    Returns
    -------
    (K, 2) float64 ndarray
        Two points more for each further ring.
    """
    if len(rings) > _MOST_SEARCHED:
        bridges = [np.concatenate((ring, ring[:1], rings[0][:1])) for ring in rings[1:]]
        return np.concatenate((rings[0], rings[0][:1], *bridges))[: -1 if len(rings) > 1 else None]
    whole = rings[0]
    for ring in rings[1:]:
        near = _nearest(whole, ring[0])
        first = _nearest(ring, whole[near])
        turned = np.roll(ring, -first, axis=0)
        whole = np.concatenate((whole[: near + 1], turned, turned[:1], whole[near:]))
    return whole


def _nearest(ring: Points, point: Points) -> int:
    """Return which point of a ring is nearest to another."""
    return int(np.argmin(((ring - point) ** 2).sum(axis=1)))


def mask_within(ring: Points) -> MaskCrop | None:
    """Return the mask that a ring goes round, if it goes along the edges of pixels.

    Parameters
    ----------
    ring : (M, 2) float64 ndarray
        x, y; perhaps several rings, joined.

    Returns
    -------
    MaskCrop or None
        None where it does not: where a line that is no bridge is not upright or level, or a corner of it
        lies within a pixel.
    """
    points = np.rint(ring)
    if np.abs(points - ring).max(initial=0) > _NEAR_WHOLE or len(ring) < 4:
        return None
    corners = points.astype(np.int64)
    ends = np.roll(corners, -1, axis=0)
    slanted = (corners != ends).all(axis=1)
    ways = Counter(map(tuple, np.hstack((corners, ends))[slanted].tolist()))
    if any(ways[x2, y2, x1, y1] != count for (x1, y1, x2, y2), count in ways.items()):
        return None
    left, top = corners.min(axis=0).tolist()
    right, low = corners.max(axis=0).tolist()
    upright = (corners[:, 0] == ends[:, 0]) & (corners[:, 1] != ends[:, 1])
    # Each upright line turns what is to the right of it; one that is walked twice turns nothing.
    turns = np.zeros((low - top + 1, right - left + 1), np.uint8)
    column = corners[upright, 0] - left
    for edge in (np.minimum(corners, ends), np.maximum(corners, ends)):
        np.bitwise_xor.at(turns, (edge[upright, 1] - top, column), 1)
    np.bitwise_xor.accumulate(turns, axis=0, out=turns)
    np.bitwise_xor.accumulate(turns, axis=1, out=turns)
    mask = turns[:-1, :-1].view(np.bool_)
    return MaskCrop(left, top, mask) if mask.any() else None
