"""Figures of the wire as numbers and masks: every geometry, every kind of damage."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from predsession.errors import ProtocolError
from predsession.wire.figures import Figure
from predsession.wire.geometry import (
    MaskCrop,
    Size,
    cut_to,
    dots,
    fill_box,
    fill_rings,
    fill_slanted,
    hull,
    slanted_corners,
    trace,
)

SIZE = Size(1280, 720)
ZOO = json.loads((Path(__file__).parents[1] / "samples" / "geometry_zoo.json").read_text())
OBJECTS = {
    item["classTitle"]: item
    for item in ZOO["pop_inference_results"]["pending_results"][0]["annotation"]["objects"]
}


def zoo(title: str, **changes: object) -> Figure:
    """Return one recorded object, with some keys changed."""
    return Figure({**json.loads(json.dumps(OBJECTS[title])), **changes}, 3)


def full(crop: MaskCrop, size: Size = SIZE) -> np.ndarray:
    """Return the mask in its picture."""
    canvas = np.zeros((size.height, size.width), bool)
    canvas[crop.y : crop.y + crop.mask.shape[0], crop.x : crop.x + crop.mask.shape[1]] = crop.mask
    return canvas


# -- the recorded zoo ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "box"),
    [
        ("rect", (20, 10, 60, 30)),
        ("bitmap", (20, 10, 60, 30)),
        ("polygon", (20, 10, 60, 30)),
        ("polyline", (20, 10, 60, 30)),
        ("point", (20, 10, 21, 11)),
        ("alpha", (21, 10, 60, 30)),
        ("cuboid", (10, 5, 51, 41)),
        ("any", (2, 1, 5, 4)),
        ("graph", (20, 10, 21, 31)),
    ],
)
def test_box_of_each_recorded_geometry(title: str, box: tuple[int, ...]) -> None:
    """Whole-pixel corners are inclusive on the wire and half-open here, for every geometry alike."""
    assert zoo(title).box() == box


def test_oriented_box_is_turned_clockwise_about_its_middle() -> None:
    """The upright box around 40 x 20 pixels turned by 0.3 has the size that trigonometry gives."""
    x1, y1, x2, y2 = zoo("obb").box()
    cos, sin = math.cos(0.3), math.sin(0.3)
    assert (x2 - x1, y2 - y1) == pytest.approx((40 * cos + 20 * sin, 40 * sin + 20 * cos))
    assert ((x1 + x2) / 2, (y1 + y2) / 2) == pytest.approx((40, 20))
    left_top, right_top, *_ = zoo("obb").rings()[0]
    assert right_top[1] > left_top[1], "clockwise on the screen: the top edge falls to the right"


def test_rectangle_mask_is_its_box() -> None:
    """A rectangle with corners [20, 10], [59, 29] covers 40 x 20 pixels, and no others."""
    mask = full(zoo("rect").crop(SIZE))
    assert mask.sum() == 800
    assert mask[10:30, 20:60].all()


def test_bitmap_mask_is_the_recorded_one() -> None:
    """The recorded bitmap lacks the ten by five pixels that the recorded server left out."""
    crop = zoo("bitmap").crop(SIZE)
    assert (crop.x, crop.y, crop.mask.shape, crop.mask.dtype) == (20, 10, (20, 40), np.bool_)
    assert crop.mask.sum() == 750


def test_alpha_mask_is_every_pixel_with_some_alpha() -> None:
    """The recorded alpha mask rises from the left; all of its pixels count."""
    crop = zoo("alpha").crop(SIZE)
    assert crop.mask.shape == (20, 39)
    assert crop.mask.all()


def test_polygon_mask_has_its_outline_and_its_hole() -> None:
    """Pixels on the outline belong to a polygon; pixels in the hole do not."""
    mask = full(zoo("polygon").crop(SIZE))
    assert mask[10, 20]
    assert mask[29, 59]
    assert not mask[16, 38]
    assert not mask[9].any()
    assert 700 < mask.sum() < 800


def test_line_mask_passes_its_vertices() -> None:
    """A line is one pixel wide: 40 columns, one pixel each, the vertices among them."""
    mask = full(zoo("polyline").crop(SIZE))
    assert mask[10, 20]
    assert mask[15, 40]
    assert mask[29, 59]
    assert mask.sum() == 40


def test_point_and_graph_masks_are_single_pixels() -> None:
    """A point is one pixel; a graph is one for each node that is not disabled."""
    assert np.argwhere(full(zoo("point").crop(SIZE))).tolist() == [[10, 20]]
    assert np.argwhere(full(zoo("graph").crop(SIZE))).tolist() == [[10, 20], [30, 20]]


def test_cuboid_mask_is_its_outline_filled() -> None:
    """The seven corners of the recorded cuboid have a hexagon as their outline."""
    assert len(zoo("cuboid").rings()[0]) == 6
    mask = full(zoo("cuboid").crop(SIZE))
    assert mask[40, 10]
    assert mask[5, 50]
    assert not mask[5, 10]
    assert [len(face) for face in zoo("cuboid").faces()] == [4, 4, 4]


def test_graph_without_visible_node_has_the_box_of_all() -> None:
    """A figure always has a box, even if no node of it is visible."""
    nodes = {"a": {"loc": [3, 4], "disabled": True}, "b": {"loc": [7, 9], "disabled": True}}
    assert zoo("graph", nodes=nodes).box() == (3, 4, 8, 10)
    assert [node.visible for node in zoo("graph", nodes=nodes).nodes()] == [False, False]


def test_corners_in_any_order() -> None:
    """A rectangle from right bottom to left top is the same rectangle."""
    points = {"exterior": [[59, 29], [20, 10]], "interior": []}
    assert zoo("rect", points=points).box() == (20, 10, 60, 30)


@pytest.mark.parametrize("title", ["rect", "bitmap", "cuboid", "graph", "obb"])
def test_a_geometry_called_any_is_known_by_its_fields(title: str) -> None:
    """An object of a class of shape any, whose geometry is not named, is read by what it carries."""
    plain = zoo(title, geometryType="any", shape="any")
    assert plain.box() == zoo(title).box()


def test_float_box_is_read_in_preference() -> None:
    """The extension's box of floats wins over the geometry of whole pixels."""
    assert zoo("rect", box=[20.25, 10.5, 59.75, 29.125]).box() == (20.25, 10.5, 59.75, 29.125)


# -- scores and tags -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "score"),
    [
        ([], 1.0),
        (None, 1.0),
        ([{"name": "blurred"}], 1.0),
        ([{"name": "confidence", "value": 0.25}], 0.25),
        ([{"name": "conf", "value": 1}], 1),
        ([{"name": "score", "value": 0.5}, {"name": "conf", "value": 0.75}], 0.75),
        ([{"name": "score", "value": 0.5}, {"name": "score", "value": 0.75}], 0.5),
    ],
)
def test_score_is_the_tag_confidence_conf_or_score(tags: object, score: float) -> None:
    """In this order, the first of its name, and 1.0 where there is none of them."""
    assert zoo("rect", tags=tags).score() == score


def test_tags_have_names_and_perhaps_values() -> None:
    """A tag without a value has None in its place."""
    tags = zoo("rect", tags=[{"name": "blurred"}, {"name": "colour", "value": "red"}]).tags()
    assert tags == (("blurred", None), ("colour", "red"))


# -- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "changes", "field"),
    [
        ("rect", {"points": None}, "points"),
        ("rect", {"points": {"exterior": []}}, "points: exterior"),
        ("rect", {"points": {"exterior": [[1, 2], [3, 4], [5, 6]]}}, "points: 3 points"),
        ("rect", {"points": {"exterior": [[1, 2], [3]]}}, r"points: exterior: \[3\] is no \[x, y\]"),
        ("rect", {"points": {"exterior": [[1, 2], "34"]}}, "points: exterior"),
        ("rect", {"points": {"exterior": [[1, 2], [3, float("nan")]]}}, "points: exterior: nan"),
        ("rect", {"points": {"exterior": [[1, 2], [3, float("inf")]]}}, "points: exterior: inf"),
        ("rect", {"points": {"exterior": [[1, 2], [3, 10**400]]}}, "points: exterior: 1000"),
        ("rect", {"points": {"exterior": [[1, 2], [3, 10**5000]]}}, "points: exterior: a number"),
        ("rect", {"points": {"exterior": [[1, 2], [3, 2**24 + 1]]}}, "points: exterior: 16777217"),
        ("rect", {"points": {"exterior": [[1, 2], [3, True]]}}, "points: exterior: True"),
        ("rect", {"points": {"exterior": [[1, 2], [3, "4"]]}}, "points: exterior: '4'"),
        ("rect", {"box": [1, 2, 3]}, "box: 3 numbers"),
        ("rect", {"box": [1, 2, 0, 4]}, "box: .* ends before"),
        ("rect", {"box": "1234"}, "box"),
        ("rect", {"geometryType": "blob", "shape": "blob"}, "geometryType: 'blob'"),
        ("bitmap", {"bitmap": None}, "bitmap"),
        ("bitmap", {"bitmap": {"origin": [1, 2]}}, "bitmap: data"),
        ("bitmap", {"bitmap": {"origin": [1], "data": ""}}, "bitmap: origin"),
        ("bitmap", {"bitmap": {"origin": [1, 2], "data": "AAAA"}}, "bitmap: data: it is no PNG"),
        ("obb", {"angle": None}, "angle"),
        ("obb", {"angle": float("nan")}, "angle: nan"),
        ("obb", {"points": {}}, "points"),
        ("graph", {"nodes": {}}, "nodes"),
        ("graph", {"nodes": {"a": 3}}, "nodes: a"),
        ("graph", {"nodes": {"a": {"loc": None}}}, "nodes: a: loc"),
        ("cuboid", {"points": 3}, "points"),
    ],
)
def test_damage_names_object_and_field(title: str, changes: dict[str, object], field: str) -> None:
    """Whatever is broken, the error is ours and says where: object 3, and which field of it."""
    with pytest.raises(ProtocolError, match=f"^object 3: {field}"):
        zoo(title, **changes).box()


@pytest.mark.parametrize(
    ("title", "changes", "read", "field"),
    [
        ("polygon", {"points": {"exterior": [[1, 2]], "interior": 3}}, Figure.rings, "points: interior"),
        ("polygon", {"points": {"exterior": [[1, 2]], "interior": [[]]}}, Figure.rings, "points: interior"),
        ("cuboid", {"faces": [[0, 1, 9]]}, Figure.faces, "faces: 9"),
        ("cuboid", {"faces": 1}, Figure.faces, "faces"),
        ("rect", {"tags": 5}, Figure.score, "tags"),
        ("rect", {"tags": [5]}, Figure.score, "tags"),
        ("rect", {"tags": [{"name": "conf", "value": "high"}]}, Figure.score, "tag conf: 'high'"),
        ("rect", {"tags": [{"name": "conf", "value": float("nan")}]}, Figure.score, "tag conf: nan"),
        ("rect", {"tags": [{"name": "conf", "value": 1e39}]}, Figure.score, r"tag conf: 1e\+39"),
        ("rect", {"tags": [{"value": 1}]}, Figure.tags, "tags: name"),
        ("rect", {"tags": [{"name": "a", "value": []}]}, Figure.tags, "tags: value"),
    ],
)
def test_damage_elsewhere_names_object_and_field(
    title: str, changes: dict[str, object], read: Callable[[Figure], object], field: str
) -> None:
    """Outlines, faces, scores and tags say where they are broken, too."""
    with pytest.raises(ProtocolError, match=f"^object 3: {field}"):
        read(zoo(title, **changes))


def test_an_object_that_is_none_is_a_protocol_error() -> None:
    """A list in the place of an object is named by its number."""
    with pytest.raises(ProtocolError, match=r"^object 7: \[\] is no object"):
        Figure([], 7)


# -- masks in their picture ------------------------------------------------------------------------

SMALL = Size(10, 8)


@pytest.mark.parametrize(("x", "y"), [(-3, -2), (7, 5), (-20, 0), (0, 30), (2, 3)])
def test_a_mask_is_cut_to_its_picture(x: int, y: int) -> None:
    """What sticks out is gone, what is inside is in its place, and nothing else is there."""
    mask = np.arange(24).reshape(4, 6) % 5 < 3
    crop = cut_to(SMALL, MaskCrop(x, y, mask))
    wanted = np.zeros((8 + 60, 10 + 60), bool)
    wanted[30 + y : 34 + y, 30 + x : 36 + x] = mask
    assert (full(crop, SMALL) == wanted[30:38, 30:40]).all()


@pytest.mark.parametrize(
    "crop",
    [
        fill_box(SMALL, (-5, -5, 100, 3)),
        fill_rings(SMALL, [[(-5, -5), (30, -5), (30, 30)]]),
        fill_rings(SMALL, [[(3, 3)]]),
        fill_rings(SMALL, [[(3, 3), (30, 3)]]),
        fill_slanted(SMALL, slanted_corners((-5, -5, 30, 30), 0.7)),
        trace(SMALL, [(-5, 3), (30, 3)]),
        trace(SMALL, [(4, 4)]),
        dots(SMALL, [(-1, -1), (4, 4), (30, 30)]),
    ],
)
def test_drawn_masks_lie_inside_their_picture(crop: MaskCrop) -> None:
    """Every way to draw a mask gives one that can be pasted as it is, and has some pixel."""
    assert full(crop, SMALL).sum() == crop.mask.sum() > 0


@pytest.mark.parametrize("angle", [0.0, math.pi, -math.pi, 2 * math.pi])
def test_a_box_turned_by_half_turns_is_the_box(angle: float) -> None:
    """The mask of a turned box agrees with that of an upright one where the two are the same."""
    box = (2.0, 1.0, 8.0, 5.0)
    assert (
        full(fill_slanted(SMALL, slanted_corners(box, angle)), SMALL) == full(fill_box(SMALL, box), SMALL)
    ).all()


def test_figures_far_outside_have_empty_masks() -> None:
    """An object that lies outside its picture keeps its row, with nothing in it."""
    assert fill_box(SMALL, (100, 100, 200, 200)).mask.size == 0
    assert fill_rings(SMALL, [[(100, 100), (200, 100), (200, 200)]]).mask.size == 0
    assert dots(SMALL, [(-9, 2)]).mask.size == 0


def test_a_drawn_mask_is_bounded() -> None:
    """A picture that claims 2**24 x 2**24 pixels gets no mask of them."""
    huge = Size(2**24, 2**24)
    everything = (0.0, 0.0, float(2**24), float(2**24))
    with pytest.raises(ProtocolError, match="more than"):
        fill_box(huge, everything)
    with pytest.raises(ProtocolError, match="more than"):
        fill_rings(huge, [[(0, 0), (2**24, 0), (2**24, 2**24)]])


def test_hull_of_a_line_has_two_ends() -> None:
    """Points on one line, or twice in one place, have no area; that is no error."""
    assert hull([(1, 1), (1, 1)]) == [(1, 1)]
    assert sorted(hull([(0, 0), (1, 1), (2, 2)])) == [(0, 0), (2, 2)]
