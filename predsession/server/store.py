"""Jobs and their results on disk: SQLite in WAL mode, and a folder with a file for each upload.

Invariants:

* One thread touches the database, in the order of the calls.
* A result and the count that says it is done are written in one transaction, so a server that is killed goes
  on with the first item whose result is not stored, and computes nothing twice that was.
* The results of a tracked job stay until its final result is written, also those that have been taken; and so
  do its detections, from which the tracker of a server that is started again is brought to where it stood.
* Nothing is synced to the platter for each item: what is written survives the death of the process, not
  that of the machine; a power cut may cost the last moments, and never the database.

References
----------
.. [1] https://www.sqlite.org/wal.html on what ``synchronous=NORMAL`` keeps.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from predsession.errors import PredSessionError
from predsession.wire.jsontypes import JSONObject

Returned = TypeVar("Returned")
_CHUNK = 256

_VERSION = 2
_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    uuid TEXT PRIMARY KEY,
    submit_key TEXT UNIQUE,
    created REAL NOT NULL,
    facts TEXT NOT NULL,
    done INTEGER NOT NULL,
    state TEXT NOT NULL,
    keeps INTEGER NOT NULL DEFAULT 0,
    gone INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
    uuid TEXT NOT NULL,
    number INTEGER NOT NULL,
    item BLOB NOT NULL,
    PRIMARY KEY (uuid, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS detections (
    uuid TEXT NOT NULL,
    number INTEGER NOT NULL,
    rows BLOB NOT NULL,
    PRIMARY KEY (uuid, number)
) WITHOUT ROWID;
"""


class StoreVersionError(PredSessionError):
    """The folder holds a database of another version of this server."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as it is stored.

    Parameters
    ----------
    uuid : str
        Its name.
    submit_key : str or None
        The ``Idempotency-Key`` of its submit.
    created : float
        Seconds since 1970.
    facts : JSONObject
        What never changes.
    done : int
        How many results there are or were.
    state : JSONObject
        What changes seldom: the stage, the exception.
    """

    uuid: str
    submit_key: str | None
    created: float
    facts: JSONObject
    done: int
    state: JSONObject
    keeps: bool = False
    """Whether results stay when they have been taken, until `Store.let_go`."""


@dataclass(frozen=True, slots=True)
class Progress:
    """New results of one job.

    Parameters
    ----------
    uuid : str
        The job.
    first : int
        The number of the first new result; numbers start at 1.
    items : sequence of bytes
        The wire's JSON of each.
    state : JSONObject
        The job's state with them.
    rows : sequence of bytes
        Of a tracked job: the detections of each.
    """

    uuid: str
    first: int
    items: Sequence[bytes]
    state: JSONObject
    rows: Sequence[bytes] = ()


class Store:
    """The database and the folder beside it.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    ephemeral : bool
        Whether nothing needs to survive, so that nothing is ever synced.
    """

    def __init__(self, folder: Path, *, ephemeral: bool) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self.uploads = folder / "uploads"
        self.finals = folder / "finals"
        for place in (self.uploads, self.finals):
            place.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(
            folder / "jobs.sqlite", isolation_level=None, check_same_thread=False, cached_statements=64
        )
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute(f"PRAGMA synchronous={'OFF' if ephemeral else 'NORMAL'}")
        found = self._database.execute("PRAGMA user_version").fetchone()[0]
        if found not in {0, _VERSION}:
            self._database.close()
            raise StoreVersionError(f"{folder} was written by another version; choose another with --data")
        self._database.executescript(_SCHEMA)
        self._database.execute(f"PRAGMA user_version={_VERSION}")
        self.bytes_used = self._measure()
        """Bytes of the database in use, as of the last change; pages that are free are used again."""

    def close(self) -> None:
        """Finish what is under way and close the database."""
        self._thread.shutdown(wait=True)
        self._database.close()

    def load(self) -> list[JobRow]:
        """Return every job, oldest first, and remove uploads that belong to none."""
        rows = self._database.execute(
            "SELECT uuid, submit_key, created, facts, done, state FROM jobs ORDER BY created"
        ).fetchall()
        known = {row[0] for row in rows}
        for file in [*self.uploads.iterdir(), *self.finals.iterdir()]:
            if file.name not in known:
                file.unlink()
        return [
            JobRow(uuid, key, created, json.loads(facts), done, json.loads(state))
            for uuid, key, created, facts, done, state in rows
        ]

    def held(self, uuid: str) -> int:
        """Return the bytes of a job's uploads."""
        upload = self.uploads / uuid
        return upload.stat().st_size if upload.exists() else 0

    def unread(self) -> dict[str, int]:
        """Return how many results each job holds."""
        return dict(
            self._database.execute(
                "SELECT uuid, COUNT(*) FROM results JOIN jobs USING (uuid) WHERE number > gone GROUP BY uuid"
            )
        )

    async def add(self, row: JobRow) -> str:
        """Store a new job.

        Parameters
        ----------
        row : JobRow
            The job.

        Returns
        -------
        str
            Its uuid, or that of the job that was stored with the same key before.
        """

        def work() -> str:
            values = (
                row.uuid,
                row.submit_key,
                row.created,
                json.dumps(row.facts),
                row.done,
                json.dumps(row.state),
                row.keeps,
            )
            self._database.execute("INSERT OR IGNORE INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, 0)", values)
            found = self._database.execute(
                "SELECT uuid FROM jobs WHERE uuid = ? OR submit_key = ?", (row.uuid, row.submit_key)
            ).fetchone()
            return str(found[0])

        return await self._run(work)

    async def append(self, parts: Iterable[Progress]) -> None:
        """Store new results, of one batch or more, in one transaction.

        Parameters
        ----------
        parts : iterable of Progress
            One for each job.
        """

        def work() -> None:
            with _Transaction(self._database):
                for part in parts:
                    rows = [(part.uuid, part.first + place, item) for place, item in enumerate(part.items)]
                    self._database.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", rows)
                    seen = [(part.uuid, part.first + place, row) for place, row in enumerate(part.rows)]
                    self._database.executemany("INSERT OR REPLACE INTO detections VALUES (?, ?, ?)", seen)
                    done = part.first + len(part.items) - 1
                    self._database.execute(
                        "UPDATE jobs SET done = ?, state = ? WHERE uuid = ?",
                        (done, json.dumps(part.state), part.uuid),
                    )
            self.bytes_used = self._measure()

        await self._run(work)

    async def set_state(self, uuid: str, state: JSONObject) -> None:
        """Store a job's state.

        Parameters
        ----------
        uuid : str
            The job.
        state : JSONObject
            Replaces the one before.
        """
        await self._run(
            lambda: self._database.execute(
                "UPDATE jobs SET state = ? WHERE uuid = ?", (json.dumps(state), uuid)
            )
        )

    async def pop(self, uuid: str) -> list[bytes]:
        """Take all results of a job away.

        Parameters
        ----------
        uuid : str
            The job.

        Returns
        -------
        list of bytes
            In order; they are no longer stored.
        """

        def work() -> list[bytes]:
            with _Transaction(self._database):
                rows = self._database.execute(
                    "SELECT number, item FROM results JOIN jobs USING (uuid) "
                    "WHERE uuid = ? AND number > gone ORDER BY number",
                    (uuid,),
                ).fetchall()
                if rows:
                    self._take(uuid, rows[-1][0])
            if rows:
                self.bytes_used = self._measure()
            return [row[1] for row in rows]

        return await self._run(work)

    async def read(self, uuid: str, *, ack: int, limit: int) -> tuple[int, list[tuple[int, bytes]]]:
        """Forget what has arrived and return what comes next.

        Parameters
        ----------
        uuid : str
            The job.
        ack : int
            The highest number that has arrived.
        limit : int
            How many to return at most.

        Returns
        -------
        tuple
            How many were forgotten, and the next results with their numbers.
        """

        def work() -> tuple[int, list[tuple[int, bytes]]]:
            with _Transaction(self._database):
                gone = self._take(uuid, ack)
                rows = self._database.execute(
                    "SELECT number, item FROM results JOIN jobs USING (uuid) "
                    "WHERE uuid = ? AND number > gone ORDER BY number LIMIT ?",
                    (uuid, limit),
                ).fetchall()
            if gone:
                self.bytes_used = self._measure()
            return gone, rows

        return await self._run(work)

    def _take(self, uuid: str, number: int) -> int:
        """Forget the results up to a number, or only note that they are gone; return how many those were."""
        found = self._database.execute("SELECT keeps, gone FROM jobs WHERE uuid = ?", (uuid,)).fetchone()
        keeps, gone = found or (0, 0)
        if number <= gone:
            return 0
        if not keeps:
            taken = self._database.execute(
                "DELETE FROM results WHERE uuid = ? AND number <= ?", (uuid, number)
            ).rowcount
            return int(taken)
        self._database.execute("UPDATE jobs SET gone = ? WHERE uuid = ?", (number, uuid))
        return number - int(gone)

    def stored(self, uuid: str, table: Literal["results", "detections"]) -> Iterator[bytes]:
        """Yield what is stored of a job, in order, a little at a time; for another thread than the store's.

        Parameters
        ----------
        uuid : str
            The job; one that keeps its results.
        table : {"results", "detections"}
            Its items, or what its tracker saw.

        Yields
        ------
        bytes
            One for each result.
        """
        column = "item" if table == "results" else "rows"
        query = f"SELECT number, {column} FROM {table} WHERE uuid = ? AND number > ? ORDER BY number LIMIT ?"  # noqa: S608 - our own two words
        last = 0
        while chunk := self._thread.submit(self._fetch, query, uuid, last, _CHUNK).result():
            yield from (data for _, data in chunk)
            last = chunk[-1][0]

    def _fetch(self, query: str, *values: str | int) -> list[tuple[int, bytes]]:
        """Return what a query finds."""
        return self._database.execute(query, values).fetchall()

    async def let_go(self, uuid: str) -> None:
        """Forget what a job kept beyond its time: taken results, and all detections."""

        def work() -> None:
            with _Transaction(self._database):
                self._database.execute("UPDATE jobs SET keeps = 0 WHERE uuid = ?", (uuid,))
                self._database.execute("DELETE FROM detections WHERE uuid = ?", (uuid,))
                self._database.execute(
                    "DELETE FROM results WHERE uuid = ? AND number <= (SELECT gone FROM jobs WHERE uuid = ?)",
                    (uuid, uuid),
                )
            self.bytes_used = self._measure()

        await self._run(work)

    async def remove(self, uuid: str) -> None:
        """Forget a job, its results and its uploads.

        Parameters
        ----------
        uuid : str
            The job.
        """

        def work() -> None:
            with _Transaction(self._database):
                for table in ("results", "detections", "jobs"):
                    self._database.execute(f"DELETE FROM {table} WHERE uuid = ?", (uuid,))  # noqa: S608 - ours
            self.bytes_used = self._measure()
            for place in (self.uploads, self.finals):
                (place / uuid).unlink(missing_ok=True)

        await self._run(work)

    async def discard(self, uuid: str) -> None:
        """Remove the upload of a job that has ended.

        Parameters
        ----------
        uuid : str
            The job; one whose upload is gone already is no error.
        """
        await self._run(lambda: (self.uploads / uuid).unlink(missing_ok=True))

    def _measure(self) -> int:
        """Return the bytes of the database in use."""
        page, count, free = (
            int(self._database.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_size", "page_count", "freelist_count")
        )
        return page * (count - free)

    async def _run(self, work: Callable[[], Returned]) -> Returned:
        """Run something in the store's own thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


class _Transaction:
    """``BEGIN`` ... ``COMMIT``, or ``ROLLBACK``."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        """Begin."""
        self._database.execute("BEGIN")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Commit, or take back after an exception, also one of the commit itself."""
        try:
            if kind is None:
                self._database.execute("COMMIT")
        finally:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
