"""What has arrived, on disk, so that a run that was killed goes on where it was.

A journal is one SQLite file: an outcome is either wholly in it or not at all, whenever the process is killed,
and one of ten thousand is found without reading the others. A file of JSON lines would have to be read whole,
and mended at its end, before the first lookup.

Invariants: an outcome is kept before the caller sees it. Nothing is kept that failed: it is tried again. What
is kept is known by its input (`inputs.identity`), never by its name alone. The files that the run writes are
known, too: only these may be gone on with. A journal belongs to one model and
one set of settings, known by their digests: no URL, token or setting is in it. Which those are is written
with the first outcome, and so is what ``restart`` forgets: a run that gets nowhere changes nothing. One run
at a time holds it, by SQLite's own lock, which the system lets go of when a process dies.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike, fspath
from os.path import realpath
from pathlib import Path

from predsession.errors import DiskError, JournalError
from predsession.prediction import Prediction
from predsession.wire.jsontypes import JSON, JSONObject, as_object

APPLICATION = 0x70726A31
"""Marks the file as ours: the letters ``prj1``."""
_LEFT_OUT = ("index", "source", "name", "path", "url", "class_info")
_TABLES = """
CREATE TABLE IF NOT EXISTS run (name TEXT PRIMARY KEY, digest TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS outcomes (key TEXT PRIMARY KEY, item TEXT NOT NULL);
"""

_held: dict[Path, Journal] = {}
"""The journals that sessions of this process hold."""
_guard = threading.Lock()


def _range(prefix: str) -> tuple[str, str]:
    """Return the bounds of what begins so and goes on with a slash: the character after it is 0."""
    return f"{prefix}/", f"{prefix}0"


def digest(value: JSON) -> str:
    """Return a short digest of a JSON value, the same for 1 and 1.0, and whatever the order of its keys."""
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _file_name(path: str | PathLike[str]) -> str:
    """Return what a file is noted under, by whichever links it is named."""
    try:
        place = realpath(fspath(path))
    except (OSError, ValueError):  # a name that no file can have, which its writer tells
        place = str(path)
    return f"file: {digest(str(place))}"


def _plain(value: JSON) -> JSON:
    """Return a value in the form in which equal ones look the same."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


class Journal:
    """Keeps the outcomes of a run under the keys of its inputs.

    Parameters
    ----------
    path : str or PathLike
        The file; made where there is none.
    replay : bool
        Whether kept outcomes are handed to the caller again; else they are left out.
    restart : bool
        Whether what is in the file counts no longer, and goes when the first outcome comes.

    Raises
    ------
    JournalError
        If another run holds it, it is damaged, or the file is something else.
    """

    def __init__(self, path: str | PathLike[str], *, replay: bool = True, restart: bool = False) -> None:
        if not isinstance(path, str | PathLike):
            raise TypeError(f"resume must be the path of a journal, not {path!r}")
        self.path: Path = Path(fspath(path)).expanduser().absolute()
        self.replay = replay
        self._anew = restart
        self._facts: dict[str, str] = {}
        self._lock = threading.RLock()
        self._closed = False
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                self.path, timeout=0.0, isolation_level=None, check_same_thread=False
            )
            try:
                self._open()
            except BaseException:
                self._database.close()
                raise

    def _open(self) -> None:
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
        with self._transaction():
            run(f"PRAGMA application_id = {APPLICATION}")
            for statement in _TABLES.strip().split("\n"):
                run(statement)
            empty = not run("SELECT count(*) FROM outcomes").fetchone()[0]
        self._anew = self._anew or empty
        with _guard:
            _held[self.path] = self

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, whenever the process is killed."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._database.in_transaction:  # a full disk takes it back by itself
                self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn the database's errors into ours, which name the file and say what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise self._in_use() from None
            if "full" in str(error) or "disk I/O" in str(error):
                raise DiskError(
                    f"{self.path} cannot be written to: {error}; make room, and run it again"
                ) from error
            raise JournalError(f"{self.path} cannot be read or written: {error}") from error
        except sqlite3.ProgrammingError as error:
            raise JournalError(f"{self.path} is closed, as its session is ({error})") from error
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from error
        except OSError as error:
            raise JournalError(f"{self.path} cannot be opened: {error.strerror or error}") from error

    def _damaged(self, error: Exception) -> JournalError:
        """Make the error for a file that cannot be understood."""
        return JournalError(
            f"{self.path} is no journal, or damaged ({error}): delete it to begin anew, or pass another"
        )

    def _in_use(self) -> JournalError:
        """Make the error for a journal that somebody else holds."""
        with _guard:
            ours = self.path in _held
        if ours:
            return JournalError(
                f"{self.path} is in use by another session of this process: close it first (session.close())"
            )
        return JournalError(f"{self.path} is in use by another run: wait for it, or pass another path")

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
        self._facts.update(wanted)
        if self._anew:
            return
        with self._lock, self._explained():
            rows = self._database.execute("SELECT name, digest FROM run").fetchall()
        known = {name: text for name, text in rows if name.startswith(f"{what}: ")}
        names = sorted(name for name in {*known, *wanted} if known.get(name) != wanted.get(name))
        if names:
            listed = ", ".join(name.partition(": ")[2] for name in names)
            raise JournalError(
                f"{self.path} belongs to a run with other {what} ({listed}): pass restart=True (--restart) "
                "to begin anew, or another path"
            )

    def note_file(self, path: str | PathLike[str]) -> None:
        """Note that a file is written by this run: when it comes again, it goes on with it."""
        name = _file_name(path)
        self._facts[name] = ""
        with self._lock, self._explained():
            if not self._anew and not self._closed:
                self._database.execute("INSERT OR REPLACE INTO run VALUES (?, '')", (name,))

    def knows_file(self, path: str | PathLike[str]) -> bool:
        """Whether a file was written by this run, before it was broken off."""
        with self._lock, self._explained():
            found = self._database.execute("SELECT 1 FROM run WHERE name = ?", (_file_name(path),))
            return found.fetchone() is not None

    def find(self, key: str) -> JSONObject | None:
        """Return what is kept under a key, as a result item; None if nothing is."""
        if self._anew:
            return None
        with self._lock, self._explained():
            row = self._database.execute("SELECT item FROM outcomes WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            return as_object(json.loads(row[0]))
        except ValueError as error:
            raise self._damaged(error) from error

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
            if self._closed:
                return
            with self._transaction():
                if self._anew:
                    self._begin()
                self._database.execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?)", (key, text))
            self._anew = False

    def _begin(self) -> None:
        """Forget what was there, and write down whose it is now."""
        for table in ("run", "outcomes"):
            self._database.execute(f"DELETE FROM {table}")  # noqa: S608 - the two names above
        self._database.executemany("INSERT INTO run VALUES (?, ?)", self._facts.items())

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
        with _guard:
            if _held.get(self.path) is self:
                del _held[self.path]

    def __repr__(self) -> str:
        return f"<Journal {self.path}>"
