"""Masks <-> the wire's run-length code: two varints for each run of set pixels, its start and its length.

Pixels are counted over the flattened rows, from 0; starts count from the picture's first pixel, not from the
run before.

References
----------
EDGE-WIRE, section 4; a varint has 7 bits a byte, the low ones first, and the high bit says that more follow
(https://protobuf.dev/programming-guides/encoding/#varints).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from predsession.errors import ProtocolError
from predsession.wire.geometry import MAX_MASK_PIXELS

Numbers = npt.NDArray[np.int64]
_LONGEST = 5  # bytes; as much as 32 bits need
_PIECE = 1 << 17  # bytes that are read at once: what it takes is some 50 times that


def encode_rle(mask: npt.NDArray[np.bool_]) -> bytes:
    """Encode a mask.

    Parameters
    ----------
    mask : (H, W) bool ndarray
        Anything but 0 is set.

    Returns
    -------
    bytes
        Empty if nothing is set.
    """
    flat = np.zeros(mask.size + 2, np.int8)
    flat[1:-1] = np.asarray(mask, np.bool_).ravel()
    turns = np.flatnonzero(np.diff(flat))
    starts, ends = turns[::2], turns[1::2]
    return _to_varints(np.stack((starts, ends - starts), axis=1).ravel())


def _to_varints(values: Numbers) -> bytes:
    """Write numbers below 2**35."""
    septets = (values[:, None] >> np.arange(0, 7 * _LONGEST, 7)) & 0x7F
    places = np.arange(_LONGEST)
    last = ((septets != 0) * places).max(axis=1, initial=0)
    more = places < last[:, None]
    coded = (septets | (more << 7)).astype(np.uint8)
    return bytes(coded[places <= last[:, None]])


def decode_rle(code: bytes, width: int, height: int) -> npt.NDArray[np.bool_]:
    """Decode a mask.

    Parameters
    ----------
    code : bytes
        Pairs of varints.
    width, height : int
        Of the mask, in pixels.

    Returns
    -------
    (H, W) bool ndarray
        The pixels of all runs.

    Raises
    ------
    ProtocolError
        If the code breaks off, or is longer than such a mask can need; if a run leaves the mask, or the mask
        is larger than a picture can be.
    """
    return decode_rows(code, width, height, rows=(0, height))


def row_span(code: bytes, width: int, height: int) -> tuple[int, int]:
    """Return the rows in which a mask has pixels, without the memory for them.

    Parameters
    ----------
    code : bytes
        Pairs of varints.
    width, height : int
        Of the mask, in pixels.

    Returns
    -------
    tuple of int
        The first, and the one after the last; 0, 0 if nothing is set.

    Raises
    ------
    ProtocolError
        As for `decode_rle`.
    """
    first, last = width * height, 0
    for starts, ends in _runs(code, width, height):
        filled = ends > starts
        if filled.any():
            first, last = min(first, int(starts[filled].min())), max(last, int(ends[filled].max()))
    return (first // width, -(-last // width)) if last else (0, 0)


def decode_rows(code: bytes, width: int, height: int, *, rows: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Decode some rows of a mask.

    Parameters
    ----------
    code : bytes
        Pairs of varints.
    width, height : int
        Of the mask, in pixels.
    rows : tuple of int
        The first, and the one after the last: all of them, or what `row_span` says.

    Returns
    -------
    (rows, W) bool ndarray
        The pixels of all runs.

    Raises
    ------
    ProtocolError
        As for `decode_rle`.
    """
    top, bottom = rows
    mask = np.zeros(0, np.bool_)
    for number, (starts, ends) in enumerate(_runs(code, width, height)):
        if number == 0:  # what is wrong with the size was said before the memory is taken
            mask = np.zeros((bottom - top) * width, np.bool_)
        filled = ends > starts
        if filled.any():
            _fill(mask, starts[filled] - top * width, ends[filled] - top * width)
    return mask.reshape(bottom - top, width)


def _runs(code: bytes, width: int, height: int) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield starts and ends of some thousand runs at a time, once at least; raise what is wrong first."""
    size = width * height
    if width < 0 or height < 0 or size > MAX_MASK_PIXELS:
        raise ProtocolError(f"a mask of {width} x {height} pixels; at most {MAX_MASK_PIXELS} are taken")
    # A run for each second pixel and one more for each row, each of two numbers up to the size.
    most = 2 * (size // 2 + height + 1) * _LONGEST
    if len(code) > most:
        raise ProtocolError(f"a mask of {width} x {height} pixels has a code of {len(code)} bytes")
    odd = np.zeros(0, np.int64)
    for numbers in _from_varints(code):
        numbers = np.concatenate((odd, numbers))
        whole = len(numbers) // 2 * 2
        numbers, odd = numbers[:whole], numbers[whole:]
        starts, ends = numbers[::2], numbers[::2] + numbers[1::2]
        if (ends > size).any():
            raise ProtocolError(f"a run of a mask leaves its {width} x {height} pixels")
        yield starts, ends
    if len(odd):
        raise ProtocolError(f"a mask's code of {len(code)} bytes ends within a pair")


def _fill(mask: npt.NDArray[np.bool_], starts: Numbers, ends: Numbers) -> None:
    """Set the pixels of runs, at least one, which may overlap and come in any order."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    fresh = np.ones(len(starts), np.bool_)  # where a run begins that touches none before it
    fresh[1:] = starts[1:] > ends[:-1]
    turns = np.stack((starts[fresh], ends[np.roll(fresh, -1)]), axis=1).ravel()
    lengths = np.diff(turns)
    mask[turns[0] : turns[-1]] |= np.repeat(np.arange(len(lengths)) % 2 == 0, lengths)


def _from_varints(code: bytes) -> Iterator[Numbers]:
    """Yield all numbers, some thousand at a time; raise ProtocolError at one that is not whole."""
    octets = np.frombuffer(code, np.uint8)
    begin = 0
    while begin < len(octets) or begin == 0:
        piece = octets[begin : begin + _PIECE]
        ends = np.flatnonzero(piece < 0x80)
        if len(piece) and not len(ends):
            raise ProtocolError(
                f"a mask's code of {len(code)} bytes ends within a number, or has one too long"
            )
        used = int(ends[-1]) + 1 if len(ends) else 0
        yield _numbers(piece[:used], ends)
        if not used:
            return
        begin += used


def _numbers(octets: npt.NDArray[np.uint8], ends: npt.NDArray[np.intp]) -> Numbers:
    """Read numbers that end at these places; raise ProtocolError if one has more than 32 bits."""
    if not len(ends):
        return np.zeros(0, np.int64)
    firsts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))
    lengths = ends - firsts + 1
    if (lengths > _LONGEST).any():
        raise ProtocolError("a mask's code has a number of more than 32 bits")
    places = np.arange(len(octets)) - np.repeat(firsts, lengths)
    return np.add.reduceat((octets & 0x7F).astype(np.int64) << (7 * places), firsts)
