"""Tensors that stay on the server, and whose they are: sessions with a lease.

A kept array is never changed: calls that use it share it. It goes when it is replaced, forgotten, or its
session ends; a call that has it in its hands keeps it until it is done.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from predsession.clock import Clock
from predsession.server.config import Limits
from predsession.server.models.tensors import Array
from predsession.server.statuses import BadCallError, CallError
from predsession.wire.oip.residency import DEFAULT_LEASE_S, SESSION, UNKNOWN_KEY

LONGEST_LEASE_S = 24 * 3600.0
_LEAST = 1024  # what a kept tensor counts for at least, so that a million empty ones are too many


@dataclass(frozen=True, slots=True)
class Tally:
    """What a session has, or had.

    Parameters
    ----------
    tensors : int
        How many.
    bytes : int
        Of them together.
    """

    tensors: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A tensor that stays.

    Parameters
    ----------
    array : ndarray
        Owns its memory, and is read-only.
    datatype : str
        As it came.
    bytes : int
        What it takes.
    """

    array: Array
    datatype: str
    bytes: int

    @classmethod
    def make(cls, array: Array, datatype: str) -> Kept:
        """Keep an array, as it is where nothing else hangs on its memory."""
        own = array if _owns(array) else array.copy()
        own.flags.writeable = False
        return cls(own, datatype, _size(own))


@dataclass(slots=True, eq=False)
class Session:
    """One session.

    Parameters
    ----------
    id : str
        As its owner calls it.
    lease : float
        Seconds that it lives after its last word.
    until : float
        When it ends, on the clock.
    """

    id: str
    lease: float
    until: float
    tensors: dict[str, Kept] = field(default_factory=dict)
    users: int = 0
    """Calls that are under way."""
    ended: bool = False

    @property
    def tally(self) -> Tally:
        """What it has."""
        return Tally(len(self.tensors), sum(one.bytes for one in self.tensors.values()))

    def find(self, key: str) -> Kept:
        """Return what is kept under a key; raises `CallError` NOT_FOUND if nothing is."""
        kept = self.tensors.get(key)
        if kept is None:
            raise CallError("NOT_FOUND", f"{UNKNOWN_KEY}{key!r} in session {self.id!r}")
        return kept


class Sessions:
    """All sessions.

    Parameters
    ----------
    limits : Limits
        How many, and how many bytes.
    clock : Clock
        Of the leases.
    """

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._sessions: dict[str, Session] = {}
        self._cost = 0

    def __iter__(self) -> Iterator[Session]:
        """Iterate over those that live."""
        return iter(list(self._sessions.values()))

    def get(self, name: str) -> Session | None:
        """Return a session that lives."""
        return self._sessions.get(name)

    def left(self, session: Session) -> float:
        """Return how many seconds a session has left."""
        return max(0.0, session.until - self._clock.now())

    def renew(self, name: str, lease: float | None = None) -> Session:
        """Renew a session's lease, or open it.

        Parameters
        ----------
        name : str
            Its id.
        lease : float or None
            Seconds that it lives from its last word on; None or 0 for what it had.

        Returns
        -------
        Session
            Alive.

        Raises
        ------
        CallError
            If there are too many, or a value is none.
        """
        if not name or len(name) > self._limits.name:
            raise CallError("INVALID_ARGUMENT", f"a session's id has 1 to {self._limits.name} characters")
        if lease is not None and not (math.isfinite(lease) and 0 <= lease <= LONGEST_LEASE_S):
            raise CallError(
                "INVALID_ARGUMENT", f"lease_s is {lease}; it must be 0 to {LONGEST_LEASE_S:g} seconds"
            )
        session = self._sessions.get(name)
        if session is None:
            if len(self._sessions) >= self._limits.leases:
                text = f"{len(self._sessions)} sessions keep tensors or models; see --limit-leases"
                raise CallError("RESOURCE_EXHAUSTED", text)
            session = self._sessions[name] = Session(name, DEFAULT_LEASE_S, 0.0)
        session.lease = lease or session.lease
        session.until = self._clock.now() + session.lease
        return session

    @contextmanager
    def used(self, name: str) -> Iterator[Session]:
        """Renew a session, and keep it for the length of a call.

        Parameters
        ----------
        name : str
            Its id.

        Yields
        ------
        Session
            Alive, unless it is ended in between.

        Raises
        ------
        CallError
            As for `renew`.
        """
        session = self.renew(name)
        session.users += 1
        try:
            yield session
        finally:
            session.users -= 1
            session.until = self._clock.now() + session.lease

    @contextmanager
    def named(self, name: object) -> Iterator[Session | None]:
        """Do the same for what a call says.

        Parameters
        ----------
        name : object
            To be a text; empty for no session.

        Yields
        ------
        Session or None
            None for no session.

        Raises
        ------
        BadCallError
            If it is something else.
        """
        if not isinstance(name, str):
            raise BadCallError(f"{SESSION} must be a text")
        if not name:
            yield None
            return
        with self.used(name) as session:
            yield session

    def keep(self, session: Session, arrays: Mapping[str, tuple[Array, str]]) -> None:
        """Keep arrays, all or none; what was there under their keys goes.

        Parameters
        ----------
        session : Session
            Whose they are.
        arrays : mapping
            Each key's array and datatype.

        Raises
        ------
        CallError
            If that is too much, or the session has ended.
        """
        if session.ended:
            raise CallError("NOT_FOUND", f"session {session.id!r} was ended while the call ran")
        # Counted before anything is copied.
        new = sum(max(_LEAST, _size(array)) for array, _ in arrays.values())
        old = sum(max(_LEAST, session.tensors[key].bytes) for key in arrays if key in session.tensors)
        if self._cost + new - old > self._limits.tensors:
            text = f"{new:,} bytes more than the {self._cost - old:,} that are kept are over the limit of "
            raise CallError("RESOURCE_EXHAUSTED", f"{text}{self._limits.tensors:,}; see --limit-tensors")
        session.tensors |= {key: Kept.make(array, datatype) for key, (array, datatype) in arrays.items()}
        self._cost += new - old

    def forget(self, session: Session, keys: Sequence[str]) -> Tally:
        """Forget tensors; keys that are not there are none.

        Parameters
        ----------
        session : Session
            Whose they are.
        keys : sequence of str
            Which.

        Returns
        -------
        Tally
            What went.
        """
        gone = [session.tensors.pop(key) for key in dict.fromkeys(keys) if key in session.tensors]
        self._cost -= sum(max(_LEAST, one.bytes) for one in gone)
        return Tally(len(gone), sum(one.bytes for one in gone))

    def end(self, session: Session) -> Tally:
        """End a session, and return what it had."""
        session.ended = True
        self._sessions.pop(session.id, None)
        return self.forget(session, list(session.tensors))

    def over(self) -> list[Session]:
        """Return the sessions whose lease is over and that no call uses."""
        now = self._clock.now()
        return [one for one in self if not one.users and one.until <= now]


def _size(array: Array) -> int:
    """Return what an array takes."""
    if array.dtype.kind != "O":
        return array.nbytes
    return array.nbytes + sum(33 + len(element) for element in array.reshape(-1).tolist())


def _owns(array: Array) -> bool:
    """Whether nothing else is kept with an array's memory."""
    base: object = array.base
    while isinstance(base, np.ndarray) and base.nbytes == array.nbytes:
        if base.flags.owndata:
            return True
        base = base.base
    return array.flags.owndata or (isinstance(base, bytes) and len(base) == array.nbytes)
