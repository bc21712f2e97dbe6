"""Reads an answer, again and again, in one of several ways; tells the milliseconds of one reading.

The task: ``do``, one of

===================  ======================================================================
arrays               a prediction made of a result, its boxes, scores and classes read
masks SIZE           a prediction made, its masks decoded and placed
pillow SIZE          the PNGs of the same masks, unpacked beforehand, decoded by Pillow
parse                a reply parsed and checked, as the client does, from ``path``
orjson and others    the same bytes given to that library
===================  ======================================================================

The shortest of five rounds counts: what takes longer was disturbed.
"""

from __future__ import annotations

import base64
import importlib
import io
import json
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from benchmarks.process import answer, read_task
from benchmarks.replies import item
from predsession import ModelMeta, Prediction
from predsession.wire.httpreply import Reply
from predsession.wire.jsontypes import JSONObject, as_list, as_object
from predsession.wire.replies import parse_job

ROUNDS = 5
META = ModelMeta.from_json(
    {"classes": [{"title": "wide", "shape": "bitmap"}, {"title": "tall", "shape": "bitmap"}]}
)


def reading(do: str, path: str) -> tuple[Callable[[], object], int]:
    """Return what is to be timed, and how often in a round."""
    name, _, size = do.partition(" ")
    if name == "arrays":
        wire = item("mixed")
        return lambda: _arrays(wire), 500
    if name == "masks":
        wire = item(size)
        return lambda: _prediction(wire).masks, 30
    if name == "pillow":
        pngs = [_png(each) for each in as_list(as_object(item(size)["annotation"])["objects"])]
        return lambda: [Image.open(io.BytesIO(png)).load() for png in pngs], 30
    body = Path(path).read_bytes()
    if name == "parse":
        return lambda: parse_job(Reply(200, {"content-type": "application/json"}, body)), 1
    return _library(name, body), 1


def _library(name: str, body: bytes) -> Callable[[], object]:
    """Return a JSON library's own way."""
    if name == "msgspec":
        decode = importlib.import_module("msgspec.json").decode
    else:
        decode = json.loads if name == "json" else importlib.import_module(name).loads
    return lambda: decode(body)


def _prediction(wire: JSONObject) -> Prediction:
    """Make a prediction, as a session does; nothing of it has been read before."""
    return Prediction.from_wire(wire, meta=META, index=0, name="picture.jpg", path="picture.jpg", url=None)


def _arrays(wire: JSONObject) -> object:
    """Read what most callers read."""
    prediction = _prediction(wire)
    return prediction.boxes, prediction.scores, prediction.classes


def _png(figure: object) -> bytes:
    """Unpack the PNG of a mask."""
    assert isinstance(figure, dict)
    return zlib.decompress(base64.b64decode(figure["bitmap"]["data"]))


def shortest(read: Callable[[], object], often: int) -> float:
    """Return the milliseconds of one reading."""
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(often):
            read()
        found.append((time.perf_counter() - began) / often)
    return min(found) * 1e3


if __name__ == "__main__":
    task = read_task()
    answer({"milliseconds": shortest(*reading(str(task["do"]), str(task["path"])))})
