"""COCO documents of others: what is read, which ids are kept, what is damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import makers
import pytest
from coco_kit import saved
from predictions import found

from predsession import Prediction, SourceError, read_predictions, save_predictions
from predsession.wire.fields import Tag

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


def many(pictures: int, categories: int) -> dict[str, object]:
    """Return a document of others with one object a picture, and far more categories."""
    return {
        "images": [
            {"id": 7 * n + 3, "file_name": f"{n}.jpg", "width": 6, "height": 4} for n in range(pictures)
        ],
        "annotations": [
            {"id": n, "image_id": 7 * n + 3, "category_id": 2 * n + 100, "bbox": [0, 0, 2, 3]}
            for n in range(pictures)
        ],
        "categories": [{"id": 2 * n + 100, "name": f"class {n}"} for n in range(categories)],
    }


def test_many_categories_are_told_once(tmp_path: Path) -> None:
    """A picture has the ids of its own classes; all categories keep theirs, also those that occur nowhere."""
    document = many(40, 300)
    first, *others = read_predictions(write(document, tmp_path / "x.json"))
    ids = {each["name"]: each["id"] for each in document["categories"]}
    assert first.data["coco"]["category_ids"] == ids
    assert [each.data["coco"] for each in others[:2]] == [
        {"image_id": 10, "category_ids": {"class 1": 102}},
        {"image_id": 17, "category_ids": {"class 2": 104}},
    ]
    save_predictions([first, *others], tmp_path / "x.jsonl")
    save_predictions([first, *others], tmp_path / "yolo", "yolo")
    for source, lines in (("x.jsonl", "x.jsonl"), ("yolo", "yolo/predsession.jsonl")):
        # Each id at each picture would be 40 times as much.
        assert (tmp_path / lines).read_bytes().count(b'"class 299":') == 1
        written = saved(read_predictions(tmp_path / source), tmp_path / "y.json", overwrite=True)
        assert {each["name"]: each["id"] for each in written["categories"]} == ids
        assert [each["id"] for each in written["images"]] == [each["id"] for each in document["images"]]
        used = [each["category_id"] for each in document["annotations"]]
        assert [each["category_id"] for each in written["annotations"]] == used
        assert not any("data" in each["predsession"] for each in written["images"])
        again = read_predictions(tmp_path / "y.json")
        assert [each.data for each in again] == [each.data for each in (first, *others)]


def test_the_first_picture_may_go(tmp_path: Path) -> None:
    """Of what is left, each picture and each category that occurs has its id, and all data come back."""
    some = list(read_predictions(write(many(5, 9), tmp_path / "x.json")))[2:]
    written = saved(some, tmp_path / "y.json")
    assert [each["id"] for each in written["images"]] == [17, 24, 31]
    assert [each["category_id"] for each in written["annotations"]] == [104, 106, 108]
    assert list(read_predictions(tmp_path / "y.json")) == some


@pytest.mark.parametrize(
    "own",
    [
        {"image_id": True, "category_ids": {"car": 1}},
        {"image_id": 1, "category_ids": {"car": True}},
        {"image_id": 1.0, "category_ids": {"car": 1}},
        {"image_id": 1, "category_ids": {"car": 1.0}},
        {"image_id": None, "category_ids": {}},
        {"image_id": 1, "category_ids": [1]},
        {"image_id": 1, "category_ids": {}},
        {"image_id": 1, "category_ids": {"car": 1, "bus": 9}},
        {"image_id": 5, "category_ids": {"car": 4}},
        {"image_id": 1, "category_ids": {"car": 1}},
        {"image_id": 1},
        7,
    ],
)
def test_own_data_called_coco(own: object, tmp_path: Path) -> None:
    """Whatever a user keeps under that name comes back as it was, True as True."""
    some = [
        found(classes=["car"] * 2, class_names=["car"], index=index, data={"coco": own, "more": index})
        for index in range(2)
    ]
    saved(some, tmp_path / "x.json")
    again = list(read_predictions(tmp_path / "x.json"))
    assert [json.dumps(each.data, sort_keys=True) for each in again] == [
        json.dumps(each.data, sort_keys=True) for each in some
    ]


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


@pytest.mark.parametrize("first", [0, 1])
def test_an_id_that_is_not_known_any_longer_is_counted(first: int, tmp_path: Path) -> None:
    """Of a class that occurs nowhere, where the first picture, which has the ids of all, is filtered away."""
    document = {
        "images": [{"id": each, "file_name": f"{each}.jpg", "height": 4, "width": 6} for each in (5, 6, 7)],
        "annotations": [{"id": 1, "image_id": 6, "category_id": 20, "bbox": [1, 0, 2, 3]}],
        "categories": [{"id": 20, "name": "cat"}, {"id": 90, "name": "toothbrush"}],
    }
    some = list(read_predictions(write(document, tmp_path / "x.json")))
    kept = save_predictions(some[first:], tmp_path / "y.json", "coco")
    assert kept.left_out == ({"ids of classes": 1} if first else {})
    ids = [each["id"] for each in json.loads((tmp_path / "y.json").read_bytes())["categories"]]
    assert ids == ([20, 2] if first else [20, 90])
    assert save_predictions(some[2:], tmp_path / "z.json", "coco").left_out == {"ids of classes": 2}
