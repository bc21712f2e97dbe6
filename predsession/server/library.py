"""A folder of pictures and videos whose every item has an id that stays: project > dataset > item.

The rule: the folders in the library are projects, the folders in those are datasets, and whatever lies deeper
belongs to the dataset above it. Files that lie directly in a project are its dataset ``.``; files that lie
directly in the library are the dataset ``.`` of the project ``.``. In a dataset's folder, ``img`` and
``video`` are no level of their own, and ``ann`` holds the annotations, as Supervisely lays a project out.

Ids are kept in a hidden file in the library itself, so that they go where it goes. A file that was moved
inside is known again by its content, and a folder that was renamed by the files in it.

Invariant: nothing outside the folder is ever opened. Links are not followed, and a path is looked at again
each time before it is used.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from predsession.errors import PredSessionError
from predsession.server.catalogue import SCHEMA, Update
from predsession.server.shelves import walk
from predsession.wire.jsontypes import JSON, JSONObject

Kind = Literal["image", "video"]
NAME = ".predsession-library.sqlite"
ANNOTATIONS = "ann"
_STALE_S = 2.0


class LibraryError(PredSessionError):
    """A folder cannot be a library; the message says why."""


@dataclass(frozen=True, slots=True)
class Record:
    """An item of the library.

    Parameters
    ----------
    id : int
        Its id.
    kind : {"image", "video"}
        What it is.
    path : str
        Below the library's folder, with slashes.
    dataset_id, project_id : int
        Where it belongs.
    dataset, project : str
        The names of those.
    """

    id: int
    kind: Kind
    path: str
    dataset_id: int
    project_id: int
    dataset: str
    project: str

    @property
    def name(self) -> str:
        """Its name in its dataset: the file's, with the folders between them."""
        return inside(self.path, self.dataset)

    def identity(self) -> dict[str, JSON]:
        """Return the keys by which its result is known."""
        known: dict[str, JSON] = {
            "name": self.name,
            "project_id": self.project_id,
            "dataset_id": self.dataset_id,
            f"{self.kind}_id": self.id,
        }
        if self.kind == "image":
            known["image_name"] = self.name  # said twice by a stock server; an older client reads the second
        return known


def inside(path: str, dataset: str) -> str:
    """Return an item's name in its dataset.

    Parameters
    ----------
    path : str
        The item's.
    dataset : str
        The dataset's folder.

    Returns
    -------
    str
        Without ``img`` or ``video`` in front.
    """
    rest = path if dataset == "." else path.removeprefix(dataset.removesuffix("/.") + "/")
    head, slash, tail = rest.partition("/")
    return tail if slash and head in {"img", "video"} else rest


class Library:
    """The folder and its ids; every method may be called from any thread.

    Parameters
    ----------
    root : Path
        The folder.

    Raises
    ------
    LibraryError
        If it is none, or its ids cannot be kept in it.
    """

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise LibraryError(f"there is no folder {root}")
        self.root = root.resolve()
        self._lock = threading.RLock()
        self._looked = 0.0
        try:
            self._database = sqlite3.connect(
                self.root / NAME, isolation_level=None, check_same_thread=False, timeout=30
            )
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.executescript(SCHEMA)
        except sqlite3.Error as error:
            text = f"the ids of {root} cannot be kept in {NAME} there: {error}; make the folder writable"
            raise LibraryError(text) from error

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._database.close()

    def refresh(self, *, now: bool = False) -> None:
        """Look through the folder again, unless that was done a moment ago.

        Parameters
        ----------
        now : bool
            Look in any case.
        """
        with self._lock:
            if not now and time.monotonic() - self._looked < _STALE_S:
                return
            found = list(walk(self.root))
            self._database.execute("BEGIN IMMEDIATE")
            try:
                Update(self._database, self.root).run(found)
                self._database.execute("COMMIT")
            finally:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
            self._looked = time.monotonic()

    def record(self, kind: Kind, number: int) -> Record | None:
        """Return an item by its id, None if there is none."""
        found = self._records("items.id = ? AND kind = ?", (number, kind))
        return found[0] if found else None

    def file(self, kind: Kind, number: int) -> Path | None:
        """Return where an item lies now, None if it does not, or no longer inside the library.

        Parameters
        ----------
        kind : {"image", "video"}
            What it is.
        number : int
            Its id.

        Returns
        -------
        Path or None
            A file.
        """
        for again in (False, True):
            if again:
                self.refresh()
            record = self.record(kind, number)
            path = None if record is None else self.safe(record.path)
            if path is not None:
                return path
        return None

    def safe(self, place: str) -> Path | None:
        """Return a file below the folder; None if it is none, or a link leads out on the way to it."""
        path = self.root / place
        # The database may be older than the disk: what was a file may have become a link meanwhile.
        return path if path.is_file() and path.resolve() == path else None

    def identity(self, number: int) -> JSONObject:
        """Return the keys by which the result of an image is known."""
        record = self.record("image", number)
        return {"image_id": number} if record is None else record.identity()

    def images(self, *, project: int, datasets: Sequence[int] | None = None) -> list[int]:
        """Return the ids of a project's images, or of some of its datasets', in natural order."""
        marks = ",".join("?" * len(datasets or ()))
        condition = "" if datasets is None else f" AND datasets.id IN ({marks})"
        with self._lock:
            rows = self._database.execute(
                "SELECT items.id FROM items JOIN datasets ON datasets.id = dataset_id "  # noqa: S608 - question marks
                f"WHERE kind = 'image' AND place > 0 AND project_id = ?{condition} ORDER BY place",
                (project, *(datasets or ())),
            )
            return [int(row[0]) for row in rows]

    def items(self, dataset: int, *, after: int, limit: int) -> list[Record]:
        """Return the items of a dataset in natural order, from the one after a place on."""
        return self._records(
            "datasets.id = ? AND place > 0 ORDER BY place LIMIT ? OFFSET ?", (dataset, limit, after)
        )

    def _records(self, condition: str, values: tuple[object, ...]) -> list[Record]:
        """Return the items that a condition is true of."""
        with self._lock:
            rows = self._database.execute(
                "SELECT items.id, kind, path, datasets.id, projects.id, datasets.folder, projects.folder "  # noqa: S608 - ours
                "FROM items JOIN datasets ON datasets.id = dataset_id "
                f"JOIN projects ON projects.id = project_id WHERE {condition}",
                values,
            ).fetchall()
        return [Record(*row) for row in rows]

    def projects(self) -> list[JSONObject]:
        """Return every project with its datasets, as the wire lists them."""
        with self._lock:
            rows = self._database.execute(
                "SELECT projects.id, projects.folder, datasets.id, datasets.folder, "
                "SUM(kind = 'image'), SUM(kind = 'video') "
                "FROM projects JOIN datasets ON project_id = projects.id "
                "JOIN items ON dataset_id = datasets.id AND place > 0 "
                "GROUP BY datasets.id ORDER BY projects.folder, MIN(place)"
            ).fetchall()
        projects: dict[int, dict[str, JSON]] = {}
        for project, folder, dataset, place, images, videos in rows:
            entry: dict[str, JSON] = {"id": dataset, "name": place.rsplit("/", 1)[-1], "project_id": project}
            entry.update(images_count=images, videos_count=videos)
            one = projects.setdefault(project, {"id": project, "name": folder, "datasets": []})
            datasets = one["datasets"]
            assert isinstance(datasets, list)
            datasets.append(entry)
        return list(projects.values())

    def annotation(self, record: Record) -> Path:
        """Return where the annotation of an item lies, or would."""
        folder = record.dataset.removesuffix("/.")
        base = self.root if folder == "." else self.root / folder
        return base / ANNOTATIONS / f"{record.name}.json"
