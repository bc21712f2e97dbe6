"""Tensors whose elements are written one by one, in JSON or in a message's typed fields, and their bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from predsession.errors import ProtocolError
from predsession.wire.jsontypes import JSON
from predsession.wire.oip import inference_pb2 as pb
from predsession.wire.oip.datatypes import BYTES, INT4_RANGE, datatype, elements
from predsession.wire.oip.messages import Buffer
from predsession.wire.oip.packing import Array, bytes_to_elements, elements_to_bytes, pack, unpack

_FIELDS: Mapping[str, str] = MappingProxyType({
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT4", "INT8", "INT16", "INT32"), "int_contents"),
    "INT64": "int64_contents",
    **dict.fromkeys(("UINT4", "UINT8", "UINT16", "UINT32"), "uint_contents"),
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    BYTES: "bytes_contents",
})  # fmt: skip
"""The field for each datatype; half precision has none, and travels as bytes only."""


def from_contents(contents: pb.InferTensorContents, name: str, shape: tuple[int, ...]) -> Buffer:
    """Return the bytes of a tensor in typed fields.

    Parameters
    ----------
    contents : InferTensorContents
        With one field filled.
    name : str
        Of the datatype.
    shape : tuple of int
        What it is said to be.

    Returns
    -------
    bytes or memoryview
        Packed.

    Raises
    ------
    ProtocolError
        If the datatype has no field, another is filled, or there are not as many elements as in the shape.
    """
    kind = datatype(name)
    field = _FIELDS.get(name)
    if field is None:
        raise ProtocolError(f"a tensor of {name} travels as raw bytes only; it came in typed fields")
    others = [each.name for each, _ in contents.ListFields() if each.name != field]
    if others:
        raise ProtocolError(f"a tensor of {name} belongs into {field}; it came in {', '.join(others)}")
    values: Sequence[JSON | bytes] = getattr(contents, field)
    _check_count(len(values), name, shape)
    if name == BYTES:
        return elements_to_bytes(values)
    wide = np.array(values, dtype=np.int64 if name in INT4_RANGE else None)
    return pack(_narrowed(wide, kind.dtype, name), name)


def to_json_data(data: Buffer, name: str, shape: tuple[int, ...]) -> JSON:
    """Return a tensor's elements as JSON has them: one flat list, in C order.

    Parameters
    ----------
    data : bytes or memoryview
        Packed.
    name : str
        Of the datatype.
    shape : tuple of int
        Of the tensor.

    Returns
    -------
    list
        Numbers, truth values or texts.

    Raises
    ------
    ProtocolError
        If JSON cannot hold it: half precision, numbers that are none, bytes that are no text.
    """
    if name in {"FP16", "BF16"}:
        raise ProtocolError(f"JSON has no {name}: send and ask for binary data")
    if name == BYTES:
        try:
            return [each.decode() for each in bytes_to_elements(data)]
        except UnicodeDecodeError:
            raise ProtocolError("a BYTES tensor that is no text has no JSON: ask for binary data") from None
    array = unpack(data, name, shape)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ProtocolError("JSON has no NaN and no infinity: ask for binary data")
    flat: list[JSON] = array.reshape(-1).tolist()
    return flat


def from_json_data(values: JSON, name: str, shape: tuple[int, ...]) -> Buffer:
    """Return the bytes of a tensor in JSON.

    Parameters
    ----------
    values : list
        In C order, flat or nested.
    name : str
        Of the datatype.
    shape : tuple of int
        What it is said to be.

    Returns
    -------
    bytes or memoryview
        Packed.

    Raises
    ------
    ProtocolError
        If the elements are not of the datatype, or more or fewer than in the shape.
    """
    kind = datatype(name)
    flat = _flattened(values)
    _check_count(len(flat), name, shape)
    if name == BYTES:
        return elements_to_bytes(flat)
    if name in {"FP16", "BF16"}:
        raise ProtocolError(f"JSON has no {name}: it travels as binary data only")
    if kind.dtype.kind == "b":
        if not all(isinstance(each, bool) for each in flat):
            raise ProtocolError("a tensor of BOOL takes true and false")
        return pack(np.array(flat, np.bool_), name)
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in flat):
        raise ProtocolError(f"a tensor of {name} takes numbers")
    if kind.dtype.kind == "f":
        return pack(_floats(flat, kind.dtype, name), name)
    if any(isinstance(each, float) and not each.is_integer() for each in flat):
        raise ProtocolError(f"a tensor of {name} takes whole numbers")
    whole = np.empty(len(flat), object)
    whole[:] = [int(each) for each in flat if isinstance(each, int | float)]
    return pack(_narrowed(whole, kind.dtype, name), name)


def _floats(flat: Sequence[JSON], dtype: np.dtype[np.generic], name: str) -> Array:
    """Return numbers in their own dtype; one that is beyond it is refused, not made infinite."""
    try:
        wide = np.array(flat, np.float64)
    except OverflowError:
        raise ProtocolError(f"a tensor of {name} came with a number beyond it") from None
    with np.errstate(over="ignore"):
        narrow: Array = wide.astype(dtype)
    if np.isinf(narrow).any() and not np.array_equal(np.isinf(narrow), np.isinf(wide)):
        raise ProtocolError(f"a tensor of {name} came with a number beyond it")
    return narrow


def _flattened(values: JSON) -> list[JSON]:
    """Return nested lists as one."""
    flat: list[JSON] = []
    stack = [values]
    while stack:
        top = stack.pop()
        if isinstance(top, Sequence) and not isinstance(top, str):
            stack.extend(reversed(top))
        else:
            flat.append(top)
    return flat


def _check_count(count: int, name: str, shape: tuple[int, ...]) -> None:
    """Refuse more or fewer elements than the shape has."""
    wanted = elements(shape)
    if count != wanted:
        raise ProtocolError(f"a tensor of {name} {list(shape)} has {count} elements; it takes {wanted}")


def _narrowed(wide: Array, dtype: np.dtype[np.generic], name: str) -> Array:
    """Return whole numbers in their own dtype, or refuse those that do not fit."""
    if dtype.kind in "iu" and wide.size:
        bits = 8 * dtype.itemsize
        least, most = (0, 2**bits - 1) if dtype.kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        low, high = int(wide.min()), int(wide.max())
        if low < least or high > most:
            raise ProtocolError(f"a tensor of {name} holds {least} to {most}; it came with {low} to {high}")
    return wide.astype(dtype)
