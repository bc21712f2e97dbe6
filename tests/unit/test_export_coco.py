"""COCO documents: what is written, and what comes back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from coco_kit import saved
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from predictions import META, found, zoo

from predsession import ItemError, Prediction, SourceError, read_predictions, save_predictions
from predsession.export.rle import crop_of, unpack
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
