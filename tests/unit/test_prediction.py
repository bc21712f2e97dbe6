"""`Prediction`: one row an object, lazy, frozen, and the same after every journey."""

from __future__ import annotations

import copy
import dataclasses
import html.parser
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from predsession.errors import PredSessionError, ProtocolError, SourceError
from predsession.prediction import Prediction
from predsession.prediction.pictures import file_name, read_picture
from predsession.wire.fields import Tag
from predsession.wire.geometry import MaskCrop
from predsession.wire.meta import ModelMeta

ZOO = json.loads((Path(__file__).parents[1] / "samples" / "geometry_zoo.json").read_text())
META = ModelMeta.from_json(ZOO["get_model_meta"])
WIDTH, HEIGHT = 1280, 720


def zoo_item() -> dict[str, object]:
    """Return a copy of the recorded result item: one object of each geometry."""
    return json.loads(json.dumps(ZOO["pop_inference_results"]["pending_results"][0]))


def zoo(**more: object) -> Prediction:
    """Return the recorded result as a prediction."""
    item = {**zoo_item(), **more}
    return Prediction.from_wire(item, meta=META, index=4, name="zoo.jpg", path="photos/zoo.jpg", url=None)


def found(**more: object) -> Prediction:
    """Return a prediction of two boxes on a picture of 64 x 48 pixels."""
    arrays = {"size": (64, 48), "boxes": [[1.5, 2, 30, 40], [10, 10, 20, 20.25]], **more}
    return Prediction.from_arrays(**arrays)


class Black:
    """A loader that can be pickled: a black picture, and it counts."""

    def __init__(self, width: int = 64, height: int = 48) -> None:
        self.shape = (height, width, 3)
        self.calls = 0

    def __call__(self) -> np.ndarray:
        """Return the picture."""
        self.calls += 1
        return np.zeros(self.shape, np.uint8)


# -- arrays ----------------------------------------------------------------------------------------


def test_every_array_has_one_row_an_object() -> None:
    """Ten geometries are ten rows of everything, of the promised shape and dtype."""
    p = zoo()
    assert len(p) == 10
    assert (p.boxes.shape, p.boxes.dtype) == ((10, 4), np.float32)
    assert (p.scores.shape, p.scores.dtype) == ((10,), np.float32)
    assert (p.class_ids.shape, p.class_ids.dtype) == ((10,), np.int64)
    assert (p.masks.shape, p.masks.dtype) == ((10, HEIGHT, WIDTH), np.bool_)
    assert p.keypoints.dtype == np.float32
    assert {len(each) for each in (p.classes, p.mask_crops, p.polygons, p.lines, p.keypoints, p.shapes)} == {
        10
    }
    assert p.class_ids.tolist() == p.class_idxs.tolist() == list(range(10))
    assert p.size == (1280, 720)
    assert p.shapes[6] == "cuboid"


def test_masks_and_boxes_share_their_rows() -> None:
    """Row i of the masks lies in row i of the boxes, touches its sides, and is row i of the crops."""
    p = zoo()
    for box, mask, crop in zip(p.boxes, p.masks, p.mask_crops, strict=True):
        rows, columns = np.nonzero(mask)
        inner = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
        assert (np.abs(inner - box) < 1.5).all()
        assert mask.sum() == crop.mask.sum()
        assert (mask[crop.y :, crop.x :][: crop.mask.shape[0], : crop.mask.shape[1]] == crop.mask).all()


def test_class_names_can_be_compared_as_an_array() -> None:
    """`p.boxes[p.classes == name]` picks rows, and the names are plain strings."""
    p = zoo()
    assert p.boxes[p.classes == "any"].tolist() == [[2, 1, 5, 4]]
    assert list(p.classes)[:2] == ["rect", "bitmap"]
    assert type(p.classes[0]) is str


def test_no_objects_no_rows() -> None:
    """A picture with nothing in it has arrays of the right shape and dtype, and is true all the same."""
    p = Prediction.from_arrays(size=(64, 48))
    assert (p.boxes.shape, p.boxes.dtype) == ((0, 4), np.float32)
    assert (p.scores.shape, p.scores.dtype) == ((0,), np.float32)
    assert (p.class_ids.shape, p.class_ids.dtype) == ((0,), np.int64)
    assert (p.masks.shape, p.masks.dtype) == ((0, 48, 64), np.bool_)
    assert p.keypoints.shape == (0, 0, 3)
    assert p.classes.shape == (0,)
    assert p.mask_crops == p.polygons == p.lines == p.tags == ()
    assert p.track_ids is None
    assert p
    assert len(p) == 0


def test_reading_boxes_decodes_no_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes, scores, classes and ids are there without one PNG being unpacked."""
    monkeypatch.setattr("predsession.wire.figures.decode_mask", lambda *_, **__: pytest.fail("decoded"))
    p = zoo()
    assert len(p.boxes) == len(p.scores) == len(p.classes) == len(p.class_ids) == 10


def test_arrays_are_kept_and_cannot_be_changed() -> None:
    """Asking twice gives the same array; writing into it is refused."""
    p = zoo(annotation={**zoo_item()["annotation"], "customBigData": list(range(10))})
    for name in ("boxes", "scores", "classes", "class_ids", "masks", "keypoints", "track_ids"):
        array = getattr(p, name)
        assert getattr(p, name) is array
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    for array in (p.mask_crops[0].mask, p.polygons[2][0], p.lines[3]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_prediction_is_frozen() -> None:
    """No attribute can be set or added, and what is handed out as JSON is a copy."""
    p = zoo()
    for name in ("boxes", "name", "annotation", "anything"):
        with pytest.raises(AttributeError):
            setattr(p, name, 1)
    p.annotation["objects"].clear()
    p.data["x"] = 1
    assert len(p.annotation["objects"]) == 10
    assert p.data == {}


def test_polygons_are_rings() -> None:
    """A polygon's outline and holes, an oriented box's corners, a cuboid's outline; nothing of a mask."""
    p = zoo()
    by_shape = dict(zip(p.shapes, p.polygons, strict=True))
    assert by_shape["polygon"][0].tolist() == [[20, 10], [59, 10], [59, 29], [20, 29]]
    assert by_shape["polygon"][1].tolist() == [[30, 15], [40, 15], [40, 20]]
    assert by_shape["oriented_bbox"][0].shape == (4, 2)
    assert len(by_shape["cuboid"]) == 1
    assert by_shape["bitmap"] == by_shape["rectangle"] == ()
    assert p.lines[p.shapes.index("line")].tolist() == [[20, 10], [40, 15], [59, 29]]


def test_keypoints_stand_in_the_columns_of_their_skeleton() -> None:
    """The class's order of nodes counts, not the order in which an object lists them."""
    item = zoo_item()
    graph = item["annotation"]["objects"][9]
    graph["nodes"] = {"tail": {"loc": [60, 50]}, "extra": {"loc": [1, 2]}, "nose": {"loc": [20, 10]}}
    item["annotation"]["objects"] = [graph]
    p = Prediction.from_wire(item, meta=META, index=0, name="", path=None, url=None)
    assert p.keypoint_ids == ("nose", "neck", "tail", "extra")
    assert p.keypoints.tolist() == [[[20, 10, 1], [0, 0, 0], [60, 50, 1], [1, 2, 1]]]


def test_a_hidden_keypoint_keeps_its_place() -> None:
    """A node that is disabled has its place and visible = 0; a point is a keypoint without a name."""
    p = zoo()
    assert p.keypoint_ids == ("", "nose", "neck", "tail")
    assert p.keypoints[9, 1:].tolist() == [[20, 10, 1], [20, 30, 1], [60, 50, 0]]
    assert p.keypoints[4, 0].tolist() == [20, 10, 1]


@pytest.mark.parametrize(
    ("written", "tracks"),
    [({}, None), (None, None), ([3, None, 1], [3, -1, 1]), ([3, -1, 1], [3, -1, 1])],
)
def test_track_ids_stand_beside_their_objects(written: object, tracks: list[int] | None) -> None:
    """As recorded, customBigData is a list of them; without tracking it is an object."""
    item = zoo_item()
    item["annotation"] |= {"customBigData": written, "objects": item["annotation"]["objects"][:3]}
    p = Prediction.from_wire(item, meta=META, index=0, name="", path=None, url=None)
    assert (None if p.track_ids is None else p.track_ids.tolist()) == tracks


@pytest.mark.parametrize("written", [[1, 2], ["1", 2, 3], [1.5, 2, 3], [1, 2, 2**80], [1, True, 2]])
def test_track_ids_that_do_not_fit_are_a_protocol_error(written: object) -> None:
    """Too few, or no whole numbers."""
    item = zoo_item()
    item["annotation"] |= {"customBigData": written, "objects": item["annotation"]["objects"][:3]}
    p = Prediction.from_wire(item, meta=META, index=0, name="a.jpg", path=None, url=None)
    with pytest.raises(ProtocolError, match=r"^a\.jpg: annotation.*customBigData"):
        _ = p.track_ids


# -- the wire --------------------------------------------------------------------------------------


def test_a_prediction_knows_its_own_input() -> None:
    """What the session says of the input counts; what it leaves open, the item says."""
    item = {**zoo_item(), "name": "wire.jpg", "url": "http://x/y.jpg", "image_id": 7, "frame_index": 2}
    p = Prediction.from_wire(item, meta=META, index=4, name="a.jpg", path="d/a.jpg", url=None)
    assert (p.index, p.name, p.path, p.url, p.image_id, p.frame_index) == (
        4,
        "a.jpg",
        "d/a.jpg",
        "http://x/y.jpg",
        7,
        2,
    )
    assert (p.video_id, p.dataset_id, p.project_id) == (None, None, None)
    bare = Prediction.from_wire(item, meta=META, index=0, name="", path=None, url=None)
    assert bare.name == "wire.jpg"


def test_what_the_protocol_does_not_name_is_kept_in_data() -> None:
    """Unknown keys, slides_data, and the item's own data, which wins."""
    p = zoo(data={"a": 1}, slides_data={"s": 2}, extra=[3], a=9, nothing=None)
    assert p.data == {"a": 1, "slides_data": {"s": 2}, "extra": [3]}
    assert Prediction.from_json(p.to_json(), meta=META) == p


def test_older_servers_say_annotation_json() -> None:
    """The same annotation under its older name gives the same prediction."""
    item = zoo_item()
    item["annotation_json"] = item.pop("annotation")
    p = Prediction.from_wire(item, meta=META, index=4, name="zoo.jpg", path="photos/zoo.jpg", url=None)
    assert p == zoo()
    assert p.data == {}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"annotation": None}, "annotation"),
        ({"annotation": []}, "annotation"),
        ({"annotation": {"size": {"width": 1, "height": 1}}}, "annotation.objects"),
        ({"annotation": {"size": {"width": 1, "height": 1}, "objects": {}}}, "annotation.objects"),
        ({"annotation": {"size": {"width": 1, "height": 1}, "objects": [3]}}, r"annotation.objects\[0\]"),
        ({"annotation": {"objects": []}}, "annotation.size"),
        ({"annotation": {"size": [1, 1], "objects": []}}, "annotation.size"),
        ({"annotation": {"size": {"width": 0, "height": 1}, "objects": []}}, "annotation.size"),
        ({"annotation": {"size": {"width": 1.5, "height": 1}, "objects": []}}, "annotation.size"),
        ({"annotation": {"size": {"width": True, "height": 1}, "objects": []}}, "annotation.size"),
        ({"annotation": {"size": {"width": 10**9, "height": 1}, "objects": []}}, "annotation.size"),
        ({"image_id": "7"}, "image_id"),
        ({"frame_index": 1.5}, "frame_index"),
        ({"name": 3}, "name"),
    ],
)
def test_a_broken_outline_is_seen_at_once(change: dict[str, object], field: str) -> None:
    """The error comes with the answer, names the input and the field, and is ours."""
    with pytest.raises(ProtocolError, match=rf"^zoo\.jpg: {field}"):
        zoo(**change)


@pytest.mark.parametrize("item", [None, [], "error", 3])
def test_a_result_that_is_no_object_is_a_protocol_error(item: object) -> None:
    """A null among the results is named by its number."""
    with pytest.raises(ProtocolError, match=r"^result 5: "):
        Prediction.from_wire(item, meta=META, index=5, name="", path=None, url=None)


def test_a_damaged_object_is_an_error_where_it_is_asked_for() -> None:
    """A broken mask leaves boxes, scores and classes alone; the error names input, object and field."""
    item = zoo_item()
    item["annotation"]["objects"][1]["bitmap"]["data"] = item["annotation"]["objects"][1]["bitmap"]["data"][
        :-20
    ]
    p = Prediction.from_wire(item, meta=META, index=4, name="zoo.jpg", path=None, url=None)
    assert len(p.boxes) == 10
    with pytest.raises(ProtocolError, match=r"^zoo\.jpg: object 1: bitmap: data: the zlib stream"):
        _ = p.masks


def test_a_picture_too_large_for_masks_says_what_to_use() -> None:
    """Masks that no memory can hold are an error of ours, and the crops are still there."""
    size = {"width": 2**24, "height": 2**24}
    objects = [{"classTitle": "a", "geometryType": "point", "points": {"exterior": [[1, 2]]}}]
    item = {"annotation": {"size": size, "objects": objects}}
    p = Prediction.from_wire(item, meta=META, index=0, name="huge", path=None, url=None)
    with pytest.raises(PredSessionError, match="use mask_crops"):
        _ = p.masks
    assert p.mask_crops[0].mask.sum() == 1


# -- JSON, pickle, equality ------------------------------------------------------------------------


def test_json_and_back_is_the_same_prediction() -> None:
    """Through text, without the model's meta: equal, with the same ids, names, columns and floats."""
    p = zoo(data={"k": [1, {"x": None}]})
    again = Prediction.from_json(json.loads(json.dumps(p.to_json(), allow_nan=False)))
    assert again == p
    assert hash(again) == hash(p)
    assert again.class_ids.tolist() == p.class_ids.tolist()
    assert again.keypoint_ids == p.keypoint_ids
    assert again.meta.color("graph") == META.color("graph")
    assert again.to_json() == p.to_json()


def test_json_has_the_wires_keys() -> None:
    """Whoever reads result items of a server can read ours."""
    assert set(zoo_item()) - {"slides_data"} <= set(zoo().to_json())
    wire = Prediction.from_json(zoo_item(), meta=META)
    assert wire.class_ids.tolist() == list(range(10))
    assert (wire.index, wire.name, wire.path) == (0, "", None)


def test_json_without_meta_has_no_ids_for_others() -> None:
    """A server's item without the model's classes: names, but -1 for ids."""
    assert Prediction.from_json(zoo_item()).class_ids.tolist() == [-1] * 10


def test_json_keeps_a_copy() -> None:
    """What happens to the caller's object afterwards does not reach the prediction."""
    item = zoo_item()
    p = Prediction.from_json(item)
    item["annotation"]["objects"].clear()
    assert len(p) == 10
    assert len(p.boxes) == 10


def test_floats_survive_json() -> None:
    """Thirds and sevenths of pixels come back as the same float32."""
    boxes = np.array([[1 / 3, 2 / 7, 50 + 1 / 3, 40 + 2 / 7]], np.float32)
    p = Prediction.from_arrays(size=(64, 48), boxes=boxes, scores=np.float32([1 / 3]), classes=["cat"])
    again = Prediction.from_json(json.loads(json.dumps(p.to_json())))
    assert (again.boxes == boxes).all()
    assert again.scores.tolist() == [np.float32(1 / 3)]


def test_pickle_keeps_all_but_what_was_decoded() -> None:
    """The loader travels with it; arrays that were read do not, and are read again."""
    p = found(loader=Black(), track_ids=[1, -1])
    assert len(p.masks) == 2
    for again in (pickle.loads(pickle.dumps(p)), copy.deepcopy(p)):
        assert again == p
        assert not again._kept
        assert again.load_image().shape == (48, 64, 3)
        assert again.track_ids.tolist() == [1, -1]
    assert len(pickle.dumps(p)) < 5000


def test_equality_is_by_content() -> None:
    """Any difference in what is said, or of what, counts; the loader and what was read do not."""
    p = found()
    assert p == found(loader=Black())
    assert len({p, found()}) == 1
    others = [
        found(index=1),
        found(name="a"),
        found(path="a"),
        found(scores=[0.5, 1]),
        found(boxes=[[1, 2, 30, 40], [10, 10, 20, 20.25]]),
        found(classes=["cat", "dog"]),
        found(tags=["night"]),
        found(track_ids=[1, 2]),
        found(data={"a": 1}),
        found(frame_index=0),
    ]
    assert all(p != other for other in others)
    assert p != "a prediction"
    same_name_other_id = [
        found(class_ids=[i, i], class_names=names) for i, names in ((0, ["a"]), (1, ["b", "a"]))
    ]
    assert same_name_other_id[0] != same_name_other_id[1]


def test_replace_makes_another_prediction() -> None:
    """A field can be changed by making a new one, as with any frozen dataclass."""
    p = found(name="a")
    assert len(p.boxes) == 2
    assert dataclasses.replace(p, name="b").name == "b"
    assert p.name == "a"


def test_repr_is_one_short_line() -> None:
    """It names input, size and what was found, decodes nothing, and survives damaged objects."""
    p = zoo()
    assert (
        repr(p)
        == "<Prediction 4 'zoo.jpg': 1280 x 720, 10 objects: rect 1, bitmap 1, polygon 1, polyline 1, ...>"
    )
    odd = {
        "annotation": {
            "size": {"width": 1, "height": 1},
            "objects": [{"classTitle": 3}, {"classTitle": "a\nb"}],
        }
    }
    assert repr(zoo(**odd)) == r"<Prediction 4 'zoo.jpg': 1 x 1, 2 objects: 'a\nb' 1>"
    assert repr(Prediction.from_arrays(size=(5, 4))) == "<Prediction 0 '': 5 x 4, 0 objects>"


# -- from_arrays -----------------------------------------------------------------------------------


def test_from_arrays_gives_back_what_it_got() -> None:
    """Boxes, scores, classes, masks, keypoints, polygons, tags and tracks, row by row."""
    masks = np.zeros((2, 48, 64), bool)
    masks[0, 5:20, 7:30] = True
    keypoints = np.array([[[3, 4, 1], [5.5, 6.25, 0]], [[7, 8, 1], [9, 10, 2]]], np.float32)
    ring = [[1, 1], [20, 1], [20.5, 30]]
    p = found(
        scores=[0.25, 0.75],
        class_ids=[1, 0],
        class_names=["cat", "dog"],
        masks=masks,
        keypoints=keypoints,
        polygons=[[ring, [[3, 2], [4, 2], [4, 3]]], None],
        tags={"night": None, "count": 2},
        track_ids=[5, -1],
        path=Path("a") / "b.jpg",
    )
    assert p.boxes.tolist() == [[1.5, 2, 30, 40], [10, 10, 20, 20.25]]
    assert p.scores.tolist() == [0.25, 0.75]
    assert p.classes.tolist() == ["dog", "cat"]
    assert p.class_ids.tolist() == [1, 0]
    assert (p.masks == masks).all()
    assert p.keypoints.tolist() == [[[3, 4, 1], [5.5, 6.25, 0]], [[7, 8, 1], [9, 10, 1]]]
    assert p.polygons[0][0].tolist() == ring
    assert len(p.polygons[0]) == 2
    assert p.polygons[1] == ()
    assert p.tags == (Tag("night", None), Tag("count", 2))
    assert p.track_ids.tolist() == [5, -1]
    assert (p.name, p.path) == ("b.jpg", "a/b.jpg")


def test_boxes_come_from_what_is_there() -> None:
    """Without boxes they are those of masks, of outlines, or of visible keypoints."""
    masks = [MaskCrop(7, 5, np.ones((15, 23), bool)), MaskCrop(0, 0, np.zeros((2, 2), bool))]
    assert Prediction.from_arrays(size=(64, 48), masks=masks).boxes.tolist() == [[7, 5, 30, 20], [0, 0, 0, 0]]
    rings = [[[1, 2], [9, 2], [9, 7]]]
    assert Prediction.from_arrays(size=(64, 48), polygons=rings).boxes.tolist() == [[1, 2, 10, 8]]
    points = [[[3, 4, 1], [60, 40, 0], [10, 12, 1]]]
    assert Prediction.from_arrays(size=(64, 48), keypoints=points).boxes.tolist() == [[3, 4, 11, 13]]


def test_invisible_keypoints_may_be_nan() -> None:
    """Models write NaN where they see nothing; it becomes 0, 0, invisible."""
    p = found(keypoints=[[[np.nan, np.nan, 0]], [[1, 2, 1]]])
    assert p.keypoints.tolist() == [[[0, 0, 0]], [[1, 2, 1]]]
    assert found(keypoints=np.ones((2, 3, 2))).keypoints[..., 2].tolist() == [[1, 1, 1]] * 2


def test_keypoints_take_the_names_of_their_skeleton() -> None:
    """A class with as many nodes gives them its names, so that they can be joined when drawn."""
    p = Prediction.from_arrays(size=(64, 48), keypoints=np.ones((1, 3, 3)), classes=["graph"], meta=META)
    assert p.keypoint_ids == ("nose", "neck", "tail")
    assert p.class_ids.tolist() == [9]


def test_classes_without_a_model() -> None:
    """Names alone make a model of those names; without any, all are objects."""
    assert found(classes=["dog", "cat"]).class_ids.tolist() == [0, 1]
    assert found().classes.tolist() == ["object"] * 2
    assert found(scores=None).scores.tolist() == [1, 1]


def test_the_image_is_the_size_and_the_picture() -> None:
    """A picture in memory gives the size, is what load_image returns, and cannot be changed through it."""
    image = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    p = Prediction.from_arrays(image=image, boxes=[[0, 0, 2, 2]])
    assert p.size == (6, 4)
    p.load_image()[:] = 0
    assert (pickle.loads(pickle.dumps(p)).load_image() == image).all()
    assert Prediction.from_arrays(image=image[:, :, 0]).load_image().shape == (4, 6, 3)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"size": None}, "size is None; wanted"),
        ({"size": (64, 0)}, "size is"),
        ({"size": (64.5, 48)}, "size is"),
        ({"size": 64}, "size is 64"),
        ({"image": np.zeros((48, 64, 3), np.uint8), "size": (48, 64)}, "size is .* image is 64 x 48"),
        ({"image": np.zeros((48, 64, 3)), "size": None}, r"image is \(48, 64, 3\) float64; wanted .* uint8"),
        ({"image": np.zeros((3, 48, 64), np.uint8), "size": None}, r"image is \(3, 48, 64\)"),
        ({"boxes": [1, 2, 3, 4]}, r"boxes is \(4,\) int64; wanted \(N, 4\)"),
        ({"boxes": [[1, 2, 3]]}, r"boxes is \(1, 3\)"),
        ({"boxes": [[1, 2, 3, 4], [1, 2]]}, "boxes is a ragged list"),
        ({"boxes": [["a"] * 4]}, "boxes is .*; wanted .* numbers"),
        ({"boxes": [[5, 2, 3, 4]]}, "boxes: row 0"),
        ({"boxes": [[1, 2, 3, np.nan]]}, "boxes: row 0"),
        ({"boxes": [[1, 2, 3, 1e9]]}, "boxes: row 0 .* wanted pixels"),
        ({"scores": [[1, 2]]}, r"scores is \(1, 2\) int64; wanted \(N,\)"),
        ({"scores": [1]}, "scores has 1 rows, boxes has 2"),
        ({"scores": [1, np.nan]}, "scores: row 1"),
        ({"class_ids": [0, 1]}, "class_ids need names"),
        ({"class_ids": [0, 2], "class_names": ["a", "b"]}, "class_ids: row 1 is 2; wanted 0 to 1"),
        ({"class_ids": [0.5, 1], "class_names": ["a", "b"]}, "class_ids is .* wanted .* whole numbers"),
        ({"class_ids": [0], "class_names": ["a"]}, "classes or class_ids: 1 rows, boxes has 2"),
        ({"class_ids": [0, 0], "classes": ["a", "b"]}, "class_ids and classes"),
        ({"classes": ["a"]}, "classes or class_ids: 1 rows"),
        ({"class_names": ["a"], "meta": ModelMeta()}, "class_names and meta"),
        ({"class_names": ["a", "a"]}, "class_names has a name twice"),
        ({"masks": np.ones((2, 64, 48), bool)}, r"masks is \(2, 64, 48\) bool; wanted \(N, 48, 64\) bool"),
        ({"masks": np.ones((2, 48, 64))}, "masks is .* float64"),
        ({"masks": [None, 3]}, "masks: row 1"),
        (
            {"masks": [None, MaskCrop(60, 0, np.ones((5, 5), bool))]},
            "masks: row 1 covers 5 x 5 pixels at 60, 0",
        ),
        ({"masks": [None]}, "masks has 1 rows"),
        ({"polygons": [[[1, 2, 3]], None]}, r"polygons: row 0 has a ring of shape \(1, 3\)"),
        ({"polygons": [3, None]}, "polygons: row 0"),
        ({"polygons": [[[1, 2], [3, np.nan]], None]}, "polygons: row 0"),
        ({"keypoints": np.ones((2, 3))}, r"keypoints is \(2, 3\) float64; wanted \(N, K, 3\)"),
        ({"keypoints": [[[np.nan, 1, 1]]] * 2}, "keypoints has a visible point"),
        ({"keypoints": np.ones((1, 1, 3))}, "keypoints has 1 rows"),
        ({"track_ids": [0.5, 1]}, "track_ids is .* whole numbers"),
        ({"track_ids": [1]}, "track_ids has 1 rows"),
        ({"tags": [3]}, "tags: 3"),
        ({"tags": {"a": [1]}}, "tags: "),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, object], problem: str) -> None:
    """A ValueError that names the argument, says what it is and what is wanted."""
    with pytest.raises(ValueError, match=f"^{problem}"):
        found(**arguments)


# -- the picture -----------------------------------------------------------------------------------


def test_a_file_is_read_upright(tmp_path: Path) -> None:
    """Without a loader the file at the path is opened, turned by its EXIF orientation."""
    exif = Image.Exif()
    exif[0x0112] = 6
    image = Image.new("RGB", (40, 20))
    image.paste((255, 0, 0), (0, 0, 20, 20))
    image.save(tmp_path / "a.jpg", exif=exif, quality=95)
    p = Prediction.from_arrays(size=(20, 40), path=tmp_path / "a.jpg")
    picture = p.load_image()
    assert picture.shape == (40, 20, 3)
    assert picture.flags.writeable
    assert picture[5, 10, 0] > 200
    assert picture[35, 10, 0] < 50


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1", "LA"])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    """Whatever a file holds, the picture is (H, W, 3) uint8 with about the same colour."""
    suffix = ".tif" if mode == "CMYK" else ".png"
    Image.new("RGB", (6, 4), (255, 255, 255)).convert(mode).save(tmp_path / f"a{suffix}")
    picture = read_picture(tmp_path / f"a{suffix}")
    assert (picture.shape, picture.dtype) == ((4, 6, 3), np.uint8)
    assert picture.min() > 240


def test_sixteen_bits_are_scaled_not_clipped(tmp_path: Path) -> None:
    """40000 of 65535 is 156 of 255."""
    Image.fromarray(np.full((4, 6), 40000, np.uint16)).save(tmp_path / "a.png")
    assert (read_picture(tmp_path / "a.png") == 156).all()


@pytest.mark.parametrize("content", [None, b"", b"hello", b"\x89PNG\r\n\x1a\n"])
def test_a_picture_that_is_gone_or_broken_is_our_error(tmp_path: Path, content: bytes | None) -> None:
    """Missing, empty, text, cut short: the error names the file and says what to do."""
    if content is not None:
        (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(SourceError, match=r"a\.png.*image="):
        found(path=tmp_path / "a.png").load_image()


def test_no_way_to_the_picture_is_our_error() -> None:
    """Neither path nor loader: the message says how to hand one in."""
    with pytest.raises(SourceError, match=r"image=.*loader="):
        found().load_image()


def test_visualize_draws_and_saves(tmp_path: Path) -> None:
    """The picture that is returned is the one that is written, in folders that are made for it."""
    loader = Black()
    p = found(loader=loader, name="a/b.png", index=7, classes=["cat", "dog"])
    drawn = p.visualize(save_path=tmp_path / "x" / "y.png", save_dir=tmp_path / "z")
    assert (drawn.shape, drawn.dtype, drawn.flags.writeable) == ((48, 64, 3), np.uint8, True)
    assert drawn.any()
    assert loader.calls == 1
    assert (np.asarray(Image.open(tmp_path / "x" / "y.png")) == drawn).all()
    assert [path.name for path in (tmp_path / "z").iterdir()] == ["000007_b.png"]
    assert (p.visualize(draw_tags=False) != drawn).any()
    assert (p.visualize(color=(1, 2, 3), draw_tags=False).reshape(-1, 3) == (1, 2, 3)).all(axis=1).any()


def test_visualize_fills_what_it_is_told_to_fill() -> None:
    """Rectangles are filled on demand only; the opacity counts."""
    p = found(boxes=[[4, 4, 40, 40]], loader=Black())
    assert not p.visualize(draw_tags=False)[20, 20].any()
    weak, strong = (
        p.visualize(draw_tags=False, fill_rectangles=True, opacity=share)[20, 20] for share in (0.2, 0.9)
    )
    assert 0 < weak.max() < strong.max()


def test_visualize_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    """A picture of another size, and a file type that is none."""
    with pytest.raises(SourceError, match="64 x 48"):
        found(loader=Black(65, 48)).visualize()
    with pytest.raises(ValueError, match="image is"):
        found().visualize(image=np.zeros((48, 64, 3)))
    with pytest.raises(ValueError, match=r"a\.gif.*\.png"):
        found(loader=Black()).visualize(tmp_path / "a.gif")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("1.jpg", "000003_1.jpg"),
        ("a/1.JPG", "000003_1.jpg"),
        ("a\\1.bmp", "000003_1.bmp"),
        ("clip.mp4", "000003_clip.png"),
        ('東京 "a"\n.png', "000003_東京 _a__.png"),
        ("../..", "000003_.png"),
        ("", "000003_.png"),
        ("x" * 500 + ".png", "000003_" + "x" * 50 + ".png"),
    ],
)
def test_file_names_are_safe(name: str, written: str) -> None:
    """No path, no sign that a file system refuses, never too long."""
    assert file_name(name, 3) == written
    assert file_name(name, 3) != file_name(name, 4)


# -- in a notebook ---------------------------------------------------------------------------------


class _Texts(html.parser.HTMLParser):
    """Collects tags and texts; knows nothing of what was escaped."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts += data


def test_a_notebook_shows_picture_and_table() -> None:
    """One picture inline, one line an object, with class, score, box and track."""
    shown = _Texts(
        found(loader=Black(), classes=["cat", "dog"], scores=[0.5, 1], track_ids=[3, -1])._repr_html_()
    )
    assert shown.tags.count("img") == 1
    assert shown.tags.count("tr") == 3
    for text in ("cat", "0.500", "1.5, 2.0, 30.0, 40.0", "rectangle", "3"):
        assert text in shown.texts


def test_a_picture_in_a_notebook_is_not_larger_than_needed() -> None:
    """A picture of 3000 pixels is sent as one of 960."""
    source = Prediction.from_arrays(image=np.zeros((1500, 3000, 3), np.uint8))._repr_html_()
    assert len(source) < 20_000


def test_a_notebook_without_the_picture_has_the_table() -> None:
    """The file is gone: the table, and why there is no picture; never an exception."""
    shown = _Texts(found(path="gone.jpg")._repr_html_())
    assert "img" not in shown.tags
    assert shown.tags.count("tr") == 3
    assert "gone.jpg" in shown.texts


def test_a_notebook_survives_damage_and_anything_a_loader_does() -> None:
    """A damaged object, and a loader that raises what it should not."""

    def broken() -> np.ndarray:
        raise ZeroDivisionError

    assert "ZeroDivisionError" in found(loader=broken)._repr_html_()
    item = zoo_item()
    item["annotation"]["objects"][0] = {}
    assert "ProtocolError" in Prediction.from_json(item)._repr_html_()


def test_html_is_escaped() -> None:
    """Names and classes are data, wherever they come from; half a surrogate is no reason to fail."""
    p = found(classes=["<script>alert(1)</script>", "\ud800"], path="<img src=x>.jpg")
    source = p._repr_html_()
    assert set(_Texts(source).tags) <= {
        "div",
        "p",
        "strong",
        "em",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    assert "<script>alert(1)</script>" in _Texts(source).texts
    source.encode("utf-8")


def test_a_crowd_is_cut_short() -> None:
    """Two hundred objects are thirty lines and a count."""
    p = Prediction.from_arrays(size=(64, 48), boxes=[[1, 2, 3, 4]] * 200)
    shown = _Texts(p._repr_html_())
    assert shown.tags.count("tr") == 31
    assert "and 170 more" in shown.texts
