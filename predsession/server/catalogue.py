"""A library's ids, brought up to what lies in its folder.

A file is known by its place, as long as it is the same file there. Another, or one at a new place, that has
the content of one that is gone was moved: of several such, the one with the same number on the disk, else the
one with the same name. A folder whose files were moved to another, and which is gone itself, was renamed:
most of its files say to what.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from predsession.server.shelves import Found

SCHEMA = """
CREATE TABLE IF NOT EXISTS projects (id INTEGER PRIMARY KEY AUTOINCREMENT, folder TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS datasets (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL,
    folder TEXT NOT NULL UNIQUE
);
CREATE TABLE IF NOT EXISTS items (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    dataset_id INTEGER NOT NULL,
    path TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    fingerprint BLOB NOT NULL,
    place INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS by_fingerprint ON items (fingerprint);
CREATE INDEX IF NOT EXISTS by_dataset ON items (dataset_id, place);
"""


class _Gone(NamedTuple):
    """An item whose file is not where it was."""

    id: int
    path: str
    inode: int
    dataset: int


_LIKENESS: Sequence[Callable[[Found, _Gone], bool]] = (
    lambda found, gone: found.inode == gone.inode,
    lambda found, gone: found.path.rsplit("/", 1)[-1] == gone.path.rsplit("/", 1)[-1],
    lambda found, gone: True,  # noqa: ARG005 - their content is the same already
)
"""What makes a file the one that is gone, the surest sign first."""


class Update:
    """Brings the database to what was found, within a transaction.

    Parameters
    ----------
    database : sqlite3.Connection
        With `SCHEMA`.
    root : Path
        The library's folder.
    """

    def __init__(self, database: sqlite3.Connection, root: Path) -> None:
        self._database = database
        self._root = root
        self._folders: dict[tuple[str, str], int] = {}

    def run(self, found: Sequence[Found]) -> None:
        """Know every file, those that were moved too, and note the order.

        Parameters
        ----------
        found : sequence of Found
            Everything in the folder.
        """
        execute = self._database.execute
        known = {row[0]: row[1:] for row in execute("SELECT path, id, size, changed, inode FROM items")}
        execute("UPDATE items SET place = 0")
        places = {one.path: place for place, one in enumerate(found, start=1)}
        staying: set[str] = set()
        others: list[tuple[Found, bytes]] = []
        for one in found:
            number, size, changed, inode = known.get(one.path, (0, 0, 0, 0))
            if number and (size, changed) == (one.size, one.changed):
                execute("UPDATE items SET place = ? WHERE id = ?", (places[one.path], number))
                staying.add(one.path)
            elif number and inode == one.inode:
                self._move(number, one, one.fingerprint(self._root), places[one.path])
                staying.add(one.path)
            else:
                others.append((one, one.fingerprint(self._root)))
        self._settle(others, self._moved(others, staying), places)

    def _settle(
        self, others: Sequence[tuple[Found, bytes]], moved: Mapping[str, _Gone], places: Mapping[str, int]
    ) -> None:
        """Know the files that are not where, or not what, they were."""
        self._rename_folders([(one, moved[one.path].dataset) for one, _ in others if one.path in moved])
        # Two files may have changed places, so every place is given up before one is taken.
        taken = [(one.path,) for one, _ in others] + [(gone.path,) for gone in moved.values()]
        self._database.executemany("UPDATE items SET path = '/' || id WHERE path = ?", taken)
        for one, fingerprint in others:
            if one.path in moved:
                self._move(moved[one.path].id, one, fingerprint, places[one.path])
            else:
                self._add(one, fingerprint, places[one.path])

    def _moved(self, others: Sequence[tuple[Found, bytes]], staying: set[str]) -> Mapping[str, _Gone]:
        """Return for each file that is new at its place the item that it was, if it was one."""
        gone: dict[tuple[str, bytes], list[_Gone]] = {}
        for kind, content, *rest in self._database.execute(
            "SELECT kind, fingerprint, id, path, inode, dataset_id FROM items ORDER BY id"
        ):
            if rest[1] not in staying:
                gone.setdefault((kind, content), []).append(_Gone(*rest))
        moved: dict[str, _Gone] = {}
        for is_like in _LIKENESS:
            for one, fingerprint in others:
                candidates = gone.get((one.kind, fingerprint), [])
                match = next((each for each in candidates if is_like(one, each)), None)
                if one.path not in moved and match is not None:
                    moved[one.path] = match
                    candidates.remove(match)
        left = {each.path: each for candidates in gone.values() for each in candidates}
        # What replaced a file, as many programs save, and is no other, is that file.
        replaced = {one.path: left[one.path] for one, _ in others if one.path in left}
        return {**replaced, **moved}

    def _rename_folders(self, moves: Sequence[tuple[Found, int]]) -> None:
        """Give folders their new names, where most of their files say so."""
        parents = dict(self._database.execute("SELECT id, project_id FROM datasets"))
        self._rename("datasets", Counter((dataset, one.dataset) for one, dataset in moves))
        self._rename("projects", Counter((parents[dataset], one.project) for one, dataset in moves))

    def _rename(self, table: str, votes: Counter[tuple[int, str]]) -> None:
        """Rename in one table, by the votes for old and new."""
        folders: dict[int, str] = dict(self._database.execute(f"SELECT id, folder FROM {table}"))  # noqa: S608 - ours
        taken = set(folders.values())
        for (number, name), _ in votes.most_common():
            old = folders.pop(number, None)
            if old is None:
                continue
            if name in taken or (self._root / old).is_dir():
                folders[number] = old
                continue
            taken.add(name)
            self._database.execute(f"UPDATE {table} SET folder = ? WHERE id = ?", (name, number))  # noqa: S608 - ours

    def _add(self, one: Found, fingerprint: bytes, place: int) -> None:
        """Know a new file."""
        values = (self._dataset(one), one.path, one.size, one.changed, one.inode, fingerprint, place)
        self._database.execute(
            "INSERT INTO items (kind, dataset_id, path, size, changed, inode, fingerprint, place) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (one.kind, *values),
        )

    def _move(self, number: int, one: Found, fingerprint: bytes, place: int) -> None:
        """Note where a known file lies now, and what it is."""
        values = (self._dataset(one), one.path, one.size, one.changed, one.inode, fingerprint, place)
        self._database.execute(
            "UPDATE items SET dataset_id = ?, path = ?, size = ?, changed = ?, inode = ?, fingerprint = ?, "
            "place = ? WHERE id = ?",
            (*values, number),
        )

    def _dataset(self, one: Found) -> int:
        """Return the id of a file's dataset, in its project."""
        project = self._folder("projects", one.project, "INSERT INTO projects (folder) VALUES (?)", ())
        insert = "INSERT INTO datasets (folder, project_id) VALUES (?, ?)"
        number = self._folder("datasets", one.dataset, insert, (project,))
        self._database.execute("UPDATE datasets SET project_id = ? WHERE id = ?", (project, number))
        return number

    def _folder(self, table: str, folder: str, insert: str, more: tuple[int, ...]) -> int:
        """Return the id of a folder; make one if there is none."""
        key = (table, folder)
        if key not in self._folders:
            row = self._database.execute(f"SELECT id FROM {table} WHERE folder = ?", (folder,)).fetchone()  # noqa: S608 - ours
            if row is None:
                self._folders[key] = int(self._database.execute(insert, (folder, *more)).lastrowid or 0)
            else:
                self._folders[key] = int(row[0])
        return self._folders[key]
