"""What a model returned, checked and made ready for the wire.

A model is somebody's code. A wrong count, NaN, a box that is no box or lies outside the picture is found
here, and becomes an error of that picture instead of a strange prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predsession.errors import PredSessionError
from predsession.server.models.base import Arrays
from predsession.server.models.card import ModelCard
from predsession.wire.geometry import MaskCrop, Size

_KNOWN = frozenset({"boxes", "scores", "class_ids", "masks", "keypoints", "tags"})


class BadResultError(PredSessionError):
    """A model returned what it may not; the message says what."""


@dataclass(frozen=True, slots=True)
class Found:
    """The objects of one picture, row by row.

    Parameters
    ----------
    boxes : (N, 4) float32 ndarray, xyxy, pixels
        Inside the picture.
    scores : (N,) float32 ndarray
        Finite.
    class_ids : (N,) int64 ndarray
        Positions in the model's classes.
    masks : list of MaskCrop or None
        One for each row, where the model has masks.
    """

    boxes: npt.NDArray[np.float32]
    scores: npt.NDArray[np.float32]
    class_ids: npt.NDArray[np.int64]
    masks: list[MaskCrop] | None

    def rows(self, keep: npt.NDArray[np.bool_]) -> Found:
        """Return the rows that are marked."""
        masks = None
        if self.masks is not None:
            masks = [mask for mask, kept in zip(self.masks, keep, strict=True) if kept]
        return Found(self.boxes[keep], self.scores[keep], self.class_ids[keep], masks)


def check_count(results: object, count: int) -> Sequence[object]:
    """Return the results of a batch if there is one for each picture.

    Parameters
    ----------
    results : object
        What `predict` returned.
    count : int
        How many pictures it was given.

    Returns
    -------
    sequence
        `results`.

    Raises
    ------
    BadResultError
        If it is no sequence of that length.
    """
    if isinstance(results, (Mapping, str)) or not isinstance(results, Sequence):
        raise BadResultError(
            f"predict() returned {type(results).__name__}, not a list of one result a picture"
        )
    if len(results) != count:
        raise BadResultError(f"predict() returned {len(results)} results for {count} pictures")
    return results


def check(result: object, size: Size, card: ModelCard) -> Found:
    """Check the result for one picture.

    Parameters
    ----------
    result : object
        A dict of arrays.
    size : Size
        The picture's.
    card : ModelCard
        The model's description.

    Returns
    -------
    Found
        Boxes clipped to the picture.

    Raises
    ------
    BadResultError
        If a field is unknown, has the wrong shape, is not finite, or lies outside the picture.
    """
    arrays = _fields(result)
    masks = _masks(arrays.get("masks"), size)
    boxes = _boxes(arrays, masks, size)
    count = len(boxes)
    scores = _column(arrays, "scores", count).astype(np.float32)
    class_ids = _column(arrays, "class_ids", count).astype(np.int64)
    if not np.isfinite(scores).all():
        raise BadResultError("scores are not finite")
    if count and (class_ids.min() < 0 or class_ids.max() >= len(card.classes)):
        raise BadResultError(f"class_ids outside 0..{len(card.classes) - 1}")
    if masks is not None and len(masks) != count:
        raise BadResultError(f"{len(masks)} masks for {count} boxes")
    return Found(boxes, scores, class_ids, masks)


def _fields(result: object) -> Arrays:
    """Return the result as a dict with known keys."""
    if not isinstance(result, Mapping):
        raise BadResultError(f"a result is {type(result).__name__}, not a dict of arrays")
    unknown = sorted(str(key) for key in result if key not in _KNOWN)
    if unknown:
        raise BadResultError(f"unknown fields {', '.join(unknown)}; known are {', '.join(sorted(_KNOWN))}")
    return result


def _boxes(arrays: Arrays, masks: list[MaskCrop] | None, size: Size) -> npt.NDArray[np.float32]:
    """Return boxes, those of the masks where there are no others, clipped to the picture."""
    if arrays.get("boxes") is None and masks is not None:
        rows = [(m.x, m.y, m.x + m.mask.shape[1], m.y + m.mask.shape[0]) for m in masks]
        return np.array(rows, np.float32).reshape(-1, 4)
    boxes = _numbers(arrays.get("boxes"), "boxes").astype(np.float32)
    boxes = boxes.reshape(0, 4) if not boxes.size else boxes
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise BadResultError(f"boxes have the shape {boxes.shape}, not (N, 4)")
    if not np.isfinite(boxes).all():
        raise BadResultError("boxes are not finite")
    if (boxes[:, 2:] < boxes[:, :2]).any():
        raise BadResultError("a box ends before it begins; boxes are x1, y1, x2, y2")
    # Networks overshoot a little, so what sticks out is cut; what does not touch the picture is a mistake.
    outside = (
        (boxes[:, 2:] < 0).any() or (boxes[:, 0] > size.width).any() or (boxes[:, 1] > size.height).any()
    )
    if outside:
        raise BadResultError(f"a box lies outside the picture of {size.width} x {size.height} pixels")
    return boxes.clip(0, np.array([size.width, size.height] * 2, np.float32))


def _numbers(value: object, name: str) -> npt.NDArray[np.float64]:
    """Return the value as numbers."""
    try:
        return np.asarray([] if value is None else value, np.float64)
    except (TypeError, ValueError) as error:
        raise BadResultError(f"{name} are no array of numbers: {error}") from error


def _column(arrays: Arrays, name: str, count: int) -> npt.NDArray[np.float64]:
    """Return one number for each row."""
    values = _numbers(arrays.get(name), name)
    if values.shape != (count,):
        raise BadResultError(
            f"{name} have the shape {values.shape}, not ({count},) as there are {count} boxes"
        )
    return values


def _masks(value: object, size: Size) -> list[MaskCrop] | None:
    """Cut whole-picture masks to what they cover."""
    if value is None:
        return None
    masks = np.asarray(value)
    if masks.ndim != 3 or (len(masks) and masks.shape[1:] != (size.height, size.width)):
        raise BadResultError(f"masks have the shape {masks.shape}, not (N, {size.height}, {size.width})")
    return [_crop(mask.astype(np.bool_)) for mask in masks]


def _crop(mask: npt.NDArray[np.bool_]) -> MaskCrop:
    """Cut one mask to its rectangle."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not rows.size:
        raise BadResultError("a mask is empty")
    top, left = int(rows[0]), int(columns[0])
    return MaskCrop(left, top, mask[top : rows[-1] + 1, left : columns[-1] + 1])
