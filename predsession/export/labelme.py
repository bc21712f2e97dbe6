"""LabelMe: a JSON file a picture, an object a shape.

A rectangle becomes a rectangle, its corners the edges of pixels, with their fractions; a mask a shape of type
``mask``, exact to the pixel, as LabelMe has it since 5.2; a polygon a polygon, but for one with holes, which
LabelMe does not have: it becomes a mask. Keypoints become points, which share a ``group_id`` with the
rectangle, or other shape, of their object, and bear their own names as labels. A score is in the key
``score``, which LabelMe keeps and other tools read. Whatever else there is stands under the key
``predsession``, of the file or of a shape.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path, PurePath

import numpy as np
import numpy.typing as npt
from PIL import Image

from predsession.export.facts import OURS, facts_of, tags_to_json, without_score
from predsession.export.foldered import Foldered
from predsession.export.folders import readable, write_whole
from predsession.export.growingmeta import ids_of
from predsession.export.outlines import MASKS
from predsession.export.validjson import NOT_FINITE, valid_json
from predsession.prediction import Prediction
from predsession.wire.figures import Figure
from predsession.wire.geometry import Box, Ring, Size, box_around
from predsession.wire.jsontypes import JSON

VERSION = "5.5.0"
"""Of the LabelMe whose files these are."""
HIDDEN = "hidden"
"""The flag of a keypoint that is not visible."""
_CHANGED = {"oriented_bbox": "oriented boxes", "cuboid": "cuboids", "alpha_mask": "alpha masks"}
"""They become polygons, and masks of the other kind."""

Shape = dict[str, JSON]


class LabelMeWriter(Foldered):
    """Writes each prediction into a file of its own as it comes, and its picture beside it if that is wanted.

    Parameters
    ----------
    target : Target
        The folder.

    Raises
    ------
    SourceError
        If it holds something and may not be touched, or cannot be written to.
    """

    def _write(self, prediction: Prediction) -> None:
        """Write a prediction's files."""
        place = readable(self._places.place(prediction), ".json")
        put = self._put(prediction, "", place)
        shapes = list(self._shapes(prediction))
        file = self._folder / place.with_suffix(".json")
        document: JSON = {
            "version": VERSION,
            "flags": {tag.name: True for tag in prediction.tags if tag.value is None},
            "shapes": shapes,
            "imagePath": place.name if put else _image_path(prediction, file, place),
            "imageData": None,
            "imageHeight": prediction.size.height,
            "imageWidth": prediction.size.width,
            OURS: {**facts_of(prediction), "class_ids": {**ids_of(prediction)}},
        }
        # Escaped, since a file name that is not UTF-8 can be written in no other way.
        content, lost = valid_json(document, indent=1)
        if lost:
            self.left_out[NOT_FINITE] += lost
        write_whole(file, f"{content}\n".encode())

    def _shapes(self, prediction: Prediction) -> Iterator[Shape]:
        """Describe all objects, and count what becomes another."""
        tracks = repeat(-1) if prediction.track_ids is None else prediction.track_ids.tolist()
        for number, (item, track) in enumerate(zip(prediction.result.objects, tracks, strict=False)):
            figure = Figure(item, number)
            own, *keypoints = shapes_of(figure, number, prediction.size, track=track)
            changed = _changed(figure, str(own["shape_type"]))
            if changed:
                self.left_out[changed] += 1
            yield own
            yield from keypoints


def _changed(figure: Figure, kind: str) -> str | None:
    """Say what is read back as something else, in the user's words."""
    if figure.kind in _CHANGED:
        return _CHANGED[figure.kind]
    if figure.rings():
        if figure.kind in MASKS:
            return "polygons of masks"
        return {"polygon": None, "mask": "polygons with holes"}.get(kind, "polygons of one or two points")
    if figure.kind == "line" and kind == "point":
        return "lines of one point"
    return "empty masks" if figure.kind in MASKS and kind != "mask" else None


def _image_path(prediction: Prediction, file: Path, place: PurePath) -> str:
    """Return where the picture is, seen from the annotation's folder."""
    if prediction.path is None or prediction.frame_index is not None:
        return place.name
    try:
        return PurePath(os.path.relpath(prediction.path, file.parent)).as_posix()
    except ValueError:  # another drive
        return prediction.path


def shapes_of(figure: Figure, number: int, size: Size, *, track: int) -> Iterator[Shape]:
    """Describe an object in shapes.

    Parameters
    ----------
    figure : Figure
        The object.
    number : int
        Its position among all.
    size : Size
        Of its picture.
    track : int
        The track it belongs to; negative for none.

    Yields
    ------
    dict
        The object's own shape, then its keypoints; with these, all have a ``group_id``: the object's number.
    """
    kind, points, mask = _own(figure, size)
    nodes = figure.nodes() if figure.kind != "point" else ()
    tags, has_score = without_score(figure.tags())
    ours: dict[str, JSON] = {}
    box, around = list(figure.box()), list(box_of(kind, points))
    if box != around:
        # Whoever moves the shape leaves these as they are: then `around` no longer fits, and the box is void.
        ours = {"box": box, "around": around}
    if tags:
        ours["tags"] = tags_to_json(tags)
    if track >= 0:
        ours["track_id"] = track
    score: Shape = {"score": figure.score()} if has_score else {}
    group = number if nodes else None
    more = {"mask": mask, **score, **({OURS: ours} if ours else {})}
    yield {**_shape(figure.text("classTitle"), kind, points, group), **more}
    for node in nodes:
        flags: Shape = {} if node.visible else {HIDDEN: True}
        yield {**_shape(node.id, "point", [(node.x, node.y)], group), "flags": flags}


def _shape(label: str, kind: str, points: Ring, group: int | None) -> Shape:
    """Return a shape with all the keys that LabelMe writes."""
    places: JSON = [list(point) for point in points]
    keys: Shape = {"label": label, "points": places, "group_id": group, "description": ""}
    return {**keys, "shape_type": kind, "flags": {}, "mask": None}


def _own(figure: Figure, size: Size) -> tuple[str, Ring, str | None]:
    """Return type and points of an object's own shape, and its mask."""
    rings, line = figure.rings(), figure.line()
    if figure.kind in MASKS or len(rings) > 1:
        x, y, mask = figure.crop(size)
        if mask.size:
            return "mask", [(x, y), (x + mask.shape[1] - 1, y + mask.shape[0] - 1)], _packed(mask)
    elif figure.kind == "point":
        return "point", [(node.x, node.y) for node in figure.nodes()], None
    elif rings or line:
        points = rings[0] if rings else line
        return {1: "point", 2: "line"}.get(len(points), "polygon" if rings else "linestrip"), points, None
    x1, y1, x2, y2 = figure.box()
    return "rectangle", [(x1, y1), (x2, y2)], None


def _packed(mask: npt.NDArray[np.bool_]) -> str:
    """Return a mask as base64 of a PNG of one bit a pixel."""
    file = io.BytesIO()
    Image.fromarray(mask).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode("ascii")


def box_of(kind: str, points: Ring) -> Box:
    """Return the box of a shape.

    Parameters
    ----------
    kind : str
        Its type.
    points : sequence of (x, y)
        At least one.

    Returns
    -------
    tuple of float
        xyxy, pixels, half-open. The corners of a rectangle are edges of pixels; all other points name pixels.
    """
    if kind != "rectangle":
        return box_around(points)
    columns, rows = zip(*points, strict=True)
    return min(columns), min(rows), max(columns), max(rows)
