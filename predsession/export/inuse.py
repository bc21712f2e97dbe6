"""Files and folders that this process uses, known by device and inode, whatever they are called."""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path

Key = tuple[int, int]


def key_of(path: Path) -> Key | None:
    """Return what a file or folder is known by.

    Parameters
    ----------
    path : Path
        Which.

    Returns
    -------
    tuple of int or None
        Device and inode; None where it is not there, or cannot be looked at.
    """
    try:
        place = path.stat()
    except (OSError, ValueError):  # not there, or a name that no file can have
        return None
    return place.st_dev, place.st_ino


class InUse:
    """Counts users of files and folders, on any thread.

    Parameters
    ----------
    in_forks : bool
        Whether a fork uses what its parent does.
    """

    def __init__(self, *, in_forks: bool) -> None:
        self._in_forks = in_forks
        self._guard = threading.Lock()
        self._counts: Counter[Key] = Counter()
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        """Begin anew: whoever holds the guard is not in the fork."""
        self._guard = threading.Lock()
        if not self._in_forks:
            self._counts.clear()

    def add(self, key: Key, count: int) -> None:
        """Count one user more, or one less.

        Parameters
        ----------
        key : tuple of int
            Of `key_of`.
        count : int
            1 or -1.
        """
        with self._guard:
            self._counts[key] += count
            if not self._counts[key]:
                del self._counts[key]

    def has(self, path: Path) -> bool:
        """Return whether a file or folder has a user.

        Parameters
        ----------
        path : Path
            Which.

        Returns
        -------
        bool
            False also where there is none.
        """
        key = key_of(path)
        with self._guard:
            return key is not None and self._counts[key] > 0
