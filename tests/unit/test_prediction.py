"""`Prediction`: one row an object, lazy, frozen, and the same after every journey."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest
from predictions import HEIGHT, META, WIDTH, Black, found, zoo, zoo_item

from predsession.errors import PredSessionError, ProtocolError
from predsession.prediction import Prediction

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
    monkeypatch.setattr("predsession.wire.bitmaps.decode_mask", lambda *_, **__: pytest.fail("decoded"))
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


def test_some_of_the_objects_can_be_kept() -> None:
    """Rows stay together: boxes, classes, tracks; the input stays the same; a wrong choice is refused."""
    whole = Prediction.from_arrays(
        size=(64, 48),
        boxes=[[0, 0, 10, 10], [5, 5, 20, 20], [1, 1, 4, 4]],
        scores=[0.9, 0.2, 0.7],
        classes=["cat", "dog", "cat"],
        track_ids=[1, -1, 3],
        name="a.jpg",
        index=7,
    )
    some = whole.where(whole.scores > 0.5)
    assert some.classes.tolist() == ["cat", "cat"]
    assert some.boxes.tolist() == whole.boxes[[0, 2]].tolist()
    assert some.track_ids is not None
    assert some.track_ids.tolist() == [1, 3]
    assert (some.name, some.index, some.size, len(whole)) == ("a.jpg", 7, whole.size, 3)
    assert len(whole.where([False] * 3)) == 0
    for wrong in ([True], [0, 1, 1], [[True] * 3]):
        with pytest.raises(ValueError, match=r"\(3,\) bool"):
            whole.where(wrong)
