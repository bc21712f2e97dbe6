"""Predictions back from a YOLO folder: one of ours, or anybody's.

What a line is, its numbers say: 4 a box, 5 with a score; more an outline, with a score if they are odd; with
``kpt_shape`` in ``data.yaml``, a box and keypoints. The picture's size comes from our file of facts, else
from the head of the picture; so does where it was. Our file also says what an outline is; without it, one
along the edges of pixels is a mask, and four corners are a box.

Where there is no ``data.yaml``, the classes are those of ``classes.txt``, or else have numbers for names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from predsession.errors import PredSessionError, SourceError
from predsession.export.beside import with_copy
from predsession.export.bridged import mask_within
from predsession.export.facts import Found, is_box, prediction_from
from predsession.export.folders import picture_path, read_whole
from predsession.export.heads import upright_size
from predsession.export.keypoints import SEEN, node_of
from predsession.export.yolo_finding import Pictures, labels_of, missing, names_listed
from predsession.export.yolo_layout import (
    DATA,
    FACTS,
    LABELS,
    OUTLINES,
    Outlined,
    find_description,
    read_all_facts,
)
from predsession.export.yolo_yaml import DataYaml, read_yaml
from predsession.prediction import Prediction
from predsession.wire.fields import MAX_COORDINATE, Fields
from predsession.wire.geometry import Size
from predsession.wire.jsontypes import JSONObject, as_list
from predsession.wire.meta import ModelMeta

_FURTHEST = 2.0
"""Of numbers that should be from 0 to 1: some tools go a little beyond, pixels go far."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder and its classes."""

    path: Path
    data: DataYaml
    meta: ModelMeta
    pictures: Pictures


def read_yolo(path: Path) -> Iterator[Prediction]:
    """Read a YOLO folder.

    Parameters
    ----------
    path : Path
        The folder, or the file that describes it: ``data.yaml``, ``coco8.yaml``. Labels and pictures are
        looked for in all folders below that are called ``labels`` and ``images``, and pictures that have
        their label beside them anywhere.

    Yields
    ------
    Prediction
        Those of ours in the order in which they were written, then others in the order of their names; a
        picture in ``images`` without a label has no objects.

    Raises
    ------
    SourceError
        If nothing is found, a line is damaged, or the size of a picture is not to be had; names the file.
    """
    folder = _folder(path)
    seen: set[str] = set()
    for facts in read_all_facts(folder.path):
        label = str(facts.get("label"))
        if (folder.path / label).is_file():
            seen.add(label)
            yield _prediction(folder, label, facts, len(seen) - 1)
    others = labels_of(folder.path) - seen
    if not others and not seen and not (folder.path / FACTS).is_file():
        raise SourceError(f"{folder.path}: no labels, neither in folders called {LABELS} nor beside pictures")
    for index, label in enumerate(sorted(others), len(seen)):
        yield _prediction(folder, label, {}, index)


def _folder(path: Path) -> _Folder:
    """Find out where everything is, and what the classes are called."""
    described = path if path.is_file() else find_description(path)
    root = path
    if described is not None:
        data = read_yaml(described)
        said = path.parent / data.root
        root = path if path.is_dir() else said if said.is_dir() else path.parent
    elif (listed := names_listed(path)) is not None:
        data = DataYaml(names=dict(enumerate(listed)))
    elif not (path / FACTS).is_file() and (labels := labels_of(path)):
        # What a model's run leaves behind, such as Ultralytics' save_txt: numbers of classes, and no names.
        data = DataYaml(names={number: f"class_{number}" for number in range(_most(path, labels) + 1)})
    else:
        data = read_yaml(path / DATA)
    names = [data.names.get(number, f"class_{number}") for number in range(max(data.names, default=-1) + 1)]
    return _Folder(root, data, ModelMeta.from_names(names), Pictures(root))


def _most(root: Path, labels: set[str]) -> int:
    """Return the highest number of a class."""
    files = (root / label for label in labels if (root / label).is_file())
    lines = (line for file in files for line in read_whole(file).decode(errors="replace").splitlines())
    firsts = (line.split(maxsplit=1)[0] for line in lines if line.strip())
    # A number of a hundred digits is damage, which is told where it is.
    return max((int(first) for first in firsts if first.isdecimal() and len(first) < 5), default=-1)


def _prediction(folder: _Folder, label: str, facts: JSONObject, index: int) -> Prediction:
    """Make the prediction of one picture."""
    picture, file = folder.pictures.of(Path(label)), folder.path / label
    if picture is None and not facts:
        raise SourceError(missing(folder.path, Path(label)))
    try:
        size = _size(facts) if facts or picture is None else upright_size(picture)
        text = read_whole(file).decode() if file.is_file() else ""
    except SourceError:
        raise
    except (ValueError, PredSessionError) as error:
        raise SourceError(f"{file}: {error}") from None
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    kinds = _kinds(facts, len(lines))
    found = [
        _found(folder.data, line, size, place=f"{file}, line {number}", kind=kind)
        for (number, line), kind in zip(lines, kinds, strict=True)
    ]
    try:
        made = prediction_from(
            _placed(facts, picture),
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
    return made if picture is None else with_copy(made, picture)


def _placed(facts: JSONObject, picture: Path | None) -> JSONObject:
    """Say where the picture is now, of which there may be a copy in the folder."""
    said = facts.get("path")
    if not facts or picture is None or not isinstance(said, str | None):
        return facts
    of_frame = facts.get("frame_index") is not None
    return {**facts, "path": picture_path(said or "", picture, of_frame=of_frame)}


def _kinds(facts: JSONObject, count: int) -> list[Outlined | None]:
    """Return what our facts say of the lines; nothing where there are more or fewer of them by now."""
    said = as_list(facts.get(OUTLINES))
    known = {each.value: each for each in Outlined}
    if len(said) != count:
        return [None] * count
    return [known.get(each) if isinstance(each, str) else None for each in said]


def _size(facts: JSONObject) -> Size:
    """Return a picture's size as we wrote it."""
    fields = Fields(facts, FACTS)
    sides = [fields.whole(facts.get(key), key) for key in ("width", "height")]
    if min(sides) < 1 or max(sides) > MAX_COORDINATE:
        raise ValueError(f"{sides} are no sides of a picture")
    return Size(*sides)


def _found(data: DataYaml, line: str, size: Size, *, place: str, kind: Outlined | None) -> Found:
    """Read one line."""
    try:
        title, numbers = _parts(data, line)
        return _object(data, title, numbers, size, kind)
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


def _object(data: DataYaml, title: str, numbers: Sequence[float], size: Size, kind: Outlined | None) -> Found:
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
    end = ring.max(axis=0) + (kind is Outlined.PIXELS)
    x1, y1, x2, y2 = np.hstack((ring.min(axis=0), end)).astype(np.float32).tolist()
    # Of others' files nobody knows more than what it looks like.
    boxed = kind is Outlined.BOX or (kind is None and is_box(ring))
    mask = mask_within(ring) if kind is Outlined.MASK or (kind is None and not boxed) else None
    rings = None if boxed or mask is not None else [ring.astype(np.float32)]
    return Found(title=title, box=(x1, y1, x2, y2), score=_float32(score), mask=mask, rings=rings)


def _posed(data: DataYaml, title: str, numbers: Sequence[float], size: Size, score: float | None) -> Found:
    """Return the object of a box and keypoints."""
    points: npt.NDArray[np.float64] = np.array(numbers[4:]).reshape(data.keypoints, data.numbers)
    places = (points[:, :2] * size).astype(np.float32).tolist()
    flags = (points[:, 2] if data.numbers > 2 else np.where(points.any(axis=1), SEEN, 0)).tolist()
    named = len(data.keypoint_names) == len(set(data.keypoint_names)) == data.keypoints
    names = data.keypoint_names if named else [str(number) for number in range(data.keypoints)]
    nodes = [node_of(name, x, y, flag=flag) for name, (x, y), flag in zip(names, places, flags, strict=True)]
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
