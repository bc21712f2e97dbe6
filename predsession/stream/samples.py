"""Samples and batches: what a source gives, and what a model is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from predsession.errors import SourceError
from predsession.stream.schema import ID, Row

Column = Sequence[object] | npt.NDArray[np.generic]
"""The values of one field, a sample each."""
Decode = Callable[[object], Mapping[str, object]]
"""From what a source has, a message's bytes mostly, to a dict with ``object_id`` and fields."""

_LONGEST = 10_000
"""Characters of what is no bytes, in a dead letter."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One thing to be processed.

    Parameters
    ----------
    fields : mapping of str to object
        With ``object_id``, a text that no other object has.
    position : str
        Where in the source it is, the same whenever the source is read again.
    """

    fields: Mapping[str, object]
    position: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One thing that cannot be processed.

    Parameters
    ----------
    position : str
        Where in the source it is.
    reason : str
        Why.
    raw : bytes
        What it was, as far as it is known.
    object_id : str or None
        If it has one.
    """

    position: str
    reason: str
    raw: bytes = field(default=b"", repr=False)
    object_id: str | None = None

    def __post_init__(self) -> None:
        """Escape lone surrogates: whatever a decoder says, it must be logged and stored."""
        for name in ("position", "reason", "object_id"):
            text = getattr(self, name)
            if text is not None:
                object.__setattr__(self, name, text.encode(errors="backslashreplace").decode())


class Batch(dict[str, object]):
    """Samples together: ``object_id``, a list of str, and a list or an array for each field.

    Parameters
    ----------
    columns : mapping of str to sequence
        All of one length.
    positions : sequence of str
        Where each sample is in its source; empty texts for those that come from none.
    """

    def __init__(self, columns: Mapping[str, Column], positions: Sequence[str]) -> None:
        super().__init__(columns)
        self._columns = dict(columns)
        self.positions: list[str] = list(positions)

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Batch:
        """Put samples together; at least one, all with the same fields."""
        names = list(samples[0].fields)
        columns = {name: _gathered([each.fields[name] for each in samples], name) for name in names}
        return cls(columns, [each.position for each in samples])

    @classmethod
    def joined(cls, batches: Sequence[Batch]) -> Batch:
        """Put batches together; at least one, all with the same fields."""
        names = batches[0]._columns
        columns = {name: _chained([each._columns[name] for each in batches]) for name in names}
        return cls(columns, [place for each in batches for place in each.positions])

    @property
    def ids(self) -> list[str]:
        """The object ids."""
        return [str(each) for each in self._columns[ID]]

    @property
    def rows(self) -> list[Row]:
        """What is known of the rows that become of it."""
        return [Row(name, place or None) for name, place in zip(self.ids, self.positions, strict=True)]

    @property
    def count(self) -> int:
        """How many samples there are: the length of a dict is how many fields."""
        return len(self.positions)

    def only(self, rows: Sequence[int]) -> Batch:
        """Return a batch of some of the samples."""
        columns = {name: _chosen(column, rows) for name, column in self._columns.items()}
        return Batch(columns, [self.positions[row] for row in rows])

    def fields(self, row: int) -> dict[str, object]:
        """Return one sample's fields."""
        return {name: column[row] for name, column in self._columns.items()}


def _chosen(column: Column, rows: Sequence[int]) -> Column:
    """Return some of a column's values."""
    if isinstance(column, Sequence):
        return [column[row] for row in rows]
    return column[list(rows)]  # an array, or a tensor that was handed in


def _chained(columns: Sequence[Column]) -> Column:
    """Put parts of a column together."""
    arrays = [each for each in columns if isinstance(each, np.ndarray)]
    if len(arrays) == len(columns):
        return np.concatenate(arrays)
    return [value for each in columns for value in each]


def _gathered(values: list[object], name: str) -> Column:
    """Return a field of a batch: an array where values are alike, else a list."""
    if name == ID:
        return values
    first = values[0]
    if isinstance(first, np.ndarray):
        kind = first.shape, first.dtype
        same = all(isinstance(each, np.ndarray) and (each.shape, each.dtype) == kind for each in values)
        return np.stack([np.asarray(each) for each in values]) if same else values
    kinds = set(map(type, values))
    # JSON has 1 and 1.5 in one field of two messages.
    if kinds == {int, float} or (len(kinds) == 1 and isinstance(first, bool | int | float | np.number)):
        array = np.array(values)
        return values if array.dtype.kind == "O" else array  # a number too large for NumPy
    return values


def batch_of(given: Mapping[str, object]) -> Batch:
    """Return a batch that somebody made by hand as one of samples.

    Parameters
    ----------
    given : mapping
        ``object_id``, a sequence of str, and a sequence for each field.

    Returns
    -------
    Batch
        Without positions: nothing is told to a source.

    Raises
    ------
    SourceError
        If it is no such thing.
    """
    if isinstance(given, Batch):
        return given
    ids = given.get(ID) if isinstance(given, Mapping) else None
    if not _is_column(ids):
        raise SourceError(f"a batch is a dict with {ID!r}, a list of str, and a list or array for each field")
    columns: dict[str, Column] = {}
    for name, values in given.items():
        if not _is_column(values):
            raise SourceError(f"{name!r} of the batch is {type(values).__name__}; wanted a list or an array")
        if len(values) != len(ids):
            raise SourceError(f"the batch has {len(ids)} object ids, and {len(values)} values of {name!r}")
        columns[name] = values
    columns[ID] = [checked_id({ID: each}) for each in ids]
    return Batch(columns, [""] * len(ids))


def _is_column(values: object) -> TypeGuard[Column]:
    """Whether it has a value for each row: a list, an array, a tensor."""
    if isinstance(values, str | bytes | Mapping):
        return False
    return isinstance(values, Sequence) or bool(getattr(values, "ndim", 0))


def checked_id(fields: Mapping[str, object]) -> str:
    """Return a sample's object id.

    Parameters
    ----------
    fields : mapping
        The sample's.

    Returns
    -------
    str
        A text; whole numbers become one.

    Raises
    ------
    SourceError
        If it has none.
    """
    found = fields.get(ID)
    if isinstance(found, int | np.integer) and not isinstance(found, bool):
        return str(int(found))
    if not isinstance(found, str) or not found:
        raise SourceError(
            f"a sample needs {ID!r}, a text; it has {found!r} among {', '.join(map(repr, fields))}"
        )
    try:
        found.encode()
    except UnicodeEncodeError:
        raise SourceError(f"{ID!r} is {found!r}, which is no text that can be stored") from None
    return str(found)


def made_sample(raw: object, decode: Decode | None, position: str) -> Sample | DeadLetter:
    """Make a sample of what a source has; what cannot be one is a dead letter.

    Parameters
    ----------
    raw : object
        A dict, or what `decode` makes one of.
    decode : callable or None
        See `Decode`.
    position : str
        Where in the source it is.

    Returns
    -------
    Sample or DeadLetter
        With the reason.
    """
    try:
        fields = _fields(raw if decode is None else decode(raw))
    except Exception as error:  # noqa: BLE001 - whatever a message makes a decoder raise, the stream goes on
        content = raw if isinstance(raw, bytes) else repr(raw)[:_LONGEST].encode(errors="replace")
        return DeadLetter(position, f"{type(error).__name__}: {error}", content)
    return Sample(fields, position)


def _fields(made: object) -> dict[str, object]:
    """Return a sample's fields, or refuse what is no sample."""
    if not isinstance(made, Mapping):
        raise SourceError(f"a sample is {type(made).__name__}; wanted a dict, or decode= that makes one")
    return {**made, ID: checked_id(made)}
