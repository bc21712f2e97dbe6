"""How much the server may keep, and the refusal when that is reached, before the disk is full."""

from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from predsession.server.config import Limits
from predsession.server.refusal import Refusal, explained
from predsession.wire.jsontypes import JSON

RETRY_S, BUSY_S = 30, 2
_log = logging.getLogger("predsession.server")


def no_room(error: Exception) -> JSON:
    """Log that an upload could not be written, and return what its sender is told."""
    _log.error("an upload cannot be stored: %s", error)
    return explained("The upload cannot be stored; try again later.")


def not_stored(error: sqlite3.Error) -> Refusal:
    """Return what a caller is told whose call the database refused.

    Parameters
    ----------
    error : sqlite3.Error
        As it was raised.

    Returns
    -------
    Refusal
        503 where it is busy, 507 else.
    """
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        _log.error("the database is busy: %s", error)
        return Refusal(503, explained("The server's database is busy; try again."), retry_after=BUSY_S)
    return Refusal(507, no_room(error), retry_after=RETRY_S)


class Disk:
    """The server's share of a disk.

    Parameters
    ----------
    folder : Path
        On the disk.
    limits : Limits
        The share, and what must stay free.
    used : callable
        Returns the bytes that are kept now.
    """

    def __init__(self, folder: Path, limits: Limits, used: Callable[[], int]) -> None:
        self._folder = folder
        self._limits = limits
        self._used = used
        self._incoming = 0

    def room(self) -> int:
        """Return how many bytes may still come."""
        share = self._limits.disk - self._used()
        free = shutil.disk_usage(self._folder).free - self._limits.free
        return int(min(share, free)) - self._incoming

    @contextlib.contextmanager
    def reserve(self, size: int) -> Iterator[Callable[[int], None]]:
        """Set room aside for an upload as it comes: one that stalls keeps nobody else out.

        Parameters
        ----------
        size : int
            Bytes that were announced, for which there must be room now; 0 where nobody knows.

        Yields
        ------
        callable
            To be called with the bytes that have come so far.

        Raises
        ------
        Refusal
            With status 507, if there is no room for it.
        """
        kept = 0
        self._check(max(size, 1))

        def keep(total: int) -> None:
            nonlocal kept
            if total > kept:
                self._check(total - kept)
                self._incoming += total - kept
                kept = total

        try:
            yield keep
        finally:
            self._incoming -= kept

    def _check(self, size: int) -> None:
        """Refuse what there is no room for."""
        if size > self.room():
            text = "The server's disk is full, or its share of it; try again later."
            raise Refusal(507, explained(text), retry_after=RETRY_S)
