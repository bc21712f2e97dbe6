"""LabelMe: a JSON file a picture, a shape an object; read back as it is, also after it was edited."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import export_kit
import makers
import numpy as np
import predictions
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predsession import ItemError, ModelMeta, Prediction, SourceError
from predsession.export.labelme_reading import read_labelme
from predsession.export.reading import read_predictions
from predsession.export.saving import save_predictions
from predsession.wire.geometry import MaskCrop

NAMES = ("a/1.jpg", "b/1.jpg", "b/1.png")


def found(path: str | Path | None = "1.jpg", **more: object) -> Prediction:
    """Return a prediction of two boxes."""
    boxes = {"boxes": [[0, 0, 10, 10], [3.5, 4, 64, 48]], "scores": [0.1, 0.9], "classes": ["cat", "dog"]}
    return Prediction.from_arrays(**{"size": (64, 48), "path": path, **boxes, **more})


def shapes(file: Path) -> list[dict[str, Any]]:
    """Return a file's shapes."""
    listed: list[dict[str, Any]] = json.loads(file.read_bytes())["shapes"]
    return listed


def edit(file: Path, **more: object) -> None:
    """Change keys of a file, as LabelMe writes it again."""
    file.write_text(json.dumps({**json.loads(file.read_bytes()), **more}))


def test_the_keys_are_labelmes(tmp_path: Path) -> None:
    """All of those that its versions read; corners are the edges of pixels, with their fractions."""
    (tmp_path / "in").mkdir()
    save_predictions([found(tmp_path / "in" / "1.jpg", tags=["sunny"])], tmp_path / "out", "labelme")
    document = json.loads((tmp_path / "out" / "1.json").read_bytes())
    second = document.pop("shapes")[1]
    del document["predsession"]
    assert document == {
        "version": "5.5.0",
        "flags": {"sunny": True},
        "imagePath": "../in/1.jpg",
        "imageData": None,
        "imageHeight": 48,
        "imageWidth": 64,
    }
    assert second == {
        "label": "dog",
        "points": [[3.5, 4.0], [64.0, 48.0]],
        "group_id": None,
        "description": "",
        "shape_type": "rectangle",
        "flags": {},
        "mask": None,
        "score": 0.9,
    }


def test_every_geometry_has_a_shape(tmp_path: Path) -> None:
    """Those that LabelMe has, and the nearest for others, which are counted."""
    saved = save_predictions([predictions.zoo()], tmp_path, "labelme")
    assert saved.left_out == {
        "oriented boxes": 1, "cuboids": 1, "polygons with holes": 1, "alpha masks": 1,
    }  # fmt: skip
    kinds = [(each["label"], each["shape_type"], each["group_id"]) for each in shapes(tmp_path / "zoo.json")]
    graph = [each for each in kinds if each[2] is not None]
    assert [each for each in kinds if each[2] is None] == [
        ("rect", "rectangle", None), ("bitmap", "mask", None), ("polygon", "mask", None),
        ("polyline", "linestrip", None), ("point", "point", None), ("alpha", "mask", None),
        ("cuboid", "polygon", None), ("any", "rectangle", None), ("obb", "polygon", None),
    ]  # fmt: skip
    assert graph[0] == ("graph", "rectangle", 9)
    assert {each[1:] for each in graph[1:]} == {("point", 9)}


def test_a_zoo_comes_back(tmp_path: Path) -> None:
    """All arrays of all geometries, but for the masks of those that became polygons."""
    zoo = predictions.zoo()
    save_predictions([zoo], tmp_path, "labelme")
    (back,) = read_predictions(tmp_path)
    for name in ("boxes", "scores", "class_ids", "keypoints", "object_tags", "classes"):
        assert np.array_equal(getattr(back, name), getattr(zoo, name)), name
    changed = {"alpha_mask": "bitmap", "polygon": "bitmap", "cuboid": "polygon", "oriented_bbox": "polygon"}
    assert back.shapes == tuple(changed.get(shape, shape) for shape in zoo.shapes)
    for shape, one, other in zip(zoo.shapes, zoo.mask_crops, back.mask_crops, strict=True):
        if shape != "oriented_bbox":
            assert (one.x, one.y) == (other.x, other.y), shape
            assert np.array_equal(one.mask, other.mask), shape
    assert (back.index, back.name, back.path) == (zoo.index, zoo.name, zoo.path)


@settings(deadline=None, max_examples=80)
@given(export_kit.anything())
def test_predictions_survive(tmp_path_factory: pytest.TempPathFactory, one: Prediction) -> None:
    """Masks, polygons, keypoints, boxes that are not those of the shapes, tags, tracks: all are equal."""
    folder = tmp_path_factory.mktemp("labelme")
    assert not save_predictions([one], folder, "labelme").left_out
    assert list(read_labelme(folder)) == [one]


def test_a_polygon_with_holes_becomes_a_mask(tmp_path: Path) -> None:
    """LabelMe has none; the pixels are the same, and the change is counted."""
    ring, hole = [[1, 1], [20, 1], [20, 20], [1, 20]], [[5, 5], [9, 5], [9, 9]]
    one = found(boxes=None, scores=[0.5], classes=["a"], polygons=[[ring, hole]])
    assert save_predictions([one], tmp_path, "labelme").left_out == {"polygons with holes": 1}
    (back,) = read_labelme(tmp_path)
    assert np.array_equal(back.masks, one.masks)


def test_what_is_edited_counts(tmp_path: Path) -> None:
    """A shape that was moved has its new box, a new flag is a tag, a new label has no number."""
    ring = [[1, 1], [20, 1], [20, 20]]
    one = found(boxes=[[0.5, 0.5, 21.25, 21]], scores=[0.5], classes=["a"], polygons=[ring], tags=["old"])
    save_predictions([one], tmp_path, "labelme")
    file = tmp_path / "1.json"
    (shape,) = shapes(file)
    moved = {**shape, "points": [[11, 11], [30, 11], [30, 30]], "label": "b"}
    edit(file, shapes=[moved, shape], flags={"old": False, "new": True})
    (back,) = read_labelme(tmp_path)
    assert back.boxes.tolist() == [[11, 11, 31, 31], [0.5, 0.5, 21.25, 21]]
    assert back.class_ids.tolist() == [-1, 0]
    assert [tag.name for tag in back.tags] == ["new"]


def shape(kind: str, points: list[list[float]], **more: object) -> dict[str, object]:
    """Return a shape as other tools write it."""
    return {"label": "cat", "points": points, "group_id": None, "shape_type": kind, "flags": {}, **more}


def write(file: Path, *listed: dict[str, object], **more: object) -> None:
    """Write a file as other tools do."""
    size = {"imageHeight": 48, "imageWidth": 64, "imageData": None}
    document = {
        "version": "4.5.6",
        "flags": {},
        "shapes": listed,
        "imagePath": "..\\p\\7.jpg",
        **size,
        **more,
    }
    file.write_text(json.dumps({**document, **size, **more}))


def test_files_of_other_tools_are_read(tmp_path: Path) -> None:
    """Corners in any order, circles, parts that share a group, keys that are missing, Windows' folders."""
    (tmp_path / "ann").mkdir()
    (tmp_path / "p").mkdir()
    makers.write_jpeg(tmp_path / "p" / "7.jpg")
    write(
        tmp_path / "ann" / "7.json",
        shape("rectangle", [[10, 20], [1, 2.5]]),
        shape("polygon", [[1, 1], [5, 1], [5, 5]], group_id=3),
        shape("circle", [[20, 20], [20, 30]]),
        shape("rectangle", [[10, 10], [15, 12]], group_id=3),
        shape("point", [[4, 5]], label="eye"),
    )
    (one,) = read_predictions(tmp_path / "ann")
    assert one.path is not None
    assert Path(one.path).samefile(tmp_path / "p" / "7.jpg")
    assert one.shapes == ("rectangle", "bitmap", "polygon", "point")
    assert one.boxes[:2].tolist() == [[1, 2.5, 10, 20], [1, 1, 15, 12]]
    assert one.mask_crops[1].mask.sum() == 15 + 10
    assert np.allclose(one.boxes[2], [10, 10, 31, 31], atol=0.1)
    assert one.classes.tolist() == ["cat", "cat", "cat", "eye"]
    assert one.class_ids.tolist() == [0, 0, 0, 1]
    assert not one.object_tags[0]


def test_classes_keep_their_number_over_all_files(tmp_path: Path) -> None:
    """Where no file numbers them, they are numbered as they come."""
    write(tmp_path / "1.json", shape("point", [[4, 5]], label="b"))
    write(tmp_path / "2.json", shape("point", [[4, 5]], label="a"), shape("point", [[4, 5]], label="b"))
    assert [each.class_ids.tolist() for each in read_labelme(tmp_path)] == [[0], [1, 0]]
    meta = ModelMeta.from_names(["z", "dog", "cat"])
    save_predictions([replace(found(), meta=meta)], tmp_path / "ours", "labelme")
    assert next(read_labelme(tmp_path / "ours")).class_ids.tolist() == [2, 1]


def test_names_are_unique_and_pictures_lie_beside(tmp_path: Path) -> None:
    """a/1.jpg, b/1.jpg and b/1.png have files of their own; with pictures, imagePath is the copy."""
    for name in NAMES:
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        makers.write_jpeg(tmp_path / "in" / name)
    many = [found(tmp_path / "in" / name, index=index) for index, name in enumerate(NAMES)]
    assert not save_predictions(many, tmp_path / "out", "labelme", images="copy").left_out
    files = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*"))
    assert files == ["a/1.jpg", "a/1.json", "b/1.jpg", "b/1.json", "b/1_2.json", "b/1_2.png"]
    for file in (tmp_path / "out").rglob("*.json"):
        assert (file.parent / json.loads(file.read_bytes())["imagePath"]).is_file()
    assert list(read_labelme(tmp_path / "out")) == many


def test_beside_the_pictures_themselves(tmp_path: Path) -> None:
    """Where LabelMe looks for them: the folder of the pictures is written into when that is said."""
    makers.write_jpeg(tmp_path / "1.jpg")
    with pytest.raises(SourceError, match="not empty"):
        save_predictions([found(tmp_path / "1.jpg")], tmp_path, "labelme")
    save_predictions([found(tmp_path / "1.jpg")], tmp_path, "labelme", overwrite=True)
    assert json.loads((tmp_path / "1.json").read_bytes())["imagePath"] == "1.jpg"


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    """It is kept, letter for letter."""
    one = found("in/\udcff.jpg")
    save_predictions([one], tmp_path, "labelme", root="in")
    assert list(read_labelme(tmp_path)) == [one]


def test_a_mask_of_20_megapixels(tmp_path: Path) -> None:
    """It is packed as one bit a pixel, and comes back the same."""
    mask = np.zeros((4000, 5000), np.bool_)
    mask[::7, 100:4900] = True
    one = found(size=(5000, 4000), boxes=None, scores=None, classes=["a"], masks=[MaskCrop(0, 0, mask)])
    save_predictions([one], tmp_path, "labelme")
    (back,) = read_labelme(tmp_path)
    assert back == one
    assert np.array_equal(back.mask_crops[0].mask, one.mask_crops[0].mask)


def test_what_is_no_prediction_is_counted(tmp_path: Path) -> None:
    """Errors of items have no file; a picture that is gone takes nothing from its annotation."""
    saved = save_predictions([ItemError("x"), found("gone.jpg")], tmp_path, "labelme", images="link")
    assert saved.left_out == {"item errors": 1, "pictures that are gone": 1}
    assert len(list(read_labelme(tmp_path))) == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"shapes": [shape("rectangle", [])]}, "shape 0: points"),
        ({"shapes": [shape("star", [[1, 2]])]}, "shape 0: shape_type: 'star'"),
        ({"shapes": [shape("circle", [[1, 2]])]}, "shape 0: points: 1 points; a circle"),
        ({"shapes": [shape("mask", [[1, 2], [3, 4]], mask="AAAA")]}, "shape 0: mask: .*zlib"),
        ({"shapes": [shape("mask", [[1, 2], [3, 4]])]}, "shape 0: mask"),
        ({"shapes": [shape("point", [[1, 2]], group_id="a")]}, "shape 0: group_id"),
        ({"shapes": [shape("point", [[1, 2]], score="a")]}, "shape 0: score"),
        ({"shapes": ["x"]}, "shape 0"),
        ({"shapes": None}, "shapes"),
        ({"imageWidth": 0}, "0 x 48"),
        ({"imageHeight": "x"}, "imageHeight"),
        ({"predsession": {"index": 0, "tags": 5}}, "tags"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    """File and shape; the files before it come."""
    write(tmp_path / "1.json")
    write(tmp_path / "2.json")
    edit(tmp_path / "2.json", **change)
    read = read_labelme(tmp_path)
    next(read)
    with pytest.raises(SourceError, match=problem) as caught:
        next(read)
    assert str(tmp_path / "2.json") in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"shapes": []}'])
def test_what_is_not_labelmes_is_named(tmp_path: Path, text: str) -> None:
    """Whatever JSON, or none."""
    (tmp_path / "1.json").write_text(text)
    with pytest.raises(SourceError, match=r"1\.json"):
        list(read_labelme(tmp_path))


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)
keys = st.sampled_from(["label", "points", "group_id", "shape_type", "flags", "mask", "score", "predsession"])


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(keys, junk, min_size=1, max_size=2), st.sampled_from(["point", "mask", "polygon"]))
def test_whatever_json_is_there(
    tmp_path_factory: pytest.TempPathFactory, change: dict[str, object], kind: str
) -> None:
    """It is a prediction whose arrays can be read, or `SourceError`: nothing else."""
    folder = tmp_path_factory.mktemp("junk")
    write(folder / "1.json", {**shape(kind, [[1, 2], [3, 4], [5, 2]]), **change})
    try:
        (one,) = read_labelme(folder)
    except SourceError:
        return
    assert one.boxes.shape == (1, 4)
    assert len(one.mask_crops) == len(one.object_tags) == 1


def test_a_line_of_one_point_is_counted(tmp_path: Path) -> None:
    """It becomes a point."""
    item = predictions.zoo_item()
    annotation = item["annotation"]
    assert isinstance(annotation, dict)
    line = {**annotation["objects"][0], "geometryType": "line", "shape": "line"}
    line["points"] = {"exterior": [[5, 6]], "interior": []}
    annotation["objects"] = [line]
    one = Prediction.from_json(item)
    assert save_predictions([one], tmp_path, "labelme").left_out == {"lines of one point": 1}
    assert next(read_labelme(tmp_path)).shapes == ("point",)


def test_files_of_old_versions_are_read(tmp_path: Path) -> None:
    """Polygons only, without a type; without a size, which is that of the picture within, or of the file."""
    makers.write_jpeg(tmp_path / "1.jpg", (64, 48))
    packed = base64.b64encode((tmp_path / "1.jpg").read_bytes()).decode()
    ring = {"label": "a", "points": [[1, 1], [5, 1], [5, 5]], "line_color": None}
    size = {"imageHeight": None, "imageWidth": None}
    write(tmp_path / "1.json", ring, imagePath="1.jpg", **size)
    write(tmp_path / "2.json", {**ring, "shape_type": None}, imageData=packed, **size)
    write(tmp_path / "3.json", ring, imagePath="1.jpg")
    document = json.loads((tmp_path / "3.json").read_bytes())
    (tmp_path / "3.json").write_text(json.dumps({k: v for k, v in document.items() if k not in size}))
    many = list(read_labelme(tmp_path))
    assert [(each.size, each.shapes) for each in many] == [((64, 48), ("polygon",))] * 3
    for change, problem in (
        ({"imagePath": "x.jpg"}, "no picture .*x.jpg"),
        ({"imageData": "AAAA"}, "imageData"),
    ):
        edit(tmp_path / "1.json", **change)
        with pytest.raises(SourceError, match=problem):
            list(read_labelme(tmp_path / "1.json"))


def test_shapes_of_xanylabeling_are_read(tmp_path: Path) -> None:
    """A rectangle of four corners, a rotated one, several points."""
    corners = [[1.0, 2.0], [9.0, 2.0], [9.0, 8.0], [1.0, 8.0]]
    write(
        tmp_path / "1.json",
        shape("rectangle", corners),
        shape("rotation", [[5, 1], [9, 5], [5, 9], [1, 5]], direction=0.78),
        shape("quadrilateral", corners),
        shape("points", [[3, 4], [7, 9]]),
        shape("point", [[1, 1]]),
    )
    (one,) = read_labelme(tmp_path)
    assert one.shapes == ("rectangle", "polygon", "polygon", "graph", "point")
    assert one.boxes[0].tolist() == [1, 2, 9, 8]
    assert [len(rings[0]) for rings in one.polygons[1:3]] == [4, 4]
    assert one.keypoints[3, :2].tolist() == [[3, 4, 1], [7, 9, 1]]
