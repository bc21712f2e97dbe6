"""The protocol's datatypes: what they are called, and which NumPy dtype holds them.

Four-bit integers are none of the protocol's own. Boards have them, and our server speaks them as "INT4" and
"UINT4": two in a byte, the first in its low half, as ONNX packs them. In memory each has a byte to itself.

References
----------
.. [1] Open Inference Protocol, "Tensor Data Types".
.. [2] ONNX, "Int4": packing of 4-bit types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from predsession.errors import MissingExtraError, ProtocolError

BYTES = "BYTES"
BF16 = "BF16"
_MOST_SIDES = 32  # NumPy's own limit, before 2.0
_LONGEST_SIDE = 1 << 62


@dataclass(frozen=True, slots=True)
class Datatype:
    """One of them.

    Parameters
    ----------
    wire : str
        As the protocol calls it: "FP32".
    tensor_type : str
        As the boards' tools do: "DATA_TYPE_F32".
    bits : int
        Of one element on the wire; 0 where they differ in length.
    array : str
        The NumPy dtype of one element in memory; "bfloat16" is ml_dtypes' own.
    """

    wire: str
    tensor_type: str
    bits: int
    array: str

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The dtype in memory; raises `MissingExtraError` if that is bfloat16, and ml_dtypes is not there."""
        if self.wire == BF16:
            return _bfloat16()
        return np.dtype(self.array)

    def nbytes(self, shape: tuple[int, ...]) -> int | None:
        """Return how many bytes a tensor has on the wire.

        Parameters
        ----------
        shape : tuple of int
            None of it negative.

        Returns
        -------
        int or None
            None where that depends on what is in it.

        Raises
        ------
        ProtocolError
            If no tensor has that shape.
        """
        count = elements(shape)
        return -(-count * self.bits // 8) if self.bits else None


def elements(shape: tuple[int, ...]) -> int:
    """Return how many elements a tensor has.

    Parameters
    ----------
    shape : tuple of int
        As somebody claims it.

    Returns
    -------
    int
        Exact, however many those would be.

    Raises
    ------
    ProtocolError
        If a side is negative, or there are more sides, or longer ones, than any array has.
    """
    if len(shape) > _MOST_SIDES:
        raise ProtocolError(f"a tensor with {len(shape)} sides; at most {_MOST_SIDES} are possible")
    count = 1
    for side in shape:  # NumPy's product would wrap around
        if not 0 <= side < _LONGEST_SIDE:
            what = "negative" if side < 0 else "too long"
            raise ProtocolError(f"a tensor of shape {list(shape)}: a side is {what}")
        count *= side
    return count


def _bfloat16() -> np.dtype[np.generic]:
    """Return ml_dtypes' dtype."""
    try:
        import ml_dtypes
    except ImportError:
        raise MissingExtraError("tensor", "a tensor of datatype BF16") from None
    dtype: np.dtype[np.generic] = np.dtype(ml_dtypes.bfloat16)
    return dtype


_ALL = (
    Datatype("BOOL", "DATA_TYPE_BOOL8", 8, "bool"),
    Datatype("INT4", "DATA_TYPE_S4", 4, "int8"),
    Datatype("UINT4", "DATA_TYPE_U4", 4, "uint8"),
    Datatype("INT8", "DATA_TYPE_S8", 8, "int8"),
    Datatype("UINT8", "DATA_TYPE_U8", 8, "uint8"),
    Datatype("INT16", "DATA_TYPE_S16", 16, "<i2"),
    Datatype("UINT16", "DATA_TYPE_U16", 16, "<u2"),
    Datatype("INT32", "DATA_TYPE_S32", 32, "<i4"),
    Datatype("UINT32", "DATA_TYPE_U32", 32, "<u4"),
    Datatype("INT64", "DATA_TYPE_S64", 64, "<i8"),
    Datatype("UINT64", "DATA_TYPE_U64", 64, "<u8"),
    Datatype("FP16", "DATA_TYPE_F16", 16, "<f2"),
    Datatype("BF16", "DATA_TYPE_BF16", 16, "bfloat16"),
    Datatype("FP32", "DATA_TYPE_F32", 32, "<f4"),
    Datatype("FP64", "DATA_TYPE_F64", 64, "<f8"),
    Datatype(BYTES, "DATA_TYPE_BYTES", 0, "object"),
)
DATATYPES: Mapping[str, Datatype] = MappingProxyType({each.wire: each for each in _ALL})
"""Every datatype by the protocol's name for it."""

INT4_RANGE: Mapping[str, tuple[int, int]] = MappingProxyType({"INT4": (-8, 7), "UINT4": (0, 15)})
"""The values that four bits hold."""

_BY_DTYPE = {np.dtype(each.array): each for each in _ALL if each.bits >= 8 and each.wire != BF16}
_BY_NAME = {"bfloat16": BF16, "int4": "INT4", "uint4": "UINT4"}  # ml_dtypes' own, known without importing it


def datatype(name: str) -> Datatype:
    """Return a datatype by the protocol's name.

    Parameters
    ----------
    name : str
        "FP32".

    Returns
    -------
    Datatype
        What it is.

    Raises
    ------
    ProtocolError
        If the protocol has no such thing.
    """
    known = DATATYPES.get(name)
    if known is None:
        raise ProtocolError(f"{name!r} is no datatype: {', '.join(DATATYPES)}")
    return known


def datatype_of(dtype: npt.DTypeLike) -> Datatype | None:
    """Return the datatype that holds a NumPy dtype exactly.

    Parameters
    ----------
    dtype : dtype-like
        In any byte order; ml_dtypes' too.

    Returns
    -------
    Datatype or None
        None where the protocol has none: complex numbers, times, records.
    """
    given = np.dtype(dtype)
    known = _BY_DTYPE.get(given)  # all but rare ones; NumPy makes a dtype's name anew each time
    if known is not None:
        return known
    if given.kind in {"O", "S", "U"}:
        return DATATYPES[BYTES]
    if given.name in _BY_NAME:
        return DATATYPES[_BY_NAME[given.name]]
    return _BY_DTYPE.get(given.newbyteorder("<"))
