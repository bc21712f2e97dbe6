"""YOLO folders: what is written, and what comes back."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from predictions import found, zoo
from yolo_kit import back, body, picture, texts

from predsession import Prediction, read_predictions, save_predictions
from predsession.export.bridged import join, mask_within
from predsession.wire.geometry import MaskCrop
from predsession.wire.rings import mask_rings


def test_what_a_folder_says(tmp_path: Path) -> None:
    """Class, middle and sides, from 0 to 1; a picture without objects has an empty file."""
    one = found(scores=[0.9, 0.25], classes=["cat", "dog"], class_names=["dog", "cat"], path="in/a/1.jpg")
    none = Prediction.from_arrays(size=(9, 9), boxes=np.zeros((0, 4)), path="in/2.jpg", index=1)
    saved = save_predictions([one, none], tmp_path / "x", "yolo", root="in")
    assert texts(tmp_path / "x") == {
        "2.txt": "",
        "a/1.txt": "1 0.24609375 0.4375 0.4453125 0.7916666667\n"
        "0 0.234375 0.3151041667 0.15625 0.2135416667\n",
    }
    assert saved.left_out == {"scores": 2}
    data = yaml.safe_load((tmp_path / "x" / "data.yaml").read_text())
    names = {0: "dog", 1: "cat"}
    assert data == {"train": "images", "val": "images", "nc": 2, "names": names}
    assert not (tmp_path / "x" / "images").exists()


def test_scores_stand_last(tmp_path: Path) -> None:
    """With scores=True, in each of the three; and come back to the bit."""
    one = Prediction.from_arrays(
        size=(64, 48), boxes=[[4, 4, 21, 21]], scores=np.array([0.9], np.float32),
        polygons=[[[4, 4], [20, 4], [4, 20]]],
    )  # fmt: skip
    posed = Prediction.from_arrays(
        size=(64, 48), boxes=[[4, 4, 21, 21]], scores=np.array([0.9], np.float32), keypoints=[[[5, 6, 1]]]
    )
    for task, each in (("yolo", one), ("yolo-segment", one), ("yolo-pose", posed)):
        (again,) = back([each], tmp_path / task, task, scores=True)
        (text,) = texts(tmp_path / task).values()
        assert text.endswith(" 0.9\n")
        assert again.scores.tolist() == one.scores.tolist()


@st.composite
def boxed(draw: st.DrawFn) -> Prediction:
    """Return a prediction with boxes inside a picture."""
    width, height = draw(st.integers(1, 30_000)), draw(st.integers(1, 30_000))
    boxes = []
    for _ in range(draw(st.integers(0, 4))):
        x1, x2 = sorted(draw(st.tuples(*[st.floats(0, width, width=32)] * 2)))
        y1, y2 = sorted(draw(st.tuples(*[st.floats(0, height, width=32)] * 2)))
        boxes.append([x1, y1, x2, y2])
    return Prediction.from_arrays(
        size=(width, height),
        boxes=boxes,
        classes=[draw(st.text(max_size=4)) for _ in boxes],
        tags=draw(st.sampled_from(((), ("day",)))),
        name=draw(
            st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="/"), max_size=4)
        ),
        index=draw(st.integers(0, 3)),
        data=draw(st.sampled_from(({}, {"more": [1]}))),
    )


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(boxed(), max_size=3))
def test_boxes_come_back(tmp_path: Path, some: list[Prediction]) -> None:
    """To a thousandth of a pixel, with sizes, classes, names, tags, in their order, without a picture."""
    again = back(some, Path(tempfile.mkdtemp(dir=tmp_path)))
    assert len(again) == len(some)
    for one, other in zip(again, some, strict=True):
        assert np.abs(one.boxes - other.boxes).max(initial=0) <= 1e-3 + 30_000 * 2**-24
        assert one.classes.tolist() == other.classes.tolist()
        assert (one.size, one.name, one.index, one.tags, one.data) == (
            other.size, other.name, other.index, other.tags, other.data
        )  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 999), st.sampled_from((0.1, 0.5, 0.8)))
def test_masks_come_back(tmp_path: Path, width: int, height: int, seed: int, share: float) -> None:
    """To the pixel, with their parts and holes, one line an object."""
    mask = np.random.default_rng(seed).random((height, width)) < share
    mask[0, 0] = True
    one = Prediction.from_arrays(size=(width, height), masks=[MaskCrop(0, 0, mask)])
    folder = tmp_path / f"{width}-{height}-{seed}-{share}"
    (again,) = back([one], folder, "yolo-segment", overwrite=True)
    (text,) = texts(folder).values()
    assert text.count("\n") == 1
    assert (again.masks == one.masks).all()
    assert (again.boxes == one.boxes).all()


def test_many_parts_are_joined_without_looking_for_the_nearest() -> None:
    """A mask like noise: thousands of parts and holes, and still the same pixels."""
    mask = np.random.default_rng(1).random((120, 130)) < 0.4
    rings = [ring.astype(np.float64) for piece in mask_rings(mask) for ring in (piece.outline, *piece.holes)]
    assert len(rings) > 500
    crop = mask_within(join(rings))
    assert crop is not None
    whole = np.zeros_like(mask)
    whole[crop.y : crop.y + crop.mask.shape[0], crop.x : crop.x + crop.mask.shape[1]] = crop.mask
    assert (whole == mask).all()


@pytest.mark.parametrize(
    "ring",
    [
        [[0, 0], [4, 0], [0, 4]],
        [[0, 0], [4, 0], [4, 3.5], [0, 3.5]],
        [[0, 0], [4, 0], [5, 1], [0, 4]],
        [[0, 0], [4, 0], [4, 0], [0, 0]],
    ],
)
def test_what_is_no_mask(ring: list[list[float]]) -> None:
    """A slanted line that is no bridge, half a pixel, no pixel at all: a polygon."""
    assert mask_within(np.array(ring, np.float64)) is None


def test_each_geometry_has_a_line_in_each_task(tmp_path: Path) -> None:
    """No object disappears; what becomes of its geometry is counted."""
    one = zoo()
    for task in ("yolo", "yolo-segment", "yolo-pose"):
        saved = save_predictions([one], tmp_path / task, task)
        (text,) = texts(tmp_path / task).values()
        beyond = saved.left_out.get("objects outside the picture", 0)
        assert text.count("\n") == len(one) - beyond
        assert beyond == 0
        assert saved.left_out["lines"] == one.shapes.count("line")
        assert ("masks" in saved.left_out) == (task != "yolo-segment")
        points = one.shapes.count("point")  # the keypoint of a point is none of the skeleton's
        assert (saved.left_out["keypoints"] == points) == (task == "yolo-pose")
        (again,) = read_predictions(tmp_path / task)
        assert again.classes.tolist() == one.classes.tolist()
        assert again.tags == one.tags


def test_polygons_and_boxes_among_outlines(tmp_path: Path) -> None:
    """A polygon keeps its points, a box becomes its corners and a box again, a hole is counted."""
    hole = [[[4, 4], [30, 4], [17, 40]], [[15, 10], [18, 10], [17, 15]]]
    one = Prediction.from_arrays(
        size=(64, 48),
        boxes=[[1.5, 2, 9, 9], [4, 4, 31, 41], [20, 20, 60, 40]],
        polygons=[None, hole, [[22, 22], [58, 25], [40, 39.5]]],
    )
    saved = save_predictions([one], tmp_path / "x", "yolo-segment")
    assert saved.left_out == {"holes": 1, "boxes": 1}
    (again,) = read_predictions(tmp_path / "x")
    assert np.abs(again.boxes[:2] - one.boxes[:2]).max() < 1e-3
    assert again.shapes == ("rectangle", "polygon", "polygon")
    assert again.boxes[0].tolist() == [1.5, 2, 9, 9]
    assert np.abs(again.polygons[2][0] - one.polygons[2][0]).max() < 1e-3


def outlined(**more: object) -> Prediction:
    """Return a picture with each kind of outline that a line does not tell from another."""
    mask = np.ones((4, 5), np.bool_)
    square, angle = [[8, 8], [20, 8], [20, 16], [8, 16]], [[1, 1], [9, 1], [9, 5], [5, 5], [5, 9], [1, 9]]
    arrays = {
        "size": (64, 48),
        "boxes": [[3, 2, 8, 6], [8, 8, 21, 17], [8, 8, 20, 16], [1.02, 1, 9.02, 49.56], [1, 1, 10, 10],
                  [2.25, 3, 9, 9], [5, 6, 8, 9], [4, 4, 5, 5]],
        "masks": [MaskCrop(3, 2, mask), *[None] * 7],
        "polygons": [None, square, square, [[1.02, 1], [8.02, 1], [4, 48.56]], angle,
                     None, [[5, 6], [7, 8]], [[4, 4]]],
    }  # fmt: skip
    return Prediction.from_arrays(**{**arrays, **more})


def test_outlines_are_what_they_were(tmp_path: Path) -> None:
    """A mask that is a rectangle, a polygon that looks like a mask or a box, and where its box ends."""
    one = outlined()
    saved = save_predictions([one], tmp_path / "x", "yolo-segment")
    assert saved.left_out == {"parts outside the picture": 1}  # 48.56 of 48, which the box then has, too
    (again,) = read_predictions(tmp_path / "x")
    assert again.shapes == one.shapes
    assert np.abs(np.delete(again.boxes - one.boxes, 3, axis=0)).max() < 1e-3
    assert np.abs(again.boxes[3] - [1.02, 1, 9.02, 49]).max() < 1e-3
    assert (again.mask_crops[0].mask == one.mask_crops[0].mask).all()
    assert again.polygons[4][0].tolist() == one.polygons[4][0].tolist()


def test_outlines_whose_label_was_changed(tmp_path: Path) -> None:
    """Are what they look like: what our file says is of other lines."""
    save_predictions([outlined()], tmp_path, "yolo-segment")
    (label,) = (tmp_path / "labels").iterdir()
    label.write_text("".join(label.read_text().splitlines(keepends=True)[1:5]))
    (again,) = read_predictions(tmp_path)
    assert again.shapes == ("rectangle", "rectangle", "polygon", "bitmap")
    assert again.boxes[0].tolist() == [8, 8, 20, 16]


def test_what_outlines_cannot_say_is_counted(tmp_path: Path) -> None:
    """How opaque a mask is."""
    saved = save_predictions([zoo()], tmp_path / "x", "yolo-segment")
    assert saved.left_out["alpha masks"] == zoo().shapes.count("alpha_mask") > 0


def test_what_lies_outside(tmp_path: Path) -> None:
    """Is cut at the edge and counted; an object wholly outside has no line."""
    one = Prediction.from_arrays(
        size=(10, 10), boxes=[[-5, 2, 5, 8], [11, 2, 15, 8], [3, 3, 3, 3], [0, 0, 10, 10]]
    )
    saved = save_predictions([one], tmp_path / "x", "yolo")
    assert saved.left_out == {"parts outside the picture": 1, "objects outside the picture": 1}
    (again,) = read_predictions(tmp_path / "x")
    assert again.boxes.tolist() == [[0, 2, 5, 8], [3, 3, 3, 3], [0, 0, 10, 10]]


def test_poses(tmp_path: Path) -> None:
    """x, y, v of each keypoint of the skeleton; names, and what a mirror makes of left and right."""
    one = Prediction.from_arrays(
        size=(64, 48),
        boxes=[[1, 1, 33, 33], [2, 2, 10, 10]],
        keypoints=[[[3.25, 4, 1], [32, 24, 0], [0, 0, 0]], [[0, 0, 0]] * 3],
        classes=["person", "person"],
        meta=body("nose", "left eye", "Right eye"),
    )
    (again,) = back([one], tmp_path / "x", "yolo-pose")
    (text,) = texts(tmp_path / "x").values()
    assert [line.split()[5:] for line in text.splitlines()] == [
        ["0.05078125", "0.0833333333", "2", "0.5", "0.5", "1", "0", "0", "0"],
        ["0"] * 9,
    ]
    data = yaml.safe_load((tmp_path / "x" / "data.yaml").read_text())
    assert (data["kpt_shape"], data["flip_idx"]) == ([3, 3], [0, 2, 1])
    assert data["kpt_names"] == {0: ["nose", "left eye", "Right eye"]}
    assert again.keypoint_ids == ("nose", "left eye", "Right eye")
    assert np.abs(again.keypoints - one.keypoints).max() < 1e-3
    assert again.shapes == ("graph", "rectangle")


def test_points_among_poses(tmp_path: Path) -> None:
    """Where they are all there is, they keep their places, and become objects with one keypoint: counted."""
    whole = zoo()
    points = whole.where(np.array([each == "point" for each in whole.shapes]))
    one = Prediction.from_json({**points.to_json(), "class_info": []})
    saved = save_predictions([one], tmp_path / "x", "yolo-pose")
    assert saved.left_out["points"] == len(one) > 0
    (again,) = read_predictions(tmp_path / "x")
    assert set(again.shapes) == {"graph"}
    assert np.abs(again.keypoints - one.keypoints).max() < 1e-3


def test_keypoints_that_come_later(tmp_path: Path) -> None:
    """What was written before a keypoint was known is filled up: tools refuse lines of two lengths."""
    bare = found(scores=[0.5, 0.25], path="a.jpg")
    posed = Prediction.from_arrays(
        size=(64, 48), boxes=[[1, 1, 9, 9]], keypoints=[[[3, 4, 1], [5, 6, 1]]], scores=[0.75], path="b.jpg"
    )
    (first, second) = back([bare, posed], tmp_path / "x", "yolo-pose", scores=True)
    lengths = {len(line.split()) for text in texts(tmp_path / "x").values() for line in text.splitlines()}
    assert lengths == {12}
    assert first.scores.tolist() == [0.5, 0.25]
    assert first.shapes == ("rectangle", "rectangle")
    assert second.keypoints[0].round(3).tolist() == [[3, 4, 1], [5, 6, 1]]


def test_pictures(tmp_path: Path) -> None:
    """Copied or linked to where tools look for them; a label is that of its picture, by its place."""
    paths = [picture(tmp_path / "in" / name) for name in ("a/1.png", "b/1.png", "images/c.png")]
    some = [found(path=path, index=index) for index, path in enumerate(paths)]
    some.append(found(path=str(tmp_path / "in" / "gone.png"), index=3))
    for how in ("copy", "link"):
        folder = tmp_path / how
        saved = save_predictions(some, folder, "yolo", images=how)
        assert saved.left_out == {"pictures that are gone": 1}
        there = [path.relative_to(folder).as_posix() for path in sorted((folder / "images").rglob("*.png"))]
        # A folder "images" within would make tools look for labels in the wrong place.
        assert there == ["images/a/1.png", "images/b/1.png", "images/images_/c.png"]
        assert sorted(texts(folder)) == ["a/1.txt", "b/1.txt", "gone.txt", "images_/c.txt"]
        (folder / "predsession.jsonl").unlink()
        (folder / "labels" / "gone.txt").unlink()
        again = list(read_predictions(folder))
        assert [each.path for each in again] == [str(folder / each) for each in there]
        assert [each.boxes.tolist() for each in again] == [some[0].boxes.tolist()] * 3


def test_names_that_differ_only_in_their_suffix(tmp_path: Path) -> None:
    """b/1.jpg and b/1.png have a label each."""
    some = [found(path=name, index=index) for index, name in enumerate(("b/1.jpg", "b/1.png", "a/1.jpg"))]
    again = back(some, tmp_path / "x", root=".")
    assert sorted(texts(tmp_path / "x")) == ["a/1.txt", "b/1.txt", "b/1_2.txt"]
    assert [each.path for each in again] == ["b/1.jpg", "b/1.png", "a/1.jpg"]


def test_facts_of_pictures(tmp_path: Path) -> None:
    """One line each, in the order in which they came, whatever the file systems says of names."""
    one = found(path="in/\udcff.jpg", frame_index=None)
    again = back([one, found(name="z", index=1), found(name="a", index=2)], tmp_path / "x", root="in")
    assert [each.index for each in again] == [0, 1, 2]
    assert again[0].path == one.path
    lines = (tmp_path / "x" / "predsession.jsonl").read_text().splitlines()
    assert json.loads(lines[1]) == {
        "label": "labels/z.txt", "width": 64, "height": 48, "index": 1, "name": "z"
    }  # fmt: skip


PROGRAM = """
import sys, tracemalloc
from predsession import Prediction, save_predictions

def run(count):
    for index in range(count):
        yield Prediction.from_arrays(
            size=(640, 480), boxes=[[1, 2, 30, 40]], classes=["a"], index=index,
            path=f"in/{index // 100}/{index}.jpg")

def peak(count, path):
    tracemalloc.start()
    save_predictions(run(count), path, "yolo", overwrite=True)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found

peak(10, sys.argv[1])
few, many = (peak(count, sys.argv[1]) for count in (300, int(sys.argv[2])))
print(many - few)
"""


def test_memory_stays_flat(tmp_path: Path) -> None:
    """Each further prediction costs less than 1000 bytes: its place's number, not itself."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "x"), "1800"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1000 * 1500
