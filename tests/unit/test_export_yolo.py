"""YOLO folders: what is written, what comes back, what others write, what is damaged."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import makers
import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from predictions import Black, found, zoo

from predsession import ItemError, Prediction, SourceError, read_predictions, save_predictions
from predsession.export.bridged import join, mask_within
from predsession.export.target import Existing, Target
from predsession.export.yolo import Task, YoloWriter
from predsession.export.yolo_reading import read_yolo
from predsession.export.yolo_yaml import DataYaml, parse, read_yaml, to_yaml
from predsession.wire.geometry import MaskCrop
from predsession.wire.meta import ClassInfo, ModelMeta
from predsession.wire.rings import mask_rings
from predsession.wire.skeleton import Skeleton, SkeletonNode


def texts(folder: Path) -> dict[str, str]:
    """Return all labels of a folder."""
    labels = folder / "labels"
    return {path.relative_to(labels).as_posix(): path.read_text() for path in sorted(labels.rglob("*.txt"))}


def back(predictions: list[Prediction], folder: Path, task: str = "yolo", **more: object) -> list[Prediction]:
    """Write a folder, and read it."""
    save_predictions(predictions, folder, task, **more)
    return list(read_predictions(folder))


def picture(path: Path, size: tuple[int, int] = (64, 48)) -> str:
    """Write a picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    makers.write(path, makers.png(size))
    return str(path)


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


def body(*names: str) -> ModelMeta:
    """Return a model of one class with these keypoints."""
    skeleton = Skeleton(tuple(SkeletonNode(f"k{number}", name) for number, name in enumerate(names)))
    return ModelMeta((ClassInfo("person", "graph", skeleton=skeleton),))


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


def test_a_killed_run_leaves_a_folder_that_can_be_read(tmp_path: Path) -> None:
    """data.yaml names every class that a label has, at any time; a new run needs to be told to overwrite."""

    def broken() -> object:
        yield found(classes=["a", "b"], path="1.jpg")
        assert yaml.safe_load((tmp_path / "x" / "data.yaml").read_text())["names"] == {0: "a", 1: "b"}
        yield found(classes=["c", "b"], path="2.jpg", index=1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_predictions(broken(), tmp_path / "x", "yolo")
    with (tmp_path / "x" / "predsession.jsonl").open("ab") as file:
        file.write(b'{"label":"labels/3.txt","wid')
    again = list(read_predictions(tmp_path / "x"))
    assert [each.classes.tolist() for each in again] == [["a", "b"], ["c", "b"]]
    with pytest.raises(SourceError, match="is not empty"):
        save_predictions([found()], tmp_path / "x", "yolo")
    save_predictions([again[0]], tmp_path / "x", "yolo", overwrite=True)
    assert next(read_predictions(tmp_path / "x")) == again[0]


def test_what_stays_in_a_folder_keeps_its_meaning(tmp_path: Path) -> None:
    """One of three is written again, as another class: the others stay, with or without pictures."""
    for how in (None, "copy"):
        root = tmp_path / str(how)
        some = [
            found(classes=["cat", "cat"], path=picture(root / "in" / f"{name}.png"), index=index)
            for index, name in enumerate("abc")
        ]
        save_predictions(some, root / "x", "yolo", images=how)
        dog = found(classes=["dog", "cow"], class_names=["dog", "cow"], path=some[0].path)
        save_predictions([dog], root / "x", "yolo", images=how, overwrite=True)
        again = {each.name: each for each in read_predictions(root / "x")}
        assert {name: each.classes.tolist() for name, each in again.items()} == {
            "a.png": ["dog", "cow"], "b.png": ["cat", "cat"], "c.png": ["cat", "cat"]
        }  # fmt: skip
        told = yaml.safe_load((root / "x" / "data.yaml").read_text())["names"]
        assert told == {0: "cat", 1: "cow", 2: "dog"}
        assert sorted(each.name for each in (root / "x").glob("*.*")) == ["data.yaml", "predsession.jsonl"]


def test_a_run_that_is_killed_while_it_writes_over_a_folder(tmp_path: Path) -> None:
    """Everything can be read at any time; the next run goes on, and leaves nothing beside."""
    some = [found(classes=["a", "b"], path=f"{index}.jpg", index=index) for index in range(4)]
    save_predictions(some, tmp_path, "yolo", root=".")
    before = {each: each.read_bytes() for each in tmp_path.rglob("*.*")}

    def over(existing: Existing, count: int) -> None:
        with YoloWriter(Target(path=tmp_path, root=".", existing=existing), Task.DETECT) as writer:
            for each in some[:count]:
                writer.write(each)
                assert len(list(read_yolo(tmp_path))) == 4
            if existing is Existing.RESUME:
                writer.finish()

    over(Existing.OVERWRITE, 1)
    over(Existing.OVERWRITE, 2)
    assert sorted(each.index for each in read_predictions(tmp_path)) == [0, 1, 2, 3]
    over(Existing.RESUME, 3)
    assert {each: each.read_bytes() for each in tmp_path.rglob("*.*")} == before


def test_a_folder_of_others_that_is_written_over(tmp_path: Path) -> None:
    """Its classes keep their numbers, its description stays as it is while it says all there is to say."""
    text = "names: [a, b]\ntrain: here # and there\n"
    root = theirs(tmp_path / "x", "1 0.5 0.5 1 1\n", data=text)
    save_predictions([found(classes=["b", "a"], name="n.png")], root, "yolo", overwrite=True)
    assert (root / "data.yaml").read_text() == text
    assert texts(root)["n.txt"].split()[0] == "1"
    save_predictions([found(classes=["z", "b"], name="m.png")], root, "yolo", overwrite=True)
    assert read_yaml(root / "data.yaml").names == {0: "a", 1: "b", 2: "z"}
    (root / "data.yaml").write_text("names: a\n")
    with pytest.raises(SourceError, match=r"data\.yaml: 'a' is no list of names"):
        save_predictions([found()], root, "yolo", overwrite=True)


def test_names_that_were_made_up_are_no_classes(tmp_path: Path) -> None:
    """A number without a class gets its class when the folder is written over."""
    names = [f"c{number}" for number in range(4)]
    known = Prediction.from_json(found(classes=["c3", "c1"], class_names=names, name="a.png").to_json())
    save_predictions([known], tmp_path, "yolo")
    assert read_yaml(tmp_path / "data.yaml").unused == [0, 2]
    save_predictions([found(classes=["c0", "c2"], class_names=names, name="b.png")], tmp_path, "yolo",
                     overwrite=True)  # fmt: skip
    data = read_yaml(tmp_path / "data.yaml")
    assert (data.names, data.unused) == (dict(enumerate(names)), [])
    assert [each.class_ids.tolist() for each in read_predictions(tmp_path)] == [[0, 2], [3, 1]]


def test_other_keypoints_are_refused(tmp_path: Path) -> None:
    """Lines of two lengths are nothing that a tool could read; the same keypoints can be added, and boxes."""

    def posed(*names: str, name: str) -> Prediction:
        return Prediction.from_arrays(
            size=(64, 48), boxes=[[1, 1, 33, 33]], keypoints=[[[3, 4, 1]] * len(names)], classes=["person"],
            meta=body(*names), name=name,
        )  # fmt: skip

    save_predictions([posed("nose", "tail", name="a")], tmp_path, "yolo-pose")
    save_predictions([posed("nose", "tail", name="b")], tmp_path, "yolo-pose", overwrite=True)
    save_predictions([found(classes=["person"] * 2, name="c")], tmp_path, "yolo", overwrite=True)
    shapes = {each.name: each.shapes for each in read_predictions(tmp_path)}
    assert shapes == {"a": ("graph",), "b": ("graph",), "c": ("rectangle", "rectangle")}
    with pytest.raises(SourceError, match=r"says 2 keypoints \(nose, tail\), and these have 1 \(head\)"):
        save_predictions([posed("head", name="d")], tmp_path, "yolo-pose", overwrite=True)


def test_a_run_that_gets_nothing_leaves_nothing(tmp_path: Path) -> None:
    """The same folder can be named again; a run without a picture is a folder all the same."""

    def broken() -> object:
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        save_predictions(broken(), tmp_path / "x", "yolo")
    assert not (tmp_path / "x").exists()
    saved = save_predictions([ItemError("x", name="x", reason="y")], tmp_path / "x", "yolo")
    assert (saved.predictions, saved.left_out) == (0, {"item errors": 1})
    assert list(read_predictions(tmp_path / "x")) == []


def test_class_numbers_have_no_gaps(tmp_path: Path) -> None:
    """The model's own; a number that nobody was found for has a name that no class has."""
    names = [f"class_{number}" for number in (0, 1, 3, 4)]
    save_predictions([found(classes=[names[3], names[2]], class_names=names)], tmp_path / "x.jsonl")
    (known,) = read_predictions(tmp_path / "x.jsonl")  # its classes 0 and 1 are not known any more
    save_predictions([known], tmp_path / "x", "yolo")
    told = yaml.safe_load((tmp_path / "x" / "data.yaml").read_text())["names"]
    assert told == {0: "class_0", 1: "class_1", 2: "class_3", 3: "class_4"}
    assert to_yaml(DataYaml({1: "class_0"})).count(b'0: "class_0_"') == 1


# -- data.yaml ----------------------------------------------------------------------------------------


@given(st.lists(st.text(max_size=8), unique=True, max_size=4))
def test_names_are_text_to_any_reader(names: list[str]) -> None:
    """PyYAML reads every name as it is, on whatever signs it is made of; so do we."""
    known = dict(enumerate(names))
    text = to_yaml(DataYaml(known))
    assert yaml.safe_load(text)["names"] == known
    entries = parse(text.decode())["names"]
    assert {int(key): name for key, name in entries.items()} == known if names else entries == {}


COCO8 = """
path: ../d # root
train: a
test: # none

# Classes
names:
  0: person
  1: stop sign # red
  2: 'it''s'

download: |
  import os
  x: y
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (COCO8, {0: "person", 1: "stop sign", 2: "it's"}),
        ("names: ['a', \"b\\n\", no, c#d] # all\nnc: 5\n", {0: "a", 1: "b\n", 2: "no", 3: "c#d"}),
        ("names: ['e, f', g h]", {0: "e, f", 1: "g h"}),
        ("names: [a,\n  b,\n  c d\n]\n", {0: "a", 1: "b", 2: "c d"}),
        ("names:\n- a\n- 'b'\nnc: 2\n", {0: "a", 1: "b"}),
        ("names:\n  - a\n  - b: c\n", {0: "a", 1: "b: c"}),
        ("names: {0: a, 1: 'b'}\n", {0: "a", 1: "b"}),
        ('{"names": {"0": "a",\n "1": "b"}}', {0: "a", 1: "b"}),
        ("---\r\nnames:\r\n    0: a\r\n", {0: "a"}),
        ("\ufeffnames:\n  0: \"\\x41\\U0001F600\\e\"\n", {0: "A\U0001f600\x1b"}),
    ],
)  # fmt: skip
def test_names_as_people_write_them(text: str, wanted: dict[int, str], tmp_path: Path) -> None:
    """Maps and lists, in both styles, quoted or not, with comments."""
    (tmp_path / "data.yaml").write_text(text, encoding="utf-8", newline="")
    assert read_yaml(tmp_path / "data.yaml").names == wanted


def test_keypoints_as_people_write_them(tmp_path: Path) -> None:
    """coco8-pose.yaml's way, and a list below."""
    (tmp_path / "data.yaml").write_text(
        "names: [p]\nkpt_shape: [2, 3] # x, y, v\nkpt_names:\n  0:\n    - n\n    - m\n"
    )
    data = read_yaml(tmp_path / "data.yaml")
    assert (data.keypoints, data.numbers, data.keypoint_names) == (2, 3, ["n", "m"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nc: 3\n", "None is no list of names"),
        ("names: a\n", "'a' is no list of names"),
        ("names: [a, [b]]\n", "is no list of names"),
        ("names: [a, 'b\n", "does not end"),
        ("names: [a] b\n", "goes on behind its end"),
        ("names: {a}\n", "a key without a value"),
        ("names: {0: a 1: b}\n", "no comma where one belongs"),
        ("names: [}\n", "no value where one belongs"),
        ("names:\n  x: a\n", "invalid literal"),
        ("just text\n", "is no `name: value`"),
        ("names:\n  - a\n b: c\n", "is no `name: value`"),
        ("names: [a]\nkpt_shape: [17]\n", r"kpt_shape: \[17\] is not"),
        ("names: [a]\nkpt_shape: 17\n", "'17' is no list"),
        ("[" * 100_000, "data.yaml: "),
        ("names: " + "[" * 100_000, "data.yaml: "),
    ],
)
def test_damaged_descriptions(text: str, said: str, tmp_path: Path) -> None:
    """Are an error that names the file."""
    (tmp_path / "data.yaml").write_text(text)
    with pytest.raises(SourceError, match=said) as caught:
        list(read_predictions(tmp_path, "yolo"))
    assert str(tmp_path / "data.yaml") in str(caught.value)


# -- folders of others --------------------------------------------------------------------------------


def theirs(root: Path, label: str, *, data: str = "names: [a, b]\n", name: str = "train/1") -> Path:
    """Write a folder as others do: pictures and labels, no facts."""
    picture(root / "images" / f"{name}.PNG", (100, 50))
    (root / "labels" / name).parent.mkdir(parents=True, exist_ok=True)
    (root / "labels" / f"{name}.txt").write_text(label)
    (root / "data.yaml").write_text(data)
    return root


def test_folders_of_others(tmp_path: Path) -> None:
    """Boxes, scores and outlines in one file; pictures without a label; Roboflow's order of folders."""
    root = theirs(
        tmp_path, "1 0.5 0.5 0.2 0.4\n\n0 0.5 0.5 0.2 0.4 0.75\n0.0 0 0 1 0 0.5 1\r\n1 0 0 1 0 .5 1 .25\n"
    )
    picture(root / "images" / "val" / "none.jpg", (10, 10))
    picture(root / "test" / "images" / "r.png", (10, 20))
    (root / "test" / "labels").mkdir()
    (root / "test" / "labels" / "r.txt").write_text("1 0.1 0.1 0.9 0.1 0.9 0.9 0.1 0.9")
    one, none, other = read_predictions(root)
    assert one.boxes.tolist() == [[40, 15, 60, 35], [40, 15, 60, 35], [0, 0, 100, 50], [0, 0, 100, 50]]
    assert one.scores.tolist() == [1, 0.75, 1, 0.25]
    assert one.class_ids.tolist() == [1, 0, 0, 1]
    assert one.shapes == ("rectangle", "rectangle", "polygon", "polygon")
    assert (none.name, len(none), none.size) == ("none.jpg", 0, (10, 10))
    assert other.boxes.round(4).tolist() == [[1, 2, 9, 18]]
    assert [each.index for each in (one, none, other)] == [0, 1, 2]


def test_labels_beside_pictures(tmp_path: Path) -> None:
    """As labelImg puts them: classes.txt names the classes, also where there is none, and is no label."""
    for inner in ("", "images/", "labels/"):
        root = tmp_path / (inner or "bare")
        place = root / inner if inner else root / "deep"
        picture(place / "1.jpg", (100, 50))
        picture(root / "chart.png")
        (place / "1.txt").write_text("1 0.5 0.5 1 1\n")
        listed = place if inner else root
        (listed / "classes.txt").write_text("cat\ndog\n")
        (one,) = read_predictions(root) if inner != "labels/" else read_predictions(root, "yolo")
        assert (one.path, one.classes.tolist(), one.size) == (str(place / "1.jpg"), ["dog"], (100, 50))
        (root / "data.yaml").write_text("names: [x, y]\n")
        assert [each.classes.tolist() for each in read_predictions(root)] == [["y"]]


def test_what_a_run_of_ultralytics_leaves(tmp_path: Path) -> None:
    """Pictures, and labels beside them in a folder; nothing says what the classes are called."""
    picture(tmp_path / "bus.jpg", (100, 50))
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "bus.txt").write_text("5 0.5 0.5 1 1 0.75\n0 0.5 0.5 1 1 0.5\n")
    (one,) = read_predictions(tmp_path)
    assert (one.classes.tolist(), one.class_ids.tolist()) == (["class_5", "class_0"], [5, 0])
    assert (one.scores.tolist(), one.size, one.name) == ([0.75, 0.5], (100, 50), "bus.jpg")


def test_descriptions_by_other_names(tmp_path: Path) -> None:
    """coco8.yaml in its folder, by its own path, outside of it with `path:`; nothing at all is an error."""
    root = theirs(tmp_path / "d", "1 0.5 0.5 1 1\n")
    (root / "data.yaml").rename(root / "coco8.yaml")
    outside = tmp_path / "outside.yml"
    outside.write_text("path: d # root\nnames:\n  0: a\n  1: c\n")
    for place, name in ((root, "b"), (root / "coco8.yaml", "b"), (outside, "c")):
        (one,) = read_predictions(place)
        assert (one.path, one.classes.tolist()) == (str(root / "images/train/1.PNG"), [name])
    outside.write_text("names: [a]\n")
    (tmp_path / "d").rename(tmp_path / ".hidden")
    with pytest.raises(SourceError, match="no labels, neither in folders called labels nor beside pictures"):
        list(read_predictions(outside))


def test_frames_have_their_copies(tmp_path: Path) -> None:
    """A frame stays one of its clip, its picture is the copy, and saved again it has the same place."""
    one = found(path="vid/clip.mp4", frame_index=3, loader=Black())
    save_predictions([one], tmp_path / "x", "yolo", images="copy")
    (again,) = read_predictions(tmp_path / "x")
    assert (again.path, again.frame_index) == ("vid/clip.mp4", 3)
    assert again.load_image().shape == (48, 64, 3)
    save_predictions([again], tmp_path / "y", "yolo", images="copy")
    assert list(texts(tmp_path / "y")) == list(texts(tmp_path / "x"))
    (there,) = (tmp_path / "y" / "images").rglob("*.png")
    assert there.name == "clip_000003.png"


def test_a_picture_that_has_gone_has_its_copy(tmp_path: Path) -> None:
    """While it is there, it is itself."""
    path = picture(tmp_path / "in" / "a.png")
    save_predictions([found(path=path)], tmp_path / "x", "yolo", images="copy")
    assert [each.path for each in read_predictions(tmp_path / "x")] == [path]
    Path(path).unlink()
    assert [each.path for each in read_predictions(tmp_path / "x")] == [str(tmp_path / "x/images/a.png")]


def test_a_picture_that_lies_on_its_side(tmp_path: Path) -> None:
    """Its EXIF orientation turns it: its numbers belong to the upright one."""
    root = theirs(tmp_path, "0 0.5 0.5 1 1\n")
    (root / "images" / "train" / "1.PNG").unlink()
    makers.write(root / "images" / "train" / "1.jpg", makers.jpeg((100, 50), orientation=6))
    (one,) = read_predictions(root)
    with Image.open(root / "images" / "train" / "1.jpg") as image:
        assert image.size == (50, 100)
    assert one.size == (100, 50)


@pytest.mark.parametrize(("v", "seen"), [("2", 1), ("1", 0), ("0", 0), ("0.98", 1), ("0.2", 0)])
def test_what_others_say_of_a_keypoint(v: str, seen: int, tmp_path: Path) -> None:
    """2 is seen and 1 is not, as in COCO; between 0 and 1 it is how sure a model is."""
    root = theirs(tmp_path, f"0 0.5 0.5 1 1 0.5 0.5 {v}\n", data="names: [p]\nkpt_shape: [1, 3]\n")
    (one,) = read_predictions(root)
    assert one.keypoints[0].tolist() == [[50, 25, seen]]


def test_keypoints_without_v(tmp_path: Path) -> None:
    """kpt_shape: [2, 2]: what lies at 0, 0 as all others do is none."""
    root = theirs(tmp_path, "0 0.5 0.5 1 1 0.5 0.5 0 0 0.25\n", data="names: [p]\nkpt_shape: [2, 2]\n")
    (one,) = read_predictions(root)
    assert one.keypoints[0].tolist() == [[50, 25, 1], [0, 0, 0]]
    assert one.scores.tolist() == [0.25]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0 0.5 0.5 0.1", "3 numbers are no box"),
        ("0 0.5 0.5 -0.1 0.1", "a side of the box is below 0"),
        ("0 50 50 10 10", "a number is not from 0 to 1"),
        ("0 nan 0 0 0", "a number is not from 0 to 1"),
        ("7 0.5 0.5 0.1 0.1", "class 7 is not among the names"),
        ("0.5 0.5 0.5 0.1 0.1", "class 0.5 is not among the names"),
        ("a 0.5 0.5 0.1 0.1", "could not convert string to float: 'a'"),
        ("0 0.5 0.5 x 0.1", "could not convert string to float: 'x'"),
    ],
)
def test_damaged_lines(line: str, said: str, tmp_path: Path) -> None:
    """Name file and line."""
    root = theirs(tmp_path, f"0 0.5 0.5 1 1\n{line}\n")
    with pytest.raises(SourceError, match=said) as caught:
        list(read_predictions(root))
    assert f"{root / 'labels/train/1.txt'}, line 2: " in str(caught.value)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """The picture, with what to do; the data.yaml; a picture that is none; a damaged file of facts."""
    root = theirs(tmp_path, "0 0.5 0.5 1 1\n")
    (root / "images" / "train" / "1.PNG").write_bytes(b"no")
    with pytest.raises(SourceError, match=r"1\.PNG is no picture"):
        list(read_predictions(root))
    (root / "images" / "train" / "1.PNG").unlink()
    with pytest.raises(
        SourceError, match=r"images/train/1\{\.jpg,.*put it there \(saving with images='copy'"
    ):
        list(read_predictions(root))
    (root / "labels" / "train" / "1.txt").write_bytes(b"\xff\n")
    (root / "predsession.jsonl").write_text('{"label": "labels/train/1.txt", "width": 3, "height": 0}\n')
    with pytest.raises(SourceError, match=r"1\.txt: \[3, 0\] are no sides"):
        list(read_predictions(root))
    (root / "predsession.jsonl").write_text('{"label": "labels/train/1.txt", "width": 3, "height": 4}\n')
    with pytest.raises(SourceError, match=r"1\.txt: .*codec can't decode"):
        list(read_predictions(root))
    (root / "predsession.jsonl").write_text('{"label": "labels/train/1.txt", "width": "x"}\n')
    with pytest.raises(SourceError, match=r"1\.txt: predsession\.jsonl: width: 'x' is no whole number"):
        list(read_predictions(root))
    (root / "predsession.jsonl").write_text("7\n")
    with pytest.raises(SourceError, match=r"predsession\.jsonl, line 1: .* is no object; take the file away"):
        list(read_predictions(root))
    (root / "data.yaml").unlink()
    with pytest.raises(SourceError, match=r"data\.yaml cannot be read"):
        list(read_predictions(root, "yolo"))


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


FULL = """
import resource, signal, sys
import numpy as np
from predsession import DiskError, Prediction, save_predictions

noise = np.random.default_rng(0).random((1, 100, 100)) < 0.5
one = Prediction.from_arrays(size=(100, 100), boxes=[[1, 2, 3, 4]], name="a.png")
two = Prediction.from_arrays(size=(100, 100), masks=noise, name="b.png", index=1)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
try:
    save_predictions([one, two], sys.argv[1], "yolo-segment")
except DiskError as error:
    print(error)
"""


def test_a_full_disk(tmp_path: Path) -> None:
    """Names the label; no half of it is there, and what came before can be read."""
    command = [sys.executable, "-c", FULL, str(tmp_path / "x")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    label = tmp_path / "x" / "labels" / "b.txt"
    assert f"{label} cannot be written (File too large); make room there" in done.stdout
    assert [each.name for each in label.parent.iterdir()] == ["a.txt"]
    assert [each.name for each in read_predictions(tmp_path / "x")] == ["a.png"]


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    """Everything comes again, and the folder is what it would have been at once."""
    some = [found(classes=["a", "b"], path=f"{index}.jpg", index=index) for index in range(4)]
    save_predictions(some, tmp_path / "whole", "yolo", root=".")
    with YoloWriter(Target(path=tmp_path / "x", root="."), Task.DETECT) as writer:
        for each in some[:2]:
            writer.write(each)
    with YoloWriter(Target(path=tmp_path / "x", root=".", existing=Existing.RESUME), Task.DETECT) as writer:
        for each in some:
            writer.write(each)
        writer.finish()
    whole, again = (
        {each.relative_to(folder): each.read_bytes() for each in folder.rglob("*.*") if each.is_file()}
        for folder in (tmp_path / "whole", tmp_path / "x")
    )
    assert again == whole


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
