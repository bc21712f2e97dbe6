"""Encodings there and back, and damage of any kind, on inputs that hypothesis makes up."""

from __future__ import annotations

import base64
import json
import math
import pickle
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from predsession.errors import ProtocolError
from predsession.prediction import Prediction
from predsession.wire.annotation import annotation_from_arrays
from predsession.wire.bitmaps import decode_mask, encode_mask, png_size
from predsession.wire.geometry import MaskCrop, Size, box_around, fill_rings, fill_slanted, slanted_corners
from predsession.wire.meta import ModelMeta

ZOO = json.loads((Path(__file__).parents[1] / "samples" / "geometry_zoo.json").read_text())
META = ModelMeta.from_json(ZOO["get_model_meta"])
ARRAYS = ("boxes", "scores", "classes", "class_ids", "masks", "mask_crops", "polygons", "lines", "keypoints",
          "outlines", "track_ids", "tags", "object_tags", "shapes")  # fmt: skip

masks = npst.arrays(np.bool_, npst.array_shapes(min_dims=2, max_dims=2, max_side=40))
floats = st.floats(-1000, 1000, width=32)
sides = st.floats(0, 500, width=32)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(masks)
def test_a_mask_survives_its_png(mask: np.ndarray) -> None:
    """Any mask, packed and unpacked, is the same mask; its size is read from the head."""
    text = encode_mask(mask)
    height, width = mask.shape
    assert (decode_mask(text, within=Size(width, height)) == mask).all()
    assert png_size(text) == (width, height)


@given(masks, st.integers(-50, 50), st.integers(-50, 50))
def test_a_mask_survives_the_wire(mask: np.ndarray, x: int, y: int) -> None:
    """Whatever its place, what lies inside the picture is there, and the box is around its pixels."""
    canvas = np.zeros((200, 200), bool)
    canvas[80 + y : 80 + y + mask.shape[0], 80 + x : 80 + x + mask.shape[1]] = mask
    annotation = annotation_from_arrays(
        Size(200, 200), boxes=[[1, 2, 3, 4]], class_names=["a"], masks=[MaskCrop(80 + x, 80 + y, mask)]
    )
    p = Prediction.from_json(json.loads(json.dumps({"annotation": annotation})))
    if mask.any():
        rows, columns = np.nonzero(canvas)
        assert (p.masks[0] == canvas).all()
        assert p.boxes[0].tolist() == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    else:
        assert p.boxes[0].tolist() == [1, 2, 3, 4]


@given(st.lists(st.tuples(floats, floats, sides, sides, st.floats(0, 1, width=32)), max_size=8))
def test_floats_survive_json_and_pickle(rows: list[tuple[float, ...]]) -> None:
    """Boxes and scores of float32 come back as they were, and the prediction is equal."""
    boxes = np.array([(x, y, x + w, y + h) for x, y, w, h, _ in rows], np.float32).reshape(-1, 4)
    scores = np.array([row[4] for row in rows], np.float32)
    p = Prediction.from_arrays(size=(640, 480), boxes=boxes, scores=scores, classes=["a"] * len(rows))
    for again in (Prediction.from_json(json.loads(json.dumps(p.to_json()))), pickle.loads(pickle.dumps(p))):
        assert again == p
        assert again.boxes.tobytes() == boxes.tobytes()
        assert again.scores.tobytes() == scores.tobytes()


@given(st.lists(st.tuples(floats, floats, sides, sides), min_size=1, max_size=8))
def test_whole_corners_contain_the_box(rows: list[tuple[float, ...]]) -> None:
    """Without the extension a box grows to whole pixels, by less than one on each side."""
    boxes = np.array([(x, y, x + w, y + h) for x, y, w, h in rows])
    annotation = annotation_from_arrays(Size(640, 480), boxes=boxes, class_names=["a"] * len(rows))
    grown = Prediction.from_json({"annotation": annotation}).boxes.astype(np.float64)
    assert (grown[:, :2] <= boxes[:, :2]).all()
    assert (grown[:, 2:] >= boxes[:, 2:]).all()
    assert (np.abs(grown - boxes) <= 1).all()


points = st.tuples(st.integers(-20, 80), st.integers(-20, 60))


@given(st.lists(points, min_size=1, max_size=8))
def test_a_polygon_lies_in_its_box(ring: list[tuple[int, int]]) -> None:
    """No pixel of its mask is outside its box, and each vertex inside the picture is in the mask."""
    crop = fill_rings(Size(60, 40), [ring])
    x1, y1, x2, y2 = box_around(ring)
    rows, columns = np.nonzero(crop.mask)
    assert all(x1 <= crop.x + column < x2 for column in columns)
    assert all(y1 <= crop.y + row < y2 for row in rows)
    inside = [(x, y) for x, y in ring if 0 <= x < 60 and 0 <= y < 40]
    assert all(crop.mask[y - crop.y, x - crop.x] for x, y in inside)


@given(st.tuples(floats, floats, st.floats(1, 60), st.floats(1, 60)), st.floats(-7, 7))
def test_a_turned_box_is_filled_as_turning_back_says(box: tuple[float, ...], angle: float) -> None:
    """A pixel belongs to it exactly if its middle, turned back, lies in the upright box."""
    x, y, width, height = box[0] / 20, box[1] / 20, box[2], box[3]
    crop = fill_slanted(Size(60, 40), slanted_corners((x, y, x + width, y + height), angle))
    filled = np.zeros((40, 60), bool)
    filled[crop.y : crop.y + crop.mask.shape[0], crop.x : crop.x + crop.mask.shape[1]] = crop.mask
    dy, dx = np.mgrid[0.5:40, 0.5:60] - np.array([y + height / 2, x + width / 2])[:, None, None]
    along = dx * math.cos(angle) + dy * math.sin(angle)
    across = dy * math.cos(angle) - dx * math.sin(angle)
    depth = np.minimum(width / 2 - np.abs(along), height / 2 - np.abs(across))
    clear = np.abs(depth) > 1e-6  # on the very edge, either answer is right
    assert (filled == (depth > 0))[clear].all()


def read_all(item: object) -> None:
    """Ask for everything; each is there, with its rows, or an error of ours."""
    try:
        p = Prediction.from_wire(item, meta=META, index=0, name="", path=None, url=None)
    except ProtocolError:
        return
    for name in ARRAYS:
        try:
            value = getattr(p, name)
        except ProtocolError:
            continue
        if name not in {"tags", "track_ids"}:
            assert len(value) == len(p)
    assert repr(p)
    assert p._repr_html_()
    assert hash(p) == hash(Prediction.from_json(p.to_json(), meta=META))


@settings(max_examples=400)
@given(st.data())
def test_damage_anywhere_is_a_protocol_error(data: st.DataObject) -> None:
    """Any value of a recorded answer replaced by any JSON: every property answers or says ProtocolError."""
    item = json.loads(json.dumps(ZOO["pop_inference_results"]["pending_results"][0]))
    item["annotation"]["size"] = {"width": 80, "height": 60}
    if data.draw(st.booleans()):
        place = item["annotation"]["objects"]
        key: int | str = data.draw(st.integers(0, len(place) - 1))
    else:
        place, key = item, data.draw(st.sampled_from(sorted(item)))
    while isinstance(place[key], (dict, list)) and place[key] and data.draw(st.integers(0, 4)):
        place = place[key]
        key = data.draw(
            st.sampled_from(sorted(place)) if isinstance(place, dict) else st.integers(0, len(place) - 1)
        )
    place[key] = data.draw(json_values)
    read_all(item)


@given(json_values)
def test_any_json_is_a_result_or_a_protocol_error(value: object) -> None:
    """Nothing that a server may send gets another error out of us."""
    read_all(value)
    read_all({"annotation": value})
    read_all({"annotation": {"size": {"width": 9, "height": 9}, "objects": [value]}})


@settings(max_examples=300)
@given(st.data(), st.booleans())
def test_a_damaged_png_is_a_mask_or_a_protocol_error(data: st.DataObject, packed: bool) -> None:
    """Bytes changed, cut off or put in, in the PNG or around it: a mask of that size, or our error."""
    noise = np.random.default_rng(0).random((13, 21)) > 0.5
    raw = bytearray(zlib.decompress(base64.b64decode(encode_mask(noise))))
    if packed:
        raw = bytearray(zlib.compress(raw))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        match data.draw(st.sampled_from(["change", "cut", "insert"])):
            case "change":
                raw[at] = data.draw(st.integers(0, 255))
            case "cut":
                del raw[at + 1 :]
            case "insert":
                raw[at:at] = data.draw(st.binary(max_size=5))
    plain = bytes(raw) if packed else zlib.compress(raw)
    for text in (base64.b64encode(plain).decode(), base64.b64encode(bytes(raw)).decode()):
        try:
            mask = decode_mask(text, within=Size(40, 40))
        except ProtocolError:
            continue
        assert mask.dtype == np.bool_
        assert mask.shape == png_size(text)[::-1]


@given(st.text(max_size=40))
def test_any_text_is_no_png_or_a_protocol_error(text: str) -> None:
    """What is no base64 of a PNG is our error, for the size as for the mask."""
    for read in (png_size, lambda given: decode_mask(given, within=Size(9, 9))):
        with pytest.raises(ProtocolError):
            read(text)
