"""A table on disk that grows: the seam, and which kind a path means."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from predsession.errors import PredSessionError, SourceError

KINDS = (".lance", ".parquet")


class Table(Protocol):
    """A table that is appended to by one process at a time, and read by any number.

    What was appended stays, whatever becomes of the process: there is nothing to be repaired.
    """

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def pieces(self) -> int:
        """How many files, or the like, it is made of."""

    def schema(self) -> pa.Schema | None:
        """Return its columns; None while there is no table yet."""

    def append(self, rows: pa.Table) -> None:
        """Add rows; all are there, or none."""

    def refresh(self) -> None:
        """See what other processes have added."""

    def count(self) -> int:
        """Return how many rows there are."""

    def scan(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Iterate over all rows, in the order in which they were added."""

    def new(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over rows that were not iterated over so yet; some may come again."""

    def take(self, places: Sequence[int]) -> pa.Table:
        """Return rows by their positions."""

    def where(self, column: str, values: Iterable[str], columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows whose text in a column is one of these."""

    def compact(self, *, quick: bool = False) -> None:
        """Make few large pieces of many small ones; `quick` leaves alone those that are large enough."""


def pass_on(error: Exception) -> None:
    """Raise what is no fault of a table's.

    Parameters
    ----------
    error : Exception
        What Arrow or Lance has raised, or let through.

    Raises
    ------
    PredSessionError
        If it is one: it has its words already.
    KeyboardInterrupt
        If Ctrl-C broke into Lance, which makes an error of its own of it.
    """
    if isinstance(error, PredSessionError):
        raise error
    if "KeyboardInterrupt" in str(error):
        raise KeyboardInterrupt from error


def store_path(path: str | os.PathLike[str]) -> Path:
    """Return where a store is, or say why that is none.

    Parameters
    ----------
    path : str or PathLike
        Ends in ``.lance`` or ``.parquet``.

    Returns
    -------
    Path
        It need not be there yet.

    Raises
    ------
    SourceError
        If it ends in something else, or is a file.
    """
    if not isinstance(path, str | os.PathLike):
        raise SourceError(f"store is {path!r}; wanted a path that ends in {' or '.join(KINDS)}")
    place = Path(path)
    if place.suffix not in KINDS:
        raise SourceError(f"{place} is no store: its name ends in {' or '.join(KINDS)}")
    if place.is_file():
        raise SourceError(f"{place} is a file; a store is a folder, whose name ends in {place.suffix}")
    return place


def open_table(path: str | os.PathLike[str]) -> Table:
    """Open a table, which need not be there yet.

    Parameters
    ----------
    path : str or PathLike
        Ends in ``.lance`` or ``.parquet``.

    Returns
    -------
    Table
        Of that kind.

    Raises
    ------
    SourceError
        If it ends in something else, or is a file.
    """
    place = store_path(path)
    if place.suffix == ".parquet":
        from predsession.stream.parquettable import ParquetTable

        return ParquetTable(place)
    from predsession.stream.lancetable import LanceTable

    return LanceTable(place)
