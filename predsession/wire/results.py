"""One result item of the wire: its outline checked at once, its objects left as they are.

Invariant: what is checked here is what every reader relies on: the annotation is an object with a size of
whole pixels and a list of objects. The objects themselves are read where they are asked (`figures`).

References
----------
PROTOCOL.md, section 5: the result item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from predsession.errors import ProtocolError
from predsession.wire.fields import MAX_COORDINATE, MAX_VALUE, shown
from predsession.wire.geometry import Size
from predsession.wire.jsontypes import JSON, JSONObject

_IDS = ("project_id", "dataset_id", "image_id", "video_id", "frame_index")
MODEL = "model_meta"
"""What a file of predictions says of the model: for the reader of the file, and no data of the item."""
_KNOWN = frozenset(
    (
        *_IDS, "annotation", "annotation_json", "name", "path", "url", "source", "data", "index",
        "class_info", "number", "timestamp", MODEL,
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResultItem:
    """A result item whose outline is sound.

    Parameters
    ----------
    annotation : JSON object
        As the wire has it.
    size : Size
        Of the picture the coordinates belong to.
    objects : sequence of JSON
        The annotation's objects, unread.
    data : mapping of str to JSON
        The item's ``data``, and every key of the item that the protocol does not name.
    name, path, url : str or None
        As the item says; they do not count in a comparison, the client has its own.
    project_id, dataset_id, image_id, video_id, frame_index : int or None
        As the item says.
    timestamp : float or None
        Seconds, as the item says: only what `Prediction.to_json` wrote says it.
    """

    annotation: JSONObject
    size: Size
    objects: Sequence[JSON]
    data: Mapping[str, JSON]
    name: str | None = field(default=None, compare=False)
    path: str | None = field(default=None, compare=False)
    url: str | None = field(default=None, compare=False)
    project_id: int | None = None
    dataset_id: int | None = None
    image_id: int | None = None
    video_id: int | None = None
    frame_index: int | None = None
    timestamp: float | None = field(default=None, compare=False)

    @classmethod
    def from_json(cls, item: JSON) -> ResultItem:
        """Check the outline of a result item.

        Parameters
        ----------
        item : JSON
            What came back for one input.

        Returns
        -------
        ResultItem
            Its parts.

        Raises
        ------
        ProtocolError
            If it is no object, or the field that the message names is missing or of another type.
        """
        if not isinstance(item, Mapping):
            raise ProtocolError(f"a result is no JSON object but {shown(item)}")
        # Older servers call it annotation_json (PROTOCOL.md, section 5).
        annotation = item.get("annotation", item.get("annotation_json"))
        if not isinstance(annotation, Mapping):
            raise ProtocolError(f"annotation: {shown(annotation)} is no object")
        objects = annotation.get("objects")
        if not isinstance(objects, (list, tuple)):
            raise ProtocolError(f"annotation.objects: {shown(objects)} is no list")
        for number, each in enumerate(objects):
            if not isinstance(each, Mapping):
                raise ProtocolError(f"annotation.objects[{number}]: {shown(each)} is no object")
        return cls(
            annotation,
            _size(annotation.get("size")),
            objects,
            _data(item),
            name=_text(item, "name"),
            path=_text(item, "path"),
            url=_text(item, "url"),
            project_id=_id(item, "project_id"),
            dataset_id=_id(item, "dataset_id"),
            image_id=_id(item, "image_id"),
            video_id=_id(item, "video_id"),
            frame_index=_id(item, "frame_index"),
            timestamp=_seconds(item, "timestamp"),
        )


def copied(value: JSON) -> JSON:
    """Copy a JSON value, containers and all.

    Parameters
    ----------
    value : JSON
        Any.

    Returns
    -------
    JSON
        Equal to it, made of lists and dicts that nobody else holds.
    """
    if isinstance(value, Mapping):
        return {key: copied(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [copied(inner) for inner in value]
    return value


def _size(value: JSON) -> Size:
    """Read the picture's size."""
    sides = value if isinstance(value, Mapping) else {}
    return Size(_side(sides.get("width"), value), _side(sides.get("height"), value))


def _side(side: JSON, size: JSON) -> int:
    """Read one side of the picture's size."""
    if isinstance(side, int) and not isinstance(side, bool) and 0 < side <= MAX_COORDINATE:
        return side
    raise ProtocolError(f"annotation.size: {shown(size)} is no width and height in whole pixels")


def _text(item: JSONObject, key: str) -> str | None:
    """Read a string that may be missing."""
    value = item.get(key)
    if value is None or isinstance(value, str):
        return value
    raise ProtocolError(f"{key}: {shown(value)} is no string")


def _id(item: JSONObject, key: str) -> int | None:
    """Read a whole number that may be missing."""
    value = item.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63):
        return value
    raise ProtocolError(f"{key}: {shown(value)} is no whole number")


def _seconds(item: JSONObject, key: str) -> float | None:
    """Read a finite number that may be missing."""
    value = item.get(key)
    if value is None:
        return None
    # The comparison is false for NaN, and for whole numbers that are too large for a float.
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_VALUE:
        return float(value)
    raise ProtocolError(f"{key}: {shown(value)} is no number of seconds")


def _data(item: JSONObject) -> dict[str, JSON]:
    """Gather what the protocol does not name; what the server put into ``data`` itself wins."""
    extra: dict[str, JSON] = {
        key: value for key, value in item.items() if key not in _KNOWN and value not in (None, {})
    }
    source = item.get("source")
    if source is not None and source not in (item.get("path"), item.get("url")):
        extra["source"] = source
    data = item.get("data")
    if isinstance(data, Mapping):
        return {**extra, **data}
    return extra if data is None else {**extra, "data": data}
