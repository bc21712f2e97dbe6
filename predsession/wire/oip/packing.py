"""Arrays and the bytes that stand for them on the wire.

Numbers are little-endian, in C order. A BYTES tensor is its elements one after the other, each with its
length before it, in four bytes. Of two four-bit numbers in a byte the first is in the low half.

References
----------
.. [1] Open Inference Protocol, "Tensor Contents"; Triton, "Binary Tensor Data Extension".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from predsession.errors import ProtocolError
from predsession.wire.oip.datatypes import BYTES, INT4_RANGE, datatype, elements
from predsession.wire.oip.messages import Buffer

Array = npt.NDArray[np.generic]
_LENGTH = struct.Struct("<I")
_SMALL = 1 << 12
"""Bytes of an array below which a copy is cheaper than a view."""


def pack(array: Array, name: str) -> Buffer:
    """Return the bytes of an array.

    Parameters
    ----------
    array : ndarray
        Of the dtype that holds the datatype in memory, in any order in memory and any byte order.
    name : str
        Of the datatype.

    Returns
    -------
    bytes or memoryview
        A view of the array itself, where it is large and lies in memory as the wire has it: it must not
        change before the bytes are sent.

    Raises
    ------
    ProtocolError
        If a number does not fit into four bits, or an element of a BYTES tensor is neither bytes nor text.
    """
    kind = datatype(name)
    if name == BYTES:
        return _pack_elements(array)
    if name in INT4_RANGE:
        return _pack_nibbles(array, name)
    if array.nbytes <= _SMALL and array.dtype == kind.dtype:
        return array.tobytes()
    wanted = np.ascontiguousarray(array, dtype=kind.dtype)
    # A memoryview knows nothing of bfloat16, nor of a dtype without elements.
    return wanted.view(np.uint8).reshape(-1).data if wanted.size else b""


def unpack(data: Buffer, name: str, shape: tuple[int, ...]) -> Array:
    """Return the array that bytes stand for.

    Parameters
    ----------
    data : bytes or memoryview
        The whole tensor.
    name : str
        Of the datatype.
    shape : tuple of int
        What it is said to be.

    Returns
    -------
    (shape) ndarray
        A view of `data` where it can be, read-only where `data` is; four-bit numbers as int8 or uint8, BYTES
        as bytes objects.

    Raises
    ------
    ProtocolError
        If the count of bytes is not that of the shape, or the shape is none.
    """
    kind = datatype(name)
    wanted = kind.nbytes(shape)
    if wanted is not None and len(data) != wanted:
        raise ProtocolError(f"a tensor of {name} {list(shape)} has {len(data)} bytes; it takes {wanted}")
    try:
        if name == BYTES:
            return _unpack_elements(data, shape)
        if name in INT4_RANGE:
            return _unpack_nibbles(data, name, shape)
        return np.frombuffer(data, kind.dtype).reshape(shape) if wanted else np.empty(shape, kind.dtype)
    except (
        ValueError,
        OverflowError,
    ) as error:  # more sides than NumPy takes, or a side longer than memory is
        raise ProtocolError(f"a tensor of {name} {list(shape)[:8]} cannot be: {error}") from None


def element_bytes(element: object) -> bytes:
    """Return one element of a BYTES tensor.

    Parameters
    ----------
    element : object
        Bytes, or text, which goes as UTF-8.

    Returns
    -------
    bytes
        Without its length.

    Raises
    ------
    ProtocolError
        If it is neither, or text that UTF-8 cannot hold.
    """
    if isinstance(element, str):
        try:
            return element.encode()
        except UnicodeEncodeError:
            raise ProtocolError("an element of a BYTES tensor is half a character") from None
    if isinstance(element, bytes | bytearray | memoryview):
        return bytes(element)
    raise ProtocolError(f"an element of a BYTES tensor is {type(element).__name__}; wanted bytes or str")


def elements_to_bytes(values: Iterable[object]) -> bytes:
    """Return a BYTES tensor's bytes.

    Parameters
    ----------
    values : iterable
        Bytes and texts.

    Returns
    -------
    bytes
        Each with its length before it.

    Raises
    ------
    ProtocolError
        If one is neither.
    """
    parts: list[bytes] = []
    for each in values:
        one = element_bytes(each)
        parts += (_LENGTH.pack(len(one)), one)
    return b"".join(parts)


def bytes_to_elements(data: Buffer) -> list[bytes]:
    """Return the elements of a BYTES tensor.

    Parameters
    ----------
    data : bytes or memoryview
        Each with its length before it.

    Returns
    -------
    list of bytes
        In order.

    Raises
    ------
    ProtocolError
        If one is cut off.
    """
    found: list[bytes] = []
    at = 0
    while at < len(data):
        end = at + _LENGTH.size
        length = _LENGTH.unpack(data[at:end])[0] if end <= len(data) else None
        if length is None or end + length > len(data):
            raise ProtocolError(f"element {len(found)} of a BYTES tensor is cut off")
        found.append(bytes(data[end : end + length]))
        at = end + length
    return found


def _pack_elements(array: Array) -> bytes:
    """Return a BYTES tensor's bytes."""
    return elements_to_bytes(array.reshape(-1).tolist())


def _unpack_elements(data: Buffer, shape: tuple[int, ...]) -> Array:
    """Return a BYTES tensor."""
    found = bytes_to_elements(data)
    count = elements(shape)
    if len(found) != count:
        raise ProtocolError(f"a tensor of BYTES {list(shape)} has {len(found)} elements; it takes {count}")
    flat = np.empty(count, object)
    flat[:] = found
    return flat.reshape(shape)


def _pack_nibbles(array: Array, name: str) -> bytes:
    """Return two numbers a byte, the first in the low half."""
    low, high = INT4_RANGE[name]
    flat = np.asarray(array, np.int64).reshape(-1)
    if flat.size and not (low <= flat.min() and flat.max() <= high):
        raise ProtocolError(f"{name} holds {low} to {high}; the array has {flat.min()} to {flat.max()}")
    halves = (flat & 0xF).astype(np.uint8)
    if halves.size % 2:
        halves = np.append(halves, np.uint8(0))
    return (halves[0::2] | halves[1::2] << 4).tobytes()


def _unpack_nibbles(data: Buffer, name: str, shape: tuple[int, ...]) -> Array:
    """Return four-bit numbers, a byte each."""
    packed = np.frombuffer(data, np.uint8)
    halves = np.empty(2 * packed.size, np.uint8)
    halves[0::2], halves[1::2] = packed & 0xF, packed >> 4
    numbers = halves[: elements(shape)].reshape(shape)
    return ((numbers ^ 8).astype(np.int8) - np.int8(8)).astype(np.int8) if name == "INT4" else numbers
