"""Stop and clear: exactly once for each live job, on every way out.

Invariant: whoever takes a job out of the ledger ends it, and nobody else can. A finished job gets only its
clear, and where results are acknowledged not before the caller has dealt with the last of them. After
`close`, a job that is reported late (its submit was under way) is ended on the spot.
"""

from __future__ import annotations

import logging
import threading

from predsession import errors
from predsession.http.caller import Caller
from predsession.jobs.counters import Counters
from predsession.wire import calls

CLEANUP_SECONDS = 6.0
"""For all of a session's jobs together: a server that does not answer must not hold up who leaves."""
CALL_SECONDS = 3.0

log = logging.getLogger(__name__)


class Ledger:
    """The jobs of a session that are live on the server.

    Parameters
    ----------
    caller : Caller
        With a policy of its own, short: cleaning up must not hold up a caller who leaves.
    counters : Counters
        Counts the jobs, and the calls that fail.
    """

    def __init__(self, caller: Caller, counters: Counters) -> None:
        self._caller = caller
        self._counters = counters
        # Reentrant: the garbage collector may run a finalizer, and so `close`, on a thread that is in here.
        self._lock = threading.RLock()
        self._running: dict[str, bool] = {}
        """The live jobs, and whether they have not ended by themselves."""
        self._closed = self._left = False
        self.failures: list[errors.PredSessionError] = []
        """What went wrong while cleaning up; never raised in place of another error."""

    @property
    def live(self) -> tuple[str, ...]:
        """The live jobs, oldest first."""
        with self._lock:
            return tuple(self._running)

    def opened(self, uuid: str) -> bool:
        """Enter a job; return False, and end it, if the ledger is closed."""
        self._counters.add("jobs")
        with self._lock:
            closed, left = self._closed, self._left
            if not closed or left:
                self._running[uuid] = True
        if closed and not left:
            self._end(uuid, running=True)
        return not closed

    def ended(self, uuid: str) -> None:
        """Note that a job has ended by itself: it needs no stop any more."""
        with self._lock:
            if uuid in self._running:
                self._running[uuid] = False

    def finished(self, uuid: str) -> None:
        """Clear a job that has ended by itself; where that fails it is done at the close."""
        if self._take(uuid) is not None:
            self._end(uuid, running=False)

    def lost(self, uuid: str) -> None:
        """Forget a job that the server no longer knows."""
        self._take(uuid)

    def abandon(self, uuid: str) -> None:
        """Stop and clear one job; where that fails it is done at the close."""
        if self._take(uuid) is not None:
            self._end(uuid, running=True)

    def close(self) -> None:
        """Stop and clear all that are live, unless they were left; idempotent."""
        with self._lock:
            self._closed = True
        ends = self._caller.clock.now() + CLEANUP_SECONDS
        while (job := self._take_next()) is not None:
            uuid, running = job
            self._end(uuid, running=running, ends=ends)

    def leave(self) -> None:
        """Close, and leave the live jobs to whoever attaches to them."""
        with self._lock:
            self._closed = self._left = True

    def _take(self, uuid: str) -> bool | None:
        """Take a job out of the ledger; None for all but the first who does."""
        with self._lock:
            return self._running.pop(uuid, None)

    def _take_next(self) -> tuple[str, bool] | None:
        """Take the oldest job out of the ledger, and whether it runs; None if there is none to be ended."""
        with self._lock:
            uuid = None if self._left else next(iter(self._running), None)
            return None if uuid is None else (uuid, self._running.pop(uuid))

    def _end(self, uuid: str, *, running: bool, ends: float | None = None) -> None:
        """Send stop, where it is running, and clear; what fails is kept, or tried again at the close."""
        try:
            failures = self._send_end(uuid, running=running, ends=ends)
        except BaseException:
            self._running[uuid] = running  # Ctrl-C: whoever closes again goes on here
            raise
        with self._lock:
            if failures and not self._closed:
                self._running[uuid] = running
                return
        for error in failures:
            self._counters.add("cleanup_failures")
            self.failures.append(error)

    def _send_end(self, uuid: str, *, running: bool, ends: float | None) -> list[errors.PredSessionError]:
        """Send stop, where it is running, and clear, whatever becomes of the stop; return what failed."""
        clock, failures = self._caller.clock, list[errors.PredSessionError]()
        ends = clock.now() + CLEANUP_SECONDS if ends is None else ends
        for call in [calls.stop(uuid), calls.clear(uuid)] if running else [calls.clear(uuid)]:
            try:
                if clock.now() >= ends:
                    raise errors.RequestTimeoutError(f"no time was left for {call.endpoint} of job {uuid}")
                self._caller.call(call, give_up_at=min(ends, clock.now() + CALL_SECONDS))
            except errors.PredSessionError as error:
                log.warning("%s of job %s failed: %s", call.endpoint, uuid, error)
                failures.append(error)
        return failures
