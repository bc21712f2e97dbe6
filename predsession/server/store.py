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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, TypeVar

from predsession.errors import PredSessionError
from predsession.server.store_rows import SCHEMA, VERSION, JobRow, Progress
from predsession.wire.jsontypes import JSONObject

Returned = TypeVar("Returned")
_CHUNK = 256


class StoreVersionError(PredSessionError):
    """The folder holds a database of another version of this server."""


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
        if found not in {0, VERSION}:
            self._database.close()
            raise StoreVersionError(f"{folder} was written by another version; choose another with --data")
        self._database.executescript(SCHEMA)
        self._database.execute(f"PRAGMA user_version={VERSION}")
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
                    done = part.first + len(part.items) - 1
                    known = self._database.execute(
                        "UPDATE jobs SET done = ?, state = ? WHERE uuid = ?",
                        (done, json.dumps(part.state), part.uuid),
                    ).rowcount
                    if not known:
                        continue  # it was removed meanwhile
                    for table, values in (("results", part.items), ("detections", part.rows)):
                        rows = [(part.uuid, part.first + place, value) for place, value in enumerate(values)]
                        insert = f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)"  # noqa: S608 - ours
                        self._database.executemany(insert, rows)
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

    async def mark(self, uuid: str, *words: Literal["stopped", "cleared"]) -> None:
        """Note in a job's state that these are true; nothing else of it changes, whatever is stored beside.

        Parameters
        ----------
        uuid : str
            The job.
        *words : {"stopped", "cleared"}
            What a caller asked for.
        """

        def work() -> None:
            with _Transaction(self._database):
                for word in words:
                    self._database.execute(
                        "UPDATE jobs SET state = json_set(state, ?, json('true')) WHERE uuid = ?",
                        (f"$.{word}", uuid),
                    )

        await self._run(work)

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

    async def read(
        self, uuid: str, *, ack: int, after: int, limit: int
    ) -> tuple[int, list[tuple[int, bytes]]]:
        """Forget what has arrived and return what comes next.

        Parameters
        ----------
        uuid : str
            The job.
        ack : int
            The highest number that may be forgotten.
        after : int
            The number after which the answer begins.
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
                    "WHERE uuid = ? AND number > max(gone, ?) ORDER BY number LIMIT ?",
                    (uuid, after, limit),
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
