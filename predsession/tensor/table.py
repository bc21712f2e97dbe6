"""What a session keeps, by key, and the order of calls that share a key: writers alone, readers together.

Calls may be on their way at the same time, and a server may take them in any order. So one that reads a key
waits until the one that writes it has its answer, and one that writes waits for those that read.

Invariants: a call lines up for all its keys at once, behind those that came before it, so that none waits for
a later one: no deadlock, and nobody is overtaken for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

from predsession.errors import RequestTimeoutError
from predsession.rpc.flight import Awaited
from predsession.tensor.htensor import Stamp
from predsession.tensor.plan import Kept


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """A call's place in the line.

    Parameters
    ----------
    keys : frozenset of str
        That it uses.
    ended : Future
        Done once the call is.
    """

    keys: frozenset[str]
    ended: Future[None] = field(default_factory=lambda: Awaited("call"))


_NOBODYS = Turn(frozenset())
"""Of calls without keys: they wait for none, and none for them."""


@dataclass(slots=True)
class Entry:
    """A key, and what is known of it.

    Parameters
    ----------
    kept : Kept or None
        None while it has nothing.
    coming : Kept or None
        What the last writer in the line is to make of it.
    stamp : tuple of int or None
        Of the `HTensor` whose data it is.
    digest : bytes
        Of those bytes; empty where they were never here.
    writer : Turn or None
        The last one in the line that writes.
    readers : set of Turn
        Those behind it that read.
    """

    kept: Kept | None = None
    coming: Kept | None = None
    stamp: Stamp | None = None
    digest: bytes = b""
    writer: Turn | None = None
    readers: set[Turn] = field(default_factory=set)

    @property
    def idle(self) -> bool:
        """Whether it has nothing, and nobody uses it."""
        return self.kept is None and self.writer is None and not self.readers


class Table:
    """Every key of a session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}

    def known(self) -> Mapping[str, Kept]:
        """Return what is kept, or will be once the calls on their way have gone well, by key."""
        with self._lock:
            each = {key: entry.coming or entry.kept for key, entry in self._entries.items()}
        return {key: kept for key, kept in each.items() if kept is not None}

    def enter(self, reads: Collection[str], writes: Mapping[str, Kept | None], *, seconds: float) -> Turn:
        """Line up, and wait for the call's turn.

        Parameters
        ----------
        reads : collection of str
            Keys that it uses as they are.
        writes : mapping of str to Kept or None
            Keys that it changes, and what it makes of them; None for nothing.
        seconds : float
            How long at most.

        Returns
        -------
        Turn
            To be handed to `leave`.

        Raises
        ------
        RequestTimeoutError
            If its turn did not come.
        """
        if not reads and not writes:
            return _NOBODYS
        reading = set(reads) - writes.keys()
        turn = Turn(frozenset(reading | writes.keys()))
        with self._lock:
            before = self._line_up(turn, reading, writes)
        try:
            late = wait(before, max(0.0, seconds)).not_done
        except BaseException:
            self._leave_after(turn, list(before))
            raise
        if late:
            self._leave_after(turn, list(late))
            keys = ", ".join(sorted(turn.keys))
            raise RequestTimeoutError(f"the calls before this one have {keys} in use for {seconds:g} s")
        return turn

    def _line_up(
        self, turn: Turn, reading: Iterable[str], writing: Mapping[str, Kept | None]
    ) -> set[Future[None]]:
        """Take a place in the line of each key, and return the ends of those before it."""
        before: set[Turn] = set()
        for key in reading:
            entry = self._entries.setdefault(key, Entry())
            before |= {entry.writer} if entry.writer is not None else set()
            entry.readers.add(turn)
        for key, coming in writing.items():
            entry = self._entries.setdefault(key, Entry())
            before |= entry.readers | ({entry.writer} if entry.writer is not None else set())
            entry.writer, entry.readers, entry.coming = turn, set(), coming
        return {each.ended for each in before}

    def _leave_after(self, turn: Turn, before: list[Future[None]]) -> None:
        """Give up a place in the line: those behind it must not come before those in front of it."""
        if before:
            first, *rest = before
            first.add_done_callback(lambda _: self._leave_after(turn, rest))
        else:
            self.leave(turn)

    def leave(self, turn: Turn) -> None:
        """Let the next call have its turn.

        Parameters
        ----------
        turn : Turn
            From `enter`.
        """
        if turn is _NOBODYS:
            return
        with self._lock:
            for key in turn.keys:
                entry = self._entries.get(key)
                if entry is None:
                    continue
                entry.readers.discard(turn)
                if entry.writer is turn:
                    entry.writer = entry.coming = None
                self._tidy(key, entry)
        if not turn.ended.done():
            turn.ended.set_result(None)

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
        with self._lock:
            return self._entries[key]

    def put(self, key: str, kept: Kept, stamp: Stamp | None, *, digest: bytes = b"") -> None:
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
                    self._tidy(key, entry)

    def _tidy(self, key: str, entry: Entry) -> None:
        """Remove an entry that says nothing."""
        if entry.idle:
            del self._entries[key]
