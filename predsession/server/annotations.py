"""Annotation files of the library: read, merged with predictions, and replaced whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from predsession.errors import PredSessionError, ProtocolError
from predsession.wire.colors import color_text, named_color
from predsession.wire.figures import Figure
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object

_SUFFIX = "_model"
_EMPTY_META: JSONObject = {
    "classes": [],
    "tags": [{"name": "confidence", "value_type": "any_number", "color": "#470F8A"}],
}


class WritingError(PredSessionError):
    """A prediction cannot be written back; the message says why."""


def read_file(path: Path) -> JSONObject:
    """Read a file of JSON.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    JSONObject
        Empty where there is no file.

    Raises
    ------
    WritingError
        If it is no JSON object: what cannot be read is not written over.
    """
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise WritingError(f"{path.name} cannot be read, so nothing is written over it: {error}") from error
    if not isinstance(data, Mapping):
        raise WritingError(f"{path.name} is no JSON object, so nothing is written over it")
    return data


def save_file(path: Path, data: JSONObject) -> None:
    """Replace a file of JSON; who reads it meanwhile reads the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_text(json.dumps(data, ensure_ascii=False, indent=1), encoding="utf-8")
        fresh.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()


def stored_object(one: JSONObject, *key: object) -> dict[str, JSON]:
    """Return a prediction's object as it is stored.

    Parameters
    ----------
    one : JSONObject
        The wire's.
    *key : object
        What makes it this one: the job, and its place in there.

    Returns
    -------
    dict
        With a ``key`` that is the same whenever it is written, and without what only the extension knows.
    """
    digest = hashlib.blake2b("/".join(map(str, key)).encode(), digest_size=16).hexdigest()
    return {"key": digest, **{name: value for name, value in one.items() if name != "box"}}


def merged(
    present: JSONObject,
    predicted: JSONObject,
    fresh: Sequence[JSONObject],
    *,
    mode: str,
    threshold: float,
) -> dict[str, JSON]:
    """Join what is there with what was predicted.

    Parameters
    ----------
    present : JSONObject
        The annotation that is there; may be empty.
    predicted : JSONObject
        The prediction's annotation, for its size.
    fresh : sequence of JSONObject
        Its objects, as they are stored.
    mode : str
        ``replace`` takes away what is there; ``iou_merge`` leaves out of `fresh` what overlaps a present
        object of its class by more than `threshold`; any other adds.
    threshold : float
        From 0 to 1.

    Returns
    -------
    dict
        The annotation.
    """
    keys = {one["key"] for one in fresh}
    # Of this very job, from before a crash.
    old = [as_object(one) for one in as_list(present.get("objects")) if as_object(one).get("key") not in keys]
    if mode == "replace":
        old = []
    if mode == "iou_merge":
        fresh = [one for one in fresh if not _is_there(one, old, threshold)]
    return {
        "description": "",
        "tags": [],
        "size": predicted["size"],
        **{name: value for name, value in present.items() if name != "objects"},
        "objects": [*old, *fresh],
    }


def _is_there(one: JSONObject, old: Sequence[JSONObject], threshold: float) -> bool:
    """Whether an object overlaps one of its class by more than the threshold."""
    box = _box(one)
    others = [_box(other) for other in old if other.get("classTitle") == one.get("classTitle")]
    return any(_overlap(box, other) > threshold for other in others if other is not None and box is not None)


def _box(one: JSONObject) -> np.ndarray | None:
    """Return an object's box, None where it cannot be read."""
    try:
        return np.asarray(Figure(one, 0).box(), np.float64)
    except ProtocolError:
        return None


def _overlap(one: np.ndarray, other: np.ndarray) -> float:
    """Return the intersection over union of two boxes."""
    common = np.clip(np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2]), 0, None).prod()
    union = (one[2:] - one[:2]).prod() + (other[2:] - other[:2]).prod() - common
    return float(common / union) if union > 0 else 0.0


def with_classes(meta: JSONObject, objects: Sequence[dict[str, JSON]], *, suffix: str) -> JSONObject:
    """Note the classes of objects in a project's meta.

    Parameters
    ----------
    meta : JSONObject
        The project's; may be empty.
    objects : sequence of dict
        One whose class is there with another geometry gets a new class title.
    suffix : str
        What such a title ends in.

    Returns
    -------
    JSONObject
        The meta, complete; the same object if nothing was missing.
    """
    classes = {str(as_object(one).get("title")): as_object(one) for one in as_list(meta.get("classes"))}
    known = len(classes)
    for one in objects:
        title, shape = str(one["classTitle"]), one["geometryType"]
        if title in classes and classes[title].get("shape") not in {shape, "any"}:
            title += suffix or _SUFFIX
            one["classTitle"] = title
        color = color_text(named_color(title))
        classes.setdefault(title, {"title": title, "shape": shape, "color": color})
    if len(classes) == known and "tags" in meta:
        return meta
    return {**_EMPTY_META, **meta, "classes": list(classes.values())}
