"""What gets lost on the way into a format, counted in the user's words."""

from __future__ import annotations

from collections import Counter

from predsession.export.facts import without_score
from predsession.prediction import Prediction

_WORDS = {
    "bitmap": "masks",
    "alpha_mask": "masks",
    "polygon": "polygons",
    "graph": "keypoints",
    "point": "keypoints",
    "line": "lines",
    "oriented_bbox": "oriented boxes",
    "cuboid": "cuboids",
}


def losses_of_boxes(prediction: Prediction) -> Counter[str]:
    """Count what a prediction has beside boxes, classes, scores and tracks.

    Parameters
    ----------
    prediction : Prediction
        What is written as boxes only.

    Returns
    -------
    Counter of str
        Objects by what they lose (masks, polygons, keypoints, ...), tags, and further data of the server.
    """
    lost: Counter[str] = Counter()
    for shape, item in zip(prediction.shapes, prediction.result.objects, strict=True):
        if shape in _WORDS:
            lost[_WORDS[shape]] += 1
        if shape != "graph" and isinstance(item, dict) and "nodes" in item:
            lost["keypoints"] += 1
    lost["tags"] += sum(len(without_score(tags)[0]) for tags in prediction.object_tags)
    return +(lost + losses_of_pictures(prediction))


def losses_of_pictures(prediction: Prediction) -> Counter[str]:
    """Count what a prediction says of its picture as a whole.

    Parameters
    ----------
    prediction : Prediction
        What is written object by object only.

    Returns
    -------
    Counter of str
        Tags, and further data of the server.
    """
    return +Counter({"tags": len(prediction.tags), "further data": int(bool(prediction.result.data))})
