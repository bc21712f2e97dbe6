"""A model's results: good ones pass unchanged, each kind of bad one is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from predsession import Prediction
from predsession.server.inference import Inference, describe_error
from predsession.server.models.base import Arrays, Pixels, Settings, describe
from predsession.server.models.card import ModelCard
from predsession.server.models.results import BadResultError, check
from predsession.wire.geometry import MaskCrop, Size

SIZE = Size(40, 20)
BOXES = ModelCard(("cat", "dog"), "rectangle", {}, None, "object detection")
MASKS = ModelCard(("cat", "dog"), "bitmap", {}, None, "instance segmentation")
POSES = ModelCard(("cat",), "graph", {}, None, "pose estimation", keypoints=("nose", "tail"), edges=((0, 1),))
GOOD: dict[str, Any] = {"boxes": [[1, 2, 3.5, 4]], "scores": [0.5], "class_ids": [1]}


def test_good_result_passes() -> None:
    """Numbers keep their values; lists are as good as arrays."""
    found = check(GOOD, SIZE, BOXES)
    assert found.boxes.tolist() == [[1, 2, 3.5, 4]]
    assert (found.scores.tolist(), found.class_ids.tolist(), found.masks) == ([0.5], [1], None)


@pytest.mark.parametrize(
    "nothing",
    [
        {"boxes": [], "scores": [], "class_ids": []},
        {"boxes": np.zeros((0, 4)), "scores": [], "class_ids": []},
    ],
)
def test_no_objects(nothing: dict[str, Any]) -> None:
    """Empty lists of any shape are no objects."""
    assert check(nothing, SIZE, BOXES).boxes.shape == (0, 4)


def test_overshoot_is_cut() -> None:
    """A box that sticks out a little is cut to the picture."""
    assert check({**GOOD, "boxes": [[-3, -2, 44, 25]]}, SIZE, BOXES).boxes.tolist() == [[0, 0, 40, 20]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"boxes": [[1, 2, 3]]}, "not (N, 4)"),
        ({"boxes": [["a", 2, 3, 4]]}, "no array of numbers"),
        ({"boxes": [[1, 2, 3, 4], [1, 2]]}, "no array of numbers"),
        ({"boxes": [[1, 2, float("nan"), 4]]}, "not finite"),
        ({"boxes": [[3, 2, 1, 4]]}, "ends before"),
        ({"boxes": [[50, 2, 60, 4]]}, "outside"),
        ({"boxes": [[1, -9, 2, -5]]}, "outside"),
        ({"scores": [0.1, 0.2]}, "scores have the shape (2,)"),
        ({"scores": [float("inf")]}, "scores are not finite"),
        ({"scores": [1.5]}, "scores reach from 1.5 to 1.5; not from 0 to 1"),
        ({"scores": [-0.1]}, "scores reach from -0.1"),
        ({"class_ids": [0.5]}, "class_ids are not whole numbers"),
        ({"class_ids": [2]}, "from 2 to 2"),
        ({"class_ids": [-1]}, "from -1"),
        ({"class_ids": None}, "class_ids have the shape (0,)"),
        ({"labels": [1]}, "unknown fields labels"),
        ({"masks": np.zeros((1, 5, 5))}, "not (N, 20, 40)"),
        ({"tags": {"mood": "fine"}}, "'mood'"),
        ({"tags": ["fine"]}, "not a dict"),
    ],
)
def test_bad_results_are_named(change: dict[str, Any], words: str) -> None:
    """Each mistake is an error that says which field and how."""
    with pytest.raises(BadResultError) as caught:
        check({**GOOD, **change}, SIZE, BOXES)
    assert words in str(caught.value)


def test_masks_are_cut_and_give_the_boxes() -> None:
    """Whole-picture masks are cut to what they cover, which also is their box; crops pass as they are."""
    masks = np.zeros((2, 20, 40), bool)
    masks[0, 5:8, 10:30] = True
    masks[1, 0, 0] = True
    found = check({"masks": masks, "scores": [1, 1], "class_ids": [0, 1]}, SIZE, MASKS)
    assert found.boxes.tolist() == [[10, 5, 30, 8], [0, 0, 1, 1]]
    assert found.masks is not None
    first = found.masks[0]
    assert first is not None
    assert (first.x, first.y, first.mask.shape) == (10, 5, (3, 20))
    crops = [MaskCrop(1, 2, np.ones((3, 4), bool))]
    assert check({"masks": crops, "scores": [1], "class_ids": [0]}, SIZE, MASKS).boxes.tolist() == [
        [1, 2, 5, 5]
    ]
    with pytest.raises(BadResultError, match="empty"):
        check({"masks": np.zeros((1, 20, 40)), "scores": [1], "class_ids": [0]}, SIZE, MASKS)
    kept = check({**GOOD, "masks": np.zeros((1, 20, 40))}, SIZE, MASKS)
    assert kept.masks == [None], "beside a box an empty mask is no mask"


def test_keypoints() -> None:
    """Two or three columns; the number of points is the model's."""
    found = check({"boxes": [[1, 2, 3, 4]], "scores": [1], "keypoints": [[[1, 2], [3, 4]]]}, SIZE, POSES)
    assert found.class_ids.tolist() == [0], "a model with one class need not name it"
    assert found.keypoints is not None
    assert found.keypoints.tolist() == [[[1, 2, 1], [3, 4, 1]]]
    with pytest.raises(BadResultError, match="keypoints have the shape"):
        check({"boxes": [[1, 2, 3, 4]], "scores": [1], "keypoints": [[[1, 2]]]}, SIZE, POSES)


def test_predictions_are_taken_by_class_name() -> None:
    """A `Prediction` gives the same as its arrays; one of another size or class is an error."""
    made = Prediction.from_arrays(size=SIZE, boxes=[[1, 2, 3.5, 4]], scores=[0.5], classes=["dog"])
    found = check(made, SIZE, BOXES)
    assert (found.boxes.tolist(), found.class_ids.tolist()) == ([[1, 2, 3.5, 4]], [1])
    with pytest.raises(BadResultError, match="40, 20"):
        check(Prediction.from_arrays(size=(9, 9), boxes=[[1, 2, 3, 4]], classes=["dog"]), SIZE, BOXES)
    with pytest.raises(BadResultError, match="'cow'"):
        check(Prediction.from_arrays(size=SIZE, boxes=[[1, 2, 3, 4]], classes=["cow"]), SIZE, BOXES)


class Moody:
    """Fails on pictures whose first value is odd."""

    classes = ("thing",)

    def predict(self, images: list[Pixels], settings: Settings) -> list[Arrays]:
        """Return one box a picture."""
        if any(image[0, 0, 0] % 2 for image in images):
            raise KeyError("odd")
        return [{"boxes": [[0, 0, 2, 2], [1, 1, 2, 2]], "scores": [0.9, 0.1]} for _ in images]


def test_failing_batch_is_tried_picture_by_picture() -> None:
    """Only the culprit gets the error where that is wanted; else all of the batch do."""
    inference = Inference(Moody(), describe(Moody()), name="moody", float_boxes=True)
    images = [np.full((4, 4, 3), value, np.uint8) for value in (0, 1, 2)]
    outcomes = inference.run(images, {}, singly=True)
    assert [outcome.error is None for outcome in outcomes] == [True, False, True]
    error = outcomes[1].error
    assert error is not None
    assert (error["type"], error["message"]) == ("KeyError", "model moody: 'odd'")
    assert "predict" in str(error["traceback"])
    assert all(outcome.error is not None for outcome in inference.run(images, {}, singly=False))


def test_conf_and_classes_hold_for_every_model() -> None:
    """The server drops rows below conf and of other classes, whatever the model returns."""
    inference = Inference(Moody(), describe(Moody()), name="", float_boxes=False)
    (outcome,) = inference.run([np.zeros((4, 4, 3), np.uint8)], {"conf": 0.5}, singly=True)
    assert outcome.item.count(b'"classTitle"') == 1
    (outcome,) = inference.run([np.zeros((4, 4, 3), np.uint8)], {"classes": []}, singly=True)
    assert outcome.item.count(b'"classTitle"') == 0


def test_rounding_is_no_mistake() -> None:
    """A score that is over 1 by the rounding of a network's arithmetic counts as 1."""
    assert check({**GOOD, "scores": [1.0001]}, SIZE, BOXES).scores.tolist() == [1]


def test_errors_without_words() -> None:
    """An exception that says nothing is described all the same."""
    assert describe_error(MemoryError(), "m")["message"] == "model m: out of memory"
    assert describe_error(KeyboardInterrupt())["message"] == "KeyboardInterrupt"


class Spoiler:
    """Changes its settings, and takes one picture at a time."""

    def predict(self, images: list[Any], settings: Any) -> list[Any]:
        """Take a side away, and make a box of it."""
        side = settings["sides"].pop()
        if len(images) > 1:
            raise ValueError("one at a time")
        return [{"boxes": [[0, 0, side, side]], "scores": [1], "class_ids": [0]}]


def test_settings_that_a_model_changes() -> None:
    """A model that changes its settings finds them whole at the next picture."""
    pictures = [np.zeros((SIZE.height, SIZE.width, 3), np.uint8)] * 3
    inference = Inference(Spoiler(), BOXES, name="m", float_boxes=True)
    outcomes = inference.run(pictures, {"sides": [3]}, singly=True)
    assert [outcome.error for outcome in outcomes] == [None] * 3
