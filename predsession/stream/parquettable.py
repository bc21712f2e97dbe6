"""A table of Parquet files in a folder: each append is a file of its own, there under its name or not at all.

A file that was made of others is called by the first and the last of these; while both are there, those count
for nothing. So a process that is killed while it puts files together leaves nothing double.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from predsession.errors import StoreError

_NAME = re.compile(r"rows-(\d{9})(?:-(\d{9}))?\.parquet")
_GROUP_ROWS = 1 << 16


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
        self._rows: dict[Path, int] = {}
        self._schema: pa.Schema | None = None
        self.refresh()

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    def refresh(self) -> None:
        """See what other processes have added."""
        found: list[_Piece] = []
        for path in self._path.glob("rows-*.parquet"):
            match = _NAME.fullmatch(path.name)
            if match is not None:
                first = int(match[1])
                found.append(_Piece(first, int(match[2] or first), path))
        # The widest first, so that what it was made of is passed over.
        kept: list[_Piece] = []
        for each in sorted(found, key=lambda piece: (piece.first, -piece.last)):
            if not kept or each.last > kept[-1].last:
                kept.append(each)
        self._pieces = kept
        if kept and self._schema is None:
            try:
                self._schema = pq.read_schema(kept[0].path)
            except (OSError, pa.ArrowInvalid) as error:
                raise StoreError(f"{kept[0].path} cannot be read as Parquet: {error}") from None

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
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written to: {error}") from None
        self._pieces.append(piece)
        self._schema = rows.schema

    def _write(self, path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
        """Write a file, which gets its name when it is whole."""
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
                for each in tables:
                    writer.write_table(each, row_group_size=_GROUP_ROWS)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)

    def count(self) -> int:
        """Return how many rows there are."""
        return sum(map(self._rows_of, self._pieces))

    def _rows_of(self, piece: _Piece) -> int:
        """Return how many rows a file has."""
        if piece.path not in self._rows:
            self._rows[piece.path] = pq.read_metadata(piece.path).num_rows
        return self._rows[piece.path]

    def scan(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Iterate over all rows, in the order in which they were added."""
        for piece in list(self._pieces):
            yield from self._scan_one(piece, columns)

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
        for piece in list(self._pieces):
            if piece.last > self._seen:
                yield from self._scan_one(piece, columns)
                self._seen = piece.last

    def take(self, places: Sequence[int]) -> pa.Table:
        """Return rows by their positions."""
        found: dict[int, pa.Table] = {}
        begin = 0
        for piece in self._pieces:
            end = begin + self._rows_of(piece)
            here = [place for place in places if begin <= place < end]
            if here:
                rows = pq.read_table(piece.path)
                found.update((place, rows.slice(place - begin, 1)) for place in here)
            begin = end
        return pa.concat_tables([found[place] for place in places])

    def where(self, column: str, values: Iterable[str], columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows whose text in a column is one of these."""
        assert self._schema is not None, "a table without rows has none of these"
        files = [str(piece.path) for piece in self._pieces]
        wanted = pc.field(column).isin(list(values))
        names = None if columns is None else list(columns)
        return ds.dataset(files, schema=self._schema).to_table(columns=names, filter=wanted)

    def compact(self) -> None:
        """Make one file of many."""
        if len(self._pieces) < 2 or self._schema is None:
            return
        first, last = self._pieces[0].first, self._pieces[-1].last
        whole = _Piece(first, last, self._path / f"rows-{first:09}-{last:09}.parquet")
        self._write(whole.path, self._schema, _gathered(self.scan(), self._schema))
        old, self._pieces = self._pieces, [whole]
        for piece in old:
            if piece.path != whole.path:
                with contextlib.suppress(OSError):
                    piece.path.unlink()


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
