"""What a model of pictures found -> named arrays, as bytes. Runs in a worker; `pictures` reads them."""

from __future__ import annotations

import json
import struct

import numpy as np

from predsession.server.models.card import ModelCard
from predsession.server.models.results import Found, whole_mask
from predsession.server.models.tensors import Array, TensorFacts, TensorSpec
from predsession.wire.geometry import Size
from predsession.wire.oip.packing import pack

IMAGE = TensorSpec("image", "UINT8", (-1, -1, 3))
HEAD = struct.Struct("<I")
"""The length of the JSON that an answer begins with."""


def picture_facts(card: ModelCard) -> TensorFacts:
    """Describe a model of pictures.

    Parameters
    ----------
    card : ModelCard
        Its description.

    Returns
    -------
    TensorFacts
        Boxes are xyxy, in pixels; masks are over the whole picture.
    """
    outputs = [
        TensorSpec("boxes", "FP32", (-1, 4)),
        TensorSpec("scores", "FP32", (-1,)),
        TensorSpec("class_ids", "INT64", (-1,)),
    ]
    if card.shape == "bitmap":
        outputs.append(TensorSpec("masks", "BOOL", (-1, -1, -1)))
    if card.shape == "graph":
        outputs.append(TensorSpec("keypoints", "FP32", (-1, len(card.keypoints), 3)))
    return TensorFacts((IMAGE,), tuple(outputs), "predsession_picture")


def write_arrays(found: Found, size: Size, *, card: ModelCard) -> bytes:
    """Write what was found: a JSON object of shapes, its length before it, and the bytes. Runs in a worker.

    Parameters
    ----------
    found : Found
        In one picture.
    size : Size
        The picture's.
    card : ModelCard
        The model's description.

    Returns
    -------
    bytes
        For `PictureModel`.
    """
    arrays = _arrays(found, size, card)
    kinds = {spec.name: spec.datatype for spec in picture_facts(card).outputs}
    head = json.dumps({name: list(array.shape) for name, array in arrays.items()}).encode()
    parts = [pack(array, kinds[name]) for name, array in arrays.items()]
    return b"".join([HEAD.pack(len(head)), head, *parts])


def _arrays(found: Found, size: Size, card: ModelCard) -> dict[str, Array]:
    """Return the arrays of a picture."""
    arrays: dict[str, Array] = {"boxes": found.boxes, "scores": found.scores, "class_ids": found.class_ids}
    count = len(found.boxes)
    if card.shape == "bitmap":
        masks = np.zeros((count, size.height, size.width), np.bool_)
        for row, crop in enumerate(found.masks or ()):
            masks[row] = whole_mask(crop, size)
        arrays["masks"] = masks
    if card.shape == "graph":
        points = found.keypoints
        arrays["keypoints"] = (
            np.zeros((count, len(card.keypoints), 3), np.float32) if points is None else points
        )
    return arrays
