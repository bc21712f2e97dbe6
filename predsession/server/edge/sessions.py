"""Sessions: what one caller may use, how often, and how much at once. No gRPC, no sleeping here."""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from predsession.errors import PredSessionError
from predsession.server.texts import named, shortened

_LONGEST_NAME = 256
_MOST_ALLOWED = 1000
_WINDOW_S = 1.0
_IDLE_S = 600.0
"""What nobody has used for so long makes room for a new one where there is none: callers die, and the
interface has no lease."""


class Reason(Enum):
    """Why a session lets no call through."""

    UNKNOWN = "Session not found"
    MODEL = "Model not allowed in this session"
    RATE = "Session over its max_qps"
    CROWD = "Session over its max_concurrent"


class QuotaError(PredSessionError):
    """A session's limit; `reason` says which."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason


class SessionError(PredSessionError):
    """A session cannot be made."""


@dataclass(slots=True, eq=False)
class Session:
    """One caller's limits, and what it uses of them.

    Parameters
    ----------
    id : str
        What calls name it.
    app : str
        Whose it is.
    allowed : frozenset of str
        Models; empty for all.
    max_qps : int
        Calls, and frames of streams, in any second; 0 for no limit.
    max_concurrent : int
        Calls and streams at once; 0 for no limit.
    priority : int
        Of the frames of its streams, which have none of their own.
    """

    id: str
    app: str = ""
    allowed: frozenset[str] = frozenset()
    max_qps: int = 0
    max_concurrent: int = 0
    priority: int = 4
    running: int = 0
    ended: bool = False
    touched: float = 0.0
    _recent: deque[float] = field(default_factory=deque)

    def admits(self, now: float) -> bool:
        """Take one call of this second's, if there is one left."""
        self.touched = now
        if not self.max_qps:
            return True
        while self._recent and self._recent[0] <= now - _WINDOW_S:
            self._recent.popleft()
        if len(self._recent) >= self.max_qps:
            return False
        self._recent.append(now)
        return True


class Sessions:
    """All sessions.

    Parameters
    ----------
    most : int
        How many there may be.
    clock : callable
        Seconds that only grow.
    """

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._sessions: dict[str, Session] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._sessions)

    def create(
        self,
        name: str,
        app: str,
        *,
        allowed: Iterable[str] = (),
        max_qps: int = 0,
        max_concurrent: int = 0,
        priority: int = 4,
    ) -> Session:
        """Open a session.

        Parameters
        ----------
        name : str
            What it is to be called; empty for a name of ours.
        app : str
            Whose it is.
        allowed : iterable of str
            Models; none for all.
        max_qps, max_concurrent : int
            0 for no limit.
        priority : int
            0 to 7.

        Returns
        -------
        Session
            New.

        Raises
        ------
        SessionError
            If the name is taken, something is too long to be kept, or there are too many.
        """
        allowed = frozenset(allowed)
        if max(map(len, (name, app, *allowed))) > _LONGEST_NAME:
            raise SessionError(
                f"session_id, app_id and names of models have {_LONGEST_NAME} characters at most"
            )
        if len(allowed) > _MOST_ALLOWED:
            raise SessionError(f"{len(allowed)} allowed_models; a session takes {_MOST_ALLOWED} at most")
        if name in self._sessions:
            raise SessionError(f"Session already exists: {name}")
        if len(self._sessions) >= self._most and not self._drop_idle():
            raise SessionError(f"Too many sessions: {self._most} are open; see --limit-sessions")
        name = name or f"{app or 'session'}-{uuid.uuid4().hex[:12]}"
        made = Session(name, app, allowed, max_qps, max_concurrent, priority)
        made.touched = self._clock()
        self._sessions[name] = made
        return made

    def _drop_idle(self) -> bool:
        """End the session that was unused longest, if that is long enough; return whether."""
        idle = [one for one in self._sessions.values() if not one.running]
        oldest = min(idle, key=lambda one: one.touched, default=None)
        if oldest is None or oldest.touched > self._clock() - _IDLE_S:
            return False
        return self.destroy(oldest.id)

    def destroy(self, name: str) -> bool:
        """End a session; its streams end, its calls on their way do not. Return whether it was there."""
        session = self._sessions.pop(name, None)
        if session is not None:
            session.ended = True
        return session is not None

    @contextmanager
    def enter(self, name: str, model: str, *, counts: bool = True) -> Iterator[Session | None]:
        """Let a call through, or refuse it.

        Parameters
        ----------
        name : str
            The session; empty for none, which has no limits.
        model : str
            What the call uses.
        counts : bool
            Whether it counts for `max_qps`; a stream's frames do so themselves.

        Yields
        ------
        Session or None
            The session; until the block ends the call is one of its running ones.

        Raises
        ------
        QuotaError
            If a limit forbids it.
        """
        if not name:
            yield None
            return
        session = self._admit(name, model, counts=counts)
        session.running += 1
        try:
            yield session
        finally:
            session.running -= 1
            session.touched = self._clock()

    def _admit(self, name: str, model: str, *, counts: bool) -> Session:
        """Return the session, if its limits allow one more call."""
        session = self._sessions.get(name)
        if session is None:
            raise QuotaError(Reason.UNKNOWN, shortened(name, _LONGEST_NAME))
        if session.allowed and model not in session.allowed:
            raise QuotaError(Reason.MODEL, f"{model}; {name} may use {named(sorted(session.allowed))}")
        if session.max_concurrent and session.running >= session.max_concurrent:
            raise QuotaError(Reason.CROWD, f"{session.max_concurrent} calls of {name} are running")
        if counts and not session.admits(self._clock()):
            raise QuotaError(Reason.RATE, f"{name} has {session.max_qps} calls a second")
        return session
