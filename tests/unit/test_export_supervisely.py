"""Supervisely's project folder: read back equal; what their SDK stumbles over is not written, but counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import export_kit
import makers
import numpy as np
import predictions
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predsession import ItemError, ModelMeta, Prediction, SourceError
from predsession.export.reading import read_predictions
from predsession.export.saving import save_predictions
from predsession.export.supervisely import SuperviselyWriter, dataset_of, read_supervisely
from predsession.export.target import Existing, Target
from predsession.inputs.folders import list_folder
from predsession.wire.geometry import MaskCrop
from predsession.wire.meta import ClassInfo
from predsession.wire.skeleton import Skeleton, SkeletonNode

NAMES = ("a/1.jpg", "b/1.jpg", "b/1.png")


def found(path: str | Path | None = "1.jpg", **more: object) -> Prediction:
    """Return a prediction of two boxes."""
    boxes = {"boxes": [[0, 0, 10, 10], [3.5, 4, 64, 48]], "scores": [0.1, 0.9], "classes": ["cat", "dog"]}
    return Prediction.from_arrays(**{"size": (64, 48), "path": path, **boxes, **more})


def pictures(root: Path, *names: str) -> list[Prediction]:
    """Make pictures, and return a prediction of each."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        makers.write_jpeg(root / name)
    return [found(root / name, index=index) for index, name in enumerate(names)]


def meta_of(folder: Path) -> dict[str, Any]:
    """Return what a project says of its classes and tags."""
    meta: dict[str, Any] = json.loads((folder / "meta.json").read_bytes())
    return meta


def test_every_geometry_comes_back_equal(tmp_path: Path) -> None:
    """The annotation is the wire's own: nothing of it is lost."""
    many = [predictions.zoo(), predictions.zoo(timestamp=1.5, frame_index=3), found(tags=["sunny"])]
    many = [replace(each, index=index) for index, each in enumerate(many)]
    saved = save_predictions(many, tmp_path, "supervisely")
    assert saved.left_out == {"pictures that are gone": 3}
    assert sorted(read_predictions(tmp_path), key=lambda each: each.index) == many


@settings(deadline=None, max_examples=60)
@given(export_kit.anything())
def test_predictions_survive(tmp_path_factory: pytest.TempPathFactory, one: Prediction) -> None:
    """They are equal, unless something is counted."""
    folder = tmp_path_factory.mktemp("project")
    lost = set(save_predictions([one], folder, "supervisely").left_out) - {"pictures that are gone"}
    (back,) = read_supervisely(folder)
    assert lost <= {"empty masks", "tags with values of several kinds"}
    assert lost or back == one
    assert np.array_equal(back.boxes, one.boxes)
    assert back.classes.tolist() == one.classes.tolist()


def test_the_folders_of_pictures_become_datasets(tmp_path: Path) -> None:
    """Nested as they are; pictures are copied, and each has an annotation of its name."""
    many = pictures(tmp_path / "in", "a/1.jpg", "a/b/1.jpg", "a/b/1.png", "1.jpg")
    assert not save_predictions(many, tmp_path / "out", "supervisely", root=tmp_path / "in").left_out
    files = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*"))
    assert files == [
        "a/ann/1.jpg.json", "a/datasets/b/ann/1.jpg.json", "a/datasets/b/ann/1.png.json",
        "a/datasets/b/img/1.jpg", "a/datasets/b/img/1.png", "a/img/1.jpg",
        "ds0/ann/1.jpg.json", "ds0/img/1.jpg", "meta.json",
    ]  # fmt: skip
    assert list(read_predictions(tmp_path / "out")) == many


def test_a_project_is_a_source_of_ours(tmp_path: Path) -> None:
    """What is written can be predicted again: its pictures are listed, dataset by dataset."""
    many = pictures(tmp_path / "in", "a/b/2.jpg", "a/b/1.jpg", "c/1.jpg")
    save_predictions(many, tmp_path / "out", "supervisely", root=tmp_path / "in", images="link")
    listed = [str(Path(path).relative_to(tmp_path / "out")) for path in list_folder(str(tmp_path / "out"))]
    assert listed == ["a/datasets/b/img/1.jpg", "a/datasets/b/img/2.jpg", "c/img/1.jpg"]
    assert (tmp_path / "out" / listed[2]).samefile(tmp_path / "in" / "c" / "1.jpg")


folders = st.lists(
    st.sampled_from(
        ["a", "ann", "ann_", "ann__", "Hermann", "ds0", "DS0_", "x_", "datasets", "my_img", "meta.json"]
    ),
    max_size=3,
)


@settings(deadline=None)
@given(folders, folders)
def test_no_two_folders_become_one_dataset(one: list[str], other: list[str]) -> None:
    """And none gets a name that their SDK passes over."""
    first, second = dataset_of(PurePath(*one)), dataset_of(PurePath(*other))
    assert (first == second) == (one == other)
    passed_over = ("ann", "blob", "datasets", "img", "img_info", "meta", "seg")
    assert not [name for name in first.parts[::2] if name.endswith(passed_over)]
    assert set(first.parts[1::2]) <= {"datasets"}


def test_names_are_unique(tmp_path: Path) -> None:
    """a/1.jpg, b/1.jpg and b/1.png; what is no picture that their SDK lists is written as PNG."""
    many = [*pictures(tmp_path, *NAMES, "b/1.gif"), found(None, name="memory", index=4)]
    many[4] = replace(many[4], loader=predictions.Black())
    assert not save_predictions(many, tmp_path / "out", "supervisely", root=tmp_path).left_out
    assert {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("img/*")} == {
        "a/img/1.jpg", "b/img/1.jpg", "b/img/1.png", "b/img/1.gif.png", "ds0/img/memory.png",
    }  # fmt: skip
    back = {each.index: each for each in read_supervisely(tmp_path / "out")}
    assert [back[index] for index in range(4)] == many[:4]
    assert back[4].load_image().shape == (48, 64, 3)


def test_classes_and_tags_are_told(tmp_path: Path) -> None:
    """All of the model's classes, in its order, with colours and skeletons; all tags that there are."""
    nodes = (SkeletonNode("eye"), SkeletonNode("ear"))
    classes = ModelMeta.from_names(["dog", "cat", "bird"]).classes
    meta = ModelMeta((replace(classes[0], shape="graph", skeleton=Skeleton(nodes)), *classes[1:]))
    points = [[[1, 2, 1], [3, 4, 0]]]
    one = found(
        boxes=None, scores=[0.5], classes=["dog"], keypoints=points, meta=meta, tags={"a": 1, "b": None}
    )
    save_predictions([replace(one, meta=meta)], tmp_path, "supervisely")
    said = meta_of(tmp_path)
    assert said["projectType"] == "images"
    assert [(each["title"], each["shape"]) for each in said["classes"]] == [
        ("dog", "graph"), ("cat", "rectangle"), ("bird", "rectangle"),
    ]  # fmt: skip
    assert list(said["classes"][0]["geometry_config"]["nodes"]) == ["eye", "ear"]
    assert {each["name"]: each["value_type"] for each in said["tags"]} == {
        "a": "any_number", "b": "none", "confidence": "any_number",
    }  # fmt: skip


def test_a_class_of_several_geometries_is_of_any(tmp_path: Path) -> None:
    """And one of a single one is of that, whatever the model says of it."""
    mask = [MaskCrop(1, 1, np.ones((2, 2), np.bool_))]
    one = found(boxes=None, scores=None, classes=["a"], masks=mask)
    two = found(boxes=[[1, 2, 3, 4]], scores=None, classes=["b"])
    save_predictions([one, two], tmp_path / "1", "supervisely")
    assert [each["shape"] for each in meta_of(tmp_path / "1")["classes"]] == ["bitmap", "rectangle"]
    three = found(boxes=[[1, 2, 3, 4]], scores=None, classes=["a"])
    save_predictions([one, two, three], tmp_path / "2", "supervisely")
    assert [each["shape"] for each in meta_of(tmp_path / "2")["classes"]] == ["any", "rectangle"]


def test_a_class_of_keypoints_names_them(tmp_path: Path) -> None:
    """Those that were found, where the model has no skeleton; a class that has none is said to be of any."""
    meta = ModelMeta(tuple(ClassInfo(title, "graph") for title in ("found", "not found")))
    one = found(boxes=None, scores=None, classes=["found"], keypoints=[[[1, 2, 1], [3, 4, 1]]])
    save_predictions([replace(one, meta=meta)], tmp_path, "supervisely")
    first, second = meta_of(tmp_path)["classes"]
    assert (first["shape"], list(first["geometry_config"]["nodes"])) == ("graph", ["0", "1"])
    assert second["shape"] == "any"


def test_the_meta_is_written_before_what_needs_it(tmp_path: Path) -> None:
    """A run that is killed at any moment leaves a project that can be opened; one that goes on adds to it."""
    with SuperviselyWriter(Target(path=tmp_path / "out")) as writer:
        for title in ("a", "b"):
            writer.write(found(f"{title}.jpg", boxes=[[1, 2, 3, 4]], scores=[0.5], classes=[title]))
            assert title in [each["title"] for each in meta_of(tmp_path / "out")["classes"]]
    with SuperviselyWriter(Target(path=tmp_path / "out", existing=Existing.OVERWRITE)) as writer:
        writer.write(
            found("c.jpg", boxes=None, scores=[0.5], classes=["a"], polygons=[[[1, 1], [5, 1], [5, 5]]])
        )
    classes = {each["title"]: each["shape"] for each in meta_of(tmp_path / "out")["classes"]}
    assert classes == {"a": "any", "b": "rectangle"}
    assert [each.name for each in read_supervisely(tmp_path / "out")] == ["a.jpg", "b.jpg", "c.jpg"]


def test_no_prediction_at_all(tmp_path: Path) -> None:
    """There is a project, without datasets."""
    save_predictions([ItemError("x")], tmp_path / "out", "supervisely")
    assert list(read_supervisely(tmp_path / "out")) == []


def test_what_their_sdk_would_not_read_is_counted(tmp_path: Path) -> None:
    """A mask without a pixel, a polygon of two points: their boxes stay; one bad object would cost all."""
    many = [
        found("1.jpg", boxes=None, scores=None, masks=np.zeros((2, 48, 64), np.bool_)),
        found("2.jpg", boxes=None, scores=None, polygons=[[[1, 2], [5, 6]], [[1, 1], [5, 1], [5, 5]]]),
        found("3.jpg", tags={"weather": "sunny"}),
        found("4.jpg", tags={"weather": 5}),
        ItemError("x"),
    ]
    saved = save_predictions(many, tmp_path, "supervisely")
    assert saved.left_out == {
        "empty masks": 2, "polygons of too few points": 1, "tags with values of several kinds": 1,
        "item errors": 1, "pictures that are gone": 4,
    }  # fmt: skip
    first, second, third, fourth = read_supervisely(tmp_path)
    assert first.shapes == ("rectangle", "rectangle")
    assert second.shapes == ("rectangle", "polygon")
    assert second.boxes.tolist() == many[1].boxes.tolist()
    assert [len(each.tags) for each in (third, fourth)] == [1, 0]


def test_a_picture_that_is_gone_takes_nothing_with_it(tmp_path: Path) -> None:
    """Its annotation is there, and comes back; the others have their pictures."""
    many = pictures(tmp_path / "in", "1.jpg", "2.jpg")
    (tmp_path / "in" / "1.jpg").unlink()
    saved = save_predictions(many, tmp_path / "out", "supervisely", root=tmp_path / "in")
    assert saved.left_out == {"pictures that are gone": 1}
    assert list(read_supervisely(tmp_path / "out")) == many


def test_names_with_anything_in_them(tmp_path: Path) -> None:
    """Classes with slashes, line ends, quotes, faces; a path that is not UTF-8."""
    titles = ["a/b", 'c"\n', "😀", ""]
    one = found("in/\udcff.jpg", boxes=[[1, 2, 3, 4]] * 4, scores=None, classes=titles)
    save_predictions([one], tmp_path, "supervisely", root="in")
    assert list(read_supervisely(tmp_path)) == [one]
    assert [each["title"] for each in meta_of(tmp_path)["classes"]] == titles


def test_a_mask_of_20_megapixels(tmp_path: Path) -> None:
    """It is not unpacked more than once, and comes back the same."""
    mask = np.zeros((4000, 5000), np.bool_)
    mask[::7, 100:4900] = True
    one = found(size=(5000, 4000), boxes=None, scores=None, classes=["a"], masks=[MaskCrop(0, 0, mask)])
    save_predictions([one], tmp_path, "supervisely")
    assert list(read_supervisely(tmp_path)) == [one]


def test_a_project_of_the_platform_is_read(tmp_path: Path) -> None:
    """Without our key, with old names of annotations, with a class's number from the meta."""
    (tmp_path / "ds" / "ann").mkdir(parents=True)
    (tmp_path / "ds" / "img").mkdir()
    makers.write_jpeg(tmp_path / "ds" / "img" / "x.jpg")
    (tmp_path / "meta.json").write_text(json.dumps(predictions.META.to_json()))
    (tmp_path / "ds" / "ann" / "x.json").write_text(json.dumps(predictions.zoo().annotation))
    (one,) = read_predictions(tmp_path)
    assert (one.name, one.path, one.index) == ("x.jpg", str(tmp_path / "ds" / "img" / "x.jpg"), 0)
    assert one.class_ids.tolist() == predictions.zoo().class_ids.tolist()
    assert one.annotation == predictions.zoo().annotation


@pytest.mark.parametrize("text", ["", "[]", "{", "{}", '{"size": {"width": 0, "height": 1}, "objects": []}'])
def test_a_damaged_annotation_is_named(tmp_path: Path, text: str) -> None:
    """The files before it come."""
    save_predictions([found()], tmp_path, "supervisely")
    (tmp_path / "ds0" / "ann" / "2.jpg.json").write_text(text)
    read = read_supervisely(tmp_path)
    next(read)
    with pytest.raises(SourceError) as caught:
        next(read)
    assert str(tmp_path / "ds0" / "ann" / "2.jpg.json") in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", '{"classes": 5}', '{"classes": [{}]}'])
def test_a_damaged_meta_is_named(tmp_path: Path, text: str) -> None:
    """When it is read, and before anything is written to it."""
    (tmp_path / "meta.json").write_text(text)
    with pytest.raises(SourceError, match=r"meta\.json"):
        list(read_supervisely(tmp_path))
    with pytest.raises(SourceError, match=r"meta\.json"):
        SuperviselyWriter(Target(path=tmp_path, existing=Existing.OVERWRITE))


def test_a_folder_of_pictures_that_is_called_as_the_meta(tmp_path: Path) -> None:
    """It is a dataset of another name, or the project could not be written."""
    many = pictures(tmp_path / "in", "meta.json/1.jpg", "META.json_/1.jpg")
    save_predictions(many, tmp_path / "out", "supervisely", root=tmp_path / "in")
    assert {path.parts[-3] for path in (tmp_path / "out").rglob("img/*")} == {"meta.json_", "META.json__"}
    assert sorted(read_predictions(tmp_path / "out"), key=lambda each: each.index) == many


def test_a_dataset_is_read(tmp_path: Path) -> None:
    """With the classes of the project that it lies in, or with its own, numbered as they come."""
    many = pictures(tmp_path / "in", "a/1.jpg", "a/b/1.jpg", "c/1.jpg")
    meta = ModelMeta.from_names(["x", "dog", "cat"])
    many = [replace(each, meta=meta) for each in many]
    save_predictions(many, tmp_path / "out", "supervisely", root=tmp_path / "in")
    dataset = tmp_path / "out" / "a"
    assert list(read_predictions(dataset, "supervisely")) == many[:2]
    (nested,) = read_predictions(dataset / "datasets" / "b", "supervisely")
    assert nested.meta.names == meta.names
    (tmp_path / "out" / "meta.json").unlink()
    file = dataset / "ann" / "1.jpg.json"
    document = json.loads(file.read_bytes())
    del document["predsession"]
    file.write_text(json.dumps(document))
    first, second = read_predictions(dataset, "supervisely")
    assert (first.path, first.class_ids.tolist()) == (str(dataset / "img" / "1.jpg"), [0, 1])
    assert second == many[1]


@pytest.mark.parametrize("kind", ["videos", "point_clouds", "volumes"])
def test_projects_of_other_things_are_named(tmp_path: Path, kind: str) -> None:
    """Their annotations are of another form; an error says what it is."""
    save_predictions([found()], tmp_path, "supervisely")
    (tmp_path / "meta.json").write_text(json.dumps({**meta_of(tmp_path), "projectType": kind}))
    with pytest.raises(SourceError, match=f"of {kind}; only those of images"):
        list(read_predictions(tmp_path))


def test_the_annotation_of_a_video_is_named(tmp_path: Path) -> None:
    """Also where no project says what it is."""
    (tmp_path / "ann").mkdir()
    video = {"size": {"width": 64, "height": 48}, "objects": [{"classTitle": "a"}], "frames": []}
    (tmp_path / "ann" / "1.mp4.json").write_text(json.dumps(video))
    with pytest.raises(SourceError, match=r"1\.mp4\.json: an annotation of a video"):
        list(read_predictions(tmp_path, "supervisely"))


def test_a_damaged_meta_holds_nothing(tmp_path: Path) -> None:
    """The folder can be written to as soon as it is mended."""
    (tmp_path / "meta.json").write_text("[]")
    with pytest.raises(SourceError, match=r"meta\.json"):
        save_predictions([found()], tmp_path, "supervisely", overwrite=True)
    (tmp_path / "meta.json").unlink()
    save_predictions([found()], tmp_path, "supervisely")
    assert list(read_predictions(tmp_path)) == [found()]
