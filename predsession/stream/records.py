"""Predictions as rows: boxes, scores, classes and masks in columns of their own, the rest as JSON.

A mask is its PNG, as the wire has it in base64; it is put back into the JSON when a row is read, so that a
prediction that was stored is the same prediction.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Sequence

import pyarrow as pa

from predsession.errors import ProtocolError
from predsession.prediction import Prediction
from predsession.wire.jsontypes import JSON

BOXES, SCORES, CLASSES, MASKS, RECORD = "boxes", "scores", "classes", "masks", "record"
FIELDS = (
    pa.field(BOXES, pa.list_(pa.float32())),
    pa.field(SCORES, pa.list_(pa.float32())),
    pa.field(CLASSES, pa.list_(pa.string())),
    pa.field(MASKS, pa.list_(pa.binary())),
    pa.field(RECORD, pa.string()),
)
"""``boxes`` is xyxy, pixels, four numbers an object; ``masks`` a PNG an object, empty where there is none."""


def columns(predictions: Sequence[Prediction]) -> list[pa.Array]:
    """Return the columns of predictions.

    Parameters
    ----------
    predictions : sequence of Prediction
        A row each.

    Returns
    -------
    list of pyarrow.Array
        One for each of `FIELDS`.
    """
    parted = [_parted(each) for each in predictions]
    values: list[list[object]] = [
        [each.boxes.reshape(-1) for each in predictions],
        [each.scores for each in predictions],
        [list(each.classes) for each in predictions],
        [masks for _, masks in parted],
        [record for record, _ in parted],
    ]
    return [pa.array(one, field.type) for one, field in zip(values, FIELDS, strict=True)]


def _parted(prediction: Prediction) -> tuple[str, list[bytes]]:
    """Return a prediction's JSON without its masks, and these."""
    record = json.loads(json.dumps(prediction.to_json()))
    masks = []
    for each in record["annotation"]["objects"]:
        png = b""
        bitmap = each.get("bitmap") if isinstance(each, dict) else None
        if isinstance(bitmap, dict) and isinstance(bitmap.get("data"), str):
            png = _unpacked(bitmap["data"])
            if png:
                del bitmap["data"]
        masks.append(png)
    return json.dumps(record, ensure_ascii=True, separators=(",", ":")), masks


def _unpacked(text: str) -> bytes:
    """Return the PNG in a mask's text; nothing where packing it again would make another text."""
    try:
        png = zlib.decompress(base64.b64decode(text, validate=True))
    except (binascii.Error, zlib.error, ValueError):
        return b""
    return png if _packed(png) == text else b""


def _packed(png: bytes) -> str:
    """Return a mask's text."""
    return base64.b64encode(zlib.compress(png)).decode()


def read(record: str, masks: Sequence[bytes]) -> Prediction:
    """Return a prediction that was stored.

    Parameters
    ----------
    record : str
        Its JSON.
    masks : sequence of bytes
        One for each object.

    Returns
    -------
    Prediction
        Equal to the one that was stored.

    Raises
    ------
    ProtocolError
        If the row is damaged.
    """
    try:
        content: JSON = json.loads(record)
        assert isinstance(content, dict)
        for each, png in zip(content["annotation"]["objects"], masks, strict=True):
            if png:
                each["bitmap"]["data"] = _packed(png)
    except (ValueError, TypeError, KeyError, AssertionError) as error:
        raise ProtocolError(f"a stored prediction cannot be read: {error!r}") from None
    return Prediction.from_json(content)
