"""An output of a model: what its rows are, and how they become a column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from predsession.errors import StoreError

Array = npt.NDArray[np.generic]
_KINDS = "biuf"
_ODD = re.compile(r"[%.`]")


class MisfitError(StoreError):
    """Rows of another shape or dtype than the store's, or that nothing can hold: one sample's, perhaps."""


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a model, as the store has it.

    Parameters
    ----------
    name : str
        The model's.
    shape : tuple of int
        Of one row.
    dtype : numpy.dtype
        Of its numbers, or of text.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @property
    def column(self) -> str:
        """Its column: the name, but for what Lance and Arrow take for paths and their words, as ``%2E``."""
        escaped = _ODD.sub(lambda found: f"%{ord(found[0]):02X}", self.name)
        return f"%5F{escaped[1:]}" if escaped.startswith(("_row", "__")) else escaped

    @property
    def size(self) -> int:
        """How many numbers a row has."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_text(self) -> bool:
        """Whether a row is a text."""
        return self.dtype.kind == "U"

    def field(self) -> pa.Field:
        """Return the column."""
        kind = pa.string() if self.is_text else pa.list_(pa.from_numpy_dtype(self.dtype), self.size)
        return pa.field(self.column, kind)


def as_array(value: object, name: str) -> Array:
    """Return an output as an array.

    Parameters
    ----------
    value : ndarray, torch.Tensor, or what makes an array of itself
        What a model returned.
    name : str
        Of the output.

    Returns
    -------
    ndarray
        The same numbers.

    Raises
    ------
    StoreError
        If it is none of these.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise StoreError(f"output {name!r} is a masked array, whose mask has no place: say .filled(...)")
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach") or hasattr(value, "__array__"):  # a torch tensor, perhaps on another device
        try:
            return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        except (TypeError, RuntimeError) as error:  # bfloat16, which NumPy has not
            raise StoreError(f"output {name!r} makes no array: {error}") from None
    raise StoreError(
        f"output {name!r} is {described(value)}; wanted an array, a dict of arrays, or a list of Prediction"
    )


def output_of(name: str, array: Array, count: int) -> Output:
    """Describe an output, or refuse what cannot be stored.

    Parameters
    ----------
    name : str
        The model's.
    array : (N, ...) ndarray
        A row for each object.
    count : int
        How many objects there are.

    Returns
    -------
    Output
        Of these rows.

    Raises
    ------
    MisfitError
        If there is nothing in the rows.
    StoreError
        If it is nothing that can be stored.
    """
    if array.ndim == 0 or array.shape[0] != count:
        raise StoreError(
            f"output {name!r} has shape {list(array.shape)}; wanted {count} rows, one for each object"
        )
    if array.dtype.kind == "U" and array.ndim == 1:
        return Output(name, (), np.dtype("U"))
    if array.dtype.kind not in _KINDS or array.dtype.itemsize > 8:
        raise StoreError(
            f"output {name!r} is {array.dtype} {list(array.shape)}; a store holds whole and real numbers "
            "of up to 64 bits, truth values, and one text a row"
        )
    output = Output(name, array.shape[1:], array.dtype.newbyteorder("="))
    if not output.size:
        raise MisfitError(f"output {name!r} has rows of shape {list(output.shape)}: there is nothing in them")
    return output


def as_column(array: Array, output: Output) -> pa.Array:
    """Return an output's column.

    Parameters
    ----------
    array : (N, ...) ndarray
        Its rows.
    output : Output
        What they are.

    Returns
    -------
    pyarrow.Array
        A row for each object.
    """
    if output.is_text:
        return pa.array(array.tolist(), pa.string())
    flat = np.ascontiguousarray(array, output.dtype).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), output.size)


def described(value: object) -> str:
    """Say what something is.

    Parameters
    ----------
    value : object
        What a model returned.

    Returns
    -------
    str
        Its type, and that of what is in it.
    """
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return f"a {type(value).__name__} of {type(value[0]).__name__}"
    return type(value).__name__
