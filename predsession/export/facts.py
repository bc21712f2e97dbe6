"""What formats have no word for, kept beside theirs: where a prediction comes from; and what is read.

Formats that let a stranger's key pass, such as COCO, carry these under the key ``predsession``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from predsession.export.validjson import valid_json
from predsession.prediction import Prediction
from predsession.wire.annotation import annotation_from_arrays
from predsession.wire.fields import Tag
from predsession.wire.geometry import Box, MaskCrop, Node, Size
from predsession.wire.jsontext import dumps
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.meta import ModelMeta

OURS = "predsession"
"""The key."""
SCORE_TAGS = ("confidence", "conf", "score")
"""The tags that can be an object's score, the one that counts first."""
_IDS = ("project_id", "dataset_id", "image_id", "video_id", "frame_index")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One object that was read.

    Parameters
    ----------
    title : str
        Its class.
    box : tuple of float
        xyxy, pixels, half-open.
    score : float or None
        None where there is none.
    mask : MaskCrop or None
        Its pixels.
    rings : sequence of (M, 2) ndarray or None
        Its outline, and holes.
    nodes : sequence of Node
        Its keypoints.
    tags : sequence of Tag
        Beside the score.
    track : int or None
        The track it belongs to.
    """

    title: str
    box: Box
    score: float | None = None
    mask: MaskCrop | None = None
    rings: Sequence[npt.NDArray[np.floating]] | None = None
    nodes: Sequence[Node] = ()
    tags: Sequence[Tag] = ()
    track: int | None = None


def facts_of(prediction: Prediction) -> dict[str, JSON]:
    """Return where a prediction comes from, and what is said of its picture as a whole.

    Parameters
    ----------
    prediction : Prediction
        What to write.

    Returns
    -------
    dict
        Without what is not known.
    """
    known: dict[str, JSON] = {
        "index": prediction.index,
        "name": prediction.name,
        "path": prediction.path,
        "url": prediction.url,
        "timestamp": prediction.timestamp,
        **{key: getattr(prediction, key) for key in _IDS},
        "tags": tags_to_json(prediction.tags) or None,
        "data": prediction.data or None,
    }
    return {key: value for key, value in known.items() if value is not None}


def prediction_from(
    facts: JSONObject,
    size: Size,
    found: Sequence[Found],
    *,
    meta: ModelMeta,
    ids: Mapping[str, int] | None,
    index: int,
    name: str,
    path: str | None,
    tracked: bool = False,
) -> Prediction:
    """Make a prediction of what was read.

    Parameters
    ----------
    facts : JSON object
        As `facts_of` returned them, as far as they are there.
    size : Size
        Of the picture.
    found : sequence of Found
        Its objects.
    meta : ModelMeta
        The classes.
    ids : mapping of str to int, or None
        Class ids, where they are not those of `meta`.
    index : int
        Where the facts do not say it.
    name : str
        Where the facts do not say it.
    path : str or None
        Where there are no facts.
    tracked : bool
        Whether there are tracks, even if no object has one.

    Returns
    -------
    Prediction
        Equal to the one that was written, as far as the format goes.

    Raises
    ------
    ProtocolError
        If the facts are damaged.
    ValueError
        If a box or a score is.
    """
    annotation = _annotation(size, found, tracked=tracked)
    annotation["tags"] = facts.get("tags") or []
    index = number if isinstance(number := facts.get("index"), int) else index
    item = {key: facts.get(key) for key in (*_IDS, "name", "path", "url", "timestamp")}
    item |= {"annotation": annotation, "data": facts.get("data") or {}}
    if item["name"] is None:
        item["name"] = name
    path = None if facts else path
    made = Prediction.from_wire(item, meta=meta, index=index, name="", path=path, url=None)
    return made if ids is None else replace(made, ids=ids)


def _annotation(size: Size, found: Sequence[Found], *, tracked: bool) -> dict[str, JSON]:
    """Return the wire's annotation of some objects."""
    tracks = [-1 if each.track is None else each.track for each in found]
    annotation = annotation_from_arrays(
        size,
        boxes=[each.box for each in found],
        class_names=[each.title for each in found],
        masks=[each.mask for each in found],
        polygons=[each.rings for each in found],
        track_ids=tracks if tracked or any(track >= 0 for track in tracks) else None,
        float_boxes=True,
        empty_masks=True,
    )
    objects = annotation["objects"]
    assert isinstance(objects, list), "annotation_from_arrays makes a list"
    for item, each in zip(objects, found, strict=True):
        score = [] if each.score is None else [Tag(SCORE_TAGS[0], each.score)]
        item["tags"] = tags_to_json((*score, *each.tags))
        if each.nodes:
            _add_nodes(item, each.nodes)
    return annotation


def _add_nodes(item: dict[str, JSON], nodes: Sequence[Node]) -> None:
    """Write an object's keypoints; one that has nothing but a box becomes a graph."""
    item["nodes"] = {
        node.id: {"loc": [node.x, node.y], **({} if node.visible else {"disabled": True})} for node in nodes
    }
    if item["geometryType"] == "rectangle":
        del item["points"]
        item |= {"geometryType": "graph", "shape": "graph"}


def tags_to_json(tags: Sequence[Tag]) -> list[JSON]:
    """Return tags as the wire has them.

    Parameters
    ----------
    tags : sequence of Tag
        Of a picture or an object.

    Returns
    -------
    list of dict
        One without a value has no such key.
    """
    return [
        {"name": tag.name} if tag.value is None else {"name": tag.name, "value": tag.value} for tag in tags
    ]


def without_score(tags: Sequence[Tag]) -> tuple[list[Tag], bool]:
    """Take the tag that is the score out of an object's tags.

    Parameters
    ----------
    tags : sequence of Tag
        Of an object.

    Returns
    -------
    list of Tag
        The others.
    bool
        Whether there was one.
    """
    others, names = list(tags), [tag.name for tag in tags]
    for name in SCORE_TAGS:
        if name in names:
            del others[names.index(name)]
            return others, True
    return others, False


def is_box(ring: npt.NDArray[np.floating]) -> bool:
    """Return whether a ring is nothing but a box: as formats that know only polygons write one.

    Parameters
    ----------
    ring : (M, 2) ndarray
        x, y.

    Returns
    -------
    bool
        Whether its points are left-top, right-top, right-bottom and left-bottom, in this or the other
        direction.
    """
    if ring.shape != (4, 2):
        return False
    (x1, y1), (x2, y2) = ring[0].tolist(), ring[2].tolist()
    corners = [[x1, y1], [x2, y1], [x2, y2], [x1, y2]]
    return x2 >= x1 and y2 >= y1 and ring.tolist() in (corners, [corners[0], *corners[:0:-1]])


def json_bytes(value: JSON) -> bytes:
    """Return a value as JSON, whatever texts it holds.

    Parameters
    ----------
    value : JSON
        A file name that is not UTF-8 has lone surrogates; those are escaped.

    Returns
    -------
    bytes
        On one line.
    """
    try:
        return dumps(value)
    except TypeError:
        return valid_json(value)[0].encode()
