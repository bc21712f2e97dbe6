"""Files and folders that this process uses, known by device and inode, whatever they are called.

Invariant: there is no lock. A reader that was left ends when the garbage collector comes to it, which may be
within any line of this file, on a thread that is in it: each change is one step of a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable
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


def keys_around(path: Path) -> frozenset[Key]:
    """Return what a file or folder, and all folders that it lies in, are known by.

    Parameters
    ----------
    path : Path
        Which; it need not be there.

    Returns
    -------
    frozenset of tuple
        Device and inode of each.
    """
    try:
        real = path.resolve()
    except (OSError, ValueError, RuntimeError):  # RuntimeError: a link to itself, before Python 3.13
        real = path.absolute()
    return frozenset(key for key in map(key_of, (real, *real.parents)) if key is not None)


class InUse:
    """Users of files and folders, on any thread."""

    def __init__(self) -> None:
        self._users: dict[object, frozenset[Key]] = {}

    def add(self, keys: Iterable[Key]) -> object:
        """Note a user.

        Parameters
        ----------
        keys : iterable of tuple
            What is used, by `key_of`.

        Returns
        -------
        object
            The user, for `remove`.
        """
        user = object()
        self._users[user] = frozenset(keys)
        return user

    def remove(self, user: object) -> None:
        """Forget a user.

        Parameters
        ----------
        user : object
            Of `add`; one that is forgotten already may be.
        """
        self._users.pop(user, None)

    def clear(self) -> None:
        """Forget all."""
        self._users.clear()

    def has(self, keys: Iterable[Key]) -> bool:
        """Return whether one of some files and folders has a user.

        Parameters
        ----------
        keys : iterable of tuple
            Which, by `key_of`.

        Returns
        -------
        bool
            False where there are none.
        """
        wanted = frozenset(keys)
        return any(not wanted.isdisjoint(used) for used in self._users.copy().values())
