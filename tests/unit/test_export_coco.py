"""COCO documents: what is written, what comes back, what others write, what is damaged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import makers
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from predictions import META, found, zoo

from predsession import ItemError, Prediction, SourceError, read_predictions, save_predictions
from predsession.export.rle import crop_of, unpack
from predsession.wire.fields import Tag
from predsession.wire.geometry import MaskCrop, Size
from predsession.wire.meta import ClassInfo, ModelMeta
from predsession.wire.skeleton import Skeleton, SkeletonEdge, SkeletonNode

PERSON = ModelMeta(
    (
        ClassInfo("car", "rectangle"),
        ClassInfo(
            "person",
            "graph",
            skeleton=Skeleton(
                tuple(SkeletonNode(key, label) for key, label in (("k0", "nose"), ("k1", "tail"))),
                (SkeletonEdge("k0", "k1"),),
            ),
        ),
    )
)


def saved(predictions: object, path: Path, **more: object) -> dict[str, object]:
    """Write a document, and return it as JSON."""
    save_predictions(predictions, path, "coco", **more)
    return json.loads(path.read_text())


def back(predictions: list[Prediction], path: Path) -> list[Prediction]:
    """Write a document, and read it."""
    saved(predictions, path)
    return list(read_predictions(path))


def test_what_a_document_says(tmp_path: Path) -> None:
    """Pictures, annotations and categories as COCO wants them: ids from 1, x y width height, no date."""
    one = found(
        scores=[0.9, 0.25], classes=["cat", "dog"], class_names=["dog", "cat"], path="in/a/1.jpg", index=3
    )
    document = saved([one], tmp_path / "x.json", root="in")
    assert document["info"] == {"description": "Predictions", "version": "1"}
    (image,) = document["images"]
    assert (image["id"], image["file_name"], image["width"], image["height"]) == (4, "a/1.jpg", 64, 48)
    assert image["predsession"] == {"index": 3, "name": "1.jpg", "path": "in/a/1.jpg"}
    assert document["annotations"] == [
        {"id": 1, "image_id": 4, "category_id": 2, "bbox": [1.5, 2.0, 28.5, 38.0], "area": 1083.0,
         "iscrowd": 0, "score": 0.9},
        {"id": 2, "image_id": 4, "category_id": 1, "bbox": [10.0, 10.0, 10.0, 10.25], "area": 102.5,
         "iscrowd": 0, "score": 0.25},
    ]  # fmt: skip
    assert [(each["id"], each["name"]) for each in document["categories"]] == [(1, "dog"), (2, "cat")]


def test_boxes_are_the_shortest_decimals_and_exact(tmp_path: Path) -> None:
    """0.1 and 0.3 of float32 are written 0.1 and 0.2, and come back to the last bit."""
    boxes = np.array([[0.1, 0.1, 0.3, 7.7], [1e-5, 3.3, 1234.567, 5000.1]], np.float32)
    one = Prediction.from_arrays(size=(5000, 6000), boxes=boxes)
    document = saved([one], tmp_path / "x.json")
    assert document["annotations"][0]["bbox"] == [0.1, 0.1, 0.2, 7.6]
    (again,) = read_predictions(tmp_path / "x.json")
    assert (again.boxes == boxes).all()


@st.composite
def predictions(draw: st.DrawFn) -> Prediction:
    """Return a prediction with masks, polygons, boxes, tracks and tags, in numbers of float32."""
    width, height = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    rows = draw(st.integers(0, 4))
    # 1e-30 beside 45 is beyond what x + width can say.
    edges = st.floats(-5, 45, width=32).map(lambda edge: edge if abs(edge) > 1e-3 else 0.0)
    boxes, masks, polygons = [], [], []
    for _ in range(rows):
        x1, x2 = sorted((draw(edges), draw(edges)))
        y1, y2 = sorted((draw(edges), draw(edges)))
        boxes.append([x1, y1, x2, y2])
        kind = draw(st.sampled_from(("box", "mask", "polygon")))
        random = np.random.default_rng(draw(st.integers(0, 99)))
        pixels = random.random((height, width)) < draw(st.sampled_from((0, 0.02, 0.5, 1)))
        masks.append(MaskCrop(0, 0, pixels) if kind == "mask" else None)
        points = draw(st.lists(st.tuples(edges, edges), min_size=3, max_size=6))
        polygons.append(np.array(points) if kind == "polygon" else None)
    return Prediction.from_arrays(
        size=(width, height),
        boxes=boxes,
        masks=masks,
        polygons=polygons,
        scores=draw(
            st.none() | st.lists(st.floats(0, 1, width=32), min_size=rows, max_size=rows)
        ) if rows else None,
        classes=[draw(st.text(max_size=5)) for _ in range(rows)],
        track_ids=draw(st.none() | st.lists(st.integers(-1, 9), min_size=rows, max_size=rows)),
        tags=draw(st.lists(st.sampled_from(("day", ("t", 5), ("u", "v"))), max_size=2)),
        name=draw(st.text(max_size=5)),
        path=draw(st.none() | st.just("/p/a.jpg")),
        frame_index=draw(st.none() | st.integers(0, 5)),
        data=draw(st.sampled_from(({}, {"more": [1, None]}))),
        index=draw(st.integers(0, 5)),
    )  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(predictions(), max_size=3))
def test_they_come_back_equal(tmp_path: Path, some: list[Prediction]) -> None:
    """Everything that predictions made of arrays hold: masks to the pixel, numbers to the bit."""
    path = tmp_path / "x.json"
    path.unlink(missing_ok=True)
    again = back(some, path)
    assert [each.annotation for each in again] == [each.annotation for each in some]
    if len({each.meta.names for each in some}) < 2:  # else a class has two numbers
        assert again == some


def test_masks_and_areas(tmp_path: Path) -> None:
    """A mask's area is its number of pixels; a polygon's that of its points; a box has corners."""
    mask = np.zeros((48, 64), np.bool_)
    mask[5:9, 7:20] = True
    triangle = np.array([[1, 1], [11, 1], [1, 11]])
    one = Prediction.from_arrays(
        size=(64, 48),
        boxes=[[7, 5, 20, 9], [1, 1, 12, 12], [2, 3, 10.5, 20]],
        masks=[MaskCrop(0, 0, mask), None, None],
        polygons=[None, triangle, None],
    )
    document = saved([one], tmp_path / "x.json")
    first, second, third = document["annotations"]
    assert first["segmentation"]["size"] == [48, 64]
    crop = crop_of(unpack(first["segmentation"]["counts"]), Size(64, 48))
    assert (crop.x, crop.y, crop.mask.shape, first["area"]) == (7, 5, (4, 13), 52)
    assert (second["segmentation"], second["area"]) == ([[1, 1, 11, 1, 1, 11]], 50)
    assert (third["segmentation"], third["area"]) == ([[2, 3, 10.5, 3, 10.5, 20, 2, 20]], 144.5)
    (again,) = read_predictions(tmp_path / "x.json")
    assert again.shapes == ("bitmap", "polygon", "rectangle")
    assert again == one


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    """Of a picture with one object of each geometry; boxes, classes and scores of all come back."""
    one = zoo()
    kept = save_predictions([one], tmp_path / "x.json", "coco")
    words = {"line": "lines", "alpha_mask": "alpha masks", "point": "points", "cuboid": "cuboids"}
    assert set(kept.left_out) <= {*words.values(), "oriented boxes", "outlines of holes"}
    for shape, word in words.items():
        assert kept.left_out[word] == one.shapes.count(shape) > 0
    (again,) = read_predictions(tmp_path / "x.json")
    assert (again.boxes == one.boxes).all()
    assert (again.scores == one.scores).all()
    assert again.classes.tolist() == one.classes.tolist()
    assert again.class_ids.tolist() == one.class_ids.tolist()
    for tags, before in zip(again.object_tags, one.object_tags, strict=True):
        assert [tag.name for tag in tags] == [tag.name for tag in before]
        assert tags[1:] == before[1:]
    assert again.tags == one.tags
    assert (again.masks[[each in ("bitmap", "alpha_mask") for each in one.shapes]]
            == one.masks[[each in ("bitmap", "alpha_mask") for each in one.shapes]]).all()  # fmt: skip
    assert again.meta.color("person") == META.color("person")


def test_keypoints(tmp_path: Path) -> None:
    """V is 2, 1 or 0; the category names them and the lines between; a class without has none."""
    one = Prediction.from_arrays(
        size=(64, 48),
        boxes=[[1, 1, 20, 20]],
        keypoints=[[[3.25, 4, 1], [5, 6, 0]]],
        classes=["person"],
        meta=PERSON,
    )
    other = Prediction.from_arrays(size=(64, 48), boxes=[[1, 1, 9, 9]], classes=["car"], meta=PERSON, index=1)
    document = saved([one, other], tmp_path / "x.json")
    assert document["annotations"][0]["keypoints"] == [3.25, 4, 2, 5, 6, 1]
    assert document["annotations"][0]["num_keypoints"] == 2
    assert "keypoints" not in document["annotations"][1]
    car, person = document["categories"]
    assert "keypoints" not in car
    assert (person["keypoints"], person["skeleton"]) == (["nose", "tail"], [[1, 2]])
    again = list(read_predictions(tmp_path / "x.json"))
    assert again == [one, other]
    assert again[0].keypoint_ids == ("k0", "k1")
    assert again[0].meta.find("person").skeleton == PERSON.find("person").skeleton


def test_ids_rise_with_the_index_and_are_never_given_twice(tmp_path: Path) -> None:
    """Of a run they are index + 1; those of a second run follow on."""
    runs = [found(index=index, path=f"{index}.jpg") for index in (0, 1, 5, 0, 1)]
    document = saved(runs, tmp_path / "x.json")
    assert [each["id"] for each in document["images"]] == [1, 2, 6, 7, 8]
    assert [each["file_name"] for each in document["images"]] == ["0.jpg", "1.jpg", "5.jpg", "0.jpg", "1.jpg"]
    assert [each["id"] for each in document["annotations"]] == list(range(1, 11))
    assert [each.index for each in read_predictions(tmp_path / "x.json")] == [0, 1, 5, 0, 1]


def test_ids_do_not_depend_on_the_order(tmp_path: Path) -> None:
    """Each picture's is its index and one; where two want one, the second comes behind all others."""
    runs = [found(index=index, path=f"{index}.jpg") for index in (3, 2, 2, 1, 0, 4)]
    document = saved(runs, tmp_path / "x.json")
    assert [each["id"] for each in document["images"]] == [4, 3, 6, 2, 1, 5]


def test_class_ids_are_the_models_own(tmp_path: Path) -> None:
    """Also where only some of its classes were found, and where it does not know one."""
    names = [f"c{number}" for number in range(9)]
    one = found(classes=["c7", "c2"], class_names=names)
    known = Prediction.from_json(one.to_json())  # of its classes, those that were found
    document = saved([known], tmp_path / "x.json")
    assert [(each["id"], each["name"]) for each in document["categories"]] == [(3, "c2"), (8, "c7")]
    assert list(read_predictions(tmp_path / "x.json")) == [one]
    stranger = found(classes=["new", "c2"], meta=ModelMeta.from_names(names))
    assert back([stranger], tmp_path / "y.json") == [stranger]


def test_a_class_of_no_model_takes_no_number_of_one(tmp_path: Path) -> None:
    """Even where it comes first, and the model's class is met later."""
    names = [f"c{number}" for number in range(5)]
    strange = found(classes=["new", "c1"], meta=ModelMeta.from_names(names))
    some = [strange, found(classes=["c2", "c4"], class_names=names)]
    document = saved([Prediction.from_json(each.to_json()) for each in some], tmp_path / "x.json")
    assert [(each["id"], each["name"]) for each in document["categories"]] == [
        (2, "c1"), (3, "c2"), (5, "c4"), (6, "new")
    ]  # fmt: skip


def test_a_killed_run_leaves_lines(tmp_path: Path) -> None:
    """Without finish() there is no document, but what came can be read; a new run is told of it."""
    path = tmp_path / "x.json"

    def broken() -> object:
        yield found()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_predictions(broken(), path, "coco")
    assert [each.name for each in tmp_path.iterdir()] == ["x.json.partial.jsonl"]
    assert list(read_predictions(tmp_path / "x.json.partial.jsonl")) == [found()]
    with pytest.raises(SourceError, match="a run that was ended left it"):
        save_predictions([found()], path, "coco")
    save_predictions([found()], path, "coco", overwrite=True)
    assert [each.name for each in tmp_path.iterdir()] == ["x.json"]


def test_item_errors_are_counted_and_odd_names_survive(tmp_path: Path) -> None:
    """A file name that is not UTF-8 comes back; an empty run is a document, too."""
    one = found(path="in/\udcff.jpg", classes=["a/b", "two\nlines"])
    kept = save_predictions([ItemError("x", name="x", reason="y"), one], tmp_path / "x.json", "coco")
    assert kept.left_out == {"item errors": 1}
    assert list(read_predictions(tmp_path / "x.json")) == [one]
    assert back([], tmp_path / "y.json") == []


# -- documents of others -----------------------------------------------------------------------------

THEIRS = {
    "info": {"year": 2017},
    "images": [
        {"id": 139, "file_name": "000000000139.jpg", "height": 4, "width": 6, "license": 2},
        {"id": 7, "file_name": "val/empty.jpg", "height": 4, "width": 6},
    ],
    "annotations": [
        {"id": 1, "image_id": 139, "category_id": 90, "iscrowd": 1, "area": 5, "bbox": [1, 0, 2, 3],
         "segmentation": {"size": [4, 6], "counts": [4, 3, 1, 2, 14]}},
        {"id": 2, "image_id": 139, "category_id": 3, "iscrowd": 0, "bbox": [0, 0, 6, 4], "score": 0.5,
         "segmentation": [[0, 0, 1, 0, 1, 1, 0, 1], [4, 2, 5, 2, 5, 3, 4, 3]]},
        {"id": 3, "image_id": 139, "category_id": 3, "bbox": [0.5, 1, 2, 2],
         "segmentation": [[0.5, 1, 0.5, 3, 2.5, 3, 2.5, 1]]},
        {"id": 4, "image_id": 139, "category_id": 3, "segmentation": [[1, 1, 3, 1, 2, 3]]},
        {"id": 5, "image_id": 139, "category_id": 90, "bbox": [0, 0, 1, 1], "keypoints": [1, 2, 2, 0, 0, 0]},
    ],
    "categories": [
        {"id": 90, "name": "person", "keypoints": ["nose", "tail"], "skeleton": [[1, 2], [9, 1], "x"]},
        {"id": 3, "name": "car", "supercategory": "vehicle"},
    ],
}  # fmt: skip


def write(document: object, path: Path) -> Path:
    """Write a document as it is."""
    path.write_text(json.dumps(document))
    return path


def test_documents_of_others(tmp_path: Path) -> None:
    """Crowds, several polygons, no score, no box, ids with gaps, a picture without objects."""
    (tmp_path / "000000000139.jpg").write_bytes(b"")
    first, second = read_predictions(write(THEIRS, tmp_path / "x.json"))
    assert (first.index, first.name, first.path) == (
        0, "000000000139.jpg", str(tmp_path / "000000000139.jpg")
    )  # fmt: skip
    assert (second.index, second.name, second.path, len(second)) == (1, "empty.jpg", "val/empty.jpg", 0)
    assert first.meta.names == ("car", "person")
    assert first.class_ids.tolist() == [1, 0, 0, 0, 1]
    assert first.scores.tolist() == [1, 0.5, 1, 1, 1]
    assert first.shapes == ("bitmap", "bitmap", "rectangle", "polygon", "graph")
    assert first.masks[0].astype(int).tolist() == [
        [0, 1, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]
    ]  # fmt: skip
    assert first.masks[1].sum() == 8
    assert first.boxes[3].tolist() == [1, 1, 4, 4]
    assert first.keypoint_ids == ("nose", "tail")
    assert first.object_tags[0] == (Tag("iscrowd", 1),)
    written = saved([first], tmp_path / "y.json")
    assert [each["iscrowd"] for each in written["annotations"]] == [1, 0, 0, 0, 0]
    (again,) = read_predictions(tmp_path / "y.json")
    assert again.object_tags[0][-1] == Tag("iscrowd", 1)


def test_ids_of_others_are_kept(tmp_path: Path) -> None:
    """What is read, filtered, and saved fits the same ground truth: also by way of JSON lines, and again."""
    first, second = read_predictions(write(THEIRS, tmp_path / "x.json"))
    assert first.data == {"coco": {"image_id": 139, "category_ids": {"car": 3, "person": 90}}}
    some = [second, first.where(first.classes == "person")]
    save_predictions(some, tmp_path / "x.jsonl")
    for number, source in enumerate((some, read_predictions(tmp_path / "x.jsonl"))):
        path = tmp_path / f"{number}.json"
        document = saved(source, path)
        assert [each["id"] for each in document["images"]] == [7, 139]
        assert {each["name"]: each["id"] for each in document["categories"]} == {"car": 3, "person": 90}
        assert [(each["image_id"], each["category_id"]) for each in document["annotations"]] == [
            (139, 90)
        ] * 2
        again = list(read_predictions(path))
        assert again == some
        assert saved(again, tmp_path / "again.json", overwrite=True) == document


def test_ids_of_others_beside_ours(tmp_path: Path) -> None:
    """No id is given twice: what is new gets another; of two that had the same, the second, counted."""
    theirs = list(read_predictions(write(THEIRS, tmp_path / "x.json")))
    ours = found(classes=["dog", "person"], class_names=["cat", "dog", "bird", "person"], index=6)
    others = {**THEIRS, "images": THEIRS["images"][:1], "categories": [{"id": 3, "name": "cup"}]}
    others["annotations"] = [{"id": 1, "image_id": 139, "category_id": 3, "bbox": [0, 0, 1, 1]}]
    (cups,) = read_predictions(write(others, tmp_path / "z.json"))
    kept = save_predictions([ours, *theirs, cups], tmp_path / "y.json")
    assert kept.left_out == {"ids of pictures": 1, "ids of classes": 1}
    document = json.loads((tmp_path / "y.json").read_text())
    assert [each["id"] for each in document["images"]] == [140, 139, 7, 1]
    assert {each["name"]: each["id"] for each in document["categories"]} == {
        "cat": 1, "dog": 2, "bird": 91, "person": 90, "car": 3, "cup": 6
    }  # fmt: skip


def test_sizes_of_others(tmp_path: Path) -> None:
    """640.0 is a whole number; a picture that is there says itself how large it is, or that it is none."""
    document = changed()
    del document["images"][0]["width"], document["images"][0]["height"]
    path = write(document, tmp_path / "x.json")
    with pytest.raises(SourceError, match="width: None is no whole number"):
        list(read_predictions(path))
    makers.write(tmp_path / "a.jpg", makers.jpeg((100, 50), orientation=6))
    assert [each.size for each in read_predictions(path)] == [(100, 50)]
    (tmp_path / "a.jpg").write_bytes(b"no")
    with pytest.raises(SourceError, match=r"a\.jpg is no picture whose size can be read"):
        list(read_predictions(path))
    document["images"][0] |= {"width": 640.0, "height": 480.0}
    assert [each.size for each in read_predictions(write(document, path))] == [(640, 480)]
    document["images"][0]["width"] = 640.5
    with pytest.raises(SourceError, match=r"width: 640\.5 is no whole number"):
        list(read_predictions(write(document, path)))


def test_lists_of_pictures_and_polygons_without_points(tmp_path: Path) -> None:
    """COCO's image_info has no annotations; an empty polygon says nothing, beside a good one or alone."""
    document = {"images": THEIRS["images"], "categories": THEIRS["categories"]}
    assert [len(each) for each in read_predictions(write(document, tmp_path / "x.json"))] == [0, 0]
    triangle = [0, 0, 2, 0, 0, 1]
    for parts, shape in (([[], triangle], "polygon"), ([triangle, []], "polygon"), ([[]], "rectangle")):
        (one,) = read_predictions(write(changed(segmentation=parts, bbox=[0, 0, 3, 2]), tmp_path / "x.json"))
        assert one.shapes == (shape,)


def changed(**more: object) -> dict[str, object]:
    """Return a sound document with one annotation, changed."""
    annotation = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], **more}
    image = {"id": 1, "file_name": "a.jpg", "width": 3, "height": 2}
    return {"images": [image], "annotations": [annotation], "categories": [{"id": 1, "name": "a"}]}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "a list of detections, COCO's form for results, does not say how large"),
        ({"images": [], "annotations": None}, "annotations: None is no list"),
        (3, "the document: 3 is no object"),
        ({"images": [{"id": 1}, {"id": 1}], "annotations": []}, "images: an id is there twice"),
        ({"images": [{"id": True}], "annotations": []}, r"images\[0\]: id: True is no id"),
        ({"images": [{"id": 1}], "annotations": []}, r"images\[0\]: width: None is no whole number"),
        (
            {"images": [{"id": 1, "width": 0, "height": 3}], "annotations": []},
            r"images\[0\]: width and height: \[0, 3\]",
        ),
        (changed(image_id=2), r"annotations\[0\]: image_id: there is no picture 2"),
        (changed(category_id=2), r"annotations\[0\]: category_id: there is no category 2"),
        (changed(bbox=[1, 2, 3]), r"annotations\[0\]: bbox: \[1, 2, 3\] is no x, y, width and height"),
        (changed(bbox=[1, 2, -3, 4]), "bbox: .* is no x, y, width and height"),
        (changed(bbox=["1", 2, 3, 4]), "bbox: .* is no list of numbers"),
        (changed(bbox=[1e300, 2, 3, 4]), "bbox: .* goes beyond any picture"),
        (changed(bbox=None), "bbox: there is none, and no segmentation either"),
        (changed(score="high"), "score: 'high' is no number"),
        (changed(track_id=1.5), "track_id: 1.5 is no whole number"),
        (changed(segmentation=[[1, 2, 3]]), "segmentation: a polygon is no list of x, y"),
        (changed(segmentation=[[], [1, 2, 3]]), "segmentation: a polygon is no list of x, y"),
        (changed(segmentation=7), "segmentation: 7 is no list"),
        (changed(segmentation={"size": [3, 2], "counts": "6"}), r"size: \[3, 2\] is not the picture's"),
        (changed(segmentation={"size": [2, 3], "counts": "5"}), "the runs cover 5 pixels, the picture has 6"),
        (changed(segmentation={"size": [2, 3], "counts": [1, "5"]}), "counts: .* is no list of numbers"),
        (changed(segmentation={"size": [2, 3]}), "counts: None is no list"),
        (changed(keypoints=[1, 2]), "keypoints: 2 numbers are not x, y, v"),
        (changed(predsession={"tags": 7}), "tags: 7 is no list"),
        ({**changed(), "categories": [{"id": 1}]}, r"categories\[0\]: name: None is no string"),
        (
            {**changed(), "images": [{"id": 1, "width": 3, "height": 2, "predsession": {"path": 7}}]},
            r"images\[0\]: .*path: 7 is no string",
        ),
    ],
)
def test_damage_is_named(document: object, said: str, tmp_path: Path) -> None:
    """With file, place and field."""
    path = write(document, tmp_path / "bad.json")
    with pytest.raises(SourceError, match=f"{path}: .*{said}" if not said.startswith("a list") else said):
        list(read_predictions(path))


JUNK = [None, True, -1, 0, 1.5, 1e300, float("nan"), "x", "", [], {}, [[]], [1], {"a": 1}, 10**30, "\udcff"]


def places(value: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Return where something stands in a document, all over it."""
    yield place
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    )
    for key, inner in entries:
        yield from places(inner, (*place, key))


def test_whatever_stands_anywhere(tmp_path: Path) -> None:
    """Is an error that names the file, or a prediction that can be used: nothing comes up later."""
    for place in list(places(THEIRS))[1:]:
        for junk in JUNK:
            document = json.loads(json.dumps(THEIRS))
            inner = document
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = junk
            path = write(document, tmp_path / "x.json")
            try:
                for one in read_predictions(path):
                    _ = one.boxes, one.scores, one.mask_crops, one.keypoints, one.track_ids, one.object_tags
                    assert Prediction.from_json(one.to_json()) == one
            except SourceError as error:
                assert str(path) in str(error)  # noqa: PT017 - most are errors, some are none


def test_no_json_at_all(tmp_path: Path) -> None:
    """A document that was cut short, or is nested without end."""
    for number, text in enumerate(('{"images": [', "[" * 100_000)):
        path = tmp_path / f"{number}.json"
        path.write_text(text)
        with pytest.raises(SourceError, match=str(path)):
            list(read_predictions(path, "coco"))


FULL = """
import resource, signal, sys
import numpy as np
from predsession import DiskError, Prediction, save_predictions

noise = np.random.default_rng(0).random((1, 600, 600)) < 0.5
one = Prediction.from_arrays(size=(600, 600), masks=noise, name="a.png")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, 120_000))
try:
    save_predictions([one], sys.argv[1], sys.argv[2])
except DiskError as error:
    print(error)
"""


def test_a_full_disk_at_the_very_end(tmp_path: Path) -> None:
    """The lines fit, the document does not: it is named, no half of it is there, and nothing is lost."""
    command = [sys.executable, "-c", FULL, str(tmp_path / "x.json"), "coco"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{tmp_path / 'x.json'} cannot be written (File too large); make room there" in done.stdout
    assert [each.name for each in tmp_path.iterdir()] == ["x.json.partial.jsonl"]
    assert [len(each) for each in read_predictions(tmp_path / "x.json.partial.jsonl")] == [1]


PROGRAM = """
import sys, tracemalloc
import numpy as np
from predsession import Prediction, save_predictions

def run(count):
    for index in range(count):
        yield Prediction.from_arrays(
            size=(640, 480), boxes=[[1, 2, 30, 40]] * 2, scores=[.5, .5], classes=["a", "b"], index=index,
            path=f"in/{index // 100}/{index}.jpg")

def peak(count, path):
    tracemalloc.start()
    save_predictions(run(count), path, "coco", overwrite=True)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found

peak(10, sys.argv[1])
few, many = (peak(count, sys.argv[1]) for count in (500, int(sys.argv[2])))
print(many - few)
"""


def test_memory_stays_flat(tmp_path: Path) -> None:
    """Each further prediction costs less than 1000 bytes: its place's number, not itself."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "x.json"), "3000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1000 * 2500
