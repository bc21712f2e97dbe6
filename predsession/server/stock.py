"""The cache of a stock server, imitated because clients must live with it.

Uploads are looked up by file NAME, in one cache for all clients, which holds 256: two files of one name
overwrite each other, also across jobs, and what has been pushed out is a `KeyError` when its turn comes.
"""

from __future__ import annotations

from collections import OrderedDict

from predsession.server.slices import Slice

CAPACITY = 256


class NameCache:
    """Names to uploaded files, the least recently used go first."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._pictures: OrderedDict[str, Slice] = OrderedDict()

    def put(self, name: str, picture: Slice) -> None:
        """Remember a file; one of the same name is replaced."""
        self._pictures[name] = picture
        self._pictures.move_to_end(name)
        while len(self._pictures) > self._capacity:
            self._pictures.popitem(last=False)

    def get(self, name: str) -> Slice:
        """Return the file that a name means now.

        Parameters
        ----------
        name : str
            An upload's name.

        Returns
        -------
        Slice
            Where it lies.

        Raises
        ------
        KeyError
            If it was pushed out.
        """
        self._pictures.move_to_end(name)
        return self._pictures[name]
