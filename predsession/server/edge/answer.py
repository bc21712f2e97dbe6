"""What a model found -> the interface's messages. Runs in a worker process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from predsession.server.models.card import ModelCard
from predsession.server.models.results import Found, whole_mask
from predsession.server.texts import encodable
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.findings import to_post_result
from predsession.wire.edge.parts import (
    BoundingBox,
    Classification,
    DetectedObject,
    LandmarkPoint,
    LandmarkSet,
    Parts,
    SegmentationMask,
)
from predsession.wire.edge.tensors import to_spec, to_tensor
from predsession.wire.geometry import MaskCrop, Size
from predsession.wire.jsontypes import JSONObject


def form(*, frame: bool, outputs: bool, findings: bool) -> JSONObject:
    """Return what a message is to hold, for `write_answer`.

    Parameters
    ----------
    frame : bool
        Whether it is one of a stream.
    outputs : bool
        Whether the model's own arrays are in it.
    findings : bool
        Whether objects, masks and landmarks are.

    Returns
    -------
    JSONObject
        For `predsession.server.shots.Shot`.
    """
    return {"frame": frame, "outputs": outputs, "findings": findings}


def write_answer(found: Found, size: Size, *, card: ModelCard, form: JSONObject) -> bytes:
    """Write what was found, as the beginning of an ``InferResponse`` or ``StreamInferResponse``.

    Parameters
    ----------
    found : Found
        In one picture.
    size : Size
        The picture's.
    card : ModelCard
        The model's description.
    form : JSONObject
        From `form`.

    Returns
    -------
    bytes
        Status and times may be written after it: a message is its fields, in any order.
    """
    message = pb.StreamInferResponse() if form["frame"] else pb.InferResponse()
    if form["outputs"]:
        message.outputs.extend(_outputs(found))
    if form["findings"]:
        message.post_result.CopyFrom(to_post_result(to_parts(found, size, card)))
    return message.SerializeToString()


def _outputs(found: Found) -> list[pb.Tensor]:
    """Return the model's arrays, in the order of `output_specs`."""
    arrays = [found.boxes, found.scores, found.class_ids.astype(np.int32)]
    if found.keypoints is not None:
        arrays.append(found.keypoints)
    return [to_tensor(array) for array in arrays]


def input_specs() -> list[pb.TensorSpec]:
    """Describe what a model takes: a picture of any size."""
    return [to_spec(shape=(-1, -1, 3), dtype=np.uint8, name="image", layout="HWC")]


def output_specs(card: ModelCard) -> list[pb.TensorSpec]:
    """Describe the arrays that a model gives.

    Parameters
    ----------
    card : ModelCard
        Its description.

    Returns
    -------
    list of TensorSpec
        Boxes are xyxy, in pixels of the picture.
    """
    specs = [
        to_spec(shape=(-1, 4), dtype=np.float32, name="boxes"),
        to_spec(shape=(-1,), dtype=np.float32, name="scores"),
        to_spec(shape=(-1,), dtype=np.int32, name="class_ids"),
    ]
    if card.shape == "graph":
        count = len(card.keypoints)
        specs.append(to_spec(shape=(-1, count, 3), dtype=np.float32, name="keypoints"))
    return specs


def to_parts(found: Found, size: Size, card: ModelCard) -> Parts:
    """Return what was found in the interface's own terms.

    Parameters
    ----------
    found : Found
        In pixels.
    size : Size
        The picture's.
    card : ModelCard
        With the classes' names.

    Returns
    -------
    Parts
        Normalized; masks and landmarks in the order of the objects.
    """
    boxes = _normalized(found, size)
    ids = [int(number) for number in found.class_ids]
    names = [encodable(card.classes[number]) for number in ids]
    scores = [float(score) for score in found.scores]
    objects = tuple(map(DetectedObject, names, scores, boxes, ids))
    tags = tuple(Classification("tag", 0, encodable(tag.name), 1.0) for tag in found.tags)
    return Parts(
        objects=objects,
        classifications=tags,
        landmarks=_landmarks(found, size, names),
        masks=_masks(found.masks or (), objects, size),
    )


def _normalized(found: Found, size: Size) -> list[BoundingBox]:
    """Return boxes, 0 to 1 of the picture."""
    unit = found.boxes.astype(np.float64) / np.array([size.width, size.height] * 2, np.float64)
    return [BoundingBox(x1, y1, x2 - x1, y2 - y1) for x1, y1, x2, y2 in unit.tolist()]


def _landmarks(found: Found, size: Size, names: Sequence[str]) -> tuple[LandmarkSet, ...]:
    """Return the keypoints of each object; those that are not visible have the confidence 0."""
    if found.keypoints is None:
        return ()
    unit = found.keypoints.astype(np.float64) / np.array([size.width, size.height, 1.0])
    return tuple(
        LandmarkSet(name, tuple(LandmarkPoint(*point) for point in points))
        for name, points in zip(names, unit.tolist(), strict=True)
    )


def _masks(
    crops: Sequence[MaskCrop | None], objects: Sequence[DetectedObject], size: Size
) -> tuple[SegmentationMask, ...]:
    """Return the mask of each object, over the whole picture."""
    return tuple(
        SegmentationMask.from_mask(
            whole_mask(crop, size),
            class_id=one.class_id,
            label=one.label,
            confidence=one.score,
            bbox=one.bbox,
        )
        for crop, one in zip(crops, objects, strict=False)
    )
