"""A table in Lance's format: each append is a version of its own, and there whole or not at all."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from predsession.errors import MissingExtraError, StoreError
from predsession.stream.tables import pass_on

# Lance tells on stderr what it does; what concerns anybody is an error.
os.environ.setdefault("LANCE_LOG", "error")
try:
    import lance
except ImportError:
    raise MissingExtraError("stream", "a store in Lance's format") from None

log = logging.getLogger("predsession.stream")
MOST_PIECES = 500
"""Fragments above which they are put together while the table grows: each version lists all of them."""
_PIECE_ROWS = 1 << 16
_KEPT = timedelta(minutes=1)
_AT_ONCE = 500
_INDEX_CACHE, _METADATA_CACHE = 16 << 20, 32 << 20
"""Bytes; Lance's own 7 GB fill with each version that is written."""
_FAULTS = (OSError, ValueError, RuntimeError, pa.ArrowException)
"""What Lance raises."""
Read = TypeVar("Read")


class LanceTable:
    """A folder of Lance's.

    Parameters
    ----------
    path : Path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = -1
        self._pieces = 0
        self._session = lance.Session(
            index_cache_size_bytes=_INDEX_CACHE, metadata_cache_size_bytes=_METADATA_CACHE
        )
        self._dataset: lance.LanceDataset | None = None
        self.refresh()

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    def refresh(self) -> None:
        """See what other processes have added."""
        try:
            if self._dataset is not None:
                self._dataset.checkout_latest()
            elif (self._path / "_versions").is_dir():
                self._dataset = self._open()
                self._pieces = len(self._dataset.get_fragments())
        except _FAULTS as error:
            pass_on(error)
            raise StoreError(f"{self._path} cannot be opened as a Lance table: {error}") from None

    def _open(self) -> lance.LanceDataset:
        """Open it, with small caches."""
        return lance.dataset(str(self._path), session=self._session)

    @property
    def pieces(self) -> int:
        """How many it is made of."""
        return self._pieces

    def schema(self) -> pa.Schema | None:
        """Return its columns; None while there is no table yet."""
        if self._dataset is None:
            return None
        schema: pa.Schema = self._dataset.schema
        return schema

    def append(self, rows: pa.Table) -> None:
        """Add rows; all are there, or none. Raises `StoreError` if they cannot be written."""
        target = str(self._path) if self._dataset is None else self._dataset
        mode = "create" if self._dataset is None else "append"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            written = lance.write_dataset(rows, target, mode=mode)
            self._dataset = self._open() if self._dataset is None else written
        except _FAULTS as error:
            pass_on(error)
            raise StoreError(f"{self._path} cannot be written to: {error}") from None
        self._pieces += 1
        if self._pieces > MOST_PIECES:
            try:
                self._put_together(_PIECE_ROWS, _KEPT)
            except StoreError as error:  # the rows are there; the next append tries again
                log.warning("small pieces were not put together: %s", error)

    def _read(self, work: Callable[[lance.LanceDataset], Read]) -> Read:
        """Read; if another process has put pieces together in the meantime, from these."""
        while True:
            assert self._dataset is not None, "there is something to be read"
            try:
                return work(self._dataset)
            except _FAULTS as error:
                self._again(error)

    def _again(self, error: Exception) -> None:
        """Go to the newest version, or give up where that is what failed."""
        pass_on(error)
        assert self._dataset is not None, "there was something to be read"
        before = self._dataset.version
        self.refresh()
        if self._dataset.version == before:
            raise StoreError(f"{self._path} cannot be read: {error}") from None

    def count(self) -> int:
        """Return how many rows there are."""
        return 0 if self._dataset is None else self._read(lambda data: int(data.count_rows()))

    def scan(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Iterate over all rows, in the order in which they were added."""
        names = None if columns is None else list(columns)
        seen, ended = 0, self._dataset is None
        while not ended and self._dataset is not None:
            try:
                for batch in self._dataset.to_batches(columns=names, offset=seen or None):
                    seen += batch.num_rows
                    yield batch
                ended = True
            except _FAULTS as error:
                self._again(error)  # the order of rows is the same in larger pieces

    def new(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over rows that were not iterated over so yet; some may come again."""
        ended = self._dataset is None
        while not ended and self._dataset is not None:
            try:
                for each in self._dataset.get_fragments():
                    if each.fragment_id > self._seen:
                        yield from each.to_batches(columns=list(columns))
                        self._seen = each.fragment_id
                ended = True
            except _FAULTS as error:
                self._again(error)

    def take(self, places: Sequence[int]) -> pa.Table:
        """Return rows by their positions."""
        taken: pa.Table = self._read(lambda data: data.take(list(places)))
        return taken

    def where(self, column: str, values: Iterable[str], columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows whose text in a column is one of these."""
        quote = "'"
        wanted = [f"'{value.replace(quote, quote * 2)}'" for value in values]
        names = None if columns is None else list(columns)
        filters = [
            f"{column} IN ({', '.join(wanted[begin : begin + _AT_ONCE])})"
            for begin in range(0, len(wanted), _AT_ONCE)
        ]
        return self._read(
            lambda data: pa.concat_tables([data.to_table(columns=names, filter=one) for one in filters])
        )

    def compact(self, *, quick: bool = False) -> None:
        """Make few large pieces of many small ones, and remove old versions."""
        if self._dataset is not None:
            self._put_together(*((_PIECE_ROWS, _KEPT) if quick else (1 << 20, timedelta(0))))

    def _put_together(self, rows: int, kept: timedelta) -> None:
        """Make pieces of so many rows, and remove versions that are older than that."""
        assert self._dataset is not None, "there is something to be put together"
        try:
            self._dataset.checkout_latest()
            self._dataset.optimize.compact_files(target_rows_per_fragment=rows)
            self._dataset.checkout_latest()
            self._dataset.cleanup_old_versions(older_than=kept)
            self._pieces = len(self._dataset.get_fragments())
        except _FAULTS as error:
            pass_on(error)
            raise StoreError(f"{self._path}: {error}") from None
