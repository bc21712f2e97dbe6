"""Non-maximum suppression: of boxes that overlap, the best stays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_CANDIDATES = 1000  # overlap is quadratic; beyond so many the rest is noise


def keep_best(
    boxes: npt.NDArray[np.float32],
    scores: npt.NDArray[np.float32],
    class_ids: npt.NDArray[np.int64],
    *,
    iou: float,
    most: int,
) -> npt.NDArray[np.int64]:
    """Return the rows to keep, best first; boxes of different classes never suppress each other.

    Parameters
    ----------
    boxes : (N, 4) float32 ndarray, xyxy, pixels
        Candidates.
    scores : (N,) float32 ndarray
        The higher the better.
    class_ids : (N,) int64 ndarray
        Their classes.
    iou : float
        Intersection over union above which the worse one goes.
    most : int
        How many are kept at most.

    Returns
    -------
    (K,) int64 ndarray
        Row numbers.
    """
    order = np.argsort(-scores, kind="stable")[:_CANDIDATES]
    kept: list[int] = []
    while order.size and len(kept) < most:
        best, order = order[0], order[1:]
        kept.append(int(best))
        rival = (class_ids[order] == class_ids[best]) & (_overlap(boxes[best], boxes[order]) > iou)
        order = order[~rival]
    return np.array(kept, np.int64)


def _overlap(box: npt.NDArray[np.float32], others: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return intersection over union of one box with others."""
    corner = np.maximum(box[:2], others[:, :2])
    extent = np.clip(np.minimum(box[2:], others[:, 2:]) - corner, 0, None)
    shared = extent.prod(axis=1)
    areas = (others[:, 2:] - others[:, :2]).prod(axis=1) + (box[2:] - box[:2]).prod()
    ratio: npt.NDArray[np.float32] = shared / np.maximum(areas - shared, 1e-9)
    return ratio
