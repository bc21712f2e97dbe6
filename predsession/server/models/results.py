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
from predsession.prediction.result import Prediction
from predsession.server.models.base import Arrays
from predsession.server.models.card import ModelCard
from predsession.wire.fields import Tag
from predsession.wire.geometry import MaskCrop, Size

_ROUNDING = 1e-3
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
    masks : list of MaskCrop or None, or None
        One for each row, where the model has masks; None for an empty one.
    keypoints : (N, K, 3) float32 ndarray or None
        x, y, visible.
    tags : tuple of Tag
        Of the picture.
    """

    boxes: npt.NDArray[np.float32]
    scores: npt.NDArray[np.float32]
    class_ids: npt.NDArray[np.int64]
    masks: list[MaskCrop | None] | None = None
    keypoints: npt.NDArray[np.float32] | None = None
    tags: tuple[Tag, ...] = ()

    def rows(self, keep: npt.NDArray[np.bool_]) -> Found:
        """Return the rows that are marked."""
        masks = None
        if self.masks is not None:
            masks = [mask for mask, kept in zip(self.masks, keep, strict=True) if kept]
        points = None if self.keypoints is None else self.keypoints[keep]
        return Found(self.boxes[keep], self.scores[keep], self.class_ids[keep], masks, points, self.tags)


def whole_mask(crop: MaskCrop | None, size: Size) -> npt.NDArray[np.bool_]:
    """Return a mask at the picture's size.

    Parameters
    ----------
    crop : MaskCrop or None
        None for an empty one.
    size : Size
        The picture's.

    Returns
    -------
    (H, W) bool ndarray
        New.
    """
    whole = np.zeros((size.height, size.width), np.bool_)
    if crop is not None:
        height, width = crop.mask.shape
        whole[crop.y : crop.y + height, crop.x : crop.x + width] = crop.mask
    return whole


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
        A dict of arrays, or a `Prediction`.
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
    arrays = _from_prediction(result, size, card) if isinstance(result, Prediction) else _fields(result)
    masks = _masks(arrays.get("masks"), size)
    boxes = _boxes(arrays, masks, size)
    count = len(boxes)
    if masks is not None and len(masks) != count:
        raise BadResultError(f"there are {len(masks)} masks and {count} boxes")
    return Found(
        boxes,
        _scores(arrays, count),
        _class_ids(arrays, count, card),
        masks,
        _keypoints(arrays.get("keypoints"), count, card),
        _tags(arrays.get("tags"), card),
    )


def _from_prediction(prediction: Prediction, size: Size, card: ModelCard) -> Arrays:
    """Take a prediction apart; its classes count by name."""
    if tuple(prediction.size) != tuple(size):
        raise BadResultError(
            f"a prediction is for {tuple(prediction.size)} pixels, the picture has {tuple(size)}"
        )
    unknown = [name for name in prediction.classes if name not in card.classes]
    if unknown:
        raise BadResultError(f"a prediction has the class {unknown[0]!r}, which is none of the model's")
    has_masks = card.shape == "bitmap"
    return {
        "boxes": prediction.boxes,
        "scores": prediction.scores,
        "class_ids": [card.classes.index(name) for name in prediction.classes],
        "masks": list(prediction.mask_crops) if has_masks else None,
        "keypoints": prediction.keypoints if card.shape == "graph" else None,
        "tags": dict(prediction.tags) or None,
    }


def _fields(result: object) -> Arrays:
    """Return the result as a dict with known keys."""
    if not isinstance(result, Mapping):
        raise BadResultError(f"a result is {type(result).__name__}, not a dict of arrays")
    unknown = sorted(str(key) for key in result if key not in _KNOWN)
    if unknown:
        raise BadResultError(f"unknown fields {', '.join(unknown)}; known are {', '.join(sorted(_KNOWN))}")
    return result


def _boxes(arrays: Arrays, masks: list[MaskCrop | None] | None, size: Size) -> npt.NDArray[np.float32]:
    """Return boxes, those of the masks where there are no others, clipped to the picture."""
    if arrays.get("boxes") is None and masks is not None:
        return _mask_boxes(masks)
    boxes = _numbers(arrays.get("boxes"), "boxes").astype(np.float32)
    boxes = boxes.reshape(0, 4) if not boxes.size else boxes
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise BadResultError(f"boxes have the shape {boxes.shape}, not (N, 4)")
    if not np.isfinite(boxes).all():
        raise BadResultError("boxes are not finite")
    if (boxes[:, 2:] < boxes[:, :2]).any():
        raise BadResultError("a box ends before it begins; boxes are x1, y1, x2, y2")
    # Networks overshoot a little, so what sticks out is cut; what does not touch the picture is a mistake.
    if (boxes[:, 2:] < 0).any() or (boxes[:, :2] > np.array(size)).any():
        raise BadResultError(f"a box lies outside the picture of {size.width} x {size.height} pixels")
    return boxes.clip(0, np.array([size.width, size.height] * 2, np.float32))


def _mask_boxes(masks: list[MaskCrop | None]) -> npt.NDArray[np.float32]:
    """Return the rectangles of masks."""
    rows = []
    for crop in masks:
        if crop is None:
            raise BadResultError("a mask is empty, and there are no boxes")
        height, width = crop.mask.shape
        rows.append((crop.x, crop.y, crop.x + width, crop.y + height))
    return np.array(rows, np.float32).reshape(-1, 4)


def _numbers(value: object, name: str) -> npt.NDArray[np.float64]:
    """Return the value as numbers."""
    try:
        numbers: npt.NDArray[np.float64] = np.asarray([] if value is None else value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadResultError(f"{name} are no array of numbers: {error}") from error
    return numbers


def _column(arrays: Arrays, name: str, count: int) -> npt.NDArray[np.float64]:
    """Return one number for each row."""
    values = _numbers(arrays.get(name), name)
    if values.shape != (count,):
        raise BadResultError(
            f"{name} have the shape {values.shape}, not ({count},) as there are {count} boxes"
        )
    if not np.isfinite(values).all():
        raise BadResultError(f"{name} are not finite")
    return values


def _scores(arrays: Arrays, count: int) -> npt.NDArray[np.float32]:
    """Return the scores, from 0 to 1 but for the rounding of a network's arithmetic."""
    scores = _column(arrays, "scores", count)
    if ((scores < -_ROUNDING) | (scores > 1 + _ROUNDING)).any():
        raise BadResultError(f"scores reach from {scores.min():g} to {scores.max():g}; not from 0 to 1")
    return scores.clip(0, 1).astype(np.float32)


def _class_ids(arrays: Arrays, count: int, card: ModelCard) -> npt.NDArray[np.int64]:
    """Return the classes; a model with one class need not name it."""
    if arrays.get("class_ids") is None and len(card.classes) == 1:
        return np.zeros(count, np.int64)
    numbers = _column(arrays, "class_ids", count)
    if (numbers != np.rint(numbers)).any():
        raise BadResultError("class_ids are not whole numbers")
    ids = numbers.astype(np.int64)
    if count and (ids.min() < 0 or ids.max() >= len(card.classes)):
        raise BadResultError(
            f"class_ids reach from {ids.min()} to {ids.max()}; there are {len(card.classes)} classes"
        )
    return ids


def _masks(value: object, size: Size) -> list[MaskCrop | None] | None:
    """Cut masks to what they cover."""
    if value is None:
        return None
    if isinstance(value, Sequence) and all(isinstance(mask, MaskCrop) or mask is None for mask in value):
        return list(value)
    masks = np.asarray(value)
    if masks.size == 0:
        return []
    if masks.ndim != 3 or masks.shape[1:] != (size.height, size.width):
        raise BadResultError(f"masks have the shape {masks.shape}, not (N, {size.height}, {size.width})")
    return [_crop(mask.astype(np.bool_)) for mask in masks]


def _crop(mask: npt.NDArray[np.bool_]) -> MaskCrop | None:
    """Cut one mask to its rectangle."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not rows.size:
        return None
    top, left = int(rows[0]), int(columns[0])
    return MaskCrop(left, top, mask[top : rows[-1] + 1, left : columns[-1] + 1])


def _keypoints(value: object, count: int, card: ModelCard) -> npt.NDArray[np.float32] | None:
    """Return keypoints with a third column that says whether each is visible."""
    if value is None:
        return None
    points = _numbers(value, "keypoints")
    wanted = (count, len(card.keypoints))
    if not count:
        return np.zeros((*wanted, 3), np.float32)
    if points.ndim != 3 or points.shape[:2] != wanted or points.shape[2] not in {2, 3}:
        raise BadResultError(f"keypoints have the shape {points.shape}, not {(*wanted, 3)} or {(*wanted, 2)}")
    if not np.isfinite(points).all():
        raise BadResultError("keypoints are not finite")
    if points.shape[2] == 2:
        points = np.concatenate([points, np.ones((*wanted, 1))], axis=2)
    return points.astype(np.float32)


def _tags(value: object, card: ModelCard) -> tuple[Tag, ...]:
    """Return the picture's tags."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise BadResultError(f"tags are {type(value).__name__}, not a dict of names and values")
    unknown = [name for name in value if name not in card.tags]
    if unknown:
        raise BadResultError(f"the tag {unknown[0]!r} is none of the model's; they are {list(card.tags)}")
    return tuple(
        Tag(str(name), each if each is None or isinstance(each, str) else float(each))
        for name, each in value.items()
    )
