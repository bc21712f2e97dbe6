"""What was found in a picture, in as few numbers as a small drawing of it needs.

Invariant: the outlines of one picture have at most `MOST_POINTS` points together, and at most `MOST_OBJECTS`
objects are kept, those with the best scores; what is left out is counted. Of each object that is not kept,
class and score are, so that whatever is asked of the page, its counts are those of all objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from PIL import Image

from predsession.export.facts import without_score
from predsession.export.outlines import MASKS
from predsession.export.pagetags import TagRoom
from predsession.export.thumbnails import SIDE
from predsession.prediction import Prediction
from predsession.prediction.display import BOXED
from predsession.wire.fields import Tag
from predsession.wire.figures import Figure
from predsession.wire.geometry import MaskCrop
from predsession.wire.jsontypes import JSON
from predsession.wire.rings import mask_rings

MOST_OBJECTS = 1000
MOST_POINTS = 800

_MOST_RINGS = 12  # of one mask, the largest: speckles are no more than noise on a thumbnail
_FEWEST = 48  # points that an object may have, while there are any
_COARSER = 4  # times that an outline is drawn twice as coarsely, before it is left out
_LIT = 96  # of 255: how much of a block belongs to the mask, for the block to belong to it

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class Sketch:
    """The objects of one picture.

    Parameters
    ----------
    objects : list of JSON
        ``[class, score, x1, y1, x2, y2, track, figure, tags]``, without what is None at the end. The best
        score first.
    further : list of JSON
        Of the objects that are too many: ``[class, [score, count], [score, count], ...]``, a list a class.
    tags : list of JSON
        Of the picture: ``[name]`` or ``[name, value]``; those of objects alike.
    left_out : Counter
        What is not in it: ``objects``, ``outlines``, ``tags``, ``hidden keypoints``.
    """

    objects: list[JSON] = field(default_factory=list)
    further: list[JSON] = field(default_factory=list)
    tags: list[JSON] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def sketch_of(prediction: Prediction, number: Callable[[str], int]) -> Sketch:
    """Reduce a prediction to what is drawn.

    Parameters
    ----------
    prediction : Prediction
        What was found.
    number : callable
        Gives a class's number.

    Returns
    -------
    Sketch
        Coordinates are pixels of the picture, rounded to a tenth of one, or to whole ones in a large
        picture; outlines are as exact as a thumbnail shows. A score is None where the model gave none.

    Raises
    ------
    ProtocolError
        If an object or a tag is damaged.
    """
    digits = 1 if max(prediction.size) < 2000 else 0
    boxes = np.round(prediction.boxes.astype(np.float64), digits)
    order = np.argsort(-prediction.scores, kind="stable").tolist()
    hand, room = _Hand(prediction, digits), TagRoom()
    sketch = Sketch(tags=room.take(prediction.tags))
    tracks = prediction.track_ids
    for row in order[:MOST_OBJECTS]:
        tags, score = _tags_and_score(prediction, row)
        track = None if tracks is None or tracks[row] < 0 else int(tracks[row])
        entry: list[JSON] = [number(prediction.classes[row]), score, *_plain(boxes[row])]
        entry += [track, hand.figure(row) or None, room.take(tags) or None]
        while len(entry) > 6 and entry[-1] is None:
            entry.pop()
        sketch.objects.append(entry)
    further = order[MOST_OBJECTS:]
    sketch.further = _further(prediction, further, number)
    sketch.left_out = +Counter(
        {
            "objects": len(further),
            "outlines": hand.left_out,
            "hidden keypoints": hand.hidden,
            "tags": room.left_out + sum(len(_tags_and_score(prediction, row)[0]) for row in further),
        }
    )
    return sketch


def _tags_and_score(prediction: Prediction, row: int) -> tuple[list[Tag], float | None]:
    """Return an object's tags without its score, and its score; None where the model gave none."""
    tags, scored = without_score(prediction.object_tags[row])
    return tags, round(float(prediction.scores[row]), 4) if scored else None


def _further(prediction: Prediction, rows: Sequence[int], number: Callable[[str], int]) -> list[JSON]:
    """Count objects by class and score."""
    counts: dict[int, Counter[float | None]] = {}
    for row in rows:
        found = counts.setdefault(number(prediction.classes[row]), Counter())
        found[_tags_and_score(prediction, row)[1]] += 1
    return [[each, *([score, count] for score, count in scores.items())] for each, scores in counts.items()]


class _Hand:
    """Draws figures until the points are used up."""

    def __init__(self, prediction: Prediction, digits: int) -> None:
        self._prediction = prediction
        self._digits = digits
        self._pixel = max(1.0, max(prediction.size) / SIDE)  # of a thumbnail, in pixels of the picture
        self._left = MOST_POINTS
        self.left_out = self.hidden = 0

    def figure(self, row: int) -> dict[str, JSON]:
        """Return what is drawn beside the box; nothing where that is all."""
        figure: dict[str, JSON] = {}
        if self._prediction.shapes[row] not in BOXED:
            figure["unboxed"] = 1
        if self._prediction.keypoints.size:
            nodes = Figure(self._prediction.result.objects[row], row).nodes()
            self.hidden += sum(not node.visible for node in nodes)
        closed, open_, dots = self._closed(row), self._open(row), self._dots(row)
        # Half of what is left, so that one object with a ragged edge leaves something to the others.
        allowed = min(max(self._left // 2, _FEWEST), self._left)
        for coarser in range(_COARSER):
            tolerance = 0.8 * self._pixel * 2**coarser
            rings = [
                simplified(ring, tolerance, closed=True) for ring in closed[: max(len(closed) >> coarser, 1)]
            ]
            lines = [simplified(line, tolerance, closed=False) for line in open_]
            cost = sum(map(len, [*rings, *lines, dots]))
            if cost <= allowed:
                break
        else:
            self.left_out += 1
            return {}
        self._left -= cost
        if rings:
            figure["rings"] = [self._flat(ring) for ring in rings]
        if lines:
            figure["lines"] = [self._flat(line) for line in lines]
        if len(dots):
            figure["points"] = self._flat(dots)
            figure["bones"] = self._bones(row)
        return figure

    def _flat(self, points: Floats) -> list[JSON]:
        """Return points as x, y, x, y ..."""
        return _plain(np.round(points, self._digits).ravel())

    def _closed(self, row: int) -> list[Floats]:
        """Return the closed outlines, the largest of a mask first."""
        if self._prediction.shapes[row] in MASKS:
            # One mask at a time: `mask_crops` would keep all of them.
            crop = Figure(self._prediction.result.objects[row], row).crop(self._prediction.size)
            return _mask_outlines(crop, self._pixel)
        # Vertices name pixels; drawn is the middle of one.
        return [ring.astype(np.float64) + 0.5 for ring in self._prediction.outlines[row] if len(ring)]

    def _open(self, row: int) -> list[Floats]:
        """Return the open lines."""
        line = self._prediction.lines[row]
        return [line.astype(np.float64) + 0.5] if len(line) else []

    def _seen(self, row: int) -> npt.NDArray[np.intp]:
        """Return the columns of the visible keypoints."""
        keypoints = self._prediction.keypoints
        return np.flatnonzero(keypoints[row, :, 2] > 0) if keypoints.size else np.zeros(0, np.intp)

    def _dots(self, row: int) -> Floats:
        """Return the places of the visible keypoints."""
        return self._prediction.keypoints[row, self._seen(row), :2].astype(np.float64) + 0.5

    def _bones(self, row: int) -> list[JSON]:
        """Return which of them are joined: two places in their list for each line."""
        info = self._prediction.meta.find(self._prediction.classes[row])
        edges = info.skeleton.edges if info is not None and info.skeleton is not None else ()
        ids = self._prediction.keypoint_ids
        places = {ids[column]: place for place, column in enumerate(self._seen(row).tolist())}
        pairs = ((places.get(edge.src), places.get(edge.dst)) for edge in edges)
        return [end for pair in pairs if None not in pair for end in pair]


def _plain(numbers: Iterable[float]) -> list[JSON]:
    """Return numbers as short as JSON has them."""
    return [int(number) if float(number).is_integer() else float(number) for number in numbers]


def _mask_outlines(crop: MaskCrop, pixel: float) -> list[Floats]:
    """Trace a mask at about a thumbnail's resolution: 20 megapixels are traced as quickly as a few."""
    step = max(1, int(pixel / 1.5))
    blocks = crop.mask
    if not blocks.size:
        return []
    if step > 1:
        small = Image.fromarray(np.ascontiguousarray(crop.mask).view(np.uint8) * np.uint8(255)).reduce(step)
        shares = np.asarray(small)
        # What is thinner than half a block is drawn all the same, where there is nothing else.
        blocks = shares >= _LIT if (shares >= _LIT).any() else shares > 0
    pieces = [ring for piece in mask_rings(blocks) for ring in (piece.outline, *piece.holes)]
    pieces = sorted(pieces, key=_area, reverse=True)
    corner = np.array([crop.mask.shape[1], crop.mask.shape[0]])
    large = [ring for ring in pieces[:_MOST_RINGS] if _area(ring) >= 4 or ring is pieces[0]]
    return [np.minimum(ring * float(step), corner) + np.array((crop.x, crop.y)) for ring in large]


def _area(ring: npt.NDArray[np.int32]) -> float:
    """Return the area of a ring, whichever way round it runs."""
    x, y = ring.astype(np.float64).T
    return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2


def simplified(points: Floats, tolerance: float, *, closed: bool) -> Floats:
    """Leave out points without which a line looks the same.

    Parameters
    ----------
    points : (M, 2) float64 ndarray
        At least one.
    tolerance : float
        How far a point that is left out may lie from what is drawn.
    closed : bool
        Whether the last point is joined to the first.

    Returns
    -------
    (K, 2) float64 ndarray
        Some of them, in order; the first among them.

    References
    ----------
    Douglas and Peucker, Algorithms for the reduction of the number of points required to represent a
    digitized line or its caricature, 1973.
    """
    if len(points) < 3:
        return points
    way = np.concatenate((points, points[:1])) if closed else points
    # A ring begins where it ends: it is parted at the point that is farthest from there.
    middle = int(np.argmax(np.hypot(*(points - points[0]).T))) if closed else 0
    kept = {0, middle, len(way) - 1}
    parts = [(begin, end) for begin, end in ((0, middle), (middle, len(way) - 1)) if end - begin > 1]
    while parts:
        begin, end = parts.pop()
        inner = _farthest(way, begin, end)
        if inner is not None and inner[1] > tolerance:
            kept.add(inner[0])
            parts += [part for part in ((begin, inner[0]), (inner[0], end)) if part[1] - part[0] > 1]
    chosen: Sequence[int] = sorted(kept - {len(way) - 1} if closed else kept)
    return way[list(chosen)]


def _farthest(way: Floats, begin: int, end: int) -> tuple[int, float] | None:
    """Return the point between two that is farthest from the line between them, and how far."""
    start, along = way[begin], way[end] - way[begin]
    offsets = way[begin + 1 : end] - start
    length = float(along @ along)
    share = np.clip(offsets @ along / length, 0, 1) if length else np.zeros(len(offsets))
    distances = np.hypot(*(offsets - share[:, None] * along).T)
    place = int(np.argmax(distances))
    return begin + 1 + place, float(distances[place])
