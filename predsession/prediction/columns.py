"""The arguments of `Prediction.from_arrays`, one by one: each checked for itself and brought into one form.

Invariant: what is wrong raises `ValueError` that names the argument, says what it is and what is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from predsession.wire.annotation import Rings
from predsession.wire.fields import MAX_COORDINATE, Tag
from predsession.wire.geometry import MaskCrop, Size
from predsession.wire.jsontypes import JSON, as_object

Masks = npt.ArrayLike | Sequence[MaskCrop | None]
Polygons = Sequence[npt.ArrayLike | Sequence[npt.ArrayLike] | None]
Tags = Mapping[str, str | float | None] | Iterable[str | Tag | tuple[str, str | float | None]]
Floats = npt.NDArray[np.float64]


def described(value: object) -> str:
    """Say what was given: shape and dtype, or the type where it is no array."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        return f"a ragged {type(value).__name__}"
    return f"{array.shape} {array.dtype}"


def _depth(value: object) -> int:
    """Return an array's number of dimensions; 0 where it is ragged."""
    try:
        return np.asarray(value).ndim
    except ValueError:
        return 0


def _numbers(name: str, value: object, wanted: str) -> Floats:
    """Return an array of finite numbers that can be pixels."""
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty(0, np.object_)
    if array.dtype.kind not in "iufb":
        raise ValueError(f"{name} is {described(value)}; wanted {wanted}, numbers")
    return array.astype(np.float64)


def box_column(value: npt.ArrayLike) -> Floats:
    """Return boxes as (N, 4) float64; raise ValueError if they have another shape, or cannot be pixels."""
    boxes = _numbers("boxes", value, "(N, 4) xyxy")
    if boxes.size == 0:
        return np.zeros((0, 4))
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"boxes is {described(value)}; wanted (N, 4): x1, y1, x2, y2 in pixels")
    far = (np.abs(boxes) > MAX_COORDINATE).any(axis=1)
    if far.any():
        row = int(np.argmax(far))
        raise ValueError(f"boxes: row {row} is {boxes[row].tolist()}; wanted pixels up to {MAX_COORDINATE}")
    return boxes


def number_column(name: str, value: npt.ArrayLike) -> Floats:
    """Return one number a row, as (N,) float64; raise ValueError if it has another shape."""
    numbers = _numbers(name, value, "(N,)")
    if numbers.ndim != 1:
        raise ValueError(f"{name} is {described(value)}; wanted (N,): one number a row")
    return numbers


def whole_column(name: str, value: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return one whole number a row, as (N,) int64; raise ValueError if it is something else."""
    numbers = np.asarray(value)
    if numbers.size == 0:
        return np.zeros(0, np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ValueError(f"{name} is {described(value)}; wanted (N,) whole numbers")
    if numbers.max() >= 1 << 63:  # it would come out as a negative one
        raise ValueError(f"{name}: row {int(numbers.argmax())} is {numbers.max()}; wanted less than 2 ** 63")
    return numbers.astype(np.int64)


def mask_column(masks: Masks | None, size: Size) -> list[MaskCrop | None] | None:
    """Return masks as crops, full ones at 0, 0; raise ValueError if they do not fit the picture."""
    if masks is None:
        return None
    if isinstance(masks, Sequence) and any(mask is None or isinstance(mask, MaskCrop) for mask in masks):
        return [_crop(mask, row, size) for row, mask in enumerate(masks)]
    full = np.asarray(masks)
    if full.size == 0 and len(full) == 0:
        return []
    if full.ndim != 3 or full.shape[1:] != (size.height, size.width) or full.dtype.kind not in "biu":
        raise ValueError(
            f"masks is {described(full)}; "
            f"wanted (N, {size.height}, {size.width}) bool, or N times MaskCrop or None"
        )
    return [MaskCrop(0, 0, mask) for mask in full != 0]


def _crop(mask: object, row: int, size: Size) -> MaskCrop | None:
    """Check one crop."""
    if mask is None:
        return None
    if not isinstance(mask, MaskCrop) or mask.mask.ndim != 2 or mask.mask.dtype != np.bool_:
        raise ValueError(f"masks: row {row} is no MaskCrop of a (h, w) bool mask")
    height, width = mask.mask.shape
    inside = mask.x >= 0 and mask.x + width <= size.width and mask.y >= 0 and mask.y + height <= size.height
    if not inside:
        raise ValueError(
            f"masks: row {row} covers {width} x {height} pixels at {mask.x}, {mask.y}; "
            f"wanted a part of the picture, which is {size.width} x {size.height}"
        )
    return mask


def ring_column(polygons: Polygons | None) -> list[Rings | None] | None:
    """Return polygons as outlines with holes; raise ValueError if a ring is no (M, 2)."""
    if polygons is None:
        return None
    return [None if each is None else _outline(each, row) for row, each in enumerate(polygons)]


def _outline(polygon: object, row: int) -> list[Floats] | None:
    """Return one polygon's rings: its outline, then its holes."""
    if _depth(polygon) == 2:
        polygon = [polygon]
    if not isinstance(polygon, Iterable):
        raise ValueError(
            f"polygons: row {row} is a {type(polygon).__name__}; wanted (M, 2), or a list of such"
        )
    checked = [_numbers("polygons", ring, "(M, 2) rings") for ring in polygon]
    for ring in checked:
        if (
            ring.ndim != 2
            or ring.shape[1] != 2
            or not len(ring)
            or not (np.abs(ring) <= MAX_COORDINATE).all()
        ):
            raise ValueError(
                f"polygons: row {row} has a ring of shape {ring.shape}; wanted (M, 2) finite x, y"
            )
    return checked or None


def keypoint_column(value: npt.ArrayLike | None) -> Floats | None:
    """Return keypoints as (N, K, 3), all visible if there is no third column; raise ValueError otherwise."""
    if value is None:
        return None
    points = _numbers("keypoints", value, "(N, K, 3)")
    if points.ndim != 3 or points.shape[2] not in {2, 3} or not points.shape[1]:
        if points.size == 0:
            return None
        raise ValueError(f"keypoints is {described(value)}; wanted (N, K, 3): x, y, visible, or (N, K, 2)")
    if points.shape[2] == 2:
        points = np.concatenate((points, np.ones((*points.shape[:2], 1))), axis=2)
    hidden = ~(points[:, :, 2] > 0)
    points[hidden & ~np.isfinite(points).all(axis=2)] = 0  # models write NaN where they see nothing
    if not (np.abs(points) <= MAX_COORDINATE).all():
        raise ValueError("keypoints has a visible point that is not finite, or beyond any picture")
    return points


def boxes_around(
    crops: Sequence[MaskCrop | None] | None, rings: Sequence[Rings | None] | None, points: Floats | None
) -> Floats:
    """Return boxes for those who gave none: around masks, outlines or visible keypoints."""
    rows = max(len(each) for each in (crops or (), rings or (), () if points is None else points))
    boxes = np.zeros((rows, 4))
    for row in range(rows):
        inside = _pixels(
            crops[row] if crops else None,
            rings[row] if rings else None,
            None if points is None else points[row],
        )
        if len(inside):
            boxes[row] = *inside.min(axis=0), *(inside.max(axis=0) + 1)
    return boxes


def _pixels(crop: MaskCrop | None, rings: Rings | None, points: Floats | None) -> Floats:
    """Return points whose box is that of the object."""
    if crop is not None:
        # Not the place of each pixel: of a mask of 20 megapixels those would take 640 MB.
        rows, columns = np.flatnonzero(crop.mask.any(axis=1)), np.flatnonzero(crop.mask.any(axis=0))
        if not len(rows):
            return np.zeros((0, 2))
        first, last = (columns[0] + crop.x, rows[0] + crop.y), (columns[-1] + crop.x, rows[-1] + crop.y)
        return np.array((first, last), np.float64)
    if rings is not None:
        return np.asarray(rings[0], np.float64)
    if points is None:
        return np.zeros((0, 2))
    return points[points[:, 2] > 0, :2]


def tag_pairs(tags: Tags | None) -> list[Tag]:
    """Return tags as pairs of name and value; raise ValueError if one is something else."""
    if tags is None:
        return []
    return [_pair(tag) for tag in (tags.items() if isinstance(tags, Mapping) else tags)]


def _pair(tag: object) -> Tag:
    """Return one tag: a name alone, or a name with a text or a number."""
    match (tag, None) if isinstance(tag, str) else tag:
        case (str(name), value) if not isinstance(value, list | tuple | Mapping | np.ndarray):
            plain = json_value("tags", value)
            assert plain is None or isinstance(plain, str | int | float), "anything else holds others"
            return Tag(name, plain)
    raise ValueError(f"tags: {tag!r}; wanted a name, or a name with a text or a number")


def position(name: str, value: object) -> int:
    """Return a position in a source, NumPy's whole numbers as well; raise ValueError for anything else."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise ValueError(f"{name} is {_shortened(value)}; wanted a whole number, from 0 to 2 ** 63 - 1")
    return int(value)


def text_or_none(name: str, value: object) -> str | None:
    """Return a text that may be missing; raise ValueError for anything else."""
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"{name} is {_shortened(value)}; wanted a text")


def json_object(name: str, value: Mapping[str, object] | None) -> dict[str, JSON]:
    """Return a copy of a mapping as JSON; raise ValueError if JSON has no word for something in it."""
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{name} is {_shortened(value)}; wanted a mapping")
    try:
        return dict(as_object(json_value(name, value or {})))
    except RecursionError:
        raise ValueError(f"{name} is nested too deep to be written") from None


def json_value(name: str, value: object) -> JSON:
    """Return a copy of a value as JSON, NumPy's made plain; raise ValueError if JSON has no word for it."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    match value:
        case None | bool() | str():
            return value
        case int() if -(1 << 63) <= value < 1 << 64:
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case list() | tuple():
            return [json_value(f"{name}[{place}]", each) for place, each in enumerate(value)]
        case Mapping() if all(isinstance(key, str) for key in value):
            return {key: json_value(f"{name}[{key!r}]", each) for key, each in value.items()}
    raise ValueError(
        f"{name} is {_shortened(value)}; wanted what JSON has: texts, finite numbers, whole ones of at most "
        "64 bits, True, False, None, lists, and mappings with texts as keys"
    )


def _shortened(value: object) -> str:
    """Return the beginning of a value, for a message."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, a list in itself
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= 60 else f"{text[:57]}..."
