"""YOLO folders: a text for each picture, a line an object, and a ``data.yaml``; for boxes, masks and poses.

=====================  =================================================================================
``data.yaml``          the classes by their numbers; written again whenever one was learnt
``labels/<place>.txt`` class, then numbers from 0 to 1: a box, an outline, or a box and keypoints
``images/<place>``     the pictures, if they are asked for
``predsession.jsonl``  of each picture its size and where it comes from, which YOLO has no word for
=====================  =================================================================================

Each text is written whole or not at all, so a killed run leaves a folder that can be read. An object of
several parts, or with holes, is one line: see `predsession.export.bridged`. Where a folder is written over,
what stays there keeps its meaning: ``data.yaml`` keeps its classes' numbers, and new ones come behind.

References
----------
https://docs.ultralytics.com/datasets/detect/, .../segment/, .../pose/
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path, PurePath

import numpy as np
import numpy.typing as npt

from predsession.errors import SourceError
from predsession.export.bridged import join
from predsession.export.classes import ClassTable
from predsession.export.facts import facts_of, without_score
from predsession.export.foldered import Foldered
from predsession.export.folders import read_whole, write_whole
from predsession.export.keypoints import has_keypoints, keypoint_ids, labels_of, points_of
from predsession.export.losses import losses_of_boxes, losses_of_pictures
from predsession.export.outlines import MASKS, outlines_of
from predsession.export.target import Target
from predsession.export.validjson import NOT_FINITE, valid_json
from predsession.export.yolo_facts import FactsFile
from predsession.export.yolo_layout import DATA, IMAGES, LABELS, OUTLINES, Outlined, read_all_facts
from predsession.export.yolo_yaml import DataYaml, read_yaml, to_yaml
from predsession.prediction import Prediction

Floats = npt.NDArray[np.float64]
_IMAGES_INSIDE = re.compile(f"{IMAGES}_*", re.IGNORECASE)


_NEAR = 0.01
"""Pixels; what is closer is the same."""
MOST_OF_BOX = 6
"""Numbers of a line without an outline or keypoints: class, box, score."""


class Task(Enum):
    """What the lines say."""

    DETECT = "yolo"
    SEGMENT = "yolo-segment"
    POSE = "yolo-pose"


_CARRIED = {
    Task.DETECT: frozenset[str](),
    Task.SEGMENT: frozenset(("masks", "polygons")),
    Task.POSE: frozenset(("keypoints",)),
}


class YoloWriter(Foldered):
    """Writes a YOLO folder.

    Parameters
    ----------
    target : Target
        The folder; it is made.
    task : Task
        What the lines say.

    Raises
    ------
    SourceError
        If it is a file, holds something and may not be touched, cannot be written to, or its ``data.yaml`` is
        damaged.
    """

    def __init__(self, target: Target, task: Task) -> None:
        super().__init__(target)
        self._target = target
        self._task = task
        self._facts = FactsFile(target)
        self._kinds: list[Outlined] = []
        self._ids: tuple[str, ...] = ()

    def _open(self, target: Target) -> None:
        """Take over the classes and keypoints that are there."""
        self._classes = ClassTable()
        self._told = _known(target.path)
        if self._told is not None:
            self._classes.keep(self._told.names)
        self._keypoints = replace(self._told or DataYaml(), names={})

    def _write(self, prediction: Prediction) -> None:
        """Write a prediction's files."""
        self._learn(prediction)
        self._kinds = []
        lines = [line for row in range(len(prediction)) for line in self._line(prediction, row)]
        self._count(prediction)
        self._tell()
        place = _inside(self._places.place(prediction))
        label = PurePath(LABELS, place).with_suffix(".txt")
        # Before the label, which cannot be read without where there is no picture.
        facts = {"width": prediction.size.width, "height": prediction.size.height, **facts_of(prediction)}
        if self._kinds:
            facts[OUTLINES] = [each.value for each in self._kinds]
        if lost := valid_json(facts.get("data"))[1]:
            self.left_out[NOT_FINITE] += lost
        self._facts.write(label.as_posix(), facts)
        self._put(prediction, IMAGES, place)
        write_whole(self._folder / label, "".join(line + "\n" for line in lines).encode())

    def _learn(self, prediction: Prediction) -> None:
        """Take over classes, and keypoints from the first object that has some."""
        self._classes.learn(prediction)
        for title in prediction.classes:
            self._classes.number(title)
        if self._task is Task.POSE and not self._ids:
            self._learn_keypoints(prediction)

    def _learn_keypoints(self, prediction: Prediction) -> None:
        """Find out which keypoints there are: those of the model's skeletons, or else of the first object."""
        infos = [each for each in prediction.meta.classes if each.skeleton]
        ids = [key for each in infos if each.skeleton for key in each.skeleton.ids]
        if not ids:
            rows = (row for row in range(len(prediction)) if has_keypoints(prediction, row))
            ids = [key for row in rows for key in keypoint_ids(prediction, row)]
        self._ids = tuple(dict.fromkeys(ids))
        if self._ids:
            labels = {key: key for key in self._ids}
            for each in infos:
                labels |= dict(zip(self._ids, labels_of(each, self._ids), strict=True))
            names = list(labels.values())
            shape = DataYaml(keypoints=len(names), keypoint_names=names, flips=_mirrored(names))
            self._check_keypoints(shape)
            self._keypoints = shape
            self._fill_up()

    def _check_keypoints(self, shape: DataYaml) -> None:
        """Refuse to put other keypoints beside those of labels that stay: no tool could tell them apart."""
        known = self._keypoints
        same_names = not known.keypoint_names or list(known.keypoint_names) == list(shape.keypoint_names)
        if known.keypoints and not (
            same_names and (known.keypoints, known.numbers) == (shape.keypoints, shape.numbers)
        ):
            there, these = (", ".join(each.keypoint_names) for each in (known, shape))
            raise SourceError(
                f"{self._folder / DATA} says {known.keypoints} keypoints ({there}), and these have "
                f"{shape.keypoints} ({these}); choose another folder"
            )

    def _fill_up(self) -> None:
        """Give keypoints that are nowhere to lines that were written before one was known."""
        for facts in read_all_facts(self._folder):
            label = self._folder / str(facts.get("label"))
            if not label.is_file():
                continue
            lines = [line.split() for line in read_whole(label).decode().splitlines()]
            nowhere = ["0"] * 3 * len(self._ids)
            filled = [
                " ".join((*line[:5], *nowhere, *line[5:]) if len(line) <= MOST_OF_BOX else line)
                for line in lines
            ]
            write_whole(label, "".join(line + "\n" for line in filled).encode())

    def _tell(self) -> None:
        """Write ``data.yaml``, if it would say something new."""
        data = replace(self._keypoints, names=self._classes.titles)
        if data != self._told:
            write_whole(self._folder / DATA, to_yaml(data))
            self._told = data

    def _line(self, prediction: Prediction, row: int) -> list[str]:
        """Return an object's line; none where there is nothing that it could say."""
        numbers = self._numbers(prediction, row)
        if numbers is None:
            return []
        parts = [str(self._classes.number(prediction.classes[row])), *map(_decimal, numbers)]
        if self._target.scores:
            parts.append(str(prediction.scores[row]))
        return [" ".join(parts)]

    def _numbers(self, prediction: Prediction, row: int) -> Iterable[float] | None:
        """Return what stands behind the class."""
        size = np.array(prediction.size, np.float64)
        corners = prediction.boxes[row].astype(np.float64).reshape(2, 2) / size
        if (corners.max(axis=0) < 0).any() or (corners.min(axis=0) > 1).any():
            self.left_out["objects outside the picture"] += 1
            return None
        if self._task is Task.SEGMENT:
            return self._clipped(self._ring(prediction, row) / size).ravel().tolist()
        inside = self._clipped(corners)
        box = (*inside.mean(axis=0).tolist(), *(inside[1] - inside[0]).tolist())
        if self._task is Task.DETECT:
            return box
        return (*box, *self._points(prediction, row, size))

    def _clipped(self, points: Floats) -> Floats:
        """Return points with what is beyond the picture on its edge: tools refuse other numbers."""
        inside = np.clip(points, 0, 1)
        if (inside != points).any():
            self.left_out["parts outside the picture"] += 1
        return inside

    def _points(self, prediction: Prediction, row: int, size: Floats) -> list[float]:
        """Return x, y, v of each keypoint."""
        if has_keypoints(prediction, row):
            self.left_out["keypoints"] += len(set(keypoint_ids(prediction, row)) - set(self._ids))
        flat: list[float] = []
        for x, y, flag in points_of(prediction, row, self._ids):
            flat += (*np.clip((x, y) / size, 0, 1).tolist(), flag)
        return flat

    def _ring(self, prediction: Prediction, row: int) -> Floats:
        """Return an object's outline as one ring; its box where it has none."""
        pieces, shape = outlines_of(prediction, row), prediction.shapes[row]
        if not pieces or shape == "rectangle":
            self._kinds.append(Outlined.BOX)
            self.left_out["empty masks"] += shape in MASKS
            x1, y1, x2, y2 = prediction.boxes[row].tolist()
            return np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]])
        self.left_out["alpha masks"] += shape == "alpha_mask"
        if shape not in MASKS:
            self.left_out["holes"] += len(pieces[0].holes)
        ring = join([each for piece in pieces for each in (piece.outer, *piece.holes)])
        ring = np.concatenate((ring, *[ring[-1:]] * (3 - len(ring))))  # of two points, it would be a box
        self._kinds.append(self._kind(ring, prediction, row))
        return ring

    def _kind(self, ring: Floats, prediction: Prediction, row: int) -> Outlined:
        """Return what an outline is, and count a box that is not to be had from it."""
        begin, end = ring.min(axis=0), ring.max(axis=0)
        away = np.abs(np.hstack((begin, end)) - prediction.boxes[row])
        if prediction.shapes[row] in MASKS:
            self.left_out["boxes"] += bool((away > _NEAR).any())
            return Outlined.MASK
        further = np.abs(np.hstack((begin, end + 1)) - prediction.boxes[row])
        if (further <= _NEAR).all():
            return Outlined.PIXELS
        self.left_out["boxes"] += bool((away > _NEAR).any())
        return Outlined.POLYGON

    def _count(self, prediction: Prediction) -> None:
        """Count what the lines have no place for."""
        lost = losses_of_boxes(prediction) - losses_of_pictures(prediction)
        for word in _CARRIED[self._task]:
            lost.pop(word, None)
        if prediction.track_ids is not None:
            lost["tracks"] += int((prediction.track_ids >= 0).sum())
        if "" in self._ids:  # the keypoint of a point: it comes back as one of an object that has a box
            lost["points"] += prediction.shapes.count("point")
        if not self._target.scores:
            lost["scores"] += sum(without_score(tags)[1] for tags in prediction.object_tags)
        self.left_out += +Counter(lost)

    def finish(self) -> None:
        """Complete the folder: a run without a picture has a ``data.yaml``, too."""
        super().finish()
        self.left_out = +self.left_out
        self._tell()
        self._facts.finish()

    def close(self) -> None:
        """Close the file of facts, and let others write to the folder."""
        self._facts.close()
        super().close()


def _inside(place: PurePath) -> PurePath:
    """Return a picture's place such that tools find its label, for the last folder "images" in its path."""
    # One underscore more for all that look so: no two places become one.
    folders = [f"{part}_" if _IMAGES_INSIDE.fullmatch(part) else part for part in place.parts[:-1]]
    return PurePath(*folders, place.name)


def _known(folder: Path) -> DataYaml | None:
    """Return what a folder says that is there: labels that stay need it."""
    if not (folder / DATA).is_file():
        return None
    data = read_yaml(folder / DATA)
    names = {number: name for number, name in data.names.items() if number not in data.unused}
    return replace(data, names=names, unused=(), root="")


def _decimal(number: float) -> str:
    """Return a number between 0 and 1, or a flag, such that pixels come back to a thousandth."""
    return f"{number:.10f}".rstrip("0").rstrip(".")


def _mirrored(names: Sequence[str]) -> list[int]:
    """Return for each keypoint which one it becomes in a mirror; nothing where no name says left or right."""
    place = {name.casefold(): number for number, name in enumerate(names)}
    swapped = [
        name.replace("left", "\0").replace("right", "left").replace("\0", "right")
        for name in map(str.casefold, names)
    ]
    if len(place) < len(names) or not any(
        name != other and other in place for name, other in zip(place, swapped, strict=True)
    ):
        return []
    return [place.get(other, number) for number, other in enumerate(swapped)]
