"""Several jobs in flight, order kept, memory bounded. The only threads of the job client live here.

Two threads a pipeline: one runs the sender, one the receiver; the caller's own takes the outcomes from the
outlet. Each room between them has a bound: the flight (images sent and not answered) and the outlet
(outcomes not taken).

Invariants: neither thread knows the session, so a session that is forgotten is collected, and its pipeline
closed. Whatever ends a thread ends the pipeline, and the first error is the one that the caller sees.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from predsession.clock import Clock, SystemClock
from predsession.http.caller import Caller
from predsession.http.retry import RetryPolicy
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.inputs.images import ImageLimits
from predsession.inputs.items import Item
from predsession.jobs.cleanup import Ledger
from predsession.jobs.counters import Counters, Report
from predsession.jobs.facts import ServerFacts
from predsession.jobs.flight import Flight
from predsession.jobs.outlet import Outlet
from predsession.jobs.pace import UploadSize
from predsession.jobs.receiver import Receiver
from predsession.jobs.remote import loader_for
from predsession.jobs.sender import send_all
from predsession.jobs.submit import Submitter, UploadCancelledError
from predsession.wire.calls import SubmitOptions

CLEANUP_POLICY = RetryPolicy(tries=3, base=0.1, cap=1.0, connect_for=3.0, first_connect_for=0.5)
"""Short: cleaning up must not hold up a caller who leaves."""
JOIN_TIMEOUT = 15.0
"""Seconds that closing waits for a submit under way: its job must be known to be ended."""


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
    idle_timeout : float
        Seconds without any change after which a job is given up.
    clock : Clock
        Time.
    """

    submit: SubmitOptions
    connection: ConnectionOptions = field(default_factory=ConnectionOptions)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    limits: ImageLimits = field(default_factory=ImageLimits)
    idle_timeout: float = 600.0
    clock: Clock = field(default_factory=SystemClock)


class Pipeline:
    """Runs items through the server; the outcomes come out of `outlet`.

    Parameters
    ----------
    items : iterable of Item
        In order; taken lazily, on the sender's thread.
    transport : HttpTransport
        To the server; closed with the pipeline.
    options : PipelineOptions
        How.
    """

    def __init__(self, items: Iterable[Item], transport: HttpTransport, options: PipelineOptions) -> None:
        self._transport = transport
        self._pid = os.getpid()
        self._cancel = threading.Event()
        self._flight = Flight()
        self._caller = Caller(transport, options.retry, options.clock, self._cancel)
        self.counters = Counters(options.clock)
        self.outlet = Outlet(options.clock)
        self.facts = ServerFacts(self._caller)
        self.ledger = Ledger(Caller(transport, CLEANUP_POLICY, options.clock), self.counters)
        size = UploadSize(options.submit.batch_size)
        submitter = self._submitter(options)
        self.receiver = self._receiver(options, submitter, size)

        def send() -> None:
            send_all(items, submitter, flight=self._flight, size=size)

        self._threads = [
            threading.Thread(target=self._sending, args=(send,), name="predsession-send", daemon=True),
            threading.Thread(target=self._receiving, name="predsession-receive", daemon=True),
        ]

    def _submitter(self, options: PipelineOptions) -> Submitter:
        """Put the submitter together."""
        return Submitter(
            self._caller,
            options.clock,
            self._cancel,
            self.facts,
            ledger=self.ledger,
            counters=self.counters,
            options=options.submit,
            limits=options.limits,
        )

    def _receiver(self, options: PipelineOptions, submitter: Submitter, size: UploadSize) -> Receiver:
        """Put the receiver together."""
        return Receiver(
            self._caller,
            options.clock,
            self._cancel,
            self.facts,
            ledger=self.ledger,
            counters=self.counters,
            submitter=submitter,
            flight=self._flight,
            outlet=self.outlet,
            size=size,
            idle_timeout=options.idle_timeout,
            loader_of=lambda item: loader_for(item, options.connection),
        )

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def wait_for_job(self) -> None:
        """Wait until a job was started, or it is clear that none will be."""
        while not (self.counters.get("jobs") or self.outlet.ended):
            self._cancel.wait(0.01)

    def report(self, items: int) -> Report:
        """Return the figures so far."""
        return self.counters.report(items, self._caller.retries)

    def stop(self) -> None:
        """End the work, on the server too; what has arrived can still be taken. Idempotent."""
        if os.getpid() != self._pid:
            return  # a forked child has no threads of ours, and the jobs are its parent's
        self._cancel.set()
        self.outlet.end()
        self._flight.end()
        self.ledger.close()
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join(JOIN_TIMEOUT)

    def close(self) -> None:
        """Stop, drop what has arrived, and let go of the connections. Idempotent."""
        if os.getpid() == self._pid:
            self.outlet.discard()
            self.stop()
            self._transport.close()

    def _sending(self, send: Callable[[], None]) -> None:
        """Run the sender; its error takes its place behind what is in flight."""
        try:
            send()
        except UploadCancelledError:
            self._flight.end()
        except BaseException as error:  # noqa: BLE001 - raised again on the receiver's thread
            self._flight.end(error)

    def _receiving(self) -> None:
        """Run the receiver; whatever goes wrong ends the pipeline, and is raised to the caller."""
        try:
            self.receiver.receive_all()
        except UploadCancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again on the caller's thread
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """End the pipeline with an error, once what came before it has been taken."""
        self._cancel.set()
        self._flight.end()
        self.facts.give_up(error)
        self.ledger.close()
        for failure in self.ledger.failures:
            error.add_note(f"while cleaning up: {failure}")
        self.outlet.end(error)
