"""COCO's run lengths against a pixel-by-pixel reading of the same rules, and damaged ones."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from predsession.export.rle import crop_of, pack, runs_of, unpack
from predsession.wire.geometry import MaskCrop, Size

Mask = npt.NDArray[np.bool_]
MASKS = arrays(np.bool_, st.tuples(st.integers(1, 9), st.integers(1, 9)))


def by_pixel(mask: Mask) -> list[int]:
    """Return run lengths, pixel by pixel down the columns."""
    runs = [(on, len(list(run))) for on, run in groupby(mask.T.ravel().tolist())]
    return [length for _, length in runs] if not runs[0][0] else [0, *(length for _, length in runs)]


def by_character(runs: list[int]) -> str:
    """Pack run lengths a character at a time, as COCO's own C code says it."""
    text = ""
    for number, run in enumerate(runs):
        rest, more = run - runs[number - 2] if number > 2 else run, True
        while more:
            five, rest = rest & 0x1F, rest >> 5
            more = rest != (-1 if five & 0x10 else 0)
            text += chr(48 + (five | 0x20 if more else five))
    return text


def full(crop: MaskCrop, size: Size) -> Mask:
    """Return a mask in its picture."""
    whole = np.zeros((size.height, size.width), np.bool_)
    whole[crop.y : crop.y + crop.mask.shape[0], crop.x : crop.x + crop.mask.shape[1]] = crop.mask
    return whole


@given(MASKS, st.integers(0, 9), st.integers(0, 9), st.integers(0, 3), st.integers(0, 3))
def test_runs_are_those_of_the_whole_picture(mask: Mask, x: int, y: int, right: int, below: int) -> None:
    """Wherever the crop lies; and back again, with as many pixels."""
    size = Size(x + mask.shape[1] + right, y + mask.shape[0] + below)
    crop = MaskCrop(x, y, mask)
    runs = runs_of(crop, size)
    assert runs.tolist() == by_pixel(full(crop, size))
    assert runs[1::2].sum() == mask.sum()
    assert (full(crop_of(runs, size), size) == full(crop, size)).all()


@given(MASKS)
def test_a_crop_is_tight_in_its_columns(mask: Mask) -> None:
    """No column beside the object is unpacked; a picture without one gives an empty mask."""
    crop = crop_of(runs_of(MaskCrop(0, 0, mask), Size(mask.shape[1], mask.shape[0])), Size(*mask.shape[::-1]))
    columns = np.flatnonzero(mask.any(axis=0))
    assert crop.mask.shape[1] == (columns[-1] - columns[0] + 1 if len(columns) else 0)


@given(st.lists(st.integers(0, 1 << 50), max_size=12))
def test_packing_is_cocos(runs: list[int]) -> None:
    """Character by character, for runs of any length; and unpacking undoes it."""
    text = pack(np.array(runs, np.int64))
    assert text == by_character(runs)
    assert unpack(text).tolist() == runs


def test_many_runs_are_packed_in_parts() -> None:
    """What lies beyond the first million runs is packed by the same differences."""
    runs = np.random.default_rng(0).integers(0, 99, (1 << 20) + 5)
    assert (unpack(pack(runs)) == runs).all()


def test_a_mask_of_many_columns_is_looked_at_in_parts() -> None:
    """Runs that go on in the next column are one run, also where one part meets the next."""
    size = Size(3000, 1000)
    mask = np.ones((1000, 3000), np.bool_)
    mask[0, 2999] = False
    assert runs_of(MaskCrop(0, 0, mask), size).tolist() == [0, 2_999_000, 1, 999]


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([3], "the runs cover 3 pixels, the picture has 6"),
        ([7], "a run is negative, or longer than the picture"),
        ([8, -2], "a run is negative"),
        ([], "the runs cover 0 pixels"),
    ],
)
def test_runs_that_do_not_fit(runs: list[int], said: str) -> None:
    """Are refused, with what is wrong."""
    with pytest.raises(ValueError, match=said):
        crop_of(np.array(runs, np.int64), Size(3, 2))


def test_runs_of_no_length_and_a_picture_too_large() -> None:
    """Others write runs of 0 pixels; a size that no memory holds is refused before any is taken."""
    assert full(crop_of(np.array([0, 2, 0, 2, 2]), Size(3, 2)), Size(3, 2)).sum() == 4
    assert full(crop_of(np.array([2, 0, 4]), Size(3, 2)), Size(3, 2)).sum() == 0
    with pytest.raises(ValueError, match="are more than 268435456"):
        crop_of(np.array([1 << 40]), Size(1 << 20, 1 << 20))


@pytest.mark.parametrize(
    ("text", "said"),
    [("P", "cut short"), ("\n0", "character"), ("东", "character"), ("o" * 13 + "0", "too long")],
)
def test_text_that_is_none(text: str, said: str) -> None:
    """Is refused."""
    with pytest.raises(ValueError, match=said):
        unpack(text)
