"""Arrays <-> `Tensor` messages: exactly, or not at all.

The wire has eight dtypes. An array of another one is cast if every value stays what it is, and refused
otherwise; the bytes of one dtype never travel under the name of another. What it is cast to
depends on its dtype alone, not on its values: a stream of arrays does not change its dtype on the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from predsession.errors import ProtocolError, SourceError
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.writing import written

Array = npt.NDArray[np.generic]

_CODES: dict[np.dtype[np.generic], pb.DataType] = {
    np.dtype("u1"): pb.UINT8,
    np.dtype("i1"): pb.INT8,
    np.dtype("<u2"): pb.UINT16,
    np.dtype("<i2"): pb.INT16,
    np.dtype("<f2"): pb.FLOAT16,
    np.dtype("<f4"): pb.FLOAT32,
    np.dtype("<i4"): pb.INT32,
    np.dtype("<u4"): pb.UINT32,
}
CODES: Mapping[np.dtype[np.generic], pb.DataType] = MappingProxyType(_CODES)
"""The wire's dtype for each of numpy's that it has."""

DTYPES: Mapping[int, np.dtype[np.generic]] = MappingProxyType({code: dtype for dtype, code in _CODES.items()})
"""numpy's dtype for each of the wire's, by its number."""

NAMES: Mapping[str, pb.DataType] = MappingProxyType({dtype.name: code for dtype, code in CODES.items()})
"""The wire's dtype for each name: "uint8", "float32"."""

_SUBSTITUTES = MappingProxyType({"b": ("u1",), "i": ("<i4",), "u": ("<u4",), "f": ("<f4",)})
_MAX_SIDE = 2**31 - 1


def as_wire_array(array: npt.ArrayLike, *, name: str = "array") -> Array:
    """Bring an array into a form whose bytes can travel.

    Parameters
    ----------
    array : array-like
        Of any shape; a single number becomes an array of one.
    name : str
        What a message calls it.

    Returns
    -------
    ndarray
        C-contiguous, little endian, of one of the wire's dtypes; the array itself where it is that already.

    Raises
    ------
    SourceError
        If its dtype is none of the wire's and no cast to one keeps every value; if it is too large.
    """
    given = as_array(array, name=name)
    if given.dtype.kind not in "biuf":
        raise SourceError(f"{name} is {given.shape} {given.dtype}; the wire has {_names()}")
    wanted = given.dtype.newbyteorder("<")
    if wanted not in CODES:
        given = _cast(given, name)
        wanted = given.dtype
    if any(side > _MAX_SIDE for side in given.shape):
        raise SourceError(f"{name} is {given.shape}; a side of a tensor is at most {_MAX_SIDE}")
    return np.ascontiguousarray(given, wanted)


def as_array(array: npt.ArrayLike, *, name: str = "array") -> Array:
    """Return what a caller gave as an array.

    Parameters
    ----------
    array : array-like
        Of any shape and dtype.
    name : str
        What a message calls it.

    Returns
    -------
    ndarray
        The array itself where it is one.

    Raises
    ------
    SourceError
        If it is no array: rows of different lengths; or one with masked places, which the wire lacks.
    """
    try:
        given: Array = np.asarray(array)
    except (TypeError, ValueError, OverflowError) as error:
        raise SourceError(f"{name} is no array: {error}") from None
    if np.ma.is_masked(array):
        raise SourceError(f"{name} has masked places, which the wire lacks: fill them first")
    return given


def _cast(array: Array, name: str) -> Array:
    """Cast to one of the wire's dtypes that keeps every value; raise SourceError if there is none."""
    for each in _SUBSTITUTES[array.dtype.kind]:
        with np.errstate(all="ignore"):
            cast = array.astype(each)
            same = cast.astype(array.dtype) == array
            if (same | (array != array)).all():  # NaN is the one that differs from itself
                return cast
    targets = " or ".join(np.dtype(each).name for each in _SUBSTITUTES[array.dtype.kind])
    raise SourceError(
        f"{name} is {array.shape} {array.dtype}, which the wire lacks, and not every value is the same as "
        f"{targets}: cast it yourself, to one of {_names()}"
    )


def _names() -> str:
    """List the wire's dtypes."""
    return ", ".join(NAMES)


def to_tensor(array: npt.ArrayLike, *, name: str = "array") -> pb.Tensor:
    """Make the message of an array.

    Parameters
    ----------
    array : array-like
        See `as_wire_array`.
    name : str
        What a message calls it.

    Returns
    -------
    Tensor
        Its shape, its dtype, its bytes in C order.

    Raises
    ------
    SourceError
        See `as_wire_array`.
    """
    ready = as_wire_array(array, name=name)
    return pb.Tensor(shape=ready.shape, dtype=CODES[ready.dtype], data=ready.tobytes())


def from_tensor(tensor: pb.Tensor, *, name: str = "tensor") -> Array:
    """Read an array off its message.

    Parameters
    ----------
    tensor : Tensor
        A message without a shape is taken as one row of what it has.
    name : str
        What a message calls it.

    Returns
    -------
    ndarray
        Read-only, over the message's own bytes.

    Raises
    ------
    ProtocolError
        If its dtype is unknown, its shape is negative, or its bytes are not as many as shape and dtype say.
    """
    dtype = DTYPES.get(tensor.dtype)
    if dtype is None:
        raise ProtocolError(f"{name} has the dtype {int(tensor.dtype)}, which is none of {_names()}")
    shape = tuple(tensor.shape)
    data = tensor.data
    count = math.prod(shape) if shape else len(data) // dtype.itemsize
    if any(side < 0 for side in shape) or count * dtype.itemsize != len(data):
        raise ProtocolError(f"{name} says {shape} {dtype.name}, and has {len(data)} bytes")
    flat: Array = np.frombuffer(data, dtype)
    try:
        return flat.reshape(shape) if shape else flat
    except ValueError as error:  # more dimensions than numpy has
        raise ProtocolError(f"{name}: {error}") from None


def from_tensors(tensors: Iterable[pb.Tensor]) -> list[Array]:
    """Read the arrays off a message's tensors, in order.

    Parameters
    ----------
    tensors : iterable of Tensor
        Such as ``response.outputs``.

    Returns
    -------
    list of ndarray
        As from `from_tensor`.

    Raises
    ------
    ProtocolError
        See `from_tensor`; it names the position.
    """
    return [from_tensor(tensor, name=f"tensor {number}") for number, tensor in enumerate(tensors)]


def to_spec(
    *, shape: Sequence[int], dtype: npt.DTypeLike, name: str = "", layout: str = "", byte_size: int = 0
) -> pb.TensorSpec:
    """Describe a tensor.

    Parameters
    ----------
    shape : sequence of int
        Its shape, -1 for a side that may vary.
    dtype : dtype-like
        One of the wire's.
    name : str
        The model's own name for it.
    layout : str
        Such as "NHWC" or "NV12".
    byte_size : int
        Where it does not follow from the shape.

    Returns
    -------
    TensorSpec
        The message.

    Raises
    ------
    SourceError
        If the wire lacks the dtype, or cannot hold something.
    """
    try:
        known = np.dtype(dtype).newbyteorder("<")
    except TypeError:
        known = np.dtype("O")
    if known not in CODES:
        raise SourceError(f"tensor {name!r} is {dtype}; the wire has {_names()}")
    if isinstance(shape, str | int) or any(side < -1 for side in shape):
        raise SourceError(f"tensor {name!r} has the shape {shape!r}; wanted sides, -1 for one that may vary")
    return written(
        pb.TensorSpec,
        shape=list(shape),
        dtype=CODES[known],
        name=name,
        layout=layout,
        byte_size=byte_size,
    )
