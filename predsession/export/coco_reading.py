"""Predictions back from a COCO document: one of ours, or anybody's.

The whole document is parsed at once and held (COCO's own instances_val2017 takes some 100 MB); masks are
unpacked picture by picture.

Of others' documents: a class's id is its place among the categories, by their ids, and those are kept in
``prediction.data["coco"]``: of the classes that occur there, and with the first picture of all. An annotation
without a score has 1.0; one of several polygons becomes a mask; a crowd has the tag ``iscrowd``; a picture's
path is its file beside the document, if it is there, else ``file_name``. Where the document does not say how
large a picture is, that file does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from predsession.errors import ProtocolError, SourceError
from predsession.export.coco import CROWD
from predsession.export.coco_ids import KEPT, Id, with_ids
from predsession.export.facts import OURS, Found, is_box, prediction_from
from predsession.export.folders import read_whole
from predsession.export.growingmeta import ids_from
from predsession.export.heads import upright_size
from predsession.export.keypoints import node_of
from predsession.export.rle import crop_of, unpack
from predsession.prediction import Prediction
from predsession.wire.colors import named_color
from predsession.wire.fields import MAX_COORDINATE, MAX_VALUE, Fields, Tag, shown
from predsession.wire.geometry import Box, MaskCrop, Node, Size, box_around, fill_rings
from predsession.wire.jsontext import loads
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object
from predsession.wire.meta import ClassInfo, ModelMeta
from predsession.wire.skeleton import Skeleton, SkeletonEdge, SkeletonNode

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Category:
    """What an annotation's category says: its name, and the ids of its keypoints."""

    title: str
    keypoint_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Document:
    """A document's lists, the annotations by picture."""

    images: Sequence[Fields]
    annotations: Mapping[JSON, Sequence[Fields]]
    categories: Mapping[Id, _Category]
    category_ids: Mapping[str, JSON]
    meta: ModelMeta
    ids: Mapping[str, int] | None


def read_coco(path: str | PathLike[str]) -> Iterator[Prediction]:
    """Read a COCO document.

    Parameters
    ----------
    path : str or PathLike
        The file.

    Yields
    ------
    Prediction
        In the order of ``images``.

    Raises
    ------
    SourceError
        If it is no COCO document, or damaged; names the file, and the picture or annotation.
    """
    place = Path(path)
    with _told(place):
        document = _document(loads(read_whole(place)))
    for position, image in enumerate(document.images):
        with _told(place):
            prediction = _prediction(document, image, position, place.parent)
        yield prediction


@contextmanager
def _told(place: Path) -> Iterator[None]:
    """Say in which file it is that something is wrong."""
    try:
        yield
    except SourceError:
        raise
    except (ValueError, RecursionError, ProtocolError) as error:
        raise SourceError(f"{place}: {error}") from None


def _document(value: JSON) -> _Document:
    """Sort a document's lists."""
    if isinstance(value, list):
        raise ProtocolError(
            "a list of detections, COCO's form for results, does not say how large the pictures are; "
            "put it into the `annotations` of the document whose pictures it belongs to"
        )
    whole = Fields(value, "the document")
    images = [Fields(each, f"images[{number}]") for number, each in enumerate(_entries(whole, "images"))]
    known = {_id(image, "id") for image in images}
    if len(known) < len(images):
        raise ProtocolError("images: an id is there twice")
    annotations: dict[JSON, list[Fields]] = {}
    # Without the key it is a list of pictures, such as COCO's image_info of its tests.
    for number, each in enumerate(_entries(whole, "annotations") if "annotations" in whole.item else ()):
        one = Fields(each, f"annotations[{number}]")
        image_id = _id(one, "image_id")
        if image_id not in known:
            raise one.broken("image_id", f"there is no picture {shown(image_id)}")
        annotations.setdefault(image_id, []).append(one)
    entries = enumerate(_entries(whole, "categories") if "categories" in whole.item else ())
    categories, meta, ids = _classes([Fields(each, f"categories[{number}]") for number, each in entries])
    by_title: dict[str, JSON] = {}
    for key, category in categories.items():
        by_title.setdefault(category.title, key)
    return _Document(images, annotations, categories, by_title, meta, ids)


def _entries(whole: Fields, key: str) -> Sequence[JSON]:
    """Return one of the document's lists."""
    return whole.array(whole.item.get(key), key)


def _id(entry: Fields, key: str) -> int | str:
    """Return an id: a whole number or, in some documents, a text."""
    value = entry.item.get(key)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise entry.broken(key, f"{shown(value)} is no id")
    return value


def _classes(
    entries: list[Fields],
) -> tuple[dict[Id, _Category], ModelMeta, dict[str, int] | None]:
    """Return the categories by id, the classes in their order, and the classes' ids if they are others."""
    by_id = {_id(each, "id"): each for each in entries}
    order = sorted(
        by_id, key=lambda each: (isinstance(each, str), each if isinstance(each, int) else 0, str(each))
    )
    categories: dict[Id, _Category] = {}
    infos: list[ClassInfo] = []
    numbers: dict[str, int] = {}
    for position, key in enumerate(order):
        entry = by_id[key]
        ours, title = as_object(entry.item.get(OURS)), entry.text("name")
        names = [str(each) for each in as_list(entry.item.get("keypoints"))]
        own = [str(each) for each in as_list(ours.get("keypoint_ids"))]
        categories[key] = _Category(title, tuple(own if len(own) == len(names) else names))
        numbers.setdefault(title, ids_from({title: ours.get("class_id")}).get(title, position))
        infos.append(_info(entry, title, ours, names))
    ids = None if list(numbers.values()) == list(range(len(infos))) else numbers
    return categories, ModelMeta(tuple(infos)), ids


def _info(entry: Fields, title: str, ours: JSONObject, names: list[str]) -> ClassInfo:
    """Return the model's description of a class: what we wrote of it, or what COCO says."""
    if "title" in ours:
        return ClassInfo.from_json({**ours, "title": title})
    if not names or OURS in entry.item:
        return ClassInfo(title, color=named_color(title))
    pairs = [as_list(pair) for pair in as_list(entry.item.get("skeleton"))]
    edges = tuple(
        SkeletonEdge(names[first - 1], names[second - 1])
        for first, second in (pair for pair in pairs if len(pair) == 2)
        if isinstance(first, int) and isinstance(second, int) and min(first, second) > 0
        if max(first, second) <= len(names)
    )
    skeleton = Skeleton(tuple(SkeletonNode(name, name) for name in names), edges)
    return ClassInfo(title, "graph", named_color(title), skeleton)


def _prediction(document: _Document, image: Fields, position: int, folder: Path) -> Prediction:
    """Make the prediction of one picture."""
    ours = as_object(image.item.get(OURS))
    name = str(image.item.get("file_name") or "")
    beside = folder / name
    size = _size(image, beside)
    found = [
        _found(document, each, size, scored=ours.get("scored") is not False)
        for each in document.annotations.get(_id(image, "id"), ())
    ]
    try:
        made = prediction_from(
            ours,
            size,
            found,
            meta=document.meta,
            ids=document.ids,
            index=position,
            name=Path(name).name,
            path=(str(beside) if _is_file(beside) else name) if name else None,
            tracked=ours.get("tracked") is True,
        )
        if ours and ours.get(KEPT) is not True:
            return made
        return with_ids(made, _id(image, "id"), _ids_of(document, found, first=not position))
    except (ValueError, ProtocolError) as error:
        raise ProtocolError(f"{image.owner}: {error}") from None


def _ids_of(document: _Document, found: Sequence[Found], *, first: bool) -> Mapping[str, JSON]:
    """Return the ids of a picture's classes; with the first, of all: once is enough."""
    if first:
        return document.category_ids
    return {each.title: document.category_ids[each.title] for each in found}


def _size(image: Fields, beside: Path) -> Size:
    """Return a picture's size, as the document or else the picture itself says it."""
    said = [image.item.get(key) for key in ("width", "height")]
    if said == [None, None] and _is_file(beside):
        return upright_size(beside)
    sides = [image.whole(_whole(value), key) for value, key in zip(said, ("width", "height"), strict=True)]
    if min(sides) < 1 or max(sides) > MAX_COORDINATE:
        raise image.broken("width and height", f"{sides} are no sides of a picture")
    return Size(*sides)


def _whole(value: JSON) -> JSON:
    """Return a whole number that was written with a point, as pandas does, without it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_file(place: Path) -> bool:
    """Whether there is a file; a name that no file can have is none."""
    try:
        return place.is_file()
    except (OSError, ValueError):
        return False


def _found(document: _Document, one: Fields, size: Size, *, scored: bool) -> Found:
    """Read one annotation."""
    category = document.categories.get(_id(one, "category_id"))
    if category is None:
        raise one.broken("category_id", f"there is no category {shown(one.item.get('category_id'))}")
    try:
        mask, parts = _segmentation(one, size)
        box = _rounded(_box(one, mask, parts))
        if len(parts) > 1:
            mask, parts = _filled(size, parts), []
    except ValueError as error:
        raise one.broken("segmentation", str(error)) from None
    rings = [each.astype(np.float32) for each in parts]
    if rings and is_box(rings[0]) and (*rings[0][0].tolist(), *rings[0][2].tolist()) == box:
        rings = []  # the box again: what documents say of an object that has no outline
    track = one.item.get("track_id")
    crowd = [Tag(CROWD, 1)] if one.item.get(CROWD) == 1 else []
    return Found(
        title=category.title,
        box=box,
        score=_score(one) if scored else None,
        mask=mask,
        rings=rings or None,
        nodes=_nodes(one, category.keypoint_ids),
        tags=[*Fields({"tags": as_object(one.item.get(OURS)).get("tags")}, one.owner).tags(), *crowd],
        track=None if track is None else one.whole(track, "track_id"),
    )


def _score(one: Fields) -> float | None:
    """Return the score, as float32; none in what people annotated."""
    value = one.item.get("score")
    return None if value is None else float(np.float32(one.number(value, "score", MAX_VALUE)))


def _rounded(box: Box) -> Box:
    """Return a box of float32, as predictions have it: then x + width is the right edge that was written."""
    x1, y1, x2, y2 = np.array(box, np.float32).tolist()
    return x1, y1, x2, y2


def _numbers(one: Fields, value: JSON, field: str) -> Floats:
    """Return a flat list of numbers."""
    items = one.array(value, field)
    if not all(type(item) in (int, float) for item in items):
        raise one.broken(field, f"{shown(value)} is no list of numbers")
    numbers = np.array(items, np.float64)
    if not (np.abs(numbers) <= MAX_COORDINATE).all():
        raise one.broken(field, f"{shown(value)} goes beyond any picture")
    return numbers


def _box(one: Fields, mask: MaskCrop | None, parts: list[Floats]) -> Box:
    """Return the box as the annotation says, or around its segmentation."""
    if one.item.get("bbox"):
        numbers = _numbers(one, one.item["bbox"], "bbox").tolist()
        if len(numbers) != 4 or min(numbers[2:]) < 0:
            raise one.broken("bbox", f"{shown(one.item['bbox'])} is no x, y, width and height")
        x, y, width, height = numbers
        return x, y, x + width, y + height
    if mask is not None and mask.mask.size:
        height, width = mask.mask.shape
        return mask.x, mask.y, mask.x + width, mask.y + height
    if not parts:
        raise one.broken("bbox", "there is none, and no segmentation either")
    return box_around(np.concatenate(parts).tolist())


def _segmentation(one: Fields, size: Size) -> tuple[MaskCrop | None, list[Floats]]:
    """Return the mask, or the polygons; neither where there is no segmentation."""
    value = one.item.get("segmentation")
    if not value:
        return None, []
    if isinstance(value, Mapping):
        return _mask(one.inner("segmentation"), size), []
    parts = one.array(value, "segmentation")
    flat = [
        _numbers(one, each, "segmentation")
        for each in (parts if isinstance(parts[0], list) else [parts])
        if each != []  # some tools leave one behind that has no point
    ]
    if any(len(each) % 2 for each in flat):
        raise one.broken("segmentation", "a polygon is no list of x, y, x, y, ...")
    return None, [each.reshape(-1, 2) for each in flat]


def _mask(segmentation: Fields, size: Size) -> MaskCrop:
    """Unpack run lengths, packed or not."""
    said, counts = segmentation.item.get("size"), segmentation.item.get("counts")
    if as_list(said) and list(as_list(said)) != [size.height, size.width]:
        raise segmentation.broken(
            "size", f"{shown(said)} is not the picture's [height, width], {[size.height, size.width]}"
        )
    if isinstance(counts, str):
        return crop_of(unpack(counts), size)
    return crop_of(_numbers(segmentation, counts, "counts").astype(np.int64), size)


def _filled(size: Size, parts: list[Floats]) -> MaskCrop:
    """Return one mask of several polygons."""
    crops = [fill_rings(size, [[(x, y) for x, y in part.tolist()]]) for part in parts]
    left, top = min(crop.x for crop in crops), min(crop.y for crop in crops)
    right = max(crop.x + crop.mask.shape[1] for crop in crops)
    low = max(crop.y + crop.mask.shape[0] for crop in crops)
    mask = np.zeros((low - top, right - left), np.bool_)
    for x, y, part in crops:
        mask[y - top : y - top + part.shape[0], x - left : x - left + part.shape[1]] |= part
    return MaskCrop(left, top, mask)


def _nodes(one: Fields, ids: tuple[str, ...]) -> list[Node]:
    """Return the keypoints; none where none of them is anywhere."""
    value = one.item.get("keypoints")
    if not value:
        return []
    points = _numbers(one, value, "keypoints")
    if len(points) % 3 or (ids and len(points) != 3 * len(ids)):
        raise one.broken("keypoints", f"{len(points)} numbers are not x, y, v of {len(ids)} keypoints")
    if not points.any():
        return []
    rows = points.astype(np.float32).reshape(-1, 3).tolist()
    names = ids or tuple(map(str, range(len(rows))))
    return [node_of(name, x, y, flag=flag) for name, (x, y, flag) in zip(names, rows, strict=True)]
