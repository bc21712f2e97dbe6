"""Real numbers to the whole ones that a quantised model takes, and back, by its own scales."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from predsession.errors import SourceError
from predsession.tensor.info import TensorInfo

_RANGES = {"DATA_TYPE_S4": (-8, 7), "DATA_TYPE_U4": (0, 15)}


def quantize(array: npt.NDArray[np.floating], info: TensorInfo) -> npt.NDArray[np.integer]:
    """Return whole numbers for real ones: ``clip(round(real / scale) + zero_point)``.

    Parameters
    ----------
    array : (...) float ndarray
        Real numbers, in the tensor's shape.
    info : mapping
        Of the tensor, from `TensorSession.get_input_info`.

    Returns
    -------
    (...) integer ndarray
        Of the tensor's own dtype; halves are rounded to even numbers.

    Raises
    ------
    SourceError
        If the tensor has no scales, is not of whole numbers, or the array does not fit them or is not of
        numbers only.
    """
    scale, zero = _spread(array.shape, info)
    dtype = np.dtype(info.dtype)
    if dtype.kind not in "iu":
        raise SourceError(f"{info.name!r} is {info['tensor_type']}: only whole numbers are quantised")
    bits = 8 * dtype.itemsize
    full = (0, 2**bits - 1) if dtype.kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    least, most = _RANGES.get(str(info["tensor_type"]), full)
    # In double precision: 16-bit steps of a large scale are beyond what float32 tells apart.
    whole = np.rint(np.asarray(array, np.float64) / scale) + zero
    if np.isnan(whole).any():
        raise SourceError(f"the array for {info.name!r} has NaN, which no whole number stands for")
    # A float has no 2**63 - 1; what is rounded up to 2**63 must not wrap around.
    inside = np.clip(whole, least, np.nextafter(float(most), 0) if most >= 1 << 53 else most).astype(dtype)
    return np.where(whole >= most, dtype.type(most), inside)


def dequantize(array: npt.NDArray[np.integer], info: TensorInfo) -> npt.NDArray[np.float32]:
    """Return real numbers for whole ones: ``(whole - zero_point) * scale``.

    Parameters
    ----------
    array : (...) integer ndarray
        As the model gave them.
    info : mapping
        Of the tensor, from `TensorSession.get_output_info`.

    Returns
    -------
    (...) float32 ndarray
        Real numbers.

    Raises
    ------
    SourceError
        If the tensor has no scales, or the array does not fit them.
    """
    scale, zero = _spread(array.shape, info)
    return ((np.asarray(array, np.float64) - zero) * scale).astype(np.float32)


def _spread(
    shape: tuple[int, ...], info: TensorInfo
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return scales and zero points so that they go along their axis."""
    found = info.quantization
    if found is None:
        raise SourceError(f"{info.name!r} has no scales: its quanti_type is {info['quanti_type']}")
    scale, zero = np.array(found.scale), np.array(found.zero_point, np.float64)
    if found.axis is None:
        return scale, zero
    if not -len(shape) <= found.axis < len(shape) or shape[found.axis] != len(scale):
        raise SourceError(
            f"{info.name!r} has {len(scale)} scales on axis {found.axis}; the array has shape {list(shape)}"
        )
    along = [1] * len(shape)
    along[found.axis] = len(scale)
    return scale.reshape(along), zero.reshape(along)
