"""Stop and clear: exactly once for each live job, on every way out.

Invariant: whoever takes a job out of the ledger ends it, and nobody else can. A finished job gets only its
clear. After `close`, a job that is reported late (its submit was under way) is ended on the spot.
"""

from __future__ import annotations

import logging
import threading

from predsession import errors
from predsession.http.caller import Caller
from predsession.jobs.counters import Counters
from predsession.wire import calls

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
        self._lock = threading.Lock()
        self._live: dict[str, None] = {}
        self._closed = False
        self.failures: list[errors.PredSessionError] = []
        """What went wrong while cleaning up; never raised in place of another error."""

    @property
    def live(self) -> tuple[str, ...]:
        """The live jobs, oldest first."""
        with self._lock:
            return tuple(self._live)

    def opened(self, uuid: str) -> bool:
        """Enter a job; return False, and end it, if the ledger is closed."""
        self._counters.add("jobs")
        with self._lock:
            closed = self._closed
            if not closed:
                self._live[uuid] = None
        if closed:
            self._end(uuid, running=True)
        return not closed

    def finished(self, uuid: str) -> None:
        """Clear a job that has ended by itself."""
        if self._take(uuid):
            self._end(uuid, running=False)

    def lost(self, uuid: str) -> None:
        """Forget a job that the server no longer knows."""
        self._take(uuid)

    def abandon(self, uuid: str) -> None:
        """Stop and clear one job."""
        if self._take(uuid):
            self._end(uuid, running=True)

    def close(self) -> None:
        """Stop and clear all that are live; idempotent."""
        with self._lock:
            self._closed = True
            uuids = tuple(self._live)
            self._live.clear()
        for uuid in uuids:
            self._end(uuid, running=True)

    def _take(self, uuid: str) -> bool:
        """Take a job out of the ledger; True for the first who does."""
        with self._lock:
            return self._live.pop(uuid, False) is None

    def _end(self, uuid: str, *, running: bool) -> None:
        """Send stop, where it is running, and clear; failures are kept, not raised."""
        ending = [calls.stop(uuid), calls.clear(uuid)] if running else [calls.clear(uuid)]
        for call in ending:
            try:
                self._caller.call(call)
            except errors.PredSessionError as error:
                log.warning("%s of job %s failed: %s", call.endpoint, uuid, error)
                self._counters.add("cleanup_failures")
                self.failures.append(error)
