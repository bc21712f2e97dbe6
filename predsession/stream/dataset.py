"""`ResultDataset`: what a stream has stored, by position, by id, as a table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from predsession.errors import SourceError, StoreError
from predsession.prediction import Prediction
from predsession.stream import records
from predsession.stream.outputs import Output
from predsession.stream.schema import ID, PREDICTIONS, Schema
from predsession.stream.tables import Table, open_table

if TYPE_CHECKING:
    import pandas

Array = npt.NDArray[np.generic]
Item = Array | dict[str, Array] | Prediction
"""What one row is: an array, or one for each output, or a prediction."""


class ResultDataset:
    """Results, in the order in which they were stored.

    Parameters
    ----------
    table : Table
        Where they are.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        arrow = table.schema()
        self._schema = None if arrow is None else Schema.read(arrow, table.path)
        self._count = table.count()

    def __len__(self) -> int:
        """Return how many rows there are."""
        return self._count

    @property
    def kind(self) -> str | None:
        """What is stored: "arrays", "predictions", or None while nothing is."""
        return None if self._schema is None else self._schema.kind

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The model's outputs, each with the shape of a row and its dtype; none for predictions."""
        return () if self._schema is None else self._schema.outputs

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice | Sequence[int] | npt.NDArray[np.integer]) -> list[Item]: ...
    def __getitem__(self, place: int | slice | Sequence[int] | npt.NDArray[np.integer]) -> Item | list[Item]:
        """Return one row, or those of several positions; negative ones count from the end.

        Parameters
        ----------
        place : int, slice, sequence of int, or (N,) bool ndarray
            Which.

        Returns
        -------
        ndarray, dict, Prediction, or a list of these
            A list where several were asked for.

        Raises
        ------
        IndexError
            If there is no such row.
        TypeError
            If it is no position; `get` takes object ids.
        """
        if isinstance(place, slice):
            return self._rows(range(*place.indices(len(self))))
        if isinstance(place, int | np.integer) and not isinstance(place, bool):
            return self._rows([int(place)])[0]
        places = np.asarray(place)
        if places.ndim != 1 or (places.size and places.dtype.kind not in "iub"):
            raise TypeError(f"rows are asked for by position, a slice, or a list of these: not by {place!r}")
        if places.dtype.kind == "b":
            if len(places) != len(self):
                raise IndexError(f"{len(places)} truth values for {len(self)} rows")
            places = np.flatnonzero(places)
        return self._rows([int(each) for each in places])

    def _rows(self, places: Sequence[int]) -> list[Item]:
        """Return rows by position."""
        for each in places:
            if not -len(self) <= each < len(self):
                raise IndexError(f"there are {len(self)} rows, and none at {each}")
        counted = [each % len(self) if len(self) else each for each in places]
        return list(self._read(self._table.take(counted))) if counted else []

    def _read(self, rows: pa.Table | pa.RecordBatch) -> Iterator[Item]:
        """Return what rows are."""
        if self._schema is None:
            return
        if self._schema.kind == PREDICTIONS:
            texts, masks = rows.column(records.RECORD), rows.column(records.MASKS)
            for record, each in zip(texts, masks, strict=True):
                yield records.read(record.as_py(), each.as_py())
            return
        columns = {each.name: _array(rows.column(each.column), each) for each in self._schema.outputs}
        for number in range(rows.num_rows):
            one = {name: values[number] for name, values in columns.items()}
            yield next(iter(one.values())) if len(one) == 1 else one

    def __iter__(self) -> Iterator[Item]:
        """Iterate over the rows."""
        for batch in self._scan():
            yield from self._read(batch)

    def _scan(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows that were there when this was opened."""
        left = self._count
        for batch in self._table.scan(columns):
            if left > 0:
                yield batch.slice(0, left)
            left -= batch.num_rows

    def items(self) -> Iterator[tuple[str, Item]]:
        """Iterate over object ids with their rows.

        Yields
        ------
        tuple of str and (ndarray, dict or Prediction)
            In order.
        """
        for batch in self._scan():
            yield from zip(batch.column(ID).to_pylist(), self._read(batch), strict=True)

    def iter_ids(self) -> Iterator[str]:
        """Iterate over the object ids; see `ids`."""
        return (each for batch in self._scan([ID]) for each in batch.column(0).to_pylist())

    def ids(self) -> list[str]:
        """Return the object ids, a row each.

        Returns
        -------
        list of str
            In order.
        """
        return list(self.iter_ids())

    def get(self, object_id: str) -> Item:
        """Return the row of an object; the last one, if it was stored several times.

        Parameters
        ----------
        object_id : str
            Which.

        Returns
        -------
        ndarray, dict of ndarray, or Prediction
            An array where there is one output.

        Raises
        ------
        KeyError
            If there is none.
        """
        found = None if self._schema is None else self._table.where(ID, [object_id])
        if found is None or not found.num_rows:
            raise KeyError(object_id)
        return next(self._read(found.slice(found.num_rows - 1)))

    def to_arrow(self) -> pa.Table:
        """Return all of it.

        Returns
        -------
        pyarrow.Table
            Empty, and without columns, where nothing was stored.
        """
        arrow = self._table.schema()
        return pa.table({}) if arrow is None else pa.Table.from_batches(self._scan(), arrow)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate over pieces of `to_arrow`, for stores that are larger than memory.

        Yields
        ------
        pyarrow.RecordBatch
            In order, with the store's schema.
        """
        yield from self._scan()

    def to_arrays(self) -> dict[str, Array]:
        """Return each output as one array, a row an object.

        Returns
        -------
        dict of str to ndarray
            By the output's name; empty where nothing was stored.

        Raises
        ------
        StoreError
            If the store holds predictions.
        """
        if self.kind == PREDICTIONS:
            raise StoreError(f"{self._table.path} holds predictions, not arrays")
        table = self.to_arrow()
        return {each.name: _array(table.column(each.column), each) for each in self.outputs}

    def to_pandas(self) -> pandas.DataFrame:
        """Return all of it as a data frame, a row an object; needs pandas.

        Returns
        -------
        pandas.DataFrame
            An output's cells are arrays of its shape; predictions are in a column ``prediction``.

        Raises
        ------
        ImportError
            If pandas is not installed: no extra of ours brings it.
        """
        try:
            import pandas as _  # noqa: F401 - Arrow imports it, and says less if it is missing
        except ImportError:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from None
        table = self.to_arrow()
        if self._schema is None:
            return table.to_pandas()
        if self._schema.kind == PREDICTIONS:
            plain = table.drop_columns([records.MASKS, records.RECORD]).to_pandas()
            plain["prediction"] = list(self._read(table))
            return plain
        plain = table.drop_columns([each.column for each in self._schema.outputs]).to_pandas()
        for each in self._schema.outputs:
            plain[each.name] = list(_array(table.column(each.column), each))
        return plain

    def to_predictions(self) -> Iterator[Prediction]:
        """Iterate over predictions.

        Yields
        ------
        Prediction
            Equal to those that were stored.

        Raises
        ------
        StoreError
            If the store holds something else.
        """
        if self._schema is not None and self._schema.kind != PREDICTIONS:
            raise StoreError(f"{self._table.path} holds arrays, not predictions")
        for each in self:
            assert isinstance(each, Prediction), "the schema says so"
            yield each

    def __repr__(self) -> str:
        """Return how many there are, and of what."""
        outputs = ", ".join(f"{each.name} {each.dtype.name} {list(each.shape)}" for each in self.outputs)
        return f"<ResultDataset {self._table.path}: {len(self)} rows{', ' if outputs else ''}{outputs or ''}>"


def _array(column: pa.Array | pa.ChunkedArray, output: Output) -> Array:
    """Return an output's rows."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if output.is_text:
        return np.array(column.to_pylist(), np.str_)
    flat = column.flatten().to_numpy(zero_copy_only=False)
    rows: Array = flat.astype(output.dtype, copy=False).reshape(len(column), *output.shape)
    return rows


def open_results(path: str | os.PathLike[str]) -> ResultDataset:
    """Open what a stream has stored.

    Parameters
    ----------
    path : str or PathLike
        A store: ``results.lance`` or ``results.parquet``.

    Returns
    -------
    ResultDataset
        As it is now.

    Raises
    ------
    SourceError
        If there is no store.
    StoreError
        If it is none of ours.
    """
    table = open_table(path)
    if table.schema() is None:
        raise SourceError(f"{table.path}: there is no store")
    return ResultDataset(table)
