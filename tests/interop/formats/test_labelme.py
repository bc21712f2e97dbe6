"""Our LabelMe files, opened by LabelMe itself, and by supervision."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import predictions
import pytest
from interop.formats.conftest import Theirs
from PIL import Image

from predsession import Prediction
from predsession.export.saving import save_predictions

BOXES = [[0.0, 0.0, 10.0, 10.0], [3.5, 4.0, 64.0, 48.0]]


def picture(path: Path, size: tuple[int, int] = (64, 48)) -> Path:
    """Write a picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size).save(path)
    return path


@pytest.mark.parametrize("images", [None, "copy"])
def test_labelme_opens_every_geometry(theirs: Theirs, tmp_path: Path, images: Any) -> None:
    """With the picture where it lies, or beside; masks fill the same pixels."""
    zoo = replace(predictions.zoo(), path=str(picture(tmp_path / "in" / "zoo.png", (1280, 720))))
    save_predictions([zoo], tmp_path / "out", "labelme", images=images)
    answer: Any = theirs("their_annotations.py", "files", tmp_path / "out")
    one = answer["zoo.json"]
    assert one["size"] == [1280, 720]
    own = [each for each in one["shapes"] if each[3] is None or each[1] != "point"]
    assert [each[0] for each in own] == zoo.classes.tolist()
    assert all("score" in kept for kept, each in zip(one["kept"], one["shapes"], strict=True) if each in own)
    for row, each in enumerate(own):
        if each[1] == "mask":
            bits = np.frombuffer(base64.b64decode(one["filled"][one["shapes"].index(each)]), np.uint8)
            filled = np.unpackbits(bits, count=1280 * 720).reshape(720, 1280)
            assert np.array_equal(filled, zoo.masks[row]), each[0]


def test_labelme_opens_what_is_odd(theirs: Theirs, tmp_path: Path) -> None:
    """Labels with anything in them, pictures without objects, tags, folders."""
    first, second = picture(tmp_path / "in" / "a" / "1.jpg"), picture(tmp_path / "in" / "b" / "1.jpg")
    many = [
        Prediction.from_arrays(
            size=(64, 48), path=first, boxes=BOXES, classes=["a/b", '"\n😀'], tags=["sunny"], track_ids=[1, 2]
        ),
        Prediction.from_arrays(size=(64, 48), path=second, index=1, name="b"),
    ]
    save_predictions(many, tmp_path / "out", "labelme", root=tmp_path / "in")
    save_predictions(many[:1], tmp_path / "one", "labelme", root=tmp_path / "in", images="link")
    answer: Any = theirs("their_annotations.py", "files", tmp_path / "one")
    assert answer["1.json"]["flags"] == {"sunny": True}
    points = [[box[:2], box[2:]] for box in BOXES]
    assert answer["1.json"]["shapes"] == [
        ["a/b", "rectangle", points[0], None], ['"\n😀', "rectangle", points[1], None],
    ]  # fmt: skip
    assert theirs("their_annotations.py", "files", tmp_path / "out")


def test_supervision_reads_boxes_and_polygons(theirs: Theirs, tmp_path: Path) -> None:
    """As they are, fractions included; it passes over masks and points, and says so."""
    ring = [[1.0, 1.0], [9.0, 1.0], [9.0, 9.0]]
    many = [
        Prediction.from_arrays(
            size=(64, 48), path=picture(tmp_path / "in" / "1.jpg"), boxes=BOXES, classes=["cat", "dog"]
        ),
        Prediction.from_arrays(
            size=(64, 48), path=picture(tmp_path / "in" / "2.jpg"), polygons=[ring], classes=["cat"], index=1
        ),
    ]
    save_predictions(many, tmp_path / "out", "labelme", images="copy")
    assert theirs("their_annotations.py", "labelme", tmp_path / "out") == {
        "1.jpg": [["cat", BOXES[0]], ["dog", BOXES[1]]],
        "2.jpg": [["cat", [1.0, 1.0, 9.0, 9.0]]],
    }
