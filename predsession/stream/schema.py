"""A store's table: which columns, and how results become rows of them.

Every row has an object id, where it came from, when it was stored, and which model made it. The rest is the
results' own: one column for each output, in which a row is a list of fixed length, its shape and dtype in the
schema's metadata; or, for predictions, columns that can be searched and one that holds all of it.

The first batch settles the outputs. One that does not fit is refused before anything is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeGuard

import numpy as np
import pyarrow as pa

from predsession.errors import StoreError
from predsession.prediction import Prediction
from predsession.stream import records
from predsession.stream.outputs import Array, MisfitError, Output, as_array, as_column, described, output_of

Results = Array | Mapping[str, Array] | Sequence[Prediction]
ID, POSITION, STORED_AT, MODEL, VERSION = "object_id", "position", "stored_at", "model", "model_version"
OWN = (ID, POSITION, STORED_AT, MODEL, VERSION)
"""The columns that every store has."""
DATA = "data"
"""The column of an output that has no name."""
KIND = b"predsession.kind"
ARRAYS, PREDICTIONS = "arrays", "predictions"


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of a row beside its results.

    Parameters
    ----------
    id : str
        The object's.
    position : str or None
        Where in the source it came from.
    """

    id: str
    position: str | None = None


@dataclass(frozen=True, slots=True)
class Maker:
    """Which model made results.

    Parameters
    ----------
    name, version : str
        Its own; empty where it has none.
    """

    name: str = ""
    version: str = ""


class Schema:
    """What a store's rows are.

    Parameters
    ----------
    kind : str
        `ARRAYS` or `PREDICTIONS`.
    outputs : sequence of Output
        The model's; none for predictions.
    """

    def __init__(self, kind: str, outputs: Sequence[Output] = ()) -> None:
        self.kind = kind
        self.outputs: tuple[Output, ...] = tuple(outputs)
        own = [
            pa.field(ID, pa.string(), nullable=False),
            pa.field(POSITION, pa.string()),
            pa.field(STORED_AT, pa.timestamp("us", tz="UTC")),
            pa.field(MODEL, pa.string()),
            pa.field(VERSION, pa.string()),
        ]
        if kind == PREDICTIONS:
            self.arrow = pa.schema([*own, *records.FIELDS], {KIND: kind.encode()})
        else:
            said: dict[bytes, bytes] = {KIND: kind.encode()}
            for each in self.outputs:
                shape = {"tensor_shape": list(each.shape), "tensor_dtype": each.dtype.name, "name": each.name}
                said[each.column.encode()] = json.dumps(shape).encode()
            self.arrow = pa.schema([*own, *(each.field() for each in self.outputs)], said)

    @classmethod
    def of(cls, results: Results, count: int) -> Schema:
        """Settle a schema by the first results.

        Parameters
        ----------
        results : ndarray, mapping of str to ndarray, or sequence of Prediction
            What a model made of a batch.
        count : int
            How many rows there are to be.

        Returns
        -------
        Schema
            That fits them.

        Raises
        ------
        StoreError
            If they cannot be stored.
        """
        if _is_predictions(results):
            return cls(PREDICTIONS)
        return cls(ARRAYS, [output_of(name, array, count) for name, array in _named(results).items()])

    @classmethod
    def read(cls, arrow: pa.Schema, where: Path) -> Schema:
        """Read the schema of a store.

        Parameters
        ----------
        arrow : pyarrow.Schema
            With its metadata.
        where : Path
            The store, named in errors.

        Returns
        -------
        Schema
            As it was settled.

        Raises
        ------
        StoreError
            If it is none of ours.
        """
        said = arrow.metadata or {}
        kind = said.get(KIND, b"").decode()
        if kind == PREDICTIONS:
            return cls(kind)
        if kind != ARRAYS:
            raise StoreError(f"{where} is no store of predsession: its schema has no word of it")
        try:
            outputs = [
                _described_output(name, said[name.encode()]) for name in arrow.names if name not in OWN
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{where}: the schema is damaged: {error!r}") from None
        return cls(kind, outputs)

    def table(self, rows: Sequence[Row], results: Results, *, now: datetime, maker: Maker) -> pa.Table:
        """Make rows of results.

        Parameters
        ----------
        rows : sequence of Row
            In order.
        results : ndarray, mapping of str to ndarray, or sequence of Prediction
            Likewise.
        now : datetime
            In UTC.
        maker : Maker
            Which model made them.

        Returns
        -------
        pyarrow.Table
            Of this schema.

        Raises
        ------
        MisfitError
            If rows have another shape or dtype; the message has both sides.
        StoreError
            If they do not fit otherwise.
        """
        count = len(rows)
        try:
            columns: list[pa.Array] = [
                pa.array([row.id for row in rows], pa.string()),
                pa.array([row.position for row in rows], pa.string()),
                pa.repeat(pa.scalar(now, pa.timestamp("us", tz="UTC")), count),
                pa.repeat(pa.scalar(maker.name or None, pa.string()), count),
                pa.repeat(pa.scalar(maker.version or None, pa.string()), count),
            ]
            if self.kind == PREDICTIONS:
                columns += records.columns(self._predictions(results, count))
            else:
                columns += self._arrays(results, count)
        except UnicodeEncodeError as error:
            raise MisfitError(f"a text in the results cannot be stored: {error}") from None
        return pa.Table.from_arrays(columns, schema=self.arrow)

    def check(self, results: Results, count: int) -> None:
        """Refuse results that do not fit, as `table` would.

        Parameters
        ----------
        results : ndarray, mapping of str to ndarray, or sequence of Prediction
            What a model made of a batch.
        count : int
            Of how many samples.

        Raises
        ------
        MisfitError
            If rows have another shape or dtype.
        StoreError
            If they are something else altogether.
        """
        try:
            if self.kind == PREDICTIONS:
                for each in self._predictions(results, count):
                    "".join(each.classes).encode()
            else:
                self._arrays(results, count)
        except UnicodeEncodeError as error:
            raise MisfitError(f"a text in the results cannot be stored: {error}") from None

    def empty(self) -> Results:
        """Return results without a row, of the store's kind.

        Returns
        -------
        ndarray, dict of ndarray, or list of Prediction
            An array where the one output has no name.
        """
        if self.kind == PREDICTIONS:
            return []
        arrays = {each.name: np.empty((0, *each.shape), each.dtype) for each in self.outputs}
        return arrays[DATA] if list(arrays) == [DATA] else arrays

    def _predictions(self, results: Results, count: int) -> Sequence[Prediction]:
        """Return predictions, as many as there are rows."""
        if not _is_predictions(results):
            raise StoreError(f"the store holds predictions; the results are {described(results)}")
        if len(results) != count:
            raise StoreError(f"{len(results)} predictions for {count} objects")
        return results

    def _arrays(self, results: Results, count: int) -> list[pa.Array]:
        """Return a column for each output."""
        held = ", ".join(each.name for each in self.outputs)
        if _is_predictions(results):
            raise StoreError(f"the store holds the outputs {held}; the results are predictions")
        given = {name: output_of(name, array, count) for name, array in _named(results).items()}
        if given.keys() != {each.name for each in self.outputs}:
            raise StoreError(f"the store holds the outputs {held}; the results are {', '.join(given)}")
        arrays = _named(results)
        columns = []
        for each in self.outputs:
            one = given[each.name]
            fits = one.shape == each.shape and (one.dtype == each.dtype or (one.is_text and each.is_text))
            if not fits:
                raise MisfitError(
                    f"output {each.name!r} of the store is {each.dtype.name} {list(each.shape)} a row; "
                    f"the results are {one.dtype.name} {list(one.shape)}"
                )
            columns.append(as_column(arrays[each.name], each))
        return columns


def _is_predictions(results: object) -> TypeGuard[Sequence[Prediction]]:
    """Whether results are predictions."""
    return isinstance(results, Sequence) and all(isinstance(each, Prediction) for each in results)


def _named(results: Results) -> dict[str, Array]:
    """Return outputs by name."""
    if isinstance(results, Mapping):
        odd = [repr(name) for name in results if not isinstance(name, str) or not name or name in OWN]
        if odd or not results:
            raise StoreError(
                f"outputs need names, and none of {', '.join(OWN)}: {', '.join(odd) or 'there are none'}"
            )
        return {name: as_array(value, name) for name, value in results.items()}
    return {DATA: as_array(results, DATA)}


def _described_output(column: str, said: bytes) -> Output:
    """Read what a schema says of an output; hyrax, whose words these are, has no name beside the column's."""
    one = json.loads(said)
    return Output(
        one.get("name", column), tuple(map(int, one["tensor_shape"])), np.dtype(_plain(one["tensor_dtype"]))
    )


def _plain(name: str) -> str:
    """Return NumPy's own word for a dtype."""
    return "U" if name.startswith("str") else name
