"""A table of Parquet files in a folder: each append is a file of its own, there under its name or not at all.

A file that was made of others is called by the first and the last of these; while both are there, those count
for nothing. So a process that is killed while it puts files together leaves nothing double.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from predsession.errors import StoreError
from predsession.stream.tables import pass_on

log = logging.getLogger("predsession.stream")
_NAME = re.compile(r"rows-(\d{9})(?:-(\d{9}))?\.parquet")
_UNFINISHED = re.compile(r"\.rows-[0-9-]+\.parquet\.\d+")
MOST_PIECES = 500
"""Files after which those that are small are put together while the table grows."""
_GROUP_ROWS = 1 << 16
_FAULTS = (OSError, ValueError, pa.ArrowException)
"""What Arrow raises."""
Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, order=True)
class _Piece:
    """A file, and which numbers it stands for."""

    first: int
    last: int
    path: Path


class ParquetTable:
    """A folder of Parquet files.

    Parameters
    ----------
    path : Path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = -1
        self._pieces: list[_Piece] = []
        self._added = 0
        self._rows: dict[Path, int] = {}
        self._schema: pa.Schema | None = None
        self.refresh()

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    @property
    def pieces(self) -> int:
        """How many files it is made of."""
        return len(self._pieces)

    def refresh(self) -> None:
        """See what other processes have added."""
        names, again = self._names(), self._names()
        while names != again:  # a listing is no moment's picture: files were put together while it was made
            names, again = again, self._names()
        found: list[_Piece] = []
        for name in names:
            match = _NAME.fullmatch(name)
            if match is not None:
                first = int(match[1])
                found.append(_Piece(first, int(match[2] or first), self._path / name))
        # The widest first, so that what it was made of is passed over.
        kept: list[_Piece] = []
        for each in sorted(found, key=lambda piece: (piece.first, -piece.last)):
            if not kept or each.last > kept[-1].last:
                kept.append(each)
        if [each.first for each in kept] != [0, *(each.last + 1 for each in kept)][: len(kept)]:
            raise StoreError(
                f"{self._path} lacks files: there are {', '.join(each.path.name for each in kept)}"
            )
        self._pieces = kept
        if kept and self._schema is None:
            try:
                self._schema = pq.read_schema(kept[0].path)
            except _FAULTS as error:
                pass_on(error)
                raise StoreError(f"{kept[0].path} cannot be read as Parquet: {error}") from None

    def _names(self) -> set[str]:
        """List the folder."""
        try:
            return set(os.listdir(self._path))  # noqa: PTH208 - names are wanted
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise StoreError(f"{self._path} cannot be read: {error}") from None

    def schema(self) -> pa.Schema | None:
        """Return its columns; None while there is no table yet."""
        return self._schema

    def append(self, rows: pa.Table) -> None:
        """Add rows; all are there, or none. Raises `StoreError` if they cannot be written."""
        number = self._pieces[-1].last + 1 if self._pieces else 0
        piece = _Piece(number, number, self._path / f"rows-{number:09}.parquet")
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            self._write(piece.path, rows.schema, [rows])
        except _FAULTS as error:
            pass_on(error)
            raise StoreError(f"{self._path} cannot be written to: {error}") from None
        self._pieces.append(piece)
        self._schema = rows.schema
        self._added += 1
        if self._added >= MOST_PIECES:
            try:
                self.compact(quick=True)
            except StoreError as error:  # the rows are there; the next append tries again
                log.warning("small files were not put together: %s", error)

    def _write(self, path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
        """Write a file, which gets its name when it is whole."""
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
                for each in tables:
                    writer.write_table(each, row_group_size=_GROUP_ROWS)
            unfinished.replace(path)
        finally:
            with contextlib.suppress(OSError):
                unfinished.unlink()

    def _read(self, work: Callable[[], Read]) -> Read:
        """Read; if another process has put files together in the meantime, from these."""
        while True:
            try:
                return work()
            except _FAULTS as error:
                self._again(error)

    def _again(self, error: Exception) -> None:
        """Look which files there are, or give up where those are what failed."""
        pass_on(error)
        before = self._pieces
        self.refresh()
        if self._pieces == before:
            raise StoreError(f"{self._path} cannot be read: {error}") from None

    def count(self) -> int:
        """Return how many rows there are."""
        return self._read(lambda: sum(map(self._rows_of, self._pieces)))

    def _rows_of(self, piece: _Piece) -> int:
        """Return how many rows a file has."""
        if piece.path not in self._rows:
            self._rows[piece.path] = pq.read_metadata(piece.path).num_rows
        return self._rows[piece.path]

    def scan(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Iterate over all rows, in the order in which they were added."""
        seen, ended = 0, False
        while not ended:
            before = seen  # rows to be passed over: those of files that are put together now
            try:
                for piece in list(self._pieces):
                    for batch in self._scan_one(piece, columns):
                        fresh = batch.slice(min(before, batch.num_rows))
                        before -= batch.num_rows - fresh.num_rows
                        seen += fresh.num_rows
                        if fresh.num_rows:
                            yield fresh
                ended = True
            except _FAULTS as error:
                self._again(error)

    def _scan_one(self, piece: _Piece, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows of a file."""
        with pq.ParquetFile(piece.path) as file:
            for batch in file.iter_batches(columns=None if columns is None else list(columns)):
                wanted = batch.schema.names
                yield pa.RecordBatch.from_arrays(
                    batch.columns, schema=pa.schema([self._field(name) for name in wanted], self._metadata())
                )

    def _field(self, name: str) -> pa.Field:
        """Return a column as the store has it."""
        assert self._schema is not None, "there are rows"
        return self._schema.field(name)

    def _metadata(self) -> dict[bytes, bytes]:
        """Return what the schema says beside the columns."""
        assert self._schema is not None, "there are rows"
        return dict(self._schema.metadata or {})

    def new(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over rows that were not iterated over so yet; some may come again."""
        ended = False
        while not ended:
            try:
                for piece in list(self._pieces):
                    if piece.last > self._seen:
                        yield from self._scan_one(piece, columns)
                        self._seen = piece.last
                ended = True
            except _FAULTS as error:
                self._again(error)

    def take(self, places: Sequence[int]) -> pa.Table:
        """Return rows by their positions."""
        return self._read(lambda: self._take(places))

    def _take(self, places: Sequence[int]) -> pa.Table:
        """Read files in which there are some of the rows."""
        found: dict[int, pa.Table] = {}
        begin = 0
        for piece in self._pieces:
            end = begin + self._rows_of(piece)
            here = [place for place in places if begin <= place < end]
            if here:
                with pq.ParquetFile(piece.path) as file:
                    rows = file.read()
                found.update((place, rows.slice(place - begin, 1)) for place in here)
            begin = end
        return pa.concat_tables([found[place] for place in places])

    def where(self, column: str, values: Iterable[str], columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows whose text in a column is one of these."""
        wanted = pc.field(column).isin(list(values))
        names = None if columns is None else list(columns)
        return self._read(
            lambda: ds.dataset([str(piece.path) for piece in self._pieces], schema=self._schema).to_table(
                columns=names, filter=wanted
            )
        )

    def compact(self, *, quick: bool = False) -> None:
        """Make one file of many, and remove what nobody needs any more; `quick` leaves large files alone."""
        if self._schema is None:
            return
        try:
            pieces = self._pieces
            small = pieces
            if quick:
                small = list(takewhile(lambda each: self._rows_of(each) < _GROUP_ROWS, reversed(pieces)))[
                    ::-1
                ]
            if len(small) > 1:
                first, last = small[0].first, small[-1].last
                whole = _Piece(first, last, self._path / f"rows-{first:09}-{last:09}.parquet")
                self._write(whole.path, self._schema, _gathered(self._scan_all(small), self._schema))
                self._pieces = [*pieces[: len(pieces) - len(small)], whole]
            self._tidy()
            self._added = 0
        except _FAULTS as error:
            pass_on(error)
            raise StoreError(f"{self._path}: {error}") from None

    def _scan_all(self, pieces: Iterable[_Piece]) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows of some files; for whoever has the table alone, so that none goes away."""
        for piece in pieces:
            yield from self._scan_one(piece, None)

    def _tidy(self) -> None:
        """Remove files that were put together, and those that a killed process has left unfinished."""
        kept = {piece.path.name for piece in self._pieces}
        for name in self._names() - kept:
            if _NAME.fullmatch(name) or _UNFINISHED.fullmatch(name):
                with contextlib.suppress(OSError):
                    (self._path / name).unlink()


def _gathered(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Put small batches together."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _GROUP_ROWS:
            yield pa.Table.from_batches(waiting, schema)
            waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting, schema)
