"""Masks at the runtime's own resolution -> masks at the picture's size, each cut to what is set.

Invariant: what all masks of one picture take is bounded before it is taken: a few bytes on the wire can say
"thousands of masks, each as large as a picture can be".
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from predsession.errors import ProtocolError
from predsession.wire.edge.masks import decode_rows, row_span
from predsession.wire.edge.parts import SegmentationMask
from predsession.wire.geometry import MAX_MASK_PIXELS, MaskCrop, Size

Places = npt.NDArray[np.intp]


class _Budget:
    """Pixels that the masks of one picture may take together."""

    def __init__(self) -> None:
        self._left = MAX_MASK_PIXELS

    def take(self, rows: int, columns: int) -> None:
        """Take some; raise ProtocolError if there are no more."""
        self._left -= rows * columns
        if self._left < 0:
            raise ProtocolError(f"the masks of one picture have more than {MAX_MASK_PIXELS} pixels")


def crops_of(masks: Iterable[SegmentationMask | None], size: Size) -> list[MaskCrop | None]:
    """Return masks at the picture's size.

    Parameters
    ----------
    masks : iterable of SegmentationMask or None
        Each over the whole picture.
    size : Size
        The picture's.

    Returns
    -------
    list of MaskCrop or None
        Each pixel is that of the mask which lies under its middle. One in which nothing is set is 0 x 0.

    Raises
    ------
    ProtocolError
        If a mask's code is damaged, or all of them are too large.
    """
    budget = _Budget()
    return [None if mask is None else _crop(mask, size, budget) for mask in masks]


def _crop(mask: SegmentationMask, size: Size, budget: _Budget) -> MaskCrop:
    """Return one mask."""
    top, bottom = row_span(mask.mask_rle, mask.mask_width, mask.mask_height)
    budget.take(bottom - top, mask.mask_width)
    small = decode_rows(mask.mask_rle, mask.mask_width, mask.mask_height, rows=(top, bottom))
    columns = np.flatnonzero(small.any(axis=0))
    if not len(columns):
        return MaskCrop(0, 0, np.zeros((0, 0), np.bool_))
    y, rows = _under(size.height, mask.mask_height, (top, bottom))
    x, places = _under(size.width, mask.mask_width, (int(columns[0]), int(columns[-1]) + 1))
    budget.take(len(rows), len(places))
    return _tight(x, y, small[(rows - top)[:, None], places[None, :]])


def _under(pixels: int, cells: int, span: tuple[int, int]) -> tuple[int, Places]:
    """Return the first pixel over a span of cells, and the cell under each pixel from there to its end."""
    cell = ((np.arange(pixels) + 0.5) * cells / pixels).astype(np.intp)
    first, last = np.searchsorted(cell, span)
    return int(first), cell[first:last]


def _tight(x: int, y: int, mask: npt.NDArray[np.bool_]) -> MaskCrop:
    """Cut to what is set: a mask finer than the picture can lose its outermost pixels."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return MaskCrop(0, 0, np.zeros((0, 0), np.bool_))
    cut = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return MaskCrop(x + int(columns[0]), y + int(rows[0]), cut)
