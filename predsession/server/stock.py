"""The cache of a stock server, imitated because clients must live with it.

Uploads are looked up by file NAME, in one cache for all clients, which holds 256: two files of one name
overwrite each other, also across jobs, and what has been pushed out is a `KeyError` when its turn comes.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

CAPACITY = 256


class NameCache:
    """Names to uploaded files, the least recently used go first."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._paths: OrderedDict[str, Path] = OrderedDict()

    def put(self, name: str, path: Path) -> None:
        """Remember a file; one of the same name is replaced."""
        self._paths[name] = path
        self._paths.move_to_end(name)
        while len(self._paths) > self._capacity:
            self._paths.popitem(last=False)

    def get(self, name: str) -> Path:
        """Return the file that a name means now.

        Parameters
        ----------
        name : str
            An upload's name.

        Returns
        -------
        Path
            Where it is.

        Raises
        ------
        KeyError
            If it was pushed out.
        """
        self._paths.move_to_end(name)
        return self._paths[name]
