"""Results of an edge runtime: what can be asked of them, and the `Prediction` they become."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from predsession import Prediction, ProtocolError, RefusedError
from predsession.edge import (
    BoundingBox,
    Classification,
    DetectedObject,
    Embedding,
    InferenceResult,
    LandmarkPoint,
    LandmarkSet,
    OcrLine,
    Parts,
    SegmentationMask,
    crops,
)

LEFT, RIGHT = BoundingBox(0.0, 0.0, 0.5, 1.0), BoundingBox(0.5, 0.25, 0.5, 0.5)
NOWHERE = BoundingBox(0.0, 0.0, 0.0, 0.0)


def _result(**parts: object) -> InferenceResult:
    """A result with these parts."""
    return InferenceResult(parts=Parts(**parts))


def test_questions() -> None:
    """Objects are found by label; a person in any case of letters."""
    objects = (
        DetectedObject("Person", 0.5, LEFT),
        DetectedObject("cat", 0.25, RIGHT),
        DetectedObject("cat", 1, LEFT),
    )
    result = _result(objects=objects)
    assert result.has_person()
    assert not _result(objects=objects[1:]).has_person()
    assert result.count_by_label("cat") == 2
    assert result.get_objects_by_label("cat") == list(objects[1:])
    assert result.ok
    assert result


def test_a_failed_result_gives_nothing_but_its_error() -> None:
    """No part of it can be read as "nothing was found"."""
    result = InferenceResult(error=RefusedError("no"))
    assert not result
    for name in ("objects", "classifications", "landmarks", "masks", "ocr_lines", "embeddings", "depth_maps"):
        with pytest.raises(RefusedError):
            getattr(result, name)
    for ask in (result.raise_for_status, result.has_person, lambda: result.to_prediction(2, 2)):
        with pytest.raises(RefusedError):
            ask()


def test_objects_become_a_prediction() -> None:
    """Boxes are in pixels, classes and ids are the runtime's; it can be drawn, written and read back."""
    picture = np.zeros((48, 64, 3), np.uint8)
    objects = (DetectedObject("cat", 0.5, RIGHT, 15), DetectedObject("", 0.25, LEFT, 3))
    made = _result(objects=objects).to_prediction(64, 48, image=picture, index=4, name="a.png")
    np.testing.assert_array_equal(made.boxes, [[32, 12, 64, 36], [0, 0, 32, 48]])
    assert list(made.classes) == ["cat", "class 3"]
    assert made.class_ids.tolist() == [15, 3]
    assert made.scores.tolist() == [0.5, 0.25]
    assert (made.size, made.index, made.name) == ((64, 48), 4, "a.png")
    assert made.visualize().any()
    assert Prediction.from_json(made.to_json()) == made


def test_nothing_becomes_an_empty_prediction() -> None:
    """A picture in which nothing was found is a prediction without objects."""
    made = _result().to_prediction(8, 6)
    assert len(made) == 0
    assert made.boxes.shape == (0, 4)


def test_masks_are_brought_to_the_pictures_size() -> None:
    """A mask at the model's size covers the whole picture; its box is around its pixels."""
    small = np.zeros((2, 4), bool)
    small[1, 1:3] = True
    made = _result(masks=(SegmentationMask.from_mask(small, class_id=1, label="sky"),)).to_prediction(16, 8)
    full = np.zeros((8, 16), bool)
    full[4:8, 4:12] = True
    np.testing.assert_array_equal(made.masks[0], full)
    np.testing.assert_array_equal(made.boxes, [[4, 4, 12, 8]])
    assert list(made.classes) == ["sky"]
    assert made.scores.tolist() == [1.0]


def test_masks_and_landmarks_that_belong_to_objects() -> None:
    """Masks with the objects' boxes, and as many landmarks as objects, are theirs; others stand alone."""
    objects = (DetectedObject("a", 0.5, LEFT), DetectedObject("b", 0.75, RIGHT))
    whole = np.ones((2, 2), bool)
    masks = tuple(SegmentationMask.from_mask(whole, label="m", bbox=each) for each in (LEFT, RIGHT))
    points = tuple(LandmarkSet("face", (LandmarkPoint(0.5, 0.5), LandmarkPoint(0, 0, 0))) for _ in range(2))
    made = _result(objects=objects, masks=masks, landmarks=points).to_prediction(4, 4)
    assert list(made.classes) == ["a", "b"]
    assert made.masks.all()
    assert made.keypoints[0].tolist()[0][:2] == [2, 2]
    alone = tuple(SegmentationMask.from_mask(whole, label="m", bbox=NOWHERE) for _ in range(2))
    made = _result(objects=objects, masks=alone, landmarks=points[:1]).to_prediction(4, 4)
    assert list(made.classes) == ["a", "b", "m", "m", "face"]


def test_the_rest_has_its_place() -> None:
    """Classes become tags, text becomes objects and data, vectors become data."""
    made = _result(
        classifications=(Classification("age", 1, "old", 0.5),),
        ocr_lines=(OcrLine("Straße", 0.75, RIGHT),),
        embeddings=(Embedding(2, np.array([1, 0.5], np.float32)),),
    ).to_prediction(64, 48)
    assert list(made.classes) == ["text"]
    assert made.data == {"text": ["Straße"], "embeddings": [[1.0, 0.5]]}
    assert "old" in str(made.tags)


def test_numbers_that_are_none() -> None:
    """A box or a score that is no number is the runtime's mistake, and a ProtocolError."""
    for bad in (
        DetectedObject("a", float("nan"), LEFT),
        DetectedObject("a", 1, BoundingBox(0, 0, float("inf"), 1)),
    ):
        with pytest.raises(ProtocolError):
            _result(objects=(bad,)).to_prediction(4, 4)
    with pytest.raises(ValueError, match="size"):
        _result().to_prediction()


def test_masks_take_what_they_need() -> None:
    """Many small masks of a large picture are kept as what is set of them, not as a picture each."""
    down, across = np.mgrid[:160, :160]
    masks = tuple(
        SegmentationMask.from_mask((across - 20 - each) ** 2 + (down - 80) ** 2 < 100, label="x")
        for each in range(50)
    )
    _result(masks=masks[:1]).to_prediction(64, 64)  # what is imported at first use
    tracemalloc.start()
    try:
        made = _result(masks=masks).to_prediction(3840, 2160)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert made.boxes[0].tolist() == [11 * 24, 958, 30 * 24, 90 * 13.5]


def test_masks_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes that say "a thousand masks, each of a whole picture" are an error, at once."""
    monkeypatch.setattr(crops, "MAX_MASK_PIXELS", 1 << 22)
    whole = SegmentationMask(0, "x", 0.5, NOWHERE, bytes([0, 0x80, 0x80, 0x40]), 1 << 10, 1 << 10)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="masks of one picture"):
            _result(masks=(whole,) * 1000).to_prediction(64, 48)
        pixel = SegmentationMask(0, "x", 0.5, NOWHERE, b"\0\1", 1, 1)
        with pytest.raises(ProtocolError, match="masks of one picture"):
            _result(masks=(pixel,) * 1000).to_prediction(1500, 1000)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_masks_with_nothing_in_them() -> None:
    """An empty mask, or one that the picture is too coarse for, is an object without pixels."""
    dot = np.zeros((100, 100), bool)
    dot[3, 3] = True
    masks = (SegmentationMask(0, "x", 0, NOWHERE, b"", 0, 0), SegmentationMask.from_mask(dot))
    made = _result(masks=masks).to_prediction(4, 4)
    assert made.boxes.tolist() == [[0, 0, 0, 0]] * 2
    assert not made.masks.any()


@pytest.mark.parametrize("bad", [1e38, 3e38, -1e20, float("inf"), float("nan")])
def test_places_that_are_none(bad: float) -> None:
    """A place that is no number, or beyond all pictures, is the runtime's mistake, wherever it is."""
    box = BoundingBox(bad, 0, 1, 1)
    for parts in (
        {"objects": (DetectedObject("a", 1, box),)},
        {"objects": (DetectedObject("a", 1, BoundingBox(0, 0, 1, bad)),)},
        {"ocr_lines": (OcrLine("a", 1, box),)},
        {"landmarks": (LandmarkSet("face", (LandmarkPoint(0, bad),)),)},
        {"classifications": (Classification("age", 1, "old", bad),)},
        {"embeddings": (Embedding(1, np.array([np.inf], np.float32)),)},
    ):
        with pytest.raises(ProtocolError, match="the runtime sent"):
            _result(**parts).to_prediction(64, 48)


def test_two_classes_with_one_label() -> None:
    """The surer one is the picture's tag, whichever comes first."""
    classes = (Classification("age", 1, "adult", 0.75), Classification("height", 1, "adult", 0.25))
    for order in (classes, classes[::-1]):
        assert dict(_result(classifications=order).to_prediction(4, 4).tags) == {"adult": 0.75}
