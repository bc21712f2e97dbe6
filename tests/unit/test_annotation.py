"""Arrays as the wire's annotation object."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from predsession.wire.annotation import annotation_from_arrays
from predsession.wire.bitmaps import decode_mask
from predsession.wire.fields import Tag
from predsession.wire.geometry import MaskCrop, Size

SIZE = Size(64, 48)
RECORDED = json.loads((Path(__file__).parents[1] / "samples" / "geometry_zoo.json").read_text())
ITEM = RECORDED["pop_inference_results"]["pending_results"][0]["annotation"]


def write(boxes: list[list[float]], **more: object) -> dict[str, object]:
    """Write boxes of the class cat, and check that they are JSON."""
    annotation = annotation_from_arrays(SIZE, boxes=boxes, class_names=["cat"] * len(boxes), **more)
    assert json.loads(json.dumps(annotation, allow_nan=False)) == annotation
    return annotation


def test_annotation_has_the_recorded_keys() -> None:
    """Nothing more and nothing less than a stock server writes, for annotation, rectangle and bitmap."""
    mask = MaskCrop(3, 4, np.ones((5, 6), bool))
    annotation = write([[1, 2, 5, 6], [3, 4, 9, 9]], scores=[0.5, 0.25], masks=[None, mask])
    assert set(annotation) == set(ITEM)
    assert annotation["size"] == {"height": 48, "width": 64}
    by_kind = {item["geometryType"]: item for item in ITEM["objects"]}
    for item in annotation["objects"]:
        recorded = by_kind[item["geometryType"]]
        assert set(item) == set(recorded)
        assert {key: type(value) for key, value in item.items()} == {
            key: type(value) for key, value in recorded.items()
        }


@pytest.mark.parametrize(
    ("box", "corners"),
    [
        ([20, 10, 60, 30], [[20, 10], [59, 29]]),
        ([20.2, 10.9, 59.1, 29.9], [[20, 10], [59, 29]]),
        ([5.2, 5.2, 5.4, 5.4], [[5, 5], [5, 5]]),
        ([5, 5, 5, 5], [[5, 5], [5, 5]]),
        ([-3.5, 0, 2, 1], [[-4, 0], [1, 0]]),
    ],
)
def test_corners_are_whole_and_inclusive(box: list[float], corners: list[list[int]]) -> None:
    """A box becomes every pixel that it touches, at least one, by its first and last pixel."""
    points = write([box])["objects"][0]["points"]
    assert points == {"exterior": corners, "interior": []}
    assert all(isinstance(number, int) for point in points["exterior"] for number in point)


def test_float_boxes_stand_beside_the_corners() -> None:
    """The extension adds a key, it changes none."""
    plain, exact = write([[1.25, 2.5, 5.75, 6]]), write([[1.25, 2.5, 5.75, 6]], float_boxes=True)
    assert exact["objects"][0].pop("box") == [1.25, 2.5, 5.75, 6.0]
    assert exact == plain


def test_scores_become_the_tag_confidence() -> None:
    """With the number as it was; without scores there is no tag."""
    scores = np.array([0.1], np.float32)
    tags = write([[1, 2, 3, 4]], scores=scores)["objects"][0]["tags"]
    assert tags == [{"name": "confidence", "value": float(scores[0])}]
    assert write([[1, 2, 3, 4]])["objects"][0]["tags"] == []


def test_masks_are_cut_to_their_pixels() -> None:
    """A mask with empty rows and columns around it is moved, and stays the same in the picture."""
    mask = np.zeros((48, 64), bool)
    mask[10:30, 20:60] = True
    mask[12, 25] = False
    bitmap = write([[20, 10, 60, 30]], masks=[MaskCrop(0, 0, mask)])["objects"][0]["bitmap"]
    assert bitmap["origin"] == [20, 10]
    assert (decode_mask(bitmap["data"], within=SIZE) == mask[10:30, 20:60]).all()


def test_an_empty_mask_is_a_rectangle_for_stock_clients() -> None:
    """No stock client can read a bitmap without a pixel; who asks for one gets it."""
    empty = [MaskCrop(0, 0, np.zeros((48, 64), bool))]
    assert write([[1, 2, 3, 4]], masks=empty)["objects"][0]["geometryType"] == "rectangle"
    kept = write([[1, 2, 3, 4]], masks=empty, empty_masks=True)["objects"][0]
    assert not decode_mask(kept["bitmap"]["data"], within=SIZE).any()


def test_polygons_and_keypoints() -> None:
    """Rows become polygons or graphs; a row with both keeps the polygon, and its nodes beside it."""
    ring, hole = np.array([[0, 0], [9, 0], [9, 9.5]]), np.array([[5, 1], [7, 1], [7, 3]])
    points = np.array([[[1, 2, 1], [3, 4.5, 0]]] * 2)
    annotation = write(
        [[0, 0, 10, 10]] * 2, polygons=[[ring, hole], None], keypoints=points, node_ids=["a", "b"]
    )
    both, graph = annotation["objects"]
    assert both["geometryType"] == both["shape"] == "polygon"
    assert both["points"] == {"exterior": ring.tolist(), "interior": [hole.tolist()]}
    assert graph["geometryType"] == graph["shape"] == "graph"
    assert graph["nodes"] == both["nodes"] == {"a": {"loc": [1, 2]}, "b": {"loc": [3, 4.5], "disabled": True}}
    assert "points" not in graph


def test_track_ids_and_tags() -> None:
    """Track ids are a list in customBigData as recorded; tags are the picture's."""
    annotation = write(
        [[1, 2, 3, 4]] * 2, track_ids=np.array([7, -1]), tags=[Tag("night", None), Tag("n", 2)]
    )
    assert annotation["customBigData"] == [7, None]
    assert annotation["tags"] == [{"name": "night"}, {"name": "n", "value": 2}]
    assert write([])["customBigData"] == {}


def test_no_boxes_no_objects() -> None:
    """An empty picture is an annotation, with or without the shape of its empty array."""
    assert write([])["objects"] == []
    assert annotation_from_arrays(SIZE, boxes=np.zeros((0, 4)), class_names=[])["objects"] == []


@pytest.mark.parametrize(
    ("boxes", "more", "problem"),
    [
        ([[1, 2, 3, 4]], {"scores": []}, "scores has 0 rows, boxes has 1"),
        ([[1, 2, 3, 4]], {"masks": [None, None]}, "masks has 2 rows"),
        ([[1, 2, 3, 4]], {"track_ids": [1, 2]}, "track_ids has 2 rows"),
        ([[1, 2, 3, 4]], {"keypoints": np.zeros((2, 1, 3))}, "keypoints has 2 rows"),
        ([[1, 2, 3, 4], [3, 2, 1, 4]], {}, "boxes: row 1"),
        ([[1, 2, 3, float("nan")]], {}, "boxes: row 0"),
        ([[1, 2, 3, 4]], {"scores": [float("inf")]}, "scores: row 0"),
    ],
)
def test_what_cannot_be_written_is_refused(boxes: object, more: dict[str, object], problem: str) -> None:
    """Counts that differ, and numbers that JSON has no word for."""
    with pytest.raises(ValueError, match=problem):
        write(boxes, **more)


def test_class_names_are_counted() -> None:
    """A name is missing: refused, with both counts."""
    with pytest.raises(ValueError, match="class_names has 1 rows, boxes has 2"):
        annotation_from_arrays(SIZE, boxes=[[1, 2, 3, 4]] * 2, class_names=["cat"])
