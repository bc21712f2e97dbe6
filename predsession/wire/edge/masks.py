"""Masks <-> the wire's run-length code: two varints for each run of set pixels, its start and its length.

Pixels are counted over the flattened rows, from 0; starts count from the picture's first pixel, not from the
run before.

References
----------
EDGE-WIRE, section 4; a varint has 7 bits a byte, the low ones first, and the high bit says that more follow
(https://protobuf.dev/programming-guides/encoding/#varints).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from predsession.errors import ProtocolError
from predsession.wire.geometry import MAX_MASK_PIXELS

Numbers = npt.NDArray[np.int64]
_LONGEST = 5  # bytes; as much as 32 bits need


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
        If the code breaks off, a run leaves the mask, or the mask is larger than a picture can be.
    """
    if width < 0 or height < 0 or width * height > MAX_MASK_PIXELS:
        raise ProtocolError(f"a mask of {width} x {height} pixels; at most {MAX_MASK_PIXELS} are taken")
    pairs = _from_varints(code)
    if len(pairs) % 2:
        raise ProtocolError(f"a mask's code of {len(code)} bytes ends within a pair")
    starts, lengths = pairs[::2], pairs[1::2]
    if (starts + lengths > width * height).any():
        raise ProtocolError(f"a run of a mask leaves its {width} x {height} pixels")
    return _fill(starts, starts + lengths, width * height).reshape(height, width)


def _fill(starts: Numbers, ends: Numbers, size: int) -> npt.NDArray[np.bool_]:
    """Set the pixels of runs, which may overlap and come in any order, in the mask's own memory."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    fresh = np.ones(len(starts), np.bool_)  # where a run begins that touches none before it
    fresh[1:] = starts[1:] > ends[:-1]
    turns = np.stack((starts[fresh], ends[np.roll(fresh, -1)]), axis=1).ravel()
    lengths = np.diff(turns, prepend=0, append=size)
    return np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)


def _from_varints(code: bytes) -> Numbers:
    """Read all numbers; raise ProtocolError if one breaks off or has more than 32 bits."""
    octets = np.frombuffer(code, np.uint8).astype(np.int64)
    ends = np.flatnonzero(octets < 0x80)
    if len(octets) and (not len(ends) or ends[-1] != len(octets) - 1):
        raise ProtocolError(f"a mask's code of {len(code)} bytes ends within a number")
    firsts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))[: len(ends)]
    lengths = ends - firsts + 1
    if (lengths > _LONGEST).any():
        raise ProtocolError("a mask's code has a number of more than 32 bits")
    places = np.arange(len(octets)) - np.repeat(firsts, lengths)
    shifted = (octets & 0x7F) << (7 * places)
    return np.add.reduceat(shifted, firsts) if len(firsts) else np.zeros(0, np.int64)
