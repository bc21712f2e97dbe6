"""What a stream writes: results, each object once, and dead letters, each position once.

Several processes may write to one store. One at a time has a table's lock, looks at what others have added
since, and adds what is not there yet. The lock is the kernel's, and goes with its process.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from predsession.errors import StoreError
from predsession.stream.known import Known
from predsession.stream.samples import DeadLetter
from predsession.stream.schema import ID, POSITION, STORED_AT, Maker, Results, Row, Schema
from predsession.stream.tables import Table, open_table, store_path

log = logging.getLogger("predsession.stream")
_MARK = 16
"""Bytes in a lock's file, which are others whenever the table has changed."""
MANY = 50
"""Pieces above which they are put together when a table is opened."""
_SURE, _SHORT = 1 << 17, 200
"""Texts that are remembered as they are, and characters of the longest of these."""
REASON, RAW = "reason", "raw"
LETTERS = pa.schema(
    [
        pa.field(POSITION, pa.string()),
        pa.field(ID, pa.string()),
        pa.field(REASON, pa.string()),
        pa.field(RAW, pa.binary()),
        pa.field(STORED_AT, pa.timestamp("us", tz="UTC")),
    ]
)


def letters_path(store: Path) -> Path:
    """Return where a store's dead letters are.

    Parameters
    ----------
    store : Path
        ``results.lance``.

    Returns
    -------
    Path
        ``results.dead.lance``.
    """
    return store.with_name(f"{store.stem}.dead{store.suffix}")


class KeyedTable:
    """A table in which a text is there once.

    Parameters
    ----------
    table : Table
        Where rows are.
    key : str
        Which column has the text.
    """

    def __init__(self, table: Table, key: str) -> None:
        self.table = table
        self._key = key
        self._known = Known()
        self._sure: set[str] = set()
        """Some of what is there for certain: to look these up, no file is read."""
        self._own = threading.RLock()
        self._lock: int | None = None
        self._unlock: Callable[[], object] | None = None
        self._last: bytes | None = None
        """The mark when this process has last looked; None where it is to look in any case."""
        if table.pieces > MANY:
            self._gather()
        self._learn()

    def _gather(self) -> None:
        """Put pieces together that a process has left which was killed: looking up is slow in many."""
        try:
            with self._alone(), self._changing():
                self.table.refresh()
                self.table.compact(quick=True)
        except StoreError as error:
            log.warning("small pieces were not put together: %s", error)

    def _learn(self) -> None:
        """Look at rows that are new."""
        for batch in self.table.new([self._key]):
            texts = [each for each in batch.column(0).to_pylist() if each is not None]
            self._known.add(texts)
            self._be_sure(texts)

    def _be_sure(self, texts: Sequence[str]) -> None:
        """Remember texts that are there, as long as there is room."""
        if len(self._sure) < _SURE:
            self._sure.update(each for each in texts if len(each) <= _SHORT)

    def there(self, texts: Sequence[str]) -> set[str]:
        """Return those of some texts that are there, as far as this process has looked.

        Parameters
        ----------
        texts : sequence of str
            To be looked up.

        Returns
        -------
        set of str
            Those that are.
        """
        sure = self._sure.intersection(texts)
        perhaps = self._known.perhaps([each for each in texts if each not in sure])
        if not perhaps or self.table.schema() is None:
            return sure
        return sure | set(self.table.where(self._key, perhaps, [self._key]).column(0).to_pylist())

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Have the table alone, and know what others have added; raises `StoreError` where it cannot be."""
        with self._alone() as lock:
            last = os.pread(lock, _MARK, 0)
            if last != self._last:  # somebody else was here since
                self.table.refresh()
                self._learn()
                self._last = last
            yield

    @contextlib.contextmanager
    def _alone(self) -> Iterator[int]:
        """Have the table alone; yields the lock's file."""
        with self._own:  # a lock of the kernel's is between processes
            lock = self._open_lock()
            try:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                except OSError as error:
                    raise StoreError(f"{self.table.path} cannot be locked: {error}") from None
                yield lock
            finally:
                fcntl.flock(lock, fcntl.LOCK_UN)

    def _open_lock(self) -> int:
        """Return the lock's file."""
        if self._lock is None:
            path = self.table.path.with_name(f"{self.table.path.name}.lock")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
                self._unlock = weakref.finalize(self, os.close, self._lock)
            except OSError as error:
                raise StoreError(f"{path} cannot be written to: {error}") from None
        return self._lock

    def add(self, rows: pa.Table, texts: Sequence[str]) -> None:
        """Add rows; for whoever has the `turn`.

        Parameters
        ----------
        rows : pyarrow.Table
            To be added.
        texts : sequence of str
            Their keys.
        """
        # What is known only says where to look: it may say so before, and must, if it fails halfway.
        with self._changing():
            self._known.add(texts)
            self.table.append(rows)
        self._be_sure(texts)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Change the table; for whoever has it alone."""
        # First the mark, then the rows: whoever comes after a process that was killed in between looks again.
        try:
            self._mark()
            yield
        except BaseException:  # Ctrl-C among them: nobody knows how far it came
            self._last = None
            raise

    def _mark(self) -> None:
        """Have others look at the table again."""
        assert self._lock is not None, "it is our turn"
        self._last = os.urandom(_MARK)
        try:
            os.pwrite(self._lock, self._last, 0)
        except OSError as error:
            raise StoreError(f"{self.table.path} cannot be written to: {error}") from None

    def close(self, *, compact: bool) -> None:
        """Put small pieces together, and let go."""
        try:
            if compact:
                with self._alone(), self._changing():
                    self.table.refresh()
                    self.table.compact()
        except StoreError as error:  # the rows are there all the same
            log.warning("small pieces were not put together: %s", error)
        finally:
            if self._unlock is not None:
                self._unlock()
            self._lock = self._unlock = None


class Writer:
    """A store and its dead letters.

    Parameters
    ----------
    path : str or PathLike
        ``results.lance`` or ``results.parquet``.
    by_id : bool
        Whether an object may be there once; else what came from one place in the source.
    """

    def __init__(self, path: str | os.PathLike[str], *, by_id: bool = True) -> None:
        self._by_id = by_id
        table = open_table(path)
        arrow = table.schema()
        self._schema = None if arrow is None else Schema.read(arrow, table.path)
        self._rows = KeyedTable(table, ID if by_id else POSITION)
        self._letters = KeyedTable(open_table(letters_path(table.path)), POSITION)
        self.stored: int = 0
        self.buried: int = 0
        """Rows and letters that were added."""

    @property
    def table(self) -> Table:
        """Where results are."""
        return self._rows.table

    @property
    def schema(self) -> Schema | None:
        """What its rows are; None while that is not settled."""
        return self._schema

    def there(self, rows: Sequence[Row]) -> list[bool]:
        """Tell which rows are stored.

        Parameters
        ----------
        rows : sequence of Row
            To be looked up.

        Returns
        -------
        list of bool
            One for each, as far as this process has looked.
        """
        keys = [row.id if self._by_id else row.position for row in rows]
        there = self._rows.there([key for key in keys if key is not None])
        return [key in there for key in keys]

    def store(self, rows: Sequence[Row], results: Results, maker: Maker) -> int:
        """Add results, but those that are stored already.

        Parameters
        ----------
        rows : sequence of Row
            What they are of, no object twice.
        results : ndarray, mapping of str to ndarray, or sequence of Prediction
            In the same order.
        maker : Maker
            Which model made them.

        Returns
        -------
        int
            How many were added.

        Raises
        ------
        StoreError
            If they do not fit, or cannot be written; nothing was.
        """
        schema = self._schema or Schema.of(results, len(rows))
        table = schema.table(rows, results, now=datetime.now(UTC), maker=maker)
        with self._rows.turn():
            present = self._rows.table.schema()
            if self._schema is None and present is not None:  # another process has settled it in between
                self._schema = Schema.read(present, self.table.path)
                table = self._schema.table(rows, results, now=datetime.now(UTC), maker=maker)
            there = self.there(rows)
            if any(there):
                table = table.filter(pa.array([not each for each in there]))
            if table.num_rows:
                keys = [row.id if self._by_id else row.position for row in rows]
                self._rows.add(table, [key for key in keys if key is not None])
        self._schema = self._schema or schema
        self.stored += table.num_rows
        return int(table.num_rows)

    def bury(self, letters: Sequence[DeadLetter]) -> None:
        """Add dead letters, but those that are there already.

        Parameters
        ----------
        letters : sequence of DeadLetter
            In order.

        Raises
        ------
        StoreError
            If they cannot be written.
        """
        if not letters:
            return
        with self._letters.turn():
            there = self._letters.there([each.position for each in letters])
            fresh = {each.position: each for each in letters if each.position not in there}.values()
            if fresh:
                now = datetime.now(UTC)
                rows = [[each.position, each.object_id, each.reason, each.raw, now] for each in fresh]
                columns = [
                    pa.array(list(column), field.type)
                    for column, field in zip(zip(*rows, strict=True), LETTERS, strict=True)
                ]
                added = pa.Table.from_arrays(columns, schema=LETTERS)
                self._letters.add(added, [each.position for each in fresh])
        self.buried += len(fresh)

    def close(self, *, compact: bool) -> None:
        """Put small pieces together, and let go."""
        self._rows.close(compact=compact and self.stored > 0)
        self._letters.close(compact=compact and self.buried > 0)


def read_letters(store: str | os.PathLike[str]) -> Iterator[DeadLetter]:
    """Iterate over a store's dead letters.

    Parameters
    ----------
    store : str or PathLike
        ``results.lance`` or ``results.parquet``; the letters are beside it.

    Yields
    ------
    DeadLetter
        In the order in which they were buried.

    Raises
    ------
    SourceError
        If that is the name of no store.
    StoreError
        If they cannot be read.
    """
    for batch in open_table(letters_path(store_path(store))).scan():
        for each in batch.to_pylist():
            yield DeadLetter(each[POSITION], each[REASON], each[RAW] or b"", each[ID])
