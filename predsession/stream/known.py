"""Which ids are stored already: quick, eight bytes each, and sure only when it says no."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

_RECENT = 1 << 16


class Known:
    """Remembers ids by their hash values, which are this process's own."""

    def __init__(self) -> None:
        self._old: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._recent: set[int] = set()

    def add(self, ids: Iterable[str]) -> None:
        """Remember ids.

        Parameters
        ----------
        ids : iterable of str
            Any number of them.
        """
        self._recent.update(map(hash, ids))
        if len(self._recent) > _RECENT:
            recent = np.fromiter(self._recent, np.int64, len(self._recent))
            self._old = np.union1d(self._old, recent)
            self._recent.clear()

    def perhaps(self, ids: Sequence[str]) -> list[str]:
        """Return those that may be among what was remembered; all others are not.

        Parameters
        ----------
        ids : sequence of str
            To be looked at.

        Returns
        -------
        list of str
            In order.
        """
        hashes = np.fromiter(map(hash, ids), np.int64, len(ids))
        found = np.zeros(len(ids), np.bool_)
        if self._old.size:
            places = np.minimum(np.searchsorted(self._old, hashes), self._old.size - 1)
            found = self._old[places] == hashes
        if self._recent:
            recent = self._recent
            found |= np.fromiter((each in recent for each in hashes.tolist()), np.bool_, len(ids))
        return [ids[place] for place in np.flatnonzero(found).tolist()]
