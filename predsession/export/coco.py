"""COCO: detections, instance masks and keypoints in one JSON document, written piece by piece.

A mask becomes packed run lengths, so does a polygon with holes; a polygon its points, as they are; an
oriented box and a cuboid their outline. A rectangle has a segmentation only where other objects of the
document have one: so a document of boxes alone is read by all tools without a mask being made for each, and
where there are masks, each object has one. What COCO has no word for stands under the key ``predsession``.
Pictures and categories that were read from a document of others keep their ids: see `coco_ids`.

References
----------
https://cocodataset.org/#format-data
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from predsession.errors import ItemError
from predsession.export.coco_ids import KEPT, CategoryIds, Id, ImageIds, without_ids
from predsession.export.facts import OURS, facts_of, json_bytes, tags_to_json, without_score
from predsession.export.keypoints import has_keypoints, joints_of, keypoint_ids, labels_of, points_of
from predsession.export.outlines import MASKS
from predsession.export.places import Places
from predsession.export.rle import pack, runs_of
from predsession.export.spooled import Spooled
from predsession.export.target import Target
from predsession.prediction import Prediction
from predsession.wire.jsontypes import JSON

Segmentation = tuple[JSON, float]
_LOST = {
    "line": "lines",
    "oriented_bbox": "oriented boxes",
    "cuboid": "cuboids",
    "alpha_mask": "alpha masks",
    "point": "points",
}
CROWD = "iscrowd"
"""A tag that an object has which is a crowd: COCO's word."""


class CocoWriter(Spooled):
    """Writes a COCO document.

    Parameters
    ----------
    target : Target
        The document; its folder is made.

    Raises
    ------
    SourceError
        If it, or what an earlier run left, is there and may not be touched, or it cannot be written.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target, self._document)
        self._root = target.root
        self._image_ids, self._category_ids = ImageIds(), CategoryIds()
        self._titles: dict[str, None] = {}
        self._keypoints: dict[str, dict[str, None]] = {}
        self._outlined = False

    def write(self, outcome: Prediction | ItemError) -> None:
        """Take one outcome.

        Parameters
        ----------
        outcome : Prediction or ItemError
            An item error is kept until the end, and then counted.
        """
        super().write(outcome)
        if isinstance(outcome, Prediction):
            self._image_ids.learn(outcome)
            self._category_ids.learn(outcome)
            self._titles |= dict.fromkeys(outcome.classes)
            for row in range(len(outcome)):
                self._outlined |= outcome.shapes[row] in MASKS or bool(outcome.polygons[row])
                if has_keypoints(outcome, row):
                    ids = dict.fromkeys(keypoint_ids(outcome, row))
                    self._keypoints.setdefault(outcome.classes[row], {}).update(ids)

    def _document(self, predictions: Iterator[Prediction], draft: Path) -> None:
        """Write the document: annotations into it at once, pictures behind them in the end."""
        # Not before all models are known, or a class of none would take a number that one of theirs has.
        for title in (*self._titles, *self._category_ids.kept):
            self.classes.number(title)
        self._category_ids.settle(self.classes.titles)
        with draft.open("wb") as file, tempfile.TemporaryFile(dir=draft.parent) as images:
            head: dict[str, JSON] = {"info": {"description": "Predictions", "version": "1"}, "licenses": []}
            file.write(json_bytes(head)[:-1] + b',"categories":[')
            _put(file, map(self._category, self.classes.titles.items()))
            file.write(b'],\n"annotations":[')
            _put(images, self._pictures(predictions, file))
            file.write(b'],\n"images":[')
            images.seek(0)
            shutil.copyfileobj(images, file)
            file.write(b"]}\n")
        lost = {"ids of pictures": self._image_ids.lost, "ids of classes": self._category_ids.lost}
        self.left_out += Counter(lost)

    def _category(self, numbered: tuple[int, str]) -> dict[str, JSON]:
        """Return one category."""
        number, title = numbered
        info, ids = self.classes.info(title), list(self._keypoints.get(title, ()))
        ours: dict[str, JSON] = {"class_id": -1 if info is None else number}
        category: dict[str, JSON] = {"id": self._category_ids.of(title), "name": title, "supercategory": ""}
        if ids:
            category["keypoints"] = labels_of(info, ids)
            category["skeleton"] = [[first + 1, second + 1] for first, second in joints_of(info, ids)]
            ours["keypoint_ids"] = ids
        return {**category, OURS: {**ours, **({} if info is None else info.to_json())}}

    def _pictures(self, predictions: Iterable[Prediction], file: BinaryIO) -> Iterator[dict[str, JSON]]:
        """Return the pictures one by one, and write the annotations of each on the way."""
        places, annotation_id = Places(self._root, again=True), 0
        for position, prediction in enumerate(predictions):
            image_id = self._image_ids.give(prediction)
            annotations = self._annotations(prediction)
            if annotation_id and annotations:
                file.write(b",")
            numbered = [
                {"id": number, "image_id": image_id, **each}
                for number, each in enumerate(annotations, annotation_id + 1)
            ]
            _put(file, numbered)
            annotation_id += len(annotations)
            yield {
                "id": image_id,
                "file_name": places.place(prediction).as_posix(),
                "width": prediction.size.width,
                "height": prediction.size.height,
                OURS: self._facts(prediction, image_id, first=not position),
            }

    def _facts(self, prediction: Prediction, image_id: Id, *, first: bool) -> dict[str, JSON]:
        """Return what reading a prediction back needs."""
        facts = facts_of(prediction)
        category_ids = self._category_ids.said_of(prediction, first=first)
        rest, has_ids = without_ids(facts.pop("data", None), image_id, category_ids)
        if rest is not None:
            facts["data"] = rest
        if has_ids:
            facts[KEPT] = True
        if prediction.track_ids is not None:
            facts["tracked"] = True
        if len(prediction) and not any(without_score(tags)[1] for tags in prediction.object_tags):
            facts["scored"] = False
        return facts

    def _annotations(self, prediction: Prediction) -> list[dict[str, JSON]]:
        """Return the annotations of a prediction, without their ids."""
        boxes, scores = _extents(prediction.boxes), _short(prediction.scores)
        return [self._annotation(prediction, row, boxes[row], scores[row]) for row in range(len(prediction))]

    def _annotation(
        self, prediction: Prediction, row: int, box: list[float], score: float
    ) -> dict[str, JSON]:
        """Return one annotation."""
        title, tracks = prediction.classes[row], prediction.track_ids
        segmentation, area = self._segmentation(prediction, row, box)
        tags, _ = without_score(prediction.object_tags[row])
        others = [tag for tag in tags if tag.name != CROWD]
        annotation: dict[str, JSON] = {
            "category_id": self._category_ids.of(title),
            "bbox": box,
            "area": area,
            "iscrowd": int(len(others) < len(tags)),
            "score": score,
        }
        if segmentation is not None:
            annotation["segmentation"] = segmentation
        if tracks is not None and tracks[row] >= 0:
            annotation["track_id"] = int(tracks[row])
        if has_keypoints(prediction, row):
            points = points_of(prediction, row, list(self._keypoints[title]))
            annotation["keypoints"] = [number for point in points for number in point]
            annotation["num_keypoints"] = sum(flag > 0 for _, _, flag in points)
        if others:
            annotation[OURS] = {"tags": tags_to_json(others)}
        return annotation

    def _segmentation(self, prediction: Prediction, row: int, box: list[float]) -> Segmentation:
        """Return an object's segmentation and its area, and count what it cannot say."""
        kind, rings = prediction.shapes[row], prediction.polygons[row]
        if kind in _LOST:
            self.left_out[_LOST[kind]] += 1
        if kind in MASKS or len(rings) > 1 or (rings and len(rings[0]) < 3):
            if rings:
                self.left_out["polygons beside masks" if kind in MASKS else "outlines of holes"] += 1
            size = prediction.size
            runs = runs_of(prediction.mask_crops[row], size)
            return {"size": [size.height, size.width], "counts": pack(runs)}, int(runs[1::2].sum())
        if rings:
            return [_short(rings[0])], _area(rings[0])
        x, y, width, height = box
        if not self._outlined:
            return None, width * height
        right, low = prediction.boxes[row, 2:]
        x2, y2 = _short(np.array([right, low]))
        return [[x, y, x2, y, x2, y2, x, y2]], width * height


def _short(values: npt.NDArray[np.float32]) -> list[float]:
    """Return numbers as the shortest decimals that are the same float32."""
    return [float(str(value)) for value in values.ravel()]


def _extents(boxes: npt.NDArray[np.float32]) -> list[list[float]]:
    """Return boxes as x, y, width, height, such that x + width is the right edge again."""
    return [
        [*_short(box[:2]), _length(box[0], box[2]), _length(box[1], box[3])]
        for box in boxes  # (4,) each
    ]


def _length(begin: np.float32, end: np.float32) -> float:
    """Return how long an edge is, in as few digits as its ends have."""
    length = float(Decimal(str(end)) - Decimal(str(begin)))
    return length if np.float32(float(str(begin)) + length) == end else float(end) - float(begin)


def _area(ring: npt.NDArray[np.float32]) -> float:
    """Return the area of a polygon, in pixels."""
    x, y = ring.astype(np.float64).T
    return float(abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2)


def _put(file: BinaryIO, items: Iterable[JSON]) -> None:
    """Write the items of a JSON list, a line each."""
    file.writelines((b",\n" if number else b"\n") + json_bytes(item) for number, item in enumerate(items))
