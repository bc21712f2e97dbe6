"""What a session keeps, by key, and the order of calls that share a key: writers alone, readers together.

Calls may be on their way at the same time, and a server may take them in any order. So one that reads a key
waits until the one that writes it has its answer, and one that writes waits for those that read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

from predsession.errors import RequestTimeoutError
from predsession.tensor.plan import Kept

Stamp = tuple[int, int]


@dataclass(slots=True)
class Entry:
    """A key, and what is known of it.

    Parameters
    ----------
    kept : Kept or None
        None while it has nothing.
    stamp : tuple of int or None
        Of the `HTensor` whose data it is.
    digest : bytes
        Of those bytes; empty where they were never here.
    """

    kept: Kept | None = None
    stamp: Stamp | None = None
    digest: bytes = b""
    writer: Future[None] | None = None
    readers: set[Future[None]] = field(default_factory=set)


class Table:
    """Every key of a session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}

    def known(self) -> Mapping[str, Kept]:
        """Return what is kept, by key."""
        with self._lock:
            return {key: entry.kept for key, entry in self._entries.items() if entry.kept is not None}

    def enter(self, reads: Iterable[str], writes: Iterable[str], *, seconds: float) -> Future[None]:
        """Wait for a call's turn.

        Parameters
        ----------
        reads, writes : iterable of str
            Its keys.
        seconds : float
            How long at most.

        Returns
        -------
        Future
            To be handed to `leave`.

        Raises
        ------
        RequestTimeoutError
            If its turn did not come.
        """
        reading, writing = set(reads), set(writes)
        turn: Future[None] = Future()
        ends = time.monotonic() + seconds
        while True:
            with self._lock:
                before = self._before(reading, writing)
                if not before:
                    self._note(turn, reading, writing)
                    return turn
            if wait(before, max(0.0, ends - time.monotonic())).not_done:
                keys = ", ".join(sorted(reading | writing))
                raise RequestTimeoutError(f"the calls before this one have {keys} in use for {seconds:g} s")

    def _before(self, reading: set[str], writing: set[str]) -> set[Future[None]]:
        """Return the calls that go first."""
        before: set[Future[None]] = set()
        for key in reading | writing:
            entry = self._entries.setdefault(key, Entry())
            if entry.writer is not None:
                before.add(entry.writer)
            if key in writing:
                before |= entry.readers
        return before

    def _note(self, turn: Future[None], reading: set[str], writing: set[str]) -> None:
        """Take down who uses what."""
        for key in writing:
            self._entries[key].writer = turn
        for key in reading - writing:
            self._entries[key].readers.add(turn)

    def leave(self, turn: Future[None]) -> None:
        """Let the next call have its turn.

        Parameters
        ----------
        turn : Future
            From `enter`.
        """
        with self._lock:
            for key, entry in list(self._entries.items()):
                if entry.writer is turn:
                    entry.writer = None
                entry.readers.discard(turn)
                if entry.kept is None and entry.writer is None and not entry.readers:
                    del self._entries[key]
        if not turn.done():
            turn.set_result(None)

    def stamp(self, key: str) -> Stamp | None:
        """Return whose data a key has; None for nobody's.

        Parameters
        ----------
        key : str
            Any.

        Returns
        -------
        tuple of int or None
            The stamp of an `HTensor`.
        """
        with self._lock:
            entry = self._entries.get(key)
            return None if entry is None else entry.stamp

    def look(self, key: str) -> Entry:
        """Return what is known of a key that the caller has in use."""
        return self._entries[key]

    def put(self, key: str, kept: Kept, stamp: Stamp | None, digest: bytes = b"") -> None:
        """Take down what a key has become.

        Parameters
        ----------
        key : str
            One that the caller writes.
        kept : Kept
            What it is.
        stamp : tuple of int or None
            Of the `HTensor` whose data it is.
        digest : bytes
            Of its bytes.
        """
        with self._lock:
            entry = self._entries.setdefault(key, Entry())
            entry.kept, entry.stamp, entry.digest = kept, stamp, digest

    def drop(self, keys: Iterable[str]) -> None:
        """Take down that keys have nothing any more."""
        with self._lock:
            for key in keys:
                entry = self._entries.get(key)
                if entry is not None:
                    entry.kept, entry.stamp, entry.digest = None, None, b""
                    if entry.writer is None and not entry.readers:
                        del self._entries[key]
