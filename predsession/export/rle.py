"""COCO's run lengths: masks as the lengths of runs of off and on, column by column, and those packed as text.

Invariant: no step is taken pixel by pixel or run by run in Python, and memory beside the mask itself grows
with the number of runs, not with the picture.

References
----------
https://github.com/cocodataset/cocoapi/blob/master/common/maskApi.h: runs alternate off and on, beginning with
off, down the columns; packed, a run is the difference to the run before the last, five bits a character, low
ones first, bit 6 for "more follows", 48 added.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from predsession.wire.geometry import MAX_MASK_PIXELS, MaskCrop, Size

Runs = npt.NDArray[np.int64]

_BAND = 1 << 20
"""Pixels, or runs, that are looked at together."""
_MOST_CHARACTERS = 12
"""Of one run: 60 bits."""


def runs_of(crop: MaskCrop, size: Size) -> Runs:
    """Return a mask's run lengths.

    Parameters
    ----------
    crop : MaskCrop
        Inside the picture.
    size : Size
        Of the picture.

    Returns
    -------
    (R,) int64 ndarray
        Off and on in turn, off first (perhaps 0 pixels), down the columns of the whole picture.
    """
    rows, columns = crop.mask.shape
    step = max(_BAND // max(rows, 1), 1)
    parts = [_edges(crop, size, left, min(left + step, columns)) for left in range(0, columns, step)]
    edges = np.concatenate([np.zeros(0, np.int64), *parts])
    # A run that goes on in the next column ends where another begins: in a mask as high as its picture.
    begins, ends = edges[0::2], edges[1::2]
    goes_on = ends[:-1] == begins[1:]
    begins, ends = begins[np.r_[True, ~goes_on][: len(begins)]], ends[np.r_[~goes_on, True][: len(ends)]]
    turns = np.stack((begins, ends), axis=1).ravel()
    total = size.width * size.height
    bounds = np.concatenate(([0], turns, [total] if not len(turns) or turns[-1] < total else []))
    whole: Runs = bounds.astype(np.int64)
    return whole[1:] - whole[:-1]


def _edges(crop: MaskCrop, size: Size, left: int, right: int) -> Runs:
    """Return where runs begin and end, in turn, in some columns of a crop: places in the whole picture."""
    turned = np.zeros((right - left, crop.mask.shape[0] + 2), np.bool_)
    turned[:, 1:-1] = crop.mask[:, left:right].T
    column, row = np.nonzero(turned[:, 1:] ^ turned[:, :-1])
    return (column + (crop.x + left)) * size.height + (row + crop.y)


def crop_of(runs: Runs, size: Size) -> MaskCrop:
    """Return the mask that run lengths say, cut to its rectangle.

    Parameters
    ----------
    runs : (R,) int64 ndarray
        Off and on in turn, off first.
    size : Size
        Of the picture.

    Returns
    -------
    MaskCrop
        Empty where there is no pixel.

    Raises
    ------
    ValueError
        If a run is negative, they do not cover the picture, or it is too large.
    """
    total = size.width * size.height
    if total > MAX_MASK_PIXELS:
        raise ValueError(f"{size.width} x {size.height} pixels are more than {MAX_MASK_PIXELS}")
    if len(runs) and (runs.min() < 0 or runs.max() > total):
        raise ValueError("a run is negative, or longer than the picture")
    if (covered := int(runs.sum())) != total:
        raise ValueError(f"the runs cover {covered} pixels, the picture has {total}")
    ends = np.cumsum(runs)[1::2]
    begins = ends - runs[1::2]
    begins, ends = begins[ends > begins], ends[ends > begins]
    if not len(begins):
        return MaskCrop(0, 0, np.zeros((0, 0), np.bool_))
    height = size.height
    left, right = int(begins[0]) // height, int(ends[-1] - 1) // height + 1
    changes = np.zeros((right - left) * height + 1, np.int8)
    changes[begins - left * height] += 1
    changes[ends - left * height] -= 1
    np.cumsum(changes, dtype=np.int8, out=changes)
    top, bottom = _rows(begins, ends, height)
    full = changes[:-1].view(np.bool_).reshape(right - left, height)
    return MaskCrop(left, top, full[:, top:bottom].T)


def _rows(begins: Runs, ends: Runs, height: int) -> tuple[int, int]:
    """Return the first row, and the one behind the last, that some runs reach."""
    if (begins // height != (ends - 1) // height).any():
        return 0, height
    return int((begins % height).min()), int(((ends - 1) % height).max()) + 1


def pack(runs: Runs) -> str:
    """Pack run lengths as COCO's text.

    Parameters
    ----------
    runs : (R,) int64 ndarray
        Not negative.

    Returns
    -------
    str
        ASCII, without quotes.
    """
    steps = runs.copy()
    steps[3:] -= runs[1:-2]
    return b"".join(_packed(steps[at : at + _BAND]) for at in range(0, len(steps), _BAND)).decode("ascii")


def _packed(steps: Runs) -> bytes:
    """Pack some numbers, each in as many characters as its bits and its sign need."""
    lengths = np.ones(len(steps), np.int64)
    while (longer := (steps >> (5 * lengths - 1)) + (steps < 0) != 0).any():
        lengths[longer] += 1
    places = np.arange(int(lengths.max(initial=1)))
    signs = ((steps[:, None] >> (5 * places)) & 0x1F).astype(np.uint8)
    signs[places < lengths[:, None] - 1] |= 0x20
    return (signs[places < lengths[:, None]] + 48).tobytes()


def unpack(text: str) -> Runs:
    """Return the run lengths in COCO's text.

    Parameters
    ----------
    text : str
        As `pack` writes it.

    Returns
    -------
    (R,) int64 ndarray
        As they are there; nothing is said of whether they make sense.

    Raises
    ------
    ValueError
        If it is no such text.
    """
    signs = np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.int64) - 48
    if not len(signs):
        return np.zeros(0, np.int64)
    last = np.flatnonzero(signs & 0x20 == 0)
    if signs.min() < 0 or signs.max() > 0x3F or not len(last) or last[-1] != len(signs) - 1:
        raise ValueError("the packed runs have a character that none of them has, or are cut short")
    firsts = np.r_[0, last[:-1] + 1]
    lengths = last - firsts + 1
    if lengths.max() > _MOST_CHARACTERS:
        raise ValueError("the packed runs have a number that is too long")
    places = np.arange(len(signs)) - np.repeat(firsts, lengths)
    steps = np.add.reduceat((signs & 0x1F) << (5 * places), firsts)
    steps[signs[last] & 0x10 != 0] -= 1 << (5 * lengths[signs[last] & 0x10 != 0])
    runs: Runs = steps
    for parity in (1, 2):  # each is a difference to the one before the last; the first three are not
        runs[parity::2] = np.cumsum(steps[parity::2])
    return runs
