"""Predictions back from a YOLO folder: one of ours, or anybody's.

What a line is, its numbers say: 4 a box, 5 with a score; more an outline, with a score if they are odd; with
``kpt_shape`` in ``data.yaml``, a box and keypoints. The picture's size comes from our file of facts, else
from the head of the picture; so does where it was. An outline along the edges of pixels is a mask again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from predsession.errors import PredSessionError, SourceError
from predsession.export.bridged import mask_within
from predsession.export.facts import Found, is_box, prediction_from
from predsession.export.folders import files_below, read_whole
from predsession.export.keypoints import SEEN, node_of
from predsession.export.putting import ORIENTATION
from predsession.export.yolo_layout import DATA, FACTS, IMAGES, LABELS, read_facts
from predsession.export.yolo_yaml import DataYaml, read_yaml
from predsession.prediction import Prediction
from predsession.wire.fields import MAX_COORDINATE, Fields
from predsession.wire.geometry import Size
from predsession.wire.jsontypes import JSONObject
from predsession.wire.meta import ModelMeta

PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")
_FURTHEST = 2.0
"""Of numbers that should be from 0 to 1: some tools go a little beyond, pixels go far."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder and its classes."""

    path: Path
    data: DataYaml
    meta: ModelMeta


def read_yolo(path: Path) -> Iterator[Prediction]:
    """Read a YOLO folder.

    Parameters
    ----------
    path : Path
        The folder with the ``data.yaml``; labels and pictures are looked for in all folders below it that
        are called ``labels`` and ``images``.

    Yields
    ------
    Prediction
        Those of ours in the order in which they were written, then others in the order of their names; a
        picture without a label has no objects.

    Raises
    ------
    SourceError
        If the folder has no ``data.yaml``, a line is damaged, or the size of a picture is not to be had;
        names the file.
    """
    data = read_yaml(path / DATA)
    names = [data.names.get(number, f"class_{number}") for number in range(max(data.names, default=-1) + 1)]
    folder = _Folder(path, data, ModelMeta.from_names(names))
    seen: set[str] = set()
    for facts in read_facts(path / FACTS):
        label = str(facts.get("label"))
        if (path / label).is_file():
            seen.add(label)
            yield _prediction(folder, label, facts, len(seen) - 1)
    others = {_label_of(place.relative_to(path)) for place in files_below(path, "")} - {None, *seen}
    for index, label in enumerate(sorted(map(str, others)), len(seen)):
        yield _prediction(folder, label, {}, index)


def _label_of(place: Path) -> str | None:
    """Return the label that a file is, or that a picture has; None for any other file."""
    folders = place.parts[:-1]
    if LABELS in folders and place.suffix == ".txt":
        return place.as_posix()
    if IMAGES in folders and place.suffix.lower() in PICTURES:
        return _swapped(place, IMAGES, LABELS).with_suffix(".txt").as_posix()
    return None


def _swapped(place: Path, old: str, new: str) -> Path:
    """Return a place with the last folder of one name called otherwise: as tools look for labels."""
    parts = list(place.parts)
    last = len(parts) - 2 - parts[:-1][::-1].index(old)
    return Path(*parts[:last], new, *parts[last + 1 :])


def _prediction(folder: _Folder, label: str, facts: JSONObject, index: int) -> Prediction:
    """Make the prediction of one picture."""
    picture = None if facts else _picture(folder.path, Path(label))
    file = folder.path / label
    try:
        size = _size(facts) if picture is None else _size_of(picture)
        text = read_whole(file).decode() if file.is_file() else ""
    except SourceError:
        raise
    except (ValueError, PredSessionError) as error:
        raise SourceError(f"{file}: {error}") from None
    found = [
        _found(folder.data, line, size, f"{file}, line {number}")
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]
    try:
        return prediction_from(
            facts,
            size,
            found,
            meta=folder.meta,
            ids=None,
            index=index,
            name=picture.name if picture else "",
            path=str(picture) if picture else None,
        )
    except (ValueError, PredSessionError) as error:
        raise SourceError(f"{file}: {error}") from None


def _picture(root: Path, label: Path) -> Path:
    """Find the picture of a label."""
    stem = root / _swapped(label, LABELS, IMAGES).with_suffix("")
    for suffix in PICTURES:
        for each in (suffix, suffix.upper()):
            if (found := stem.with_name(stem.name + each)).is_file():
                return found
    raise SourceError(
        f"{root / label}: the size of its picture is wanted, and there is no {stem}{{{','.join(PICTURES)}}}; "
        "put it there (saving with images='copy' or 'link', --images, does)"
    )


def _size(facts: JSONObject) -> Size:
    """Return a picture's size as we wrote it."""
    fields = Fields(facts, FACTS)
    sides = [fields.whole(facts.get(key), key) for key in ("width", "height")]
    if min(sides) < 1 or max(sides) > MAX_COORDINATE:
        raise ValueError(f"{sides} are no sides of a picture")
    return Size(*sides)


def _size_of(picture: Path) -> Size:
    """Return the size of a picture that is upright, from its head."""
    try:
        with Image.open(picture) as image:
            width, height = image.size
            turned = image.getexif().get(ORIENTATION, 1) in (5, 6, 7, 8)
    except (
        OSError,
        SyntaxError,
        ValueError,
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,
    ) as e:
        raise SourceError(f"{picture} is no picture whose size can be read ({e})") from None
    return Size(height, width) if turned else Size(width, height)


def _found(data: DataYaml, line: str, size: Size, place: str) -> Found:
    """Read one line."""
    try:
        title, numbers = _parts(data, line)
        return _object(data, title, numbers, size)
    except ValueError as error:
        raise SourceError(f"{place}: {error}") from None


def _parts(data: DataYaml, line: str) -> tuple[str, list[float]]:
    """Return a line's class and numbers."""
    first, *others = line.split()
    numbers = [float(each) for each in others]
    number = int(float(first)) if float(first).is_integer() else -1
    if number not in data.names:
        raise ValueError(f"class {first[:20]} is not among the names in {DATA}")
    if not all(math.isfinite(each) and abs(each) <= _FURTHEST for each in numbers):
        raise ValueError("a number is not from 0 to 1")
    return data.names[number], numbers


def _object(data: DataYaml, title: str, numbers: Sequence[float], size: Size) -> Found:
    """Return the object that a line's numbers say."""
    extra = data.keypoints * data.numbers
    if extra and len(numbers) in (4 + extra, 5 + extra):
        score = numbers[-1] if len(numbers) > 4 + extra else None
        return _posed(data, title, numbers[: 4 + extra], size, score)
    if len(numbers) < 4:
        raise ValueError(f"{len(numbers)} numbers are no box, no outline, and no box with keypoints")
    score = numbers[-1] if len(numbers) % 2 else None
    if len(numbers) < 6:
        return Found(title=title, box=_box(numbers, size), score=_float32(score))
    ring = np.array(numbers[: len(numbers) // 2 * 2]).reshape(-1, 2) * size
    x1, y1, x2, y2 = np.hstack((ring.min(axis=0), ring.max(axis=0))).astype(np.float32).tolist()
    mask = None if is_box(ring) else mask_within(ring)
    rings = None if is_box(ring) or mask is not None else [ring.astype(np.float32)]
    return Found(title=title, box=(x1, y1, x2, y2), score=_float32(score), mask=mask, rings=rings)


def _posed(data: DataYaml, title: str, numbers: Sequence[float], size: Size, score: float | None) -> Found:
    """Return the object of a box and keypoints."""
    points: npt.NDArray[np.float64] = np.array(numbers[4:]).reshape(data.keypoints, data.numbers)
    places = (points[:, :2] * size).astype(np.float32).tolist()
    flags = (points[:, 2] if data.numbers > 2 else np.where(points.any(axis=1), SEEN, 0)).tolist()
    named = len(data.keypoint_names) == len(set(data.keypoint_names)) == data.keypoints
    names = data.keypoint_names if named else [str(number) for number in range(data.keypoints)]
    nodes = [node_of(name, x, y, flag) for name, (x, y), flag in zip(names, places, flags, strict=True)]
    if not points.any():
        nodes = []  # it has none, and stands among others that have
    return Found(title=title, box=_box(numbers, size), score=_float32(score), nodes=nodes)


def _box(numbers: Sequence[float], size: Size) -> tuple[float, float, float, float]:
    """Return a box from its middle and its sides."""
    x, y, width, height = numbers[:4]
    if width < 0 or height < 0:
        raise ValueError("a side of the box is below 0")
    corners = np.array([x - width / 2, y - height / 2, x + width / 2, y + height / 2]) * (*size, *size)
    x1, y1, x2, y2 = corners.astype(np.float32).tolist()
    return x1, y1, x2, y2


def _float32(score: float | None) -> float | None:
    """Return a score as predictions have it."""
    return None if score is None else float(np.float32(score))
