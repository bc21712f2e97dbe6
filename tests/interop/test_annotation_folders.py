"""Our folders, opened by Supervisely's SDK: its projects, and the formats that its converters take."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import predictions
import pytest
from interop.client_process import TheirClient
from PIL import Image

from predsession import ModelMeta, Prediction
from predsession.export.saving import save_predictions
from predsession.wire.geometry import MaskCrop
from predsession.wire.meta import ClassInfo

SIZE = (64, 48)
PLACES = ("a/1.jpg", "b/1.jpg", "b/1.png", "b/c/2.jpg", "Hermann/1.jpg", "ds0/1.jpg", "1.jpg")


def pictures(root: Path, *names: str, size: tuple[int, int] = SIZE) -> list[Path]:
    """Write pictures."""
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, (number, 99, 99)).save(root / name)
    return [root / name for name in names]


def found(path: Path, **more: object) -> Prediction:
    """Return a prediction of two boxes."""
    boxes = {"boxes": [[0, 0, 10, 10], [3.5, 4, 64, 48]], "scores": [0.25, 0.5], "classes": ["cat", "dog"]}
    return Prediction.from_arrays(**{"size": SIZE, "path": path, **boxes, **more})


def pixels(mask: str, size: tuple[int, int] = SIZE) -> np.ndarray:
    """Unpack the pixels of a mask."""
    bits = np.unpackbits(np.frombuffer(base64.b64decode(mask), np.uint8), count=size[0] * size[1])
    return bits.reshape(size[1], size[0]).astype(np.bool_)


def test_a_project_of_boxes_is_opened(client: TheirClient, tmp_path: Path) -> None:
    """All datasets and items are there, each with its objects; names that they would pass over, too."""
    paths = pictures(tmp_path / "in", *PLACES)
    many = [found(path, index=index, tags={"n": index}) for index, path in enumerate(paths)]
    assert not save_predictions(many, tmp_path / "out", "supervisely", root=tmp_path / "in").left_out
    answer = client.run("project", "", folder=tmp_path / "out")
    assert answer["datasets"] == {
        "a": ["1.jpg"], "b": ["1.jpg", "1.png"], "b/c": ["2.jpg"], "Hermann_": ["1.jpg"],
        "ds0_": ["1.jpg"], "ds0": ["1.jpg"],
    }  # fmt: skip
    assert answer["total"] == len(PLACES)
    assert answer["tags"] == {"confidence": "any_number", "n": "any_number"}
    one = answer["annotations"]["b/1.png.json"]
    assert one["size"] == [48, 64]
    assert one["tags"] == [["n", 2]]
    assert [(each["title"], each["kind"], each["box"]) for each in one["objects"]] == [
        ("cat", "rectangle", [0, 0, 9, 9]), ("dog", "rectangle", [3, 4, 63, 47]),
    ]  # fmt: skip
    assert [each["tags"] for each in one["objects"]] == [[["confidence", 0.25]], [["confidence", 0.5]]]


def test_every_geometry_is_opened(client: TheirClient, tmp_path: Path) -> None:
    """Of its kind, masks equal pixel by pixel; also in one class that has all kinds."""
    (path,) = pictures(tmp_path / "in", "zoo.png", size=(1280, 720))
    zoo = replace(predictions.zoo(), path=str(path))
    mixed = zoo.annotation
    mixed["objects"] = [{**each, "classTitle": "all"} for each in mixed["objects"]]
    meta = ModelMeta((ClassInfo("all", "any"), ClassInfo("unused", "graph")))
    (other,) = pictures(tmp_path / "in", "mixed.png", size=(1280, 720))
    second = Prediction.from_wire(
        {"annotation": mixed}, meta=meta, index=1, name="mixed.png", path=str(other), url=None
    )
    save_predictions([zoo, second], tmp_path / "out", "supervisely")
    answer = client.run("project", "", folder=tmp_path / "out")
    for name in ("zoo.png.json", "mixed.png.json"):
        objects = answer["annotations"][f"ds0/{name}"]["objects"]
        assert tuple(each["kind"] for each in objects) == zoo.shapes
        masks = [(row, each["mask"]) for row, each in enumerate(objects) if "mask" in each]
        assert len(masks) == 2
        for row, mask in masks:
            assert np.array_equal(pixels(mask, (1280, 720)), zoo.masks[row])
    assert answer["classes"]["all"] == "any"


def awkward(path: Path) -> list[Prediction]:
    """Return predictions that their SDK would stumble over as they are."""
    chance = np.random.default_rng(1)
    ring = [[1.5, 1], [9, 1], [9, 9.25]]
    masks = [chance.random((48, 64)) > 0.5, np.zeros((48, 64), np.bool_)]
    points = np.array([[[1, 2, 1], [3.5, 4, 0]], [[5, 6, 1], [7, 8, 1]]])
    own: dict[str, Any] = {"boxes": None, "scores": None}
    return [
        found(path, classes=["a/b", 'c"\n😀'], track_ids=[4, -1]),
        found(path, **own, masks=masks),
        found(path, **own, polygons=[[ring, [[4, 2], [6, 2], [6, 3]]], [[5, 5], [8, 8]]]),
        found(path, **own, keypoints=points),
        found(path, **own, keypoints=points, masks=[MaskCrop(1, 1, masks[0][:9, :9])] * 2),
        found(path, tags={"weather": "sunny", "seen": None}),
        found(path, tags={"weather": 5}),
        found(path, boxes=[[-9, -9, 90, 90], [3, 3, 3, 3]]),
        found(path, boxes=np.zeros((0, 4)), scores=None, classes=[]),
    ]


def test_nothing_keeps_a_project_from_being_opened(client: TheirClient, tmp_path: Path) -> None:
    """Odd names, empty masks, polygons of two points, tags of two kinds, boxes outside of the picture."""
    names = [f"{number}.png" for number in range(9)]
    paths = pictures(tmp_path / "in", *names)
    many = [
        replace(each, index=index, path=str(path), name=path.name)
        for index, (each, path) in enumerate(zip(awkward(paths[0]), paths, strict=True))
    ]
    saved = save_predictions(many, tmp_path / "out", "supervisely")
    assert saved.left_out == {
        "empty masks": 1, "polygons of too few points": 1, "tags with values of several kinds": 1,
    }  # fmt: skip
    answer = client.run("project", "", folder=tmp_path / "out")
    read = [answer["annotations"][f"ds0/{name}.json"] for name in names]
    assert [len(each["objects"]) for each in read] == [2, 2, 2, 2, 2, 2, 2, 2, 0]
    assert [each["title"] for each in read[0]["objects"]] == ["a/b", 'c"\n😀']
    assert read[0]["data"] == [4, None]
    assert np.array_equal(pixels(read[1]["objects"][0]["mask"]), many[1].masks[0])
    assert [each["kind"] for each in read[3]["objects"]] == ["graph", "graph"]
    assert read[5]["tags"] == [["weather", "sunny"], ["seen", None]]


def test_a_picture_that_is_gone_is_not_listed(client: TheirClient, tmp_path: Path) -> None:
    """The others are, and its annotation can be read."""
    paths = pictures(tmp_path / "in", "1.png", "2.png")
    paths[0].unlink()
    saved = save_predictions([found(path) for path in paths], tmp_path / "out", "supervisely")
    assert saved.left_out == {"pictures that are gone": 1}
    answer = client.run("project", "", folder=tmp_path / "out")
    assert answer["datasets"] == {"ds0": ["2.png"]}
    assert sorted(answer["annotations"]) == ["ds0/1.png.json", "ds0/2.png.json"]


@pytest.mark.parametrize("format", ["voc", "labelme"])
def test_their_converters_take_our_boxes(client: TheirClient, tmp_path: Path, format: str) -> None:  # noqa: A002
    """Of Pascal VOC, whose numbers they take as they are, and of LabelMe, whose corners they round down.

    Both as pixels from 0, the last one included: they leave out a box that ends at the picture's edge.
    """
    paths = pictures(tmp_path / "in", "1.png", "2.png")
    boxes = [[0, 0, 10, 10], [3.5, 4, 63, 47]]
    save_predictions([found(path, boxes=boxes) for path in paths], tmp_path / "out", format, images="copy")
    answer = client.run("imported", "", folder=tmp_path / "out", format=format)
    assert [each["name"] for each in answer] == ["1.png", "2.png"]
    for each in answer:
        assert [one["title"].removesuffix("_bbox") for one in each["objects"]] == ["cat", "dog"]
    first, second = ([1, 1, 10, 10], [5, 5, 63, 47]) if format == "voc" else ([0, 0, 10, 10], [3, 4, 63, 47])
    assert [one["box"] for one in answer[0]["objects"]] == [first, second]


def test_their_converter_takes_our_masks(client: TheirClient, tmp_path: Path) -> None:
    """LabelMe's masks are equal pixel by pixel."""
    (path,) = pictures(tmp_path / "in", "1.png")
    mask = np.random.default_rng(3).random((9, 7)) > 0.4
    one = found(path, boxes=None, scores=[0.5], classes=["a"], masks=[MaskCrop(5, 6, mask)])
    save_predictions([one], tmp_path / "out", "labelme", images="copy")
    (answer,) = client.run("imported", "", folder=tmp_path / "out", format="labelme")
    assert np.array_equal(pixels(answer["objects"][0]["mask"]), one.masks[0])
