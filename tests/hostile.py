"""Answers that no honest server gives, and a reader that asks a prediction for everything there is."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from predsession.errors import PredSessionError
from predsession.export.jsonl import to_line
from predsession.prediction import Prediction
from predsession.wire.meta import ModelMeta

ZOO = json.loads((Path(__file__).parent / "samples" / "geometry_zoo.json").read_text())
META = ModelMeta.from_json(ZOO["get_model_meta"])
SIDE = 64
"""Of the pictures that are sent, and that the good answers tell of."""


def good_item(number: int = 1) -> dict[str, Any]:
    """Return a sound result item with one object of each geometry, of a small picture."""
    item: dict[str, Any] = json.loads(json.dumps(ZOO["pop_inference_results"]["pending_results"][0]))
    item["annotation"]["size"] = {"width": SIDE, "height": SIDE}
    item["annotation"]["customBigData"] = [*range(len(item["annotation"]["objects"]) - 1), None]
    item["annotation"]["tags"] = [{"name": "night", "value": 1}]
    return {**item, "number": number, "image_id": 7, "frame_index": 0}


def good_job(*, finished: bool = True, items: int = 1) -> dict[str, Any]:
    """Return a sound answer to a pop."""
    return {
        "stage": "Finished" if finished else "Running inference...",
        "progress": {"current": items, "total": items},
        "pending_results": [good_item(number) for number in range(1, items + 1)],
        "finished": finished,
        "exception": None,
        "has_result": False,
        "final_result": False,
    }


GOOD: dict[str, Any] = {
    "get_session_info": {
        "app_name": "zoo",
        "max_batch_size": 4,
        "tracking_algorithms": ["botsort"],
        "predsession": {"version": 1, "features": ["ack", "wait", "lease", "list"], "lease_s": 30.0},
    },
    "get_model_meta": ZOO["get_model_meta"],
    "inference_batch_async": {"message": "started", "inference_request_uuid": "0" * 32},
    "inference_video_async": {"message": "started", "inference_request_uuid": "1" * 32},
    "inference_batch_ids_async": {"message": "started", "inference_request_uuid": "2" * 32},
    "inference_image": good_item(),
    "pop_inference_results": good_job(),
    "get_inference_progress": {**good_job(), "pending_results": 1},
    "get_inference_result": {
        "video_ann": {"frames": [{"index": 0, "figures": [{"trackId": "1", "geometryType": "rectangle"}]}]}
    },
    "list_inference_requests": {
        "requests": [
            {"uuid": "0" * 32, "session": "s", "first_index": 0, "progress": {"current": 0, "total": 1},
             "stage": "Finished", "age_s": 1.5}
        ]
    },
}  # fmt: skip
"""A sound answer to every call of a session."""

_HUGE = [2**31, 2**53, 2**63, 2**64, 10**400, 10**3999, -1, -(2**63), -(10**400)]
_FLOATS = [float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 5e-324, -0.0, 0.5]
_TEXTS = [
    "",
    "\0",
    "\ud800",
    "a\udfffb",
    "\x1b[2J",
    "<b>",
    "Finished",
    "x" * 5000,
    "é" * 300,
    "☃",
    "1" * 5000,
]
odd_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(_HUGE)
    | st.sampled_from(_FLOATS)
    | st.sampled_from(_TEXTS)
    | st.text(max_size=5)
)


def nested(levels: int) -> object:
    """Return lists in lists."""
    value: object = None
    for _ in range(levels):
        value = [value]
    return value


odd_values = st.recursive(
    odd_scalars | st.integers(1, 450).map(nested),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def spoiled(draw: st.DrawFn, good: object, most: int = 3) -> object:
    """Spoil a sound answer in one to three places: another value, a missing one, one that is doubled."""
    value: Any = {"root": json.loads(json.dumps(good))}
    for _ in range(draw(st.integers(1, most))):
        place, key = value, "root"
        while isinstance(place[key], (dict, list)) and place[key] and draw(st.integers(0, 5)):
            place = place[key]
            keys = sorted(place) if isinstance(place, dict) else range(len(place))
            key = draw(st.sampled_from(keys))
        match draw(st.sampled_from(["replace", "replace", "remove", "double"])):
            case "remove" if place is not value:
                del place[key]
            case "double" if isinstance(place, list):
                place.insert(key, place[key])
            case _:
                place[key] = draw(odd_values)
    return value["root"]


@st.composite
def bodies(draw: st.DrawFn, good: object) -> bytes:
    """Return the bytes of a spoiled answer, or bytes that are spoiled themselves."""
    body = json.dumps(draw(spoiled(good))).encode()
    match draw(st.sampled_from(["whole", "whole", "whole", "cut", "latin", "utf-16", "raw", "exponent"])):
        case "cut":
            return body[: draw(st.integers(0, len(body)))]
        case "latin":
            return body.replace(b"0", b"\xff", 1)
        case "utf-16":
            return body.decode().encode("utf-16")
        case "raw":
            return draw(st.binary(max_size=40))
        case "exponent":
            return body.replace(b": 1", b": 1e999", draw(st.integers(1, 3)))
    return body


def check_words(error: PredSessionError) -> PredSessionError:
    """Make sure that an error can be read by people, whatever a server put into it."""
    assert len(str(error)) < 5000
    return error


ARRAYS = (
    "boxes", "scores", "classes", "class_ids", "class_idxs", "mask_crops", "masks", "polygons", "outlines",
    "lines", "keypoint_ids", "keypoints", "track_ids", "object_tags", "shapes", "tags", "size", "project_id",
    "dataset_id", "image_id", "video_id", "frame_index", "annotation", "data",
)  # fmt: skip
"""Everything that a prediction can be asked for."""


def _readings(prediction: Prediction) -> Iterator[Callable[[], object]]:
    """Yield everything that a caller may do with a prediction."""
    for name in ARRAYS:
        yield lambda name=name: getattr(prediction, name)
    picture = np.zeros((SIDE, SIDE, 3), np.uint8)
    yield lambda: prediction.visualize(image=picture)
    yield lambda: prediction.where(np.zeros(len(prediction), bool))
    yield lambda: to_line(prediction).encode()
    yield lambda: Prediction.from_json(json.loads(to_line(prediction)))
    yield lambda: Prediction.from_json(json.loads(to_line(prediction))).class_ids
    yield lambda: pickle.loads(pickle.dumps(prediction))
    yield lambda: prediction == Prediction.from_json(prediction.to_json())
    yield lambda: hash(prediction)
    yield lambda: repr(prediction).encode("utf-8", "backslashreplace")
    yield lambda: prediction._repr_html_().encode()


def read_all(prediction: Prediction) -> int:
    """Ask for everything; return how much of it was an error of ours. Any other error goes through."""
    refused = 0
    for read in _readings(prediction):
        try:
            read()
        except PredSessionError as error:
            check_words(error)
            refused += 1
    return refused
