"""LabelMe's files, ours and others': shapes back to objects, as they are after somebody has edited them."""

from __future__ import annotations

import base64
import io
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

import numpy as np
from PIL import Image

from predsession.errors import PredSessionError, ProtocolError, SourceError
from predsession.export.beside import with_copy
from predsession.export.facts import OURS, Found, prediction_from
from predsession.export.folders import files_below, picture_path, read_whole
from predsession.export.growingmeta import GrowingMeta, ids_from
from predsession.export.heads import upright_size
from predsession.export.labelme import HIDDEN, box_of
from predsession.prediction import Prediction
from predsession.wire.bitmaps import decode_mask
from predsession.wire.fields import MAX_VALUE, Fields
from predsession.wire.geometry import MaskCrop, Node, Point, Ring, Size, cut_to, fill_box, fill_rings
from predsession.wire.jsontext import loads
from predsession.wire.jsontypes import JSON, JSONObject, as_object

_LINES = frozenset(("line", "linestrip"))
_POLYGONS = frozenset(("polygon", "oriented_rectangle", "circle", "rotation", "quadrilateral"))
"""The last two are X-AnyLabeling's: all corners are there, whatever the angle."""
_KINDS = _LINES | _POLYGONS | {"rectangle", "mask", "point", "points"}
_UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError, Image.DecompressionBombWarning)
_CIRCLE = 64
"""Corners of the polygon that a circle becomes."""


def read_labelme(path: Path) -> Iterator[Prediction]:
    """Read a folder of LabelMe's files, or one file.

    Parameters
    ----------
    path : Path
        What LabelMe, or `predsession`, has written.

    Yields
    ------
    Prediction
        In the order of the files' names; classes that no file numbers are numbered as they come.

    Raises
    ------
    SourceError
        If a file is damaged; names it, and the shape.
    """
    growing = GrowingMeta()
    for number, file in enumerate(files_below(path, ".json")):
        try:
            document = Fields(loads(read_whole(file)), "document")
            yield _prediction(document, file, number, growing)
        except SourceError:
            raise
        except (ValueError, RecursionError, PredSessionError) as error:
            raise SourceError(f"{file}: not an annotation of LabelMe ({error})") from None


def _prediction(document: Fields, file: Path, number: int, growing: GrowingMeta) -> Prediction:
    """Read one file."""
    facts = as_object(document.item.get(OURS))
    beside = file.parent / PureWindowsPath(str(document.item.get("imagePath") or file.stem)).as_posix()
    said = facts.get("path") if facts else str(beside)
    is_frame = facts.get("frame_index") is not None
    path = picture_path(str(said or ""), beside, of_frame=is_frame)
    size = _size(document, beside if is_frame or path is None else Path(path))
    items = document.array(document.item.get("shapes"), "shapes")
    shapes = [_shape(Fields(item, f"shape {row}"), size) for row, item in enumerate(items)]
    objects = list(_objects(shapes, size))
    meta, ids = (
        growing.with_numbers(ids_from(facts.get("class_ids")))
        if facts
        else (growing.with_titles(found.title for found, _ in objects), None)
    )
    made = prediction_from(
        {**facts, "path": path, "tags": _tags(document, facts)},
        size,
        [found for found, _ in objects],
        meta=meta,
        ids=ids,
        index=number,
        name=beside.name,
        path=None,
    )
    for item, (_, figure) in zip(made.result.objects, objects, strict=True):
        if figure and isinstance(item, dict):  # just made, and not looked at by anybody
            del item["box"]
            item.update(figure)
    return with_copy(made, beside)


def _size(document: Fields, picture: Path) -> Size:
    """Return the picture's size; old versions do not say it, but have the picture in the file, or beside."""
    said = [document.item.get(key) for key in ("imageWidth", "imageHeight")]
    if None not in said:
        width, height = (document.whole(side, "imageWidth and imageHeight") for side in said)
        if width < 1 or height < 1:
            raise ValueError(f"the picture is {width} x {height} pixels")
        return Size(width, height)
    if document.item.get("imageData"):
        try:
            with Image.open(io.BytesIO(base64.b64decode(document.text("imageData")))) as image:
                return Size(*image.size)  # upright already: it is what was shown
        except _UNREADABLE as error:
            raise document.broken("imageData", str(error)) from None
    if not picture.is_file():
        raise ValueError(f"no imageWidth and imageHeight, no imageData, and no picture {picture} to look at")
    return upright_size(picture)


def _tags(document: Fields, facts: JSONObject) -> list[JSON]:
    """Return the picture's tags: a flag is one without a value, and may have been set or cleared."""
    flags = as_object(document.item.get("flags"))
    kept = list(Fields({"tags": facts.get("tags")}, OURS).tags())
    tags: list[JSON] = [
        {"name": tag.name} if tag.value is None else {"name": tag.name, "value": tag.value}
        for tag in kept
        if tag.value is not None or flags.get(tag.name)
    ]
    known = {tag.name for tag in kept if tag.value is None}
    return tags + [{"name": name} for name, is_set in flags.items() if is_set and name not in known]


@dataclass(frozen=True, slots=True)
class _Shape:
    """A shape as it stands in the file."""

    fields: Fields
    label: str
    kind: str
    points: Ring
    mask: MaskCrop | None
    group: int | None


def _shape(fields: Fields, size: Size) -> _Shape:
    """Read a shape."""
    # Before there were others, all were polygons, and none said so.
    kind = "polygon" if fields.item.get("shape_type") is None else fields.text("shape_type")
    points = fields.points("points")
    if kind not in _KINDS:
        raise fields.broken("shape_type", f"{kind!r} is not known; wanted one of {', '.join(sorted(_KINDS))}")
    if kind == "circle":
        points = _circle(fields, points)
    group = fields.item.get("group_id")
    mask = None
    if kind == "mask":
        mask = _mask(fields, points, size)
        points = [(mask.x, mask.y), (mask.x + mask.mask.shape[1] - 1, mask.y + mask.mask.shape[0] - 1)]
    number = None if group is None else fields.whole(group, "group_id")
    return _Shape(fields, fields.text("label"), kind, points, mask, number)


def _mask(fields: Fields, points: Sequence[Point], size: Size) -> MaskCrop:
    """Unpack a mask, whose points are its first pixel and its last."""
    x, y = (math.floor(min(side)) for side in zip(*points, strict=True))
    text = fields.text("mask")
    try:
        return cut_to(size, MaskCrop(x, y, decode_mask(text, within=size)))
    except ProtocolError as error:
        raise fields.broken("mask", str(error)) from None


def _circle(fields: Fields, points: Sequence[Point]) -> list[Point]:
    """Return the polygon of a circle, which is a middle and a point on its line."""
    if len(points) != 2:
        raise fields.broken("points", f"{len(points)} points; a circle has two")
    (x, y), radius = points[0], math.dist(*points)
    turns = (2 * math.pi * step / _CIRCLE for step in range(_CIRCLE))
    return [(x + radius * math.cos(turn), y + radius * math.sin(turn)) for turn in turns]


_Object = tuple[Found, dict[str, JSON]]
"""An object, and its geometry where it is a line or a point."""


def _objects(shapes: Sequence[_Shape], size: Size) -> Iterator[_Object]:
    """Put shapes together that share a group: an object and its keypoints, or the parts of one object."""
    groups: dict[int, list[_Shape]] = defaultdict(list)
    for shape in shapes:
        if shape.group is not None:
            groups[shape.group].append(shape)
    for shape in shapes:
        group = groups.get(shape.group, [shape]) if shape.group is not None else [shape]
        bodies = [each for each in group if each.kind != "point"]
        if len(bodies) == 1 and len(group) > 1:
            if shape is bodies[0]:
                yield _object(shape, [each for each in group if each.kind == "point"])
            continue
        parts = [each for each in bodies if each.label == shape.label and each.kind not in _LINES]
        if len(parts) > 1 and any(shape is part for part in parts):
            if shape is parts[0]:
                yield _joined(parts, size), {}
            continue
        yield _object(shape, [])


def _object(shape: _Shape, keypoints: Sequence[_Shape]) -> _Object:
    """Make an object of a shape, and perhaps its keypoints."""
    figure: dict[str, JSON] = {}
    if shape.kind == "point" or shape.kind in _LINES:
        kind = "point" if shape.kind == "point" else "line"
        points: JSON = [list(point) for point in shape.points]
        figure = {
            "points": {"exterior": points, "interior": []},
            "geometryType": kind,
            "shape": kind,
        }
    rings = [np.array(shape.points, np.float64)] if shape.kind in _POLYGONS else None
    own = shape.points if shape.kind == "points" else []
    nodes = [Node(str(number), x, y, True) for number, (x, y) in enumerate(own)] + [
        Node(each.label, *each.points[0], not as_object(each.fields.item.get("flags")).get(HIDDEN))
        for each in keypoints
    ]
    return _found(shape, rings=rings, nodes=nodes), figure


def _found(shape: _Shape, *, rings: list[np.ndarray] | None, nodes: Sequence[Node]) -> Found:
    """Bring together what is known of an object."""
    ours, score = as_object(shape.fields.item.get(OURS)), shape.fields.item.get("score")
    box, track = box_of(shape.kind, shape.points), ours.get("track_id")
    if ours.get("around") == list(box):
        x1, y1, x2, y2 = (shape.fields.number(side, "box") for side in shape.fields.array(ours["box"], "box"))
        box = x1, y1, x2, y2
    return Found(
        title=shape.label,
        box=box,
        score=None if score is None else shape.fields.number(score, "score", MAX_VALUE),
        mask=shape.mask,
        rings=rings,
        nodes=nodes,
        tags=Fields(ours, f"{shape.fields.owner}: {OURS}").tags(),
        track=None if track is None else shape.fields.whole(track, "track_id"),
    )


def _joined(parts: Sequence[_Shape], size: Size) -> Found:
    """Make one mask of the parts of an object."""
    crops = [_crop(part, size) for part in parts]
    left, top = min(crop.x for crop in crops), min(crop.y for crop in crops)
    right = max(crop.x + crop.mask.shape[1] for crop in crops)
    bottom = max(crop.y + crop.mask.shape[0] for crop in crops)
    whole = np.zeros((bottom - top, right - left), np.bool_)
    for x, y, mask in crops:
        whole[y - top : y - top + mask.shape[0], x - left : x - left + mask.shape[1]] |= mask
    first = _found(parts[0], rings=None, nodes=())
    box = (left, top, right, bottom)
    return Found(
        title=first.title, box=box, score=first.score, mask=MaskCrop(left, top, whole), tags=first.tags
    )


def _crop(part: _Shape, size: Size) -> MaskCrop:
    """Return the pixels of a part."""
    if part.mask is not None:
        return part.mask
    if part.kind == "rectangle":
        return fill_box(size, box_of(part.kind, part.points))
    return fill_rings(size, [part.points])
