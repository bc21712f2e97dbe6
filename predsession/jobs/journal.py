"""What has arrived, on disk, so that a run that was killed goes on where it was.

A journal is one SQLite file: an outcome is either wholly in it or not at all, whenever the process is killed,
and one of ten thousand is found without reading the others. A file of JSON lines would have to be read whole,
and mended at its end, before the first lookup.

Invariants: an outcome is kept before the caller sees it. Nothing is kept that failed: it is tried again. What
is kept is known by its input (`inputs.identity`), never by its name alone. A journal belongs to one model and
one set of settings, known by their digests: no URL, token or setting is in it. One run at a time holds it, by
SQLite's own lock, which the system lets go of when a process dies.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path

from predsession.errors import JournalError
from predsession.prediction import Prediction
from predsession.wire.jsontypes import JSON, JSONObject, as_object

APPLICATION = 0x70726A31
"""Marks the file as ours: the letters ``prj1``."""
_LEFT_OUT = ("index", "source", "name", "path", "url", "class_info")
_TABLES = """
CREATE TABLE IF NOT EXISTS run (name TEXT PRIMARY KEY, digest TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS outcomes (key TEXT PRIMARY KEY, item TEXT NOT NULL);
"""


def _range(prefix: str) -> tuple[str, str]:
    """Return the bounds of what begins so and goes on with a slash: the character after it is 0."""
    return f"{prefix}/", f"{prefix}0"


def digest(value: JSON) -> str:
    """Return a short digest of a JSON value, the same whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class Journal:
    """Keeps the outcomes of a run under the keys of its inputs.

    Parameters
    ----------
    path : str or PathLike
        The file; made where there is none.
    replay : bool
        Whether kept outcomes are handed to the caller again; else they are left out.
    restart : bool
        Whether what is in the file is forgotten.

    Raises
    ------
    JournalError
        If another run holds it, it is damaged, or the file is something else.
    """

    def __init__(self, path: str | PathLike[str], *, replay: bool = True, restart: bool = False) -> None:
        self.path = Path(fspath(path))
        self.replay = replay
        self.kept = 0
        """How many outcomes were found in it and used."""
        self._lock = threading.RLock()
        self._closed = False
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                self.path, timeout=0.0, isolation_level=None, check_same_thread=False
            )
            try:
                self._open(restart=restart)
            except BaseException:
                self._database.close()
                raise

    def _open(self, *, restart: bool) -> None:
        """Take hold of the file, and make its tables."""
        run = self._database.execute
        # In this mode the first write takes a lock that is kept until the file is closed.
        run("PRAGMA locking_mode = EXCLUSIVE")
        fresh = not run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not fresh and run("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise JournalError(f"{self.path} is another program's database: pass another path")
        # Write-ahead, without waiting for the disk each time: a killed process loses nothing, a power cut at
        # most the last moments.
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        run("BEGIN IMMEDIATE")
        run(f"PRAGMA application_id = {APPLICATION}")
        for statement in _TABLES.strip().split("\n"):
            run(statement)
        if restart:
            run("DELETE FROM run")
            run("DELETE FROM outcomes")
        run("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn the database's errors into ours, which name the file and say what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise JournalError(
                    f"{self.path} is in use by another run: wait for it, or pass another path"
                ) from None
            raise JournalError(f"{self.path} cannot be written to: {error}") from error
        except sqlite3.DatabaseError as error:
            raise JournalError(
                f"{self.path} is no journal, or damaged ({error}): delete it to begin anew, or pass another"
            ) from error
        except OSError as error:
            raise JournalError(f"{self.path} cannot be opened: {error.strerror or error}") from error

    def bind(self, facts: Mapping[str, JSON], what: str) -> None:
        """Make sure that the run goes on as it began.

        Parameters
        ----------
        facts : mapping
            Name to value; what is bound first counts from then on.
        what : str
            What they are, for the message: ``settings``, ``model``.

        Raises
        ------
        JournalError
            If the journal was made with others; names those that differ.
        """
        wanted = {f"{what}: {name}": digest(value) for name, value in facts.items()}
        with self._lock, self._explained():
            found = self._database.execute("SELECT name, digest FROM run WHERE name LIKE ?", (f"{what}: %",))
            known = dict(found.fetchall())
            if not known:
                rows = [(f"{what}: ", ""), *wanted.items()]
                self._database.executemany("INSERT INTO run VALUES (?, ?)", rows)
                return
        del known[f"{what}: "]
        names = sorted({*known, *wanted} - {name for name in wanted if known.get(name) == wanted[name]})
        if names:
            listed = ", ".join(name.partition(": ")[2] for name in names)
            raise JournalError(
                f"{self.path} belongs to a run with another {what} ({listed}): pass restart=True (--restart) "
                "to begin anew, or another path"
            )

    def find(self, key: str) -> JSONObject | None:
        """Return what is kept under a key, as a result item; None if nothing is."""
        with self._lock, self._explained():
            row = self._database.execute("SELECT item FROM outcomes WHERE key = ?", (key,)).fetchone()
        return None if row is None else as_object(json.loads(row[0]))

    def below(self, prefix: str) -> Iterator[str]:
        """Yield the keys that begin so and go on with a slash, without the beginning."""
        with self._lock, self._explained():
            rows = self._database.execute(
                "SELECT key FROM outcomes WHERE key > ? AND key < ?", _range(prefix)
            ).fetchall()
        for (key,) in rows:
            yield key[len(prefix) + 1 :]

    def keep(self, key: str, prediction: Prediction) -> None:
        """Keep a prediction, without what its input says of itself."""
        item = {name: value for name, value in prediction.to_json().items() if name not in _LEFT_OUT}
        self.keep_item(key, item)

    def keep_item(self, key: str, item: JSONObject) -> None:
        """Keep a JSON object."""
        text = json.dumps(item, separators=(",", ":"))
        with self._lock, self._explained():
            if not self._closed:
                self._database.execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?)", (key, text))

    def forget(self, prefix: str) -> None:
        """Forget all that `below` returns."""
        with self._lock, self._explained():
            self._database.execute(
                "DELETE FROM outcomes WHERE key > ? AND key < ?", (f"{prefix}/", f"{prefix}0")
            )

    def close(self) -> None:
        """Let go of the file. Idempotent."""
        with self._lock:
            self._closed = True
            self._database.close()

    def __repr__(self) -> str:
        return f"<Journal {self.path}>"
