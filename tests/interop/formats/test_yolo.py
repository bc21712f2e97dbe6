"""Our YOLO folders, opened by supervision; each class name as PyYAML reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from interop.formats.conftest import Theirs
from PIL import Image

from predsession import Prediction, save_predictions
from predsession.wire.geometry import MaskCrop

ODD = ["no", "a/b", "two\nlines", "12", 'quo"te: #']


@pytest.fixture
def found(tmp_path: Path) -> list[Prediction]:
    """A mask with a hole, one of two parts, a box, on each of two pictures; and one without objects."""
    made = []
    for index, name in enumerate(("1.png", "2.jpg", "3.png")):
        Image.new("RGB", (64, 48)).save(tmp_path / name)
        ring = np.zeros((48, 64), np.bool_)
        ring[3:30, 2 + index : 35] = True
        ring[10:20, 9:24] = False
        parts = np.zeros((48, 64), np.bool_)
        parts[33:40, 40:50] = parts[42:47, 52:60] = True
        rows = 0 if index == 2 else 3
        made.append(
            Prediction.from_arrays(
                size=(64, 48),
                masks=[MaskCrop(0, 0, ring), MaskCrop(0, 0, parts), None][:rows],
                boxes=[[2 + index, 3, 35, 30], [40, 33, 60, 47], [1.25, 2.5, 33, 44.75]][:rows],
                classes=[ODD[1], ODD[2], ODD[4]][:rows],
                class_names=ODD,
                path=str(tmp_path / name),
                index=index,
            )
        )
    return made


def grown(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return a mask with the pixels to the right and below: supervision fills up to a line's own pixel."""
    wide = mask.copy()
    wide[:, 1:] |= mask[:, :-1]
    wide[1:] |= wide[:-1].copy()
    return wide


def opened(theirs: Theirs, found: list[Prediction], folder: Path, task: str) -> Any:
    """Write a folder, and return what supervision says."""
    save_predictions(found, folder, task, images="copy")
    return theirs("their_datasets.py", "sv_yolo", folder, folder / "out.npz")


def test_supervision_on_boxes(theirs: Theirs, found: list[Prediction], tmp_path: Path) -> None:
    """The same boxes and classes, whatever the names are; a picture without objects has none."""
    said = opened(theirs, found, tmp_path / "x", "yolo")
    assert said["classes"] == ODD
    for name, one in zip(("1.png", "2.jpg", "3.png"), found, strict=True):
        boxes = np.reshape(said["pictures"][name]["boxes"], (-1, 4))
        assert np.abs(boxes - one.boxes).max(initial=0) < 1e-3
        assert said["pictures"][name]["classes"] == one.classes.tolist()
    assert not np.load(tmp_path / "x" / "out.npz").files


def test_supervision_on_outlines(theirs: Theirs, found: list[Prediction], tmp_path: Path) -> None:
    """One object a line, with its box; its mask to a pixel: the hole is there, parts are one object."""
    said = opened(theirs, found, tmp_path / "x", "yolo-segment")
    masks = np.load(tmp_path / "x" / "out.npz")
    for name, one in zip(("1.png", "2.jpg"), found, strict=False):
        assert np.abs(np.array(said["pictures"][name]["boxes"]) - one.boxes).max() < 1e-3
        assert said["pictures"][name]["classes"] == one.classes.tolist()
        ring, parts, _ = masks[name]
        assert not (one.masks[0] & ~ring).any()
        assert not (ring & ~grown(one.masks[0])).any()
        assert not ring[12:19, 11:23].any()
        assert not (one.masks[1] & ~parts).any()
        assert (parts & ~grown(one.masks[1])).sum() <= 4  # the bridge, which they draw


def test_supervision_on_poses(theirs: Theirs, found: list[Prediction], tmp_path: Path) -> None:
    """It reads the boxes of poses, and knows by kpt_shape that the rest is keypoints."""
    points = np.random.default_rng(0).uniform(0, 40, (3, 5, 3))
    posed = Prediction.from_arrays(
        size=(64, 48), boxes=found[0].boxes, keypoints=points, classes=list(found[0].classes),
        class_names=ODD, path=found[0].path,
    )  # fmt: skip
    said = opened(theirs, [posed], tmp_path / "x", "yolo-pose")
    assert np.abs(np.array(said["pictures"]["1.png"]["boxes"]) - posed.boxes).max() < 1e-3
