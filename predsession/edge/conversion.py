"""What a runtime found -> a `Prediction`: normalized boxes to pixels, masks to the picture's size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np
import numpy.typing as npt

from predsession.edge.crops import crops_of
from predsession.errors import ProtocolError
from predsession.prediction import Prediction
from predsession.wire.edge.parts import BoundingBox, LandmarkSet, Parts, SegmentationMask
from predsession.wire.geometry import MaskCrop, Size
from predsession.wire.jsontypes import JSON

TEXT = "text"
"""The class of a line of text."""

_FARTHEST = 1e6
"""So many pictures beside the picture nothing is; sums and areas of such numbers stay numbers in float32."""


@dataclass(slots=True)
class _Row:
    """One object of the prediction."""

    title: str
    score: float
    class_id: int = -1
    box: BoundingBox | None = None
    mask: SegmentationMask | None = None
    points: LandmarkSet | None = None


def to_prediction(
    parts: Parts,
    size: tuple[int, int] | None,
    *,
    image: npt.ArrayLike | None,
    index: int,
    name: str,
    path: str | PathLike[str] | None,
    frame_index: int | None,
) -> Prediction:
    """Make the prediction.

    Parameters
    ----------
    parts : Parts
        What was found.
    size : tuple of int or None
        Width and height of the picture; not needed with `image`.
    image : (H, W, 3) uint8 array-like or None
        The picture, RGB.
    index : int
        Its position in its source.
    name : str
        Its name.
    path : str, PathLike or None
        Its path.
    frame_index : int or None
        The frame's number.

    Returns
    -------
    Prediction
        See `InferenceResult.to_prediction`.

    Raises
    ------
    ProtocolError
        If a box or a point is not finite or far away, a vector is not finite, or a mask's code is damaged.
    """
    from predsession.prediction.arrays import as_picture, as_size

    picture = None if image is None else as_picture(image)
    whole = as_size(size, picture)
    rows = _rows(parts)
    ids = {row.title: row.class_id for row in reversed(rows)}
    crops = crops_of([row.mask for row in rows], whole)
    points = [_points(row.points, whole) for row in rows]
    made = Prediction.from_arrays(
        size=whole,
        image=picture,
        boxes=np.array([_box(*each, whole) for each in zip(rows, crops, points, strict=True)]).reshape(-1, 4),
        scores=np.array([row.score for row in rows]),
        classes=[row.title for row in rows],
        masks=crops if any(row.mask for row in rows) else None,
        keypoints=_table(points) if any(row.points for row in rows) else None,
        tags=_tags(parts),
        index=index,
        name=name,
        path=path,
        frame_index=frame_index,
        data=_data(parts),
    )
    return replace(made, ids=ids)


def _rows(parts: Parts) -> list[_Row]:
    """Put together what belongs together, one row an object."""
    rows = [
        _Row(_title(each.label, each.class_id), _finite(each.score), each.class_id, each.bbox)
        for each in parts.objects
    ]
    if rows and [mask.bbox for mask in parts.masks] == [row.box for row in rows]:
        for row, mask in zip(rows, parts.masks, strict=True):
            row.mask = mask
    else:
        rows += [
            # A runtime that gives no confidence writes 0: the mask is there all the same.
            _Row(_title(each.label, each.class_id), _finite(each.confidence) or 1.0, each.class_id, mask=each)
            for each in parts.masks
        ]
    if parts.objects and len(parts.landmarks) == len(parts.objects):
        for row, points in zip(rows[: len(parts.objects)], parts.landmarks, strict=True):
            row.points = points
    else:
        rows += [_Row(each.type or "landmarks", 1.0, points=each) for each in parts.landmarks if each.points]
    return rows + [_Row(TEXT, _finite(each.confidence), box=each.bbox) for each in parts.ocr_lines]


def _tags(parts: Parts) -> dict[str, float]:
    """Return the classes of the picture, of two with one name the surer one."""
    tags: dict[str, float] = {}
    for each in parts.classifications:
        name, sure = _title(each.label, each.class_id), _finite(each.confidence)
        tags[name] = max(sure, tags.get(name, sure))
    return tags


def _title(label: str, class_id: int) -> str:
    """Return a class's name."""
    return label or f"class {class_id}"


def _finite(value: float) -> float:
    """Return a number that can be a score or a place."""
    if not abs(value) <= _FARTHEST:  # a NaN, too
        raise ProtocolError(f"the runtime sent {value:g} for a number")
    return value


def _points(points: LandmarkSet | None, size: Size) -> list[tuple[float, float, float]]:
    """Return landmarks in pixels; one is visible if the runtime is sure of it at all."""
    if points is None:
        return []
    return [
        (_finite(x) * size.width, _finite(y) * size.height, float(_finite(sure) > 0))
        for x, y, sure in points.points
    ]


def _table(rows: list[list[tuple[float, float, float]]]) -> npt.NDArray[np.float64]:
    """Return (N, K, 3), with invisible points where a row has fewer."""
    table = np.zeros((len(rows), max(map(len, rows)), 3))
    for row, points in enumerate(rows):
        if points:
            table[row, : len(points)] = points
    return table


def _box(
    row: _Row, crop: MaskCrop | None, points: list[tuple[float, float, float]], size: Size
) -> tuple[float, ...]:
    """Return a row's box in pixels: its own, else that around its mask or its points."""
    if row.box is not None:
        for each in row.box:
            _finite(each)
        x1, y1, x2, y2 = row.box.to_xyxy(size.width, size.height)
        return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)
    if crop is not None:
        height, width = crop.mask.shape  # cut to what is set
        return float(crop.x), float(crop.y), float(crop.x + width), float(crop.y + height)
    seen = [point for point in points if point[2]] or points
    xs, ys = [x for x, _, _ in seen], [y for _, y, _ in seen]
    return min(xs), min(ys), max(xs) + 1, max(ys) + 1


def _data(parts: Parts) -> dict[str, JSON]:
    """Return what has no place of its own."""
    data: dict[str, JSON] = {}
    if parts.ocr_lines:
        data["text"] = _texts(each.text for each in parts.ocr_lines)
    if parts.embeddings:
        data["embeddings"] = [[_number(value) for value in each.data] for each in parts.embeddings]
    return data


def _number(value: np.float32) -> float:
    """Return one number of a vector, which may be large."""
    if not np.isfinite(value):
        raise ProtocolError(f"the runtime sent {value} in a vector")
    return float(value)


def _texts(texts: Iterable[str]) -> list[JSON]:
    """Return texts as JSON."""
    return list(texts)
