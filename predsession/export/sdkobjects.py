"""Annotations that Supervisely's SDK can read: the wire's own, but for what it stumbles over."""

from __future__ import annotations

import math
from collections import Counter

from predsession.export.outlines import MASKS
from predsession.export.projectmeta import ProjectMeta
from predsession.prediction import Prediction
from predsession.wire.figures import Figure
from predsession.wire.jsontypes import JSON, as_list, as_object

_BARE = ("points", "bitmap", "nodes", "geometryType", "shape", "faces", "angle")
"""The keys of a geometry."""
_FEWEST = {"polygon": 3, "line": 2}
"""Points; of fewer their SDK makes no such geometry."""


class SdkObjects:
    """Makes annotations, and takes note of what ``meta.json`` must say for them.

    Parameters
    ----------
    meta : ProjectMeta
        Learns.
    left_out : Counter of str
        Counts what becomes something else.
    """

    def __init__(self, meta: ProjectMeta, left_out: Counter[str]) -> None:
        self._meta = meta
        self._left_out = left_out

    def annotation_of(self, prediction: Prediction) -> dict[str, JSON]:
        """Return a prediction's annotation.

        Parameters
        ----------
        prediction : Prediction
            What to write.

        Returns
        -------
        dict
            As the wire has it, with every key that their SDK asks for.
        """
        self._meta.learn(prediction)
        annotation = {"description": "", "customBigData": {}, **prediction.annotation}
        annotation["tags"] = self._tags(annotation.get("tags"))
        items = as_list(annotation["objects"])
        annotation["objects"] = [
            self._object(prediction, dict(as_object(item)), number) for number, item in enumerate(items)
        ]
        return annotation

    def _object(self, prediction: Prediction, item: dict[str, JSON], number: int) -> dict[str, JSON]:
        """Return one object."""
        figure = Figure(item, number)
        title, problem = figure.text("classTitle"), self._problem(prediction, figure)
        if problem is not None:
            self._left_out[problem] += 1
            item = {key: value for key, value in item.items() if key not in _BARE} | _rectangle(figure)
        else:
            item = {**item, "geometryType": figure.kind, "shape": figure.kind}
        self._meta.saw(prediction, title, str(item["shape"]))
        if figure.kind == "graph":
            self._meta.saw_nodes(title, [node.id for node in figure.nodes()])
        return {**item, "tags": self._tags(item.get("tags"))}

    def _problem(self, prediction: Prediction, figure: Figure) -> str | None:
        """Say what their SDK would refuse, and all of the annotation with it; in the user's words."""
        if figure.kind in MASKS and not figure.crop(prediction.size).mask.any():
            return "empty masks"
        points = figure.line() or (figure.rings() if figure.kind == "polygon" else [()])[0]
        if len(points) < _FEWEST.get(figure.kind, 0):
            return f"{figure.kind}s of too few points"
        return None

    def _tags(self, tags: JSON) -> list[JSON]:
        """Return the tags whose values are of the kind that the project has for them."""
        items = [as_object(tag) for tag in as_list(tags)]
        kept = [tag for tag in items if self._meta.takes_tag(str(tag.get("name")), tag.get("value"))]
        self._left_out["tags with values of several kinds"] += len(items) - len(kept)
        for key in [key for key, count in self._left_out.items() if not count]:
            del self._left_out[key]
        return list(kept)


def _rectangle(figure: Figure) -> dict[str, JSON]:
    """Return an object's box as a geometry, and as it is."""
    x1, y1, x2, y2 = box = figure.box()
    left, top = math.floor(x1), math.floor(y1)
    corners: JSON = [[left, top], [max(math.ceil(x2) - 1, left), max(math.ceil(y2) - 1, top)]]
    shape: dict[str, JSON] = {"geometryType": "rectangle", "shape": "rectangle", "box": list(box)}
    return {"points": {"exterior": corners, "interior": []}, **shape}
