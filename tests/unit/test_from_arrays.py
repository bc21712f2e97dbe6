"""`Prediction.from_arrays`: a model's own arrays, kept as they are, or refused by name."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from predictions import META, found

from predsession.prediction import Prediction
from predsession.wire.fields import Tag
from predsession.wire.geometry import MaskCrop
from predsession.wire.meta import ModelMeta


def test_from_arrays_gives_back_what_it_got() -> None:
    """Boxes, scores, classes, masks, keypoints, polygons, tags and tracks, row by row."""
    masks = np.zeros((2, 48, 64), bool)
    masks[0, 5:20, 7:30] = True
    keypoints = np.array([[[3, 4, 1], [5.5, 6.25, 0]], [[7, 8, 1], [9, 10, 2]]], np.float32)
    ring = [[1, 1], [20, 1], [20.5, 30]]
    p = found(
        scores=[0.25, 0.75],
        class_ids=[1, 0],
        class_names=["cat", "dog"],
        masks=masks,
        keypoints=keypoints,
        polygons=[[ring, [[3, 2], [4, 2], [4, 3]]], None],
        tags={"night": None, "count": 2},
        track_ids=[5, -1],
        path=Path("a") / "b.jpg",
    )
    assert p.boxes.tolist() == [[1.5, 2, 30, 40], [10, 10, 20, 20.25]]
    assert p.scores.tolist() == [0.25, 0.75]
    assert p.classes.tolist() == ["dog", "cat"]
    assert p.class_ids.tolist() == [1, 0]
    assert (p.masks == masks).all()
    assert p.keypoints.tolist() == [[[3, 4, 1], [5.5, 6.25, 0]], [[7, 8, 1], [9, 10, 1]]]
    assert p.polygons[0][0].tolist() == ring
    assert len(p.polygons[0]) == 2
    assert p.polygons[1] == ()
    assert p.tags == (Tag("night", None), Tag("count", 2))
    assert p.track_ids.tolist() == [5, -1]
    assert (p.name, p.path) == ("b.jpg", "a/b.jpg")


def test_boxes_come_from_what_is_there() -> None:
    """Without boxes they are those of masks, of outlines, or of visible keypoints."""
    masks = [MaskCrop(7, 5, np.ones((15, 23), bool)), MaskCrop(0, 0, np.zeros((2, 2), bool))]
    assert Prediction.from_arrays(size=(64, 48), masks=masks).boxes.tolist() == [[7, 5, 30, 20], [0, 0, 0, 0]]
    rings = [[[1, 2], [9, 2], [9, 7]]]
    assert Prediction.from_arrays(size=(64, 48), polygons=rings).boxes.tolist() == [[1, 2, 10, 8]]
    points = [[[3, 4, 1], [60, 40, 0], [10, 12, 1]]]
    assert Prediction.from_arrays(size=(64, 48), keypoints=points).boxes.tolist() == [[3, 4, 11, 13]]


def test_invisible_keypoints_may_be_nan() -> None:
    """Models write NaN where they see nothing; it becomes 0, 0, invisible."""
    p = found(keypoints=[[[np.nan, np.nan, 0]], [[1, 2, 1]]])
    assert p.keypoints.tolist() == [[[0, 0, 0]], [[1, 2, 1]]]
    assert found(keypoints=np.ones((2, 3, 2))).keypoints[..., 2].tolist() == [[1, 1, 1]] * 2


def test_keypoints_take_the_names_of_their_skeleton() -> None:
    """A class with as many nodes gives them its names, so that they can be joined when drawn."""
    p = Prediction.from_arrays(size=(64, 48), keypoints=np.ones((1, 3, 3)), classes=["graph"], meta=META)
    assert p.keypoint_ids == ("nose", "neck", "tail")
    assert p.class_ids.tolist() == [9]


def test_classes_without_a_model() -> None:
    """Names alone make a model of those names; without any, all are objects."""
    assert found(classes=["dog", "cat"]).class_ids.tolist() == [0, 1]
    assert found().classes.tolist() == ["object"] * 2
    assert found(scores=None).scores.tolist() == [1, 1]


def test_the_image_is_the_size_and_the_picture() -> None:
    """A picture in memory gives the size, is what load_image returns, and cannot be changed through it."""
    image = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    p = Prediction.from_arrays(image=image, boxes=[[0, 0, 2, 2]])
    assert p.size == (6, 4)
    p.load_image()[:] = 0
    assert (pickle.loads(pickle.dumps(p)).load_image() == image).all()
    assert Prediction.from_arrays(image=image[:, :, 0]).load_image().shape == (4, 6, 3)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"size": None}, "size is None; wanted"),
        ({"size": (64, 0)}, "size is"),
        ({"size": (64.5, 48)}, "size is"),
        ({"size": 64}, "size is 64"),
        ({"image": np.zeros((48, 64, 3), np.uint8), "size": (48, 64)}, "size is .* image is 64 x 48"),
        ({"image": np.zeros((48, 64, 3)), "size": None}, r"image is \(48, 64, 3\) float64; wanted .* uint8"),
        ({"image": np.zeros((3, 48, 64), np.uint8), "size": None}, r"image is \(3, 48, 64\)"),
        ({"boxes": [1, 2, 3, 4]}, r"boxes is \(4,\) int64; wanted \(N, 4\)"),
        ({"boxes": [[1, 2, 3]]}, r"boxes is \(1, 3\)"),
        ({"boxes": [[1, 2, 3, 4], [1, 2]]}, "boxes is a ragged list"),
        ({"boxes": [["a"] * 4]}, "boxes is .*; wanted .* numbers"),
        ({"boxes": [[5, 2, 3, 4]]}, "boxes: row 0"),
        ({"boxes": [[1, 2, 3, np.nan]]}, "boxes: row 0"),
        ({"boxes": [[1, 2, 3, 1e9]]}, "boxes: row 0 .* wanted pixels"),
        ({"scores": [[1, 2]]}, r"scores is \(1, 2\) int64; wanted \(N,\)"),
        ({"scores": [1]}, "scores has 1 rows, boxes has 2"),
        ({"scores": [1, np.nan]}, "scores: row 1"),
        ({"class_ids": [0, 1]}, "class_ids need names"),
        ({"class_ids": [0, 2], "class_names": ["a", "b"]}, "class_ids: row 1 is 2; wanted 0 to 1"),
        ({"class_ids": [0.5, 1], "class_names": ["a", "b"]}, "class_ids is .* wanted .* whole numbers"),
        ({"class_ids": [0], "class_names": ["a"]}, "classes or class_ids: 1 rows, boxes has 2"),
        ({"class_ids": [0, 0], "classes": ["a", "b"]}, "class_ids and classes"),
        ({"classes": ["a"]}, "classes or class_ids: 1 rows"),
        ({"class_names": ["a"], "meta": ModelMeta()}, "class_names and meta"),
        ({"class_names": ["a", "a"]}, "class_names has a name twice"),
        ({"masks": np.ones((2, 64, 48), bool)}, r"masks is \(2, 64, 48\) bool; wanted \(N, 48, 64\) bool"),
        ({"masks": np.ones((2, 48, 64))}, "masks is .* float64"),
        ({"masks": [None, 3]}, "masks: row 1"),
        (
            {"masks": [None, MaskCrop(60, 0, np.ones((5, 5), bool))]},
            "masks: row 1 covers 5 x 5 pixels at 60, 0",
        ),
        ({"masks": [None]}, "masks has 1 rows"),
        ({"polygons": [[[1, 2, 3]], None]}, r"polygons: row 0 has a ring of shape \(1, 3\)"),
        ({"polygons": [3, None]}, "polygons: row 0"),
        ({"polygons": [[[1, 2], [3, np.nan]], None]}, "polygons: row 0"),
        ({"keypoints": np.ones((2, 3))}, r"keypoints is \(2, 3\) float64; wanted \(N, K, 3\)"),
        ({"keypoints": [[[np.nan, 1, 1]]] * 2}, "keypoints has a visible point"),
        ({"keypoints": np.ones((1, 1, 3))}, "keypoints has 1 rows"),
        ({"track_ids": [0.5, 1]}, "track_ids is .* whole numbers"),
        ({"track_ids": [1]}, "track_ids has 1 rows"),
        ({"tags": [3]}, "tags: 3"),
        ({"tags": {"a": [1]}}, "tags: "),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, object], problem: str) -> None:
    """A ValueError that names the argument, says what it is and what is wanted."""
    with pytest.raises(ValueError, match=f"^{problem}"):
        found(**arguments)
