"""From masks to polygons: areas, parts, holes, and what a checker of polygons would refuse."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage

from predsession.wire import rings as rings_file
from predsession.wire.rings import Points, mask_rings

MASKS = hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=12))
CROWDED = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).random((14, 14)) < 0.6)


def area(ring: Points) -> float:
    """Return the area that a ring encloses: above 0 where it runs clockwise on the screen."""
    x, y = ring.T.astype(np.int64)
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2)


@given(MASKS | CROWDED)
def test_each_part_has_its_pixels(mask: npt.NDArray[np.bool_]) -> None:
    """A piece for each part that is connected by edges; its area is the number of its pixels."""
    labels, count = ndimage.label(mask)
    pieces = mask_rings(mask)
    assert len(pieces) == count
    for outline, holes in pieces:
        x, y = outline[0]
        assert labels[y, x] > 0
        assert area(outline) + sum(map(area, holes)) == (labels == labels[y, x]).sum()
        assert area(outline) > 0
        assert all(area(hole) < 0 for hole in holes)


@given(MASKS | CROWDED)
def test_rings_are_simple_and_turn_everywhere(mask: npt.NDArray[np.bool_]) -> None:
    """No ring visits a point twice, and every point is a corner between an upright and a level edge."""
    for outline, holes in mask_rings(mask):
        for ring in (outline, *holes):
            assert len(np.unique(ring, axis=0)) == len(ring)
            upright = np.roll(ring, -1, axis=0)[:, 0] == ring[:, 0]
            assert (upright != np.roll(upright, 1)).all()


def test_places_are_those_of_the_picture() -> None:
    """The pixel at 20, 10 is the square from there to 21, 11."""
    ((outline, holes),) = mask_rings(np.ones((1, 1), np.bool_), x=20, y=10)
    assert outline.tolist() == [[20, 10], [21, 10], [21, 11], [20, 11]]
    assert holes == ()


def test_a_part_that_meets_itself_has_a_hole() -> None:
    """Where a part closes at a corner, what it closes off is a hole that touches the outline there."""
    mask = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 1]], np.bool_)
    ((outline, holes),) = mask_rings(mask)
    assert [hole.tolist() for hole in holes] == [[[1, 1], [1, 2], [2, 2], [2, 1]]]
    assert [1, 1] in outline.tolist()


def test_bands_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask that is looked at row by row gives the same rings as one that is looked at at once."""
    mask = np.random.default_rng(1).random((40, 30)) < 0.6
    whole = mask_rings(mask)
    monkeypatch.setattr(rings_file, "_BAND", 30)
    pieces = mask_rings(mask)
    assert [piece.outline.tolist() for piece in pieces] == [piece.outline.tolist() for piece in whole]
    assert [[hole.tolist() for hole in piece.holes] for piece in pieces] == [
        [hole.tolist() for hole in piece.holes] for piece in whole
    ]
