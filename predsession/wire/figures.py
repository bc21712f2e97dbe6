"""The objects of an annotation: wire JSON to numbers and masks, read only where it is asked.

Invariant: a damaged object raises `ProtocolError` that says which object and which field, and nothing else.

References
----------
PROTOCOL.md, section 5: the object JSON of each geometry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from predsession.errors import ProtocolError
from predsession.wire.fields import MAX_VALUE, Fields, shown
from predsession.wire.geometry import (
    Box,
    MaskCrop,
    Node,
    Point,
    Ring,
    Size,
    box_around,
    cut_to,
    dots,
    fill_box,
    fill_rings,
    fill_slanted,
    hull,
    slanted_corners,
    trace,
)
from predsession.wire.jsontypes import JSON, JSONObject

_SCORE_TAGS = ("confidence", "conf", "score")
_MASKS = frozenset(("bitmap", "alpha_mask"))


class Figure(Fields):
    """One object of an annotation.

    Parameters
    ----------
    item : JSON
        The wire's object.
    number : int
        Its position in the annotation, for messages.

    Raises
    ------
    ProtocolError
        If it is no object.
    """

    __slots__ = ("kind",)

    def __init__(self, item: JSON, number: int) -> None:
        super().__init__(item, f"object {number}")
        self.kind: str = _kind_of(self.item)

    def score(self) -> float:
        """Return the tag confidence, conf or score; 1.0 where there is none.

        Returns
        -------
        float
            Finite; of two tags of one name, the first.

        Raises
        ------
        ProtocolError
            If the tag's value is no finite number, or the tags are damaged.
        """
        tags = self.item.get("tags")
        if not tags:
            return 1.0
        values: dict[JSON, JSON] = {}
        for tag in self.array(tags, "tags"):
            if not isinstance(tag, Mapping):
                raise self.broken("tags", f"{shown(tag)} is no object")
            name = tag.get("name")
            if name in _SCORE_TAGS:
                values.setdefault(name, tag.get("value"))
        for name in _SCORE_TAGS:
            if name in values:
                return self.number(values[name], f"tag {name}", MAX_VALUE)
        return 1.0

    def box(self) -> Box:
        """Return the box: the extension's ``box`` where it is there, else that of the geometry.

        Returns
        -------
        tuple of float
            xyxy, pixels, half-open. Of a graph: of its visible nodes, or of all where none is.

        Raises
        ------
        ProtocolError
            If the fields it is read from are damaged, or the geometry is not known.

        References
        ----------
        DESIGN.md, the extension ``float_boxes``.
        """
        exact = self.item.get("box")
        if exact is not None:
            return _exact_box(self, exact)
        return _BOXES.get(self.kind, _unknown)(self)

    def crop(self, size: Size) -> MaskCrop:
        """Return the mask, whatever the geometry.

        A rectangle is filled, so are a polygon (but for its holes), an oriented box and the outline of a
        cuboid; a line is one pixel wide; a point, and each visible node of a graph, is one pixel.

        Parameters
        ----------
        size : Size
            Of the picture.

        Returns
        -------
        MaskCrop
            Inside the picture; empty where the object lies outside.

        Raises
        ------
        ProtocolError
            If the fields it is read from are damaged, the geometry is not known, or the mask is larger
            than the picture.
        """
        return _CROPS.get(self.kind, _unknown)(self, size)

    def rings(self) -> tuple[Ring, ...]:
        """Return the closed outlines: a polygon's and then its holes', an oriented box's, a cuboid's.

        Returns
        -------
        tuple of sequence of (x, y)
            Empty for all other geometries.

        Raises
        ------
        ProtocolError
            If the fields they are read from are damaged.
        """
        # A mask may carry the polygon that it was made of beside it; a stock server never does.
        kind = "polygon" if self.kind in _MASKS and "points" in self.item else self.kind
        return _RINGS[kind](self) if kind in _RINGS else ()

    def faces(self) -> tuple[Ring, ...]:
        """Return the outlines to draw: those of `rings`, but of a cuboid those of its faces.

        Returns
        -------
        tuple of sequence of (x, y)
            Empty where there is nothing but a box, a mask or points.

        Raises
        ------
        ProtocolError
            If the fields they are read from are damaged.
        """
        if self.kind != "cuboid":
            return self.rings()
        points = self.points("points")
        faces = self.array(self.item.get("faces"), "faces")
        return tuple([_corner(self, place, points) for place in self.array(face, "faces")] for face in faces)

    def line(self) -> Ring:
        """Return the vertices of a line; empty for all other geometries."""
        return _exterior(self) if self.kind == "line" else ()

    def nodes(self) -> tuple[Node, ...]:
        """Return the keypoints: a graph's nodes, or a point as one node; empty for other geometries.

        Returns
        -------
        tuple of Node
            In the wire's order.

        Raises
        ------
        ProtocolError
            If the fields they are read from are damaged.
        """
        if self.kind == "point":
            return (Node("", *_exterior(self)[0], True),)
        return _graph(self) if self.kind == "graph" or "nodes" in self.item else ()


def _kind_of(item: JSONObject) -> str:
    """Return the geometry's name; of one that is called ``any``, what its fields look like."""
    for field in ("geometryType", "shape"):
        kind = item.get(field)
        if isinstance(kind, str) and kind != "any":
            return "line" if kind == "polyline" else kind
    for field, kind in (
        ("bitmap", "bitmap"),
        ("nodes", "graph"),
        ("faces", "cuboid"),
        ("angle", "oriented_bbox"),
    ):
        if field in item:
            return kind
    return "rectangle"


def _unknown(figure: Figure, *_: object) -> NoReturn:
    """Refuse a geometry that is not in the protocol."""
    raise figure.broken("geometryType", f"{shown(figure.item.get('geometryType'))} is not known")


def _exact_box(figure: Figure, value: JSON) -> Box:
    """Read the extension's box of floats."""
    numbers = figure.array(value, "box")
    if len(numbers) != 4:
        raise figure.broken("box", f"{len(numbers)} numbers, not four")
    x1, y1, x2, y2 = (figure.number(number, "box") for number in numbers)
    if x2 < x1 or y2 < y1:
        raise figure.broken("box", f"{shown(value)} ends before it begins")
    return x1, y1, x2, y2


def _exterior(figure: Figure) -> list[Point]:
    """Return the points of ``points.exterior``: at least one."""
    return figure.inner("points").points("exterior")


def _polygon(figure: Figure) -> tuple[Ring, ...]:
    """Return the outer ring and the holes."""
    points = figure.inner("points")
    holes = points.item.get("interior")
    inner = points.array(holes, "interior") if holes else ()
    return points.points("exterior"), *(points.ring(hole, "interior") for hole in inner)


def _corners(figure: Figure, points: Sequence[Point]) -> Box:
    """Return the box of two corners, in whichever order they come."""
    if len(points) != 2:
        raise figure.broken("points", f"{len(points)} points, not two corners")
    return box_around(points)


def _rectangle(figure: Figure) -> Box:
    """Read a rectangle."""
    return _corners(figure, _exterior(figure))


def _slanted(figure: Figure) -> tuple[Point, ...]:
    """Return the corners of an oriented box."""
    box = _corners(figure, figure.points("points"))
    return slanted_corners(box, figure.number(figure.item.get("angle"), "angle"))


def _slanted_box(figure: Figure) -> Box:
    """Return the upright box around an oriented one; its corners are edges, so nothing is added."""
    corners = _slanted(figure)
    columns, rows = [x for x, _ in corners], [y for _, y in corners]
    return min(columns), min(rows), max(columns), max(rows)


def _outline(figure: Figure) -> list[Point]:
    """Return the outline of a cuboid's corners."""
    return hull(figure.points("points"))


def _corner(figure: Figure, place: JSON, points: Sequence[Point]) -> Point:
    """Return the corner of a cuboid that a face names."""
    if isinstance(place, int) and 0 <= place < len(points):
        return points[place]
    raise figure.broken("faces", f"{shown(place)} is not the number of a point")


def _graph(figure: Figure) -> tuple[Node, ...]:
    """Read the nodes of a graph: at least one."""
    nodes = figure.inner("nodes")
    if not nodes.item:
        raise figure.broken("nodes", "there is no node")
    return tuple(_node(nodes, key) for key in nodes.item)


def _node(nodes: Fields, key: str) -> Node:
    """Read one node."""
    node = nodes.inner(key)
    return Node(key, *node.point(node.item.get("loc"), "loc"), not node.item.get("disabled"))


def _seen(figure: Figure) -> list[Point]:
    """Return the places of the visible nodes, or of all where none is visible."""
    nodes = _graph(figure)
    return [(node.x, node.y) for node in nodes if node.visible] or [(node.x, node.y) for node in nodes]


def _origin(bitmap: Fields) -> tuple[int, int]:
    """Return left and top of a bitmap."""
    x, y = bitmap.point(bitmap.item.get("origin"), "origin")
    return math.floor(x), math.floor(y)


def _bitmap_box(figure: Figure) -> Box:
    """Return where a bitmap lies; only the head of its PNG is unpacked."""
    bitmap = figure.inner("bitmap")
    x, y = _origin(bitmap)
    text = bitmap.text("data")
    try:
        from predsession.wire.bitmaps import png_size

        width, height = png_size(text)
    except ProtocolError as error:
        raise bitmap.broken("data", str(error)) from None
    return x, y, x + width, y + height


def _bitmap_crop(figure: Figure, size: Size) -> MaskCrop:
    """Unpack a bitmap."""
    bitmap = figure.inner("bitmap")
    x, y = _origin(bitmap)
    text = bitmap.text("data")
    try:
        from predsession.wire.bitmaps import decode_mask

        mask = decode_mask(text, within=size)
    except ProtocolError as error:
        raise bitmap.broken("data", str(error)) from None
    return cut_to(size, MaskCrop(x, y, mask))


_BOXES: Mapping[str, Callable[[Figure], Box]] = {
    "rectangle": _rectangle,
    "oriented_bbox": _slanted_box,
    "polygon": lambda figure: box_around(_exterior(figure)),
    "line": lambda figure: box_around(_exterior(figure)),
    "point": lambda figure: box_around(_exterior(figure)),
    "bitmap": _bitmap_box,
    "alpha_mask": _bitmap_box,
    "cuboid": lambda figure: box_around(figure.points("points")),
    "graph": lambda figure: box_around(_seen(figure)),
}

_CROPS: Mapping[str, Callable[[Figure, Size], MaskCrop]] = {
    "rectangle": lambda figure, size: fill_box(size, _rectangle(figure)),
    "oriented_bbox": lambda figure, size: fill_slanted(size, _slanted(figure)),
    "polygon": lambda figure, size: fill_rings(size, _polygon(figure)),
    "line": lambda figure, size: trace(size, _exterior(figure)),
    "point": lambda figure, size: dots(size, _exterior(figure)),
    "bitmap": _bitmap_crop,
    "alpha_mask": _bitmap_crop,
    "cuboid": lambda figure, size: fill_rings(size, (_outline(figure),)),
    "graph": lambda figure, size: dots(size, _seen(figure)),
}

_RINGS: Mapping[str, Callable[[Figure], tuple[Ring, ...]]] = {
    "polygon": _polygon,
    "oriented_bbox": lambda figure: (_slanted(figure),),
    "cuboid": lambda figure: (_outline(figure),),
}
