"""What the threads of a pipeline share: the caller, the clock, the facts, the ledger, the way out."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from predsession import errors
from predsession.clock import Clock, SystemClock
from predsession.http.caller import Caller
from predsession.http.retry import RetryPolicy
from predsession.http.transport import ConnectionOptions, Transport
from predsession.inputs.encoding import COMPACT, Encoding
from predsession.inputs.images import ImageLimits
from predsession.jobs.batch import Outcome
from predsession.jobs.cleanup import Ledger
from predsession.jobs.counters import Counters
from predsession.jobs.facts import ServerFacts
from predsession.jobs.outlet import Outlet
from predsession.prediction import Prediction
from predsession.wire import calls
from predsession.wire.replies import JobState
from predsession.wire.submits import SubmitOptions

if TYPE_CHECKING:
    from predsession.jobs.job import JobReader
    from predsession.jobs.journal import Journal

CLEANUP_POLICY = RetryPolicy(tries=3, base=0.1, cap=1.0, connect_for=3.0, first_connect_for=0.5)
"""Short: cleaning up must not hold up a caller who leaves; `cleanup.CLEANUP_SECONDS` bounds it as a whole."""
KEEP_ALIVE = 20.0
"""Seconds between signs of life while a slow caller holds the pipeline back."""


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """How a pipeline works.

    Parameters
    ----------
    submit : SubmitOptions
        Session id, settings and batch size.
    connection : ConnectionOptions
        Timeouts, certificates, proxies.
    retry : RetryPolicy
        Whether and when to try again.
    limits : ImageLimits
        What an image may hold.
    encoding : Encoding
        How pixels travel.
    idle_timeout : float
        Seconds without any change after which a job is given up.
    start_timeout : float or None
        Seconds after which a job that does not begin to run is given up.
    total_timeout : float or None
        Seconds after which the whole run is given up.
    clock : Clock
        Time.
    """

    submit: SubmitOptions
    connection: ConnectionOptions = field(default_factory=ConnectionOptions)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    limits: ImageLimits = field(default_factory=ImageLimits)
    encoding: Encoding = COMPACT
    idle_timeout: float = 600.0
    start_timeout: float | None = None
    total_timeout: float | None = None
    clock: Clock = field(default_factory=SystemClock)


class Shared:
    """What the threads of one pipeline share.

    Parameters
    ----------
    transport : Transport
        To the server.
    options : PipelineOptions
        How.
    lost : callable, optional
        Returns the last words of a server that is known to have ended, None while it runs.
    journal : Journal, optional
        Keeps what arrives; closed with the pipeline.
    """

    def __init__(
        self,
        transport: Transport,
        options: PipelineOptions,
        *,
        lost: Callable[[], str | None] | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.transport = transport
        self.options = options
        self.clock = options.clock
        self.cancel = threading.Event()
        self.journal = journal
        total = options.total_timeout
        self._ends = None if total is None else self.clock.now() + total
        self.caller = Caller(transport, options.retry, options.clock, self.cancel, lost=lost, ends=self._ends)
        self.counters = Counters(options.clock)
        self.outlet = Outlet(options.clock)
        self.facts = ServerFacts(self.caller)
        self.ledger = Ledger(Caller(transport, CLEANUP_POLICY, options.clock, lost=lost), self.counters)
        self.state: JobState | None = None
        """The present job, as its last answer showed it."""
        self.uuid: str | None = None
        """The present job, or the last one."""

        self.in_callers_code = False
        """Whether the sender is waiting for the caller's own iterator, which may take as long as it likes."""
        self.warnings: deque[Warning] = deque()
        """What the caller is to be warned of, on its own thread."""
        self._unhandled: deque[JobReader] = deque()
        self.reader: JobReader | None = None
        """Who reads the present job."""

    def warn(self, warning: Warning) -> None:
        """Let the caller be warned with the next outcome."""
        self.warnings.append(warning)

    def watch(self, state: JobState) -> None:
        """Keep what the present job's last answer showed."""
        self.state = state

    def hand_over(
        self, outcome: Outcome, *, key: str | None = None, handled: Callable[[], None] | None = None
    ) -> None:
        """Pass on an outcome, waiting for a slow caller; the live jobs are kept alive meanwhile.

        Parameters
        ----------
        outcome : Prediction or ItemError
            What became of an item.
        key : str, optional
            What the journal is to keep it under, before the caller sees it.
        handled : callable, optional
            To be called once the caller has dealt with it.
        """
        if self.journal is not None and key is not None and isinstance(outcome, Prediction):
            self.journal.keep(key, outcome)
        while not self.outlet.put(outcome, timeout=self._patience(), handled=handled):
            self.check_time()
            self._keep_alive()
        self.sweep()

    def clear_when_handled(self, reader: JobReader) -> None:
        """Clear a job that has ended, as soon as the caller has dealt with all that came of it."""
        self.ledger.ended(reader.uuid)
        self._unhandled.append(reader)
        self.sweep()

    def acknowledge(self) -> None:
        """Tell the server what the caller has dealt with, for whoever attaches to the jobs."""
        self.outlet.settle()
        for reader in (*self._unhandled, self.reader):
            if reader is not None:
                reader.acknowledge()

    def sweep(self) -> None:
        """Clear the jobs that were dealt with; on the receiver's thread."""
        while self._unhandled and self._unhandled[0].all_handled:
            self.ledger.finished(self._unhandled.popleft().uuid)

    def linger(self) -> None:
        """Keep jobs alive that have ended, until the caller has dealt with them or the session is closed."""
        while self._unhandled and not self.clock.wait(self.cancel, self._patience()):
            self.sweep()
            self._keep_alive()

    def check_time(self) -> None:
        """Raise `JobTimeoutError` once the run's own time is over."""
        if self.is_overtime():
            raise self.overtime()

    def is_overtime(self) -> bool:
        """Whether the run's own time is over."""
        return self._ends is not None and self.clock.now() >= self._ends

    def overtime(self) -> errors.JobTimeoutError:
        """Make the error for a run that takes too long."""
        return errors.JobTimeoutError(
            f"the run was not over after total_timeout={self.options.total_timeout:g} s; "
            f"{self.outlet.passed} results had come{' and are kept' if self.journal is not None else ''}. "
            f"Pass more{'' if self.journal is not None else ', or resume= to keep them'}",
            uuid=self.uuid or "",
            stage=self.state.stage_text if self.state else "",
        )

    def _patience(self) -> float:
        """Return how long the server may go without a sign of life."""
        lease = self.facts.known_lease()
        return KEEP_ALIVE if lease is None else min(KEEP_ALIVE, lease / 3)

    def _keep_alive(self) -> None:
        """Name the live jobs, so that a server with a lease does not take us for dead."""
        for uuid in self.ledger.live:
            try:
                self.caller.call(calls.progress(uuid))
            except errors.PredSessionError:
                return  # the next poll will meet the same fault, and deal with it
