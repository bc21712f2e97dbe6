"""Keypoints as formats of training tools have them: x, y, v of each in turn, as many for all of a class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from predsession.prediction import Prediction
from predsession.wire.geometry import Node
from predsession.wire.meta import ClassInfo

SEEN = 2
"""v of a keypoint that is seen; 1 of one that is somewhere, but covered; 0 of one that is nowhere."""


def has_keypoints(prediction: Prediction, row: int) -> bool:
    """Return whether an object has a keypoint; one that is nowhere and not seen is none.

    Parameters
    ----------
    prediction : Prediction
        What was found.
    row : int
        Which object.

    Returns
    -------
    bool
        Whether it has.
    """
    return bool(prediction.keypoints[row].any())


def keypoint_ids(prediction: Prediction, row: int) -> tuple[str, ...]:
    """Return the keypoints that an object of this class has: those of its skeleton, then others found.

    Parameters
    ----------
    prediction : Prediction
        What was found.
    row : int
        Which object.

    Returns
    -------
    tuple of str
        Their ids. Without a skeleton, those that belong to no other class; of a point, the empty one.
    """
    if prediction.shapes[row] == "point":
        return ("",)
    info, ids = prediction.meta.find(prediction.classes[row]), prediction.keypoint_ids
    if info and info.skeleton:
        first: Sequence[str] = info.skeleton.ids
    else:
        others = {key for each in prediction.meta.classes if each.skeleton for key in each.skeleton.ids}
        first = [key for key in ids if key and key not in others]
    found = [key for key, point in zip(ids, prediction.keypoints[row], strict=True) if point.any()]
    return tuple(dict.fromkeys((*first, *found)))


def points_of(prediction: Prediction, row: int, ids: Sequence[str]) -> list[tuple[float, float, int]]:
    """Return an object's keypoints.

    Parameters
    ----------
    prediction : Prediction
        What was found.
    row : int
        Which object.
    ids : sequence of str
        Which keypoints.

    Returns
    -------
    list of (x, y, v)
        One for each id; pixels, and `SEEN`, 1 or 0.
    """
    column = {key: number for number, key in enumerate(prediction.keypoint_ids)}
    points = []
    for key in ids:
        x, y, seen = prediction.keypoints[row, column[key]] if key in column else np.zeros(3, np.float32)
        points.append((float(str(x)), float(str(y)), SEEN if seen else int(bool(x or y))))
    return points


def node_of(key: str, x: float, y: float, *, flag: float) -> Node:
    """Return a keypoint that was read.

    Parameters
    ----------
    key : str
        Its id.
    x, y : float
        Pixels.
    flag : float
        v as above; or how sure a model is of it, between 0 and 1, as some write it.

    Returns
    -------
    Node
        As predictions have it.
    """
    return Node(key, x, y, flag >= SEEN or 0.5 <= flag < 1)


def labels_of(info: ClassInfo | None, ids: Sequence[str]) -> list[str]:
    """Return what people read for keypoints.

    Parameters
    ----------
    info : ClassInfo or None
        What the model says of the class.
    ids : sequence of str
        The keypoints.

    Returns
    -------
    list of str
        A label for each, or its id where it has none.
    """
    nodes = info.skeleton.nodes if info and info.skeleton else ()
    labels = {node.id: node.label or node.id for node in nodes}
    return [labels.get(key, key) for key in ids]


def joints_of(info: ClassInfo | None, ids: Sequence[str]) -> list[tuple[int, int]]:
    """Return the lines between keypoints.

    Parameters
    ----------
    info : ClassInfo or None
        What the model says of the class.
    ids : sequence of str
        The keypoints.

    Returns
    -------
    list of (int, int)
        Positions in `ids`, from 0.
    """
    edges = info.skeleton.edges if info and info.skeleton else ()
    place = {key: number for number, key in enumerate(ids)}
    return [(place[each.src], place[each.dst]) for each in edges if each.src in place and each.dst in place]
