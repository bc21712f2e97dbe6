"""From a mask to its outlines: polygons along the edges of pixels, whose area is the number of pixels.

Invariant: every ring is simple (it visits no point twice), an outline has the object on its right as seen on
the screen, a hole too; so a polygon made of them is valid wherever polygons are checked.

Invariant: no step is taken pixel by pixel or corner by corner in Python, and memory grows with the number of
corners, not with the picture.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Points = npt.NDArray[np.int32]

_BAND = 1 << 20  # pixels that are looked at together: bounds what is held beside the mask


class Piece(NamedTuple):
    """A connected part of a mask: its outline and its holes, each (M, 2) int32: x, y, edges of pixels."""

    outline: Points
    holes: tuple[Points, ...]


class _Corners(NamedTuple):
    """Where the outlines turn, by row, then by column; a point where two of them meet is there twice."""

    column: Ints
    row: Ints
    turn: Ints
    """0 at a simple corner; else 1 and 2, or -1 and -2 where the object is upper right and lower left."""
    below: npt.NDArray[np.bool_]
    """Whether the pixel to the lower right belongs to the object."""


def mask_rings(mask: npt.NDArray[np.bool_], *, x: int = 0, y: int = 0) -> list[Piece]:
    """Trace a mask along the edges of its pixels.

    Parameters
    ----------
    mask : (H, W) bool ndarray
        True is the object.
    x, y : int
        Where its first pixel lies: those of a `MaskCrop`.

    Returns
    -------
    list of Piece
        The connected parts, from the top down; pixels that share only a corner are not connected. Rings are
        not closed (the first point is not repeated), have only the points where they turn, and run clockwise
        on the screen, where y points down; holes run the other way round. The area of the outlines less that
        of the holes is the number of pixels. One pixel at 20, 10 is (20, 10), (21, 10), (21, 11), (20, 11).

    Notes
    -----
    In each row the corners pair up into horizontal edges, in each column into vertical ones; following the
    two in turn is following the outline. Where two parts of the object meet at a corner, each keeps to
    itself; where one part meets itself there, what it closes off is a hole.
    """
    corners = _corners(mask)
    if not len(corners.row):
        return []
    by_column, follower, ring = _rings(corners, np.zeros(0, np.int64))
    first = np.flatnonzero(corners.turn != 0)[::2]
    pinched = first[ring[first] == ring[first + 1]]
    if len(pinched):  # else the ring would visit the point twice
        by_column, follower, ring = _rings(corners, pinched)
    order = np.lexsort((_ranks(follower, ring), ring))
    starts = np.flatnonzero(np.r_[True, ring[order][1:] != ring[order][:-1]])
    place = np.stack((corners.column[order] + x, corners.row[order] + y), axis=1)
    is_hole = _areas(place, starts) < 0
    parents = _parents(mask, corners, by_column, ring, order[starts], is_hole)
    return _pieces(np.split(place.astype(np.int32), starts[1:]), is_hole, parents)


def _pieces(rings: list[Points], is_hole: npt.NDArray[np.bool_], parents: Ints) -> list[Piece]:
    """Put the holes into their outlines."""
    holes: dict[int, list[Points]] = {}
    for number in np.flatnonzero(is_hole).tolist():
        holes.setdefault(int(parents[number]), []).append(rings[number])
    return [
        Piece(rings[number], tuple(holes.get(number, ()))) for number in np.flatnonzero(~is_hole).tolist()
    ]


def _corners(mask: npt.NDArray[np.bool_]) -> _Corners:
    """Find the points where outlines turn, a band of rows at a time."""
    height, width = mask.shape
    step = max(_BAND // max(width, 1), 1)
    parts = [_band(mask, top, min(top + step, height + 1)) for top in range(0, height + 1, step)]
    row, column, turn, below = (np.concatenate(each) for each in zip(*parts, strict=True))
    return _Corners(column, row, turn, below)


def _band(mask: npt.NDArray[np.bool_], top: int, end: int) -> tuple[Ints, Ints, Ints, npt.NDArray[np.bool_]]:
    """Find the corners in the lines `top` to `end` between rows of pixels: row, column, turn, below."""
    padded = np.zeros((end - top + 1, mask.shape[1] + 2), np.bool_)
    inside = mask[max(top - 1, 0) : end]
    skipped = int(top == 0)
    padded[skipped : skipped + len(inside), 1:-1] = inside
    across = padded[:, :-1] ^ padded[:, 1:]  # where a pixel differs from its neighbour on the right
    odd = across[:-1] ^ across[1:]
    # Both pairs of neighbours differ and the upper left is not the lower left: a draughtboard of four.
    double = across[:-1] & across[1:] & (padded[:-1, :-1] ^ padded[1:, :-1])
    row, column = np.nonzero(odd | double)
    twice = double[row, column]
    row, column = np.repeat(row, 1 + twice), np.repeat(column, 1 + twice)
    below = padded[row + 1, column + 1]
    turn = np.zeros(len(row), np.int64)
    second = np.cumsum(1 + twice)[twice] - 1
    turn[second - 1], turn[second] = 1, 2
    turn[(turn != 0) & ~below] *= -1
    return row + top, column, turn, below


def _rings(corners: _Corners, pinched: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the order by column, for each corner the one that follows, and the first corner of its ring."""
    # At the points in `pinched` (their first corners) the ring keeps to what is not the object.
    tie = corners.turn.copy()
    tie[pinched] *= -1
    tie[pinched + 1] *= -1
    count = len(tie)
    by_column = np.lexsort((tie, corners.row, corners.column))
    follower = np.empty(count, np.int64)
    follower[by_column[0::2]], follower[by_column[1::2]] = by_column[1::2], by_column[0::2]
    left = np.arange(0, count, 2)
    starts = np.where(corners.below[left], left, left + 1)  # the object is below an edge that runs right
    follower[starts] = starts ^ 1
    return by_column, follower, _smallest(follower)


def _smallest(follower: Ints) -> Ints:
    """Return the smallest number in each one's circle, by steps that double."""
    least, jump = np.arange(len(follower)), follower
    while True:
        better = np.minimum(least, least[jump])
        if np.array_equal(better, least):  # then windows of equal minimum cover the whole circle
            return least
        least, jump = better, jump[jump]


def _ranks(follower: Ints, ring: Ints) -> Ints:
    """Return how many steps each corner is from the first of its ring."""
    numbers = np.arange(len(follower))
    before = np.empty_like(numbers)
    before[follower] = numbers
    is_first = ring == numbers
    pointer, steps = np.where(is_first, numbers, before), np.where(is_first, 0, 1)
    while not np.array_equal(pointer, ring):
        steps = steps + steps[pointer]
        pointer = pointer[pointer]
    return steps


def _areas(place: Ints, starts: Ints) -> Ints:
    """Return twice the signed area of each ring: above 0 where it runs clockwise on the screen."""
    following = np.arange(1, len(place) + 1)
    following[np.r_[starts[1:], len(place)] - 1] = starts
    x, y = place[:, 0], place[:, 1]
    areas: Ints = np.add.reduceat(x * y[following] - x[following] * y, starts)
    return areas


def _parents(
    mask: npt.NDArray[np.bool_],
    corners: _Corners,
    by_column: Ints,
    ring: Ints,
    firsts: Ints,
    is_hole: npt.NDArray[np.bool_],
) -> Ints:
    """Return for each ring the number of the outline it belongs to; an outline belongs to itself."""
    parents = np.arange(len(firsts))
    if not is_hole.any():
        return parents
    # To the left of a hole's first corner is the object; where that run of pixels begins, there is an edge
    # of the ring around the part, or of another of its holes, which begins further up or to the left.
    row, column = corners.row[firsts[is_hole]], corners.column[firsts[is_hole]]
    begin = _run_starts(mask, row, column - 1)
    high = mask.shape[0] + 1
    keys = corners.column[by_column] * high + corners.row[by_column]
    upper = by_column[np.searchsorted(keys, begin * high + row, side="right") - 1]
    parents[is_hole] = np.searchsorted(firsts, ring[upper])
    while True:
        higher = parents[parents]
        if np.array_equal(higher, parents):
            return parents
        parents = higher


def _run_starts(mask: npt.NDArray[np.bool_], row: Ints, column: Ints) -> Ints:
    """Return the first column of the run of True that each pixel lies in, a band of rows at a time."""
    rows, which = np.unique(row, return_inverse=True)
    step = max(_BAND // mask.shape[1], 1)
    begin = np.empty_like(column)
    for top in range(0, len(rows), step):
        band = mask[rows[top : top + step]]
        starts = band.copy()
        starts[:, 1:] &= ~band[:, :-1]
        places = np.flatnonzero(starts)
        here = (which >= top) & (which < top + step)
        asked = (which[here] - top) * mask.shape[1] + column[here]
        begin[here] = places[np.searchsorted(places, asked, side="right") - 1] % mask.shape[1]
    return begin
