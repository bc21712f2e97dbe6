"""Sizes, masks and the geometry of figures: numbers to numbers, and figures to masks. No JSON here.

Invariant: every box is ``xyxy``, pixels, float32 and half-open (width = x2 - x1). The wire's whole-pixel
corners are inclusive, so x2 = right + 1. That holds for every figure: a vertex names a pixel.

Invariant: a mask that is drawn here lies inside its picture; what would stick out is cut off, so that
``full[y : y + h, x : x + w] = mask`` is always right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from predsession.errors import ProtocolError

if TYPE_CHECKING:
    from PIL import ImageDraw

MAX_MASK_PIXELS = 1 << 28
"""No mask has more pixels than this, whatever size its picture claims (2**28 is 16384 x 16384)."""

MAX_CROSSINGS = 1 << 27
"""Points of an outline times rows of its mask: Pillow looks at each for each, up to 50 ns."""


class Size(NamedTuple):
    """Width and height of a picture, in pixels."""

    width: int
    height: int


class MaskCrop(NamedTuple):
    """A mask cut to its own rectangle: ``mask[row, col]`` is the pixel ``(x + col, y + row)``."""

    x: int
    y: int
    mask: npt.NDArray[np.bool_]


class Node(NamedTuple):
    """One keypoint of a figure: its id in the skeleton, its place in pixels, whether it is visible."""

    id: str
    x: float
    y: float
    visible: bool


Point = tuple[float, float]
Ring = Sequence[Point]
Box = tuple[float, float, float, float]


def box_around(points: Ring) -> Box:
    """Return the box of the pixels that the points name.

    Parameters
    ----------
    points : sequence of (x, y)
        At least one.

    Returns
    -------
    tuple of float
        xyxy, half-open: one point at (20, 10) has the box 20, 10, 21, 11.
    """
    columns = [point[0] for point in points]
    rows = [point[1] for point in points]
    return min(columns), min(rows), max(columns) + 1, max(rows) + 1


def slanted_corners(box: Box, angle: float) -> tuple[Point, ...]:
    """Turn a box about its middle.

    Parameters
    ----------
    box : tuple of float
        xyxy, half-open, before it is turned.
    angle : float
        Radians, clockwise as seen on the screen.

    Returns
    -------
    tuple of (x, y)
        The corners that were left-top, right-top, right-bottom, left-bottom; edges of pixels, not pixels.
    """
    x1, y1, x2, y2 = box
    middle_x, middle_y = (x1 + x2) / 2, (y1 + y2) / 2
    half_x, half_y = (x2 - x1) / 2, (y2 - y1) / 2
    cos, sin = math.cos(angle), math.sin(angle)
    return tuple(
        (middle_x + dx * cos - dy * sin, middle_y + dx * sin + dy * cos)
        for dx, dy in ((-half_x, -half_y), (half_x, -half_y), (half_x, half_y), (-half_x, half_y))
    )


def hull(points: Ring) -> list[Point]:
    """Return the convex outline of some points.

    Parameters
    ----------
    points : sequence of (x, y)
        In any order.

    Returns
    -------
    list of (x, y)
        The corners of the outline in order; fewer than three where the points lie on one line.
    """
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return ordered
    return _chain(ordered) + _chain(ordered[::-1])


def _chain(ordered: Ring) -> list[Point]:
    """Return one half of the hull of sorted points, without its last corner."""
    corners: list[Point] = []
    for x, y in ordered:
        while len(corners) > 1:
            (ax, ay), (bx, by) = corners[-2:]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                break
            corners.pop()
        corners.append((x, y))
    return corners[:-1]


def cut_to(size: Size, crop: MaskCrop) -> MaskCrop:
    """Cut off what sticks out of the picture.

    Parameters
    ----------
    size : Size
        Of the picture.
    crop : MaskCrop
        A mask at its place; it may lie partly or wholly outside.

    Returns
    -------
    MaskCrop
        The part inside; an empty mask where there is none.
    """
    x, y, mask = crop
    height, width = mask.shape
    left, top = min(max(x, 0), size.width), min(max(y, 0), size.height)
    right, bottom = min(max(x + width, left), size.width), min(max(y + height, top), size.height)
    return MaskCrop(left, top, mask[top - y : bottom - y, left - x : right - x])


def fill_box(size: Size, box: Box) -> MaskCrop:
    """Return the mask of a box: every pixel that it touches.

    Parameters
    ----------
    size : Size
        Of the picture.
    box : tuple of float
        xyxy, half-open.

    Returns
    -------
    MaskCrop
        All True.

    Raises
    ------
    ProtocolError
        If it has more than `MAX_MASK_PIXELS` pixels.
    """
    left, top, width, height = _frame(size, box)
    # One True seen everywhere: a thousand boxes of a large picture take no memory.
    return MaskCrop(left, top, np.broadcast_to(np.True_, (height, width)))


def fill_rings(size: Size, rings: Sequence[Ring]) -> MaskCrop:
    """Return the mask of a polygon with holes. The outline belongs to it, the outlines of holes do not.

    Parameters
    ----------
    size : Size
        Of the picture.
    rings : sequence of sequence of (x, y)
        The outer ring first; vertices name pixels. A ring of one or two points is a dot or a line.

    Returns
    -------
    MaskCrop
        The pixels inside and on the outer ring.

    Raises
    ------
    ProtocolError
        If it has more than `MAX_MASK_PIXELS` pixels, or so many points that filling it would take minutes.

    References
    ----------
    The stock server fills holes with their outline too, after the outer ring.
    """
    left, top, width, height = _frame(size, box_around(rings[0]))
    vertices = sum(map(len, rings))
    if vertices * height > MAX_CROSSINGS:
        raise ProtocolError(f"its outline has {vertices} points, too many to fill {height} rows")
    from PIL import Image, ImageDraw

    canvas = Image.new("L", (width, height))
    if width and height:
        pen = ImageDraw.Draw(canvas)
        for number, ring in enumerate(rings):
            _fill(pen, [(x - left, y - top) for x, y in ring], 0 if number else 1)
    return MaskCrop(left, top, np.asarray(canvas).view(np.bool_))


def _fill(pen: ImageDraw.ImageDraw, ring: Ring, ink: int) -> None:
    """Fill one ring, its outline included."""
    if len(ring) > 2:
        pen.polygon(ring, fill=ink, outline=ink)
    elif len(ring) == 2:
        pen.line(ring, fill=ink)
    elif ring:
        pen.point(ring, fill=ink)


def fill_slanted(size: Size, corners: Sequence[Point]) -> MaskCrop:
    """Return the mask of a turned box: every pixel whose middle lies inside.

    Parameters
    ----------
    size : Size
        Of the picture.
    corners : sequence of (x, y)
        Four, in order, edges of pixels; from `slanted_corners`.

    Returns
    -------
    MaskCrop
        For the angle 0 exactly the mask of the box.

    Raises
    ------
    ProtocolError
        If its frame has more than `MAX_MASK_PIXELS` pixels.
    """
    columns, rows = [x for x, _ in corners], [y for _, y in corners]
    left, top, width, height = _frame(size, (min(columns), min(rows), max(columns), max(rows)))
    x = np.arange(left, left + width) + 0.5
    first, last = _spans(corners, np.arange(top, top + height, dtype=np.float64) + 0.5)
    return MaskCrop(left, top, (x >= first[:, None]) & (x <= last[:, None]))


def _spans(
    corners: Sequence[Point], rows: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return where each row enters and leaves a convex outline that runs clockwise on the screen."""
    first, last = np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
    for (ax, ay), (bx, by) in pairwise((*corners, corners[0])):
        if by == ay:  # inside is below an edge that runs right, above one that runs left
            last[(bx - ax) * (rows - ay) < 0] = -np.inf
            continue
        crossing = ax + (bx - ax) * (rows - ay) / (by - ay)
        if by > ay:  # the outline runs down on its right side
            np.minimum(last, crossing, out=last)
        else:
            np.maximum(first, crossing, out=first)
    return first, last


def trace(size: Size, points: Ring) -> MaskCrop:
    """Return the mask of an open line, one pixel wide.

    Parameters
    ----------
    size : Size
        Of the picture.
    points : sequence of (x, y)
        Its vertices, in order; they name pixels.

    Returns
    -------
    MaskCrop
        The pixels it passes.

    Raises
    ------
    ProtocolError
        If its frame has more than `MAX_MASK_PIXELS` pixels.
    """
    left, top, width, height = _frame(size, box_around(points))
    from PIL import Image, ImageDraw

    canvas = Image.new("L", (width, height))
    moved = [(x - left, y - top) for x, y in points]
    if width and height:
        pen = ImageDraw.Draw(canvas)
        pen.line(moved, fill=1)
        pen.point(moved, fill=1)  # a line of one point draws nothing
    return MaskCrop(left, top, np.asarray(canvas).view(np.bool_))


def dots(size: Size, points: Ring) -> MaskCrop:
    """Return the mask of single points: one pixel each.

    Parameters
    ----------
    size : Size
        Of the picture.
    points : sequence of (x, y)
        They name pixels; at least one.

    Returns
    -------
    MaskCrop
        The pixels named.

    Raises
    ------
    ProtocolError
        If its frame has more than `MAX_MASK_PIXELS` pixels.
    """
    left, top, width, height = _frame(size, box_around(points))
    mask = np.zeros((height, width), np.bool_)
    for x, y in points:
        row, column = math.floor(y) - top, math.floor(x) - left
        if 0 <= row < height and 0 <= column < width:
            mask[row, column] = True
    return MaskCrop(left, top, mask)


def _frame(size: Size, box: Box) -> tuple[int, int, int, int]:
    """Return left, top, width and height of the box in whole pixels, cut to the picture."""
    left, top = min(max(math.floor(box[0]), 0), size.width), min(max(math.floor(box[1]), 0), size.height)
    right, bottom = min(math.ceil(box[2]), size.width), min(math.ceil(box[3]), size.height)
    width, height = max(right - left, 0), max(bottom - top, 0)
    if width * height > MAX_MASK_PIXELS:
        raise ProtocolError(f"its mask would have {width} x {height} pixels, more than {MAX_MASK_PIXELS}")
    return left, top, width, height
