"""Arrays to the wire's annotation object: what the embedded server answers with.

Invariant: the objects keep the order of the rows, one object a row, none left out.

References
----------
PROTOCOL.md, section 5; DESIGN.md, the extension ``float_boxes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from predsession.wire.bitmaps import encode_mask
from predsession.wire.fields import Tag
from predsession.wire.geometry import MaskCrop, Size
from predsession.wire.jsontypes import JSON

_EMPTY_MASK = np.zeros((1, 1), np.bool_)

Floats = npt.NDArray[np.floating] | Sequence[float]
Integers = npt.NDArray[np.integer] | Sequence[int]
Rings = Sequence[npt.NDArray[np.floating]]


def annotation_from_arrays(
    size: Size,
    *,
    boxes: npt.ArrayLike,
    class_names: Sequence[str],
    scores: Floats | None = None,
    masks: Sequence[MaskCrop | None] | None = None,
    polygons: Sequence[Rings | None] | None = None,
    keypoints: npt.NDArray[np.floating] | None = None,
    node_ids: Sequence[str] = (),
    tags: Iterable[Tag] = (),
    track_ids: Integers | None = None,
    float_boxes: bool = False,
    empty_masks: bool = False,
) -> dict[str, JSON]:
    """Write one picture's predictions as a stock server does.

    Parameters
    ----------
    size : Size
        Of the picture.
    boxes : (N, 4) array-like of float, xyxy, pixels, half-open
        One row an object.
    class_names : sequence of str
        N titles.
    scores : (N,) array-like of float or None
        Become the tag ``confidence``; without them there is no such tag.
    masks : sequence of MaskCrop or None
        N of them; a row with a mask becomes a ``bitmap``, cut to its object pixels.
    polygons : sequence of rings or None
        N of them, each ``(outer ring, hole, ...)`` of (M, 2) arrays; such a row becomes a ``polygon``.
    keypoints : (N, K, 3) float ndarray or None
        x, y, visible (above 0); a row with keypoints becomes a ``graph``. A row that also has a mask or a
        polygon keeps that geometry, and carries its ``nodes`` beside it.
    node_ids : sequence of str
        The K keypoints' ids in the class's skeleton; "0", "1", ... where it is empty.
    tags : iterable of Tag
        Of the picture as a whole.
    track_ids : (N,) array-like of int or None
        Become ``customBigData``, as tracking jobs have it; a negative one is written as null.
    float_boxes : bool
        Write ``"box": [x1, y1, x2, y2]`` beside the geometry of whole pixels.
    empty_masks : bool
        Write a mask without any pixel as a bitmap of one pixel that is off. A stock client cannot read
        that, so the default writes the box as a rectangle.

    Returns
    -------
    dict
        ``{"description", "size", "tags", "objects", "customBigData"}``.

    Raises
    ------
    ValueError
        If a count is not N, a box is not finite or ends before it begins, or a score is not finite.
    """
    corners = np.asarray(boxes, np.float64).reshape(-1, 4)
    rows = len(corners)
    counts = {
        "class_names": len(class_names),
        "scores": rows if scores is None else len(scores),
        "masks": rows if masks is None else len(masks),
        "polygons": rows if polygons is None else len(polygons),
        "keypoints": rows if keypoints is None else len(keypoints),
        "track_ids": rows if track_ids is None else len(track_ids),
    }
    confidences = _checked(corners, scores, counts)
    figures = [
        _geometry(box, mask, rings, empty_masks=empty_masks)
        for box, mask, rings in zip(
            _whole(corners), masks or [None] * rows, polygons or [None] * rows, strict=True
        )
    ]
    if keypoints is not None:
        _add_nodes(figures, keypoints, node_ids)
    if float_boxes:
        for figure, box in zip(figures, corners.tolist(), strict=True):
            figure["box"] = box
    return {
        "description": "",
        "size": {"height": size.height, "width": size.width},
        "tags": [_tag(tag) for tag in tags],
        "objects": [_object(*parts) for parts in zip(class_names, confidences, figures, strict=True)],
        "customBigData": {} if track_ids is None else [_track(track) for track in track_ids],
    }


def _checked(
    corners: npt.NDArray[np.float64], scores: Floats | None, counts: dict[str, int]
) -> Sequence[float | None]:
    """Return the scores as numbers; refuse what cannot be written."""
    rows = len(corners)
    for name, count in counts.items():
        if count != rows:
            raise ValueError(f"{name} has {count} rows, boxes has {rows}")
    good = np.isfinite(corners).all(axis=1) & (corners[:, 2:] >= corners[:, :2]).all(axis=1)
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(
            f"boxes: row {row} is {corners[row].tolist()}; "
            "wanted finite x1, y1, x2, y2 with x2 >= x1 and y2 >= y1"
        )
    if scores is None:
        return [None] * rows
    values = np.asarray(scores, np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"scores: row {int(np.argmin(np.isfinite(values)))} is not finite")
    numbers: list[float] = values.tolist()
    return numbers


def _whole(corners: npt.NDArray[np.float64]) -> list[list[int]]:
    """Return left, top, right, bottom in whole pixels, inclusive, as the wire has them."""
    left_top, right_bottom = np.floor(corners[:, :2]), np.ceil(corners[:, 2:]) - 1
    # A box thinner than a pixel still names one: the wire has no empty rectangle.
    inclusive = np.hstack((left_top, np.maximum(left_top, right_bottom)))
    pixels: list[list[int]] = inclusive.astype(np.int64).tolist()
    return pixels


def _geometry(
    box: list[int], mask: MaskCrop | None, rings: Rings | None, *, empty_masks: bool
) -> dict[str, JSON]:
    """Return the geometry's own keys: a bitmap, a polygon, or a rectangle."""
    figure: dict[str, JSON] = {}
    if rings:
        outer, *holes = (np.asarray(ring).tolist() for ring in rings)
        figure = {"points": {"exterior": outer, "interior": holes}, **_named("polygon")}
    crop = None if mask is None else _tight(mask)
    if crop is None and mask is not None and empty_masks:
        crop = MaskCrop(box[0], box[1], _EMPTY_MASK)
    if crop is not None:
        return {
            **figure,
            "bitmap": {"origin": [crop.x, crop.y], "data": encode_mask(crop.mask)},
            **_named("bitmap"),
        }
    return figure or {"points": {"exterior": [box[:2], box[2:]], "interior": []}, **_named("rectangle")}


def _named(kind: str) -> dict[str, JSON]:
    """Return the two keys that name a geometry."""
    return {"geometryType": kind, "shape": kind}


def _tight(crop: MaskCrop) -> MaskCrop | None:
    """Cut a mask to its object pixels; None where there are none."""
    rows, columns = np.flatnonzero(crop.mask.any(axis=1)), np.flatnonzero(crop.mask.any(axis=0))
    if not len(rows):
        return None
    top, bottom, left, right = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
    return MaskCrop(int(crop.x) + left, int(crop.y) + top, crop.mask[top:bottom, left:right])


def _add_nodes(
    figures: list[dict[str, JSON]], keypoints: npt.NDArray[np.floating], node_ids: Sequence[str]
) -> None:
    """Write each row's keypoints; a row that has nothing else becomes a graph."""
    ids = tuple(node_ids) or tuple(map(str, range(keypoints.shape[1])))
    for figure, points in zip(figures, np.asarray(keypoints, np.float64).tolist(), strict=True):
        figure["nodes"] = {key: _node(*point) for key, point in zip(ids, points, strict=True)}
        if figure["geometryType"] == "rectangle":
            del figure["points"]
            figure |= _named("graph")


def _node(x: float, y: float, visible: float) -> dict[str, JSON]:
    """Return one node of a graph."""
    return {"loc": [x, y]} if visible > 0 else {"loc": [x, y], "disabled": True}


def _tag(tag: Tag) -> dict[str, JSON]:
    """Return one tag; one without a value has no such key."""
    return {"name": tag.name} if tag.value is None else {"name": tag.name, "value": tag.value}


def _track(track: int) -> int | None:
    """Return a track id, or null for none."""
    return int(track) if track >= 0 else None


def _object(title: str, score: float | None, figure: dict[str, JSON]) -> dict[str, JSON]:
    """Return one object."""
    return {
        "classTitle": title,
        "description": "",
        "tags": [] if score is None else [{"name": "confidence", "value": score}],
        **figure,
        "nnCreated": True,
        "nnUpdated": True,
    }
