"""Our COCO documents, opened by pycocotools and supervision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interop.formats.conftest import Theirs
from PIL import Image

from predsession import Prediction, save_predictions
from predsession.wire.geometry import MaskCrop

NAMES = ("a/1.png", "b/1.jpg", "b/1.png")
HOLE = [[[30, 20], [60, 20], [60, 45], [30, 45]], [[40, 30], [50, 30], [50, 40]]]


@pytest.fixture
def found(tmp_path: Path) -> list[Prediction]:
    """Masks with holes and parts, a polygon with a hole, a box, on pictures of nested folders; one empty."""
    made = []
    for index, name in enumerate(NAMES):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (64, 48)).save(path)
        mask = np.zeros((48, 64), np.bool_)
        mask[3:20, 2 + index : 25] = mask[30:33, 5:9] = True
        mask[8:12, 9:14] = False
        made.append(
            Prediction.from_arrays(
                size=(64, 48),
                masks=[MaskCrop(0, 0, mask), None, None],
                boxes=[[2 + index, 3, 25, 33], [30, 20, 61, 46], [1.25, 2.5, 33, 44.75]],
                polygons=[None, HOLE, None],
                scores=[0.5, 0.25, 0.75],
                classes=["b", "a", "new/one"],
                class_names=["a", "b", "c"],
                path=str(path),
                index=index,
            )
        )
    empty = Prediction.from_arrays(
        size=(9, 9), boxes=np.zeros((0, 4)), path=str(tmp_path / "in/z.png"), index=3
    )
    return [*made, empty]


def test_run_lengths_are_theirs(theirs: Theirs) -> None:
    """Packed to the character, for 500 masks; and read back from theirs."""
    assert theirs("their_datasets.py", "rle", 500) == []


def test_pycocotools(theirs: Theirs, found: list[Prediction], tmp_path: Path) -> None:
    """Opens it, has our masks to the pixel, and finds that it agrees with itself: precision 1."""
    save_predictions(found, tmp_path / "x.json", "coco", root=tmp_path / "in")
    # Of a polygon without a hole and of a box they take the pixels whose middle is inside: theirs to say.
    wanted = {
        str(3 * index + row + 1): each.masks[row] for index, each in enumerate(found[:3]) for row in (0, 1)
    }
    np.savez(tmp_path / "wanted.npz", **wanted)
    said: Any = theirs("their_datasets.py", "coco", tmp_path / "x.json", tmp_path / "wanted.npz")
    assert said["images"] == [*NAMES, "z.png"]
    assert said["categories"] == {"a": 1, "b": 2, "c": 3, "new/one": 4}
    assert said["annotations"] == 9
    assert said["differ"] == dict.fromkeys(wanted, 0)
    assert said["empty"] == []
    assert said["precision"] == {"bbox": 1, "segm": 1}


def test_pycocotools_on_boxes_and_keypoints(theirs: Theirs, tmp_path: Path) -> None:
    """Without a mask anywhere there is no segmentation, and everything else works."""
    points = [[[3, 4, 1], [5, 6, 0], [0, 0, 0]], [[30, 20, 1], [31, 22, 1], [33, 25, 1]]]
    one = Prediction.from_arrays(
        size=(64, 48), boxes=[[1, 1, 9, 9], [25, 15, 44, 40]], keypoints=points, classes=["p", "p"]
    )
    save_predictions([one], tmp_path / "x.json", "coco")
    np.savez(tmp_path / "none.npz")
    said: Any = theirs("their_datasets.py", "coco", tmp_path / "x.json", tmp_path / "none.npz")
    assert said["precision"] == {"bbox": 1, "keypoints": 1}


def test_supervision(theirs: Theirs, found: list[Prediction], tmp_path: Path) -> None:
    """The same boxes, classes and masks; a box beside masks has its corners as one."""
    save_predictions(found, tmp_path / "x.json", "coco", root=tmp_path / "in")
    said: Any = theirs(
        "their_datasets.py", "sv_coco", tmp_path / "in", tmp_path / "x.json", tmp_path / "out.npz"
    )
    assert said["classes"] == ["a", "b", "c", "new/one"]
    masks = np.load(tmp_path / "out.npz")
    for name, one in zip(NAMES, found, strict=False):
        assert np.array_equal(np.float32(said["pictures"][name]["boxes"]), one.boxes)
        assert said["pictures"][name]["classes"] == one.classes.tolist()
        assert (masks[name][:2] == one.masks[:2]).all()
        assert masks[name][2].sum() > 32 * 42
    assert said["pictures"]["z.png"] == {"boxes": [], "classes": []}


def test_supervision_makes_no_masks_of_boxes(theirs: Theirs, found: list[Prediction], tmp_path: Path) -> None:
    """Where no object has one: each would be as large as its picture."""
    some = [
        each.where(np.array([each_shape == "rectangle" for each_shape in each.shapes], bool))
        for each in found
    ]
    save_predictions(some, tmp_path / "x.json", "coco", root=tmp_path / "in")
    said: Any = theirs(
        "their_datasets.py", "sv_coco", tmp_path / "in", tmp_path / "x.json", tmp_path / "out.npz"
    )
    assert not np.load(tmp_path / "out.npz").files
    assert np.array_equal(np.float32(said["pictures"][NAMES[0]]["boxes"]), some[0].boxes)
