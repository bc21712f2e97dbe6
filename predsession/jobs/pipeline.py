"""Several jobs in flight, order kept, memory bounded. The only threads of the job client live here.

Two threads a pipeline: one runs the sender, one the receiver; the caller's own takes the outcomes from the
outlet. Each room between them has a bound: the flight (what is sent and not answered) and the outlet
(outcomes not taken).

Invariants: neither thread knows the session, so a session that is forgotten is collected, and its pipeline
closed. Whatever ends a thread ends the pipeline, and the first error is the one that the caller sees.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Protocol

from predsession import errors
from predsession.jobs.cleanup import Ledger
from predsession.jobs.counters import Report
from predsession.jobs.facts import identity_of
from predsession.jobs.shared import Shared
from predsession.jobs.start import UploadCancelledError
from predsession.wire import calls
from predsession.wire.httpreply import parse_json
from predsession.wire.jsontypes import JSON

JOIN_TIMEOUT = 10.0
"""Seconds that closing waits for a submit under way: its job must be known to be ended."""
SILENT_JOIN_TIMEOUT = 1.0
"""The same where the server has not answered even the clean-up."""


class Course(Protocol):
    """How a kind of source goes through: what the sender does, and what the receiver does."""

    def send_all(self) -> None:
        """Send everything, as there is room; runs on the sender's thread."""

    def receive_all(self) -> None:
        """Receive everything and hand it over in order; runs on the receiver's thread."""

    def end_sending(self, error: BaseException | None) -> None:
        """Let the receiver know that nothing more is sent, and why; what is in flight comes first."""

    @property
    def total(self) -> int | None:
        """How many outcomes will come, as far as that is known."""

    @property
    def counted(self) -> bool:
        """Whether the total is known, or will be."""

    @property
    def finals(self) -> Sequence[JSON]:
        """The final results of the jobs that had one."""


class Pipeline:
    """Runs a course; the outcomes come out of ``shared.outlet``.

    Parameters
    ----------
    shared : Shared
        What the threads share; its transport is closed with the pipeline.
    course : Course
        What they do.
    """

    def __init__(self, shared: Shared, course: Course) -> None:
        self.shared = shared
        self.course = course
        self._pid = os.getpid()
        self._threads = [
            threading.Thread(target=self._sending, name="predsession-send", daemon=True),
            threading.Thread(target=self._receiving, name="predsession-receive", daemon=True),
        ]

        self._begun: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            self._begun.append(thread)  # before: Ctrl-C may come while its start is waited for
            thread.start()

    def wait_for_job(self) -> None:
        """Wait until a job was started, or it is clear that none will be until something is taken."""
        outlet = self.shared.outlet
        while not (self.shared.counters.get("jobs") or outlet.ended or outlet.full):
            self.shared.cancel.wait(0.01)

    def known_total(self) -> int | None:
        """Return how many outcomes will come, waiting for the server where only it can tell."""
        outlet = self.shared.outlet
        while self.course.counted and self.course.total is None and not (outlet.ended or outlet.full):
            self.shared.cancel.wait(0.01)
        return self.course.total

    def report(self) -> Report:
        """Return the figures so far."""
        return self.shared.counters.report(self.course.total, self.shared.caller.retries)

    def stop(self) -> None:
        """End the work, on the server too; what has arrived can still be taken. Idempotent."""
        if os.getpid() != self._pid:
            return  # a forked child has no threads of ours, and the jobs are its parent's
        self.shared.cancel.set()
        self.shared.outlet.end()
        self.course.end_sending(None)
        self.shared.ledger.close()
        quick = self.shared.ledger.failures or self.shared.in_callers_code
        patience = SILENT_JOIN_TIMEOUT if quick else JOIN_TIMEOUT
        for thread in self._begun:
            if thread is not threading.current_thread() and _has_started(thread):
                thread.join(patience)

    def detach(self) -> None:
        """Let go of everything here, and leave the jobs on the server as they are."""
        self.shared.ledger.leave()
        self.shared.acknowledge()
        self.close()

    def close(self) -> None:
        """Stop, drop what has arrived, and let go of the connections. Idempotent."""
        if os.getpid() == self._pid:
            try:
                self._close()
            except BaseException:
                self._close()  # Ctrl-C in the middle of it: the other jobs are still to be ended
                raise

    def _close(self) -> None:
        """Stop, drop what has arrived, and let go of the connections."""
        self.shared.outlet.discard()
        self.stop()
        self.shared.transport.close()
        if self.shared.journal is not None:
            self.shared.journal.close()

    def _sending(self) -> None:
        """Run the sender; its error takes its place behind what is in flight."""
        try:
            self._bind_journal()
            self.course.send_all()
            self.course.end_sending(None)
        except UploadCancelledError:
            self.course.end_sending(None)
        except BaseException as error:  # noqa: BLE001 - raised again on the receiver's thread
            self.course.end_sending(error)

    def _bind_journal(self) -> None:
        """Make sure, before anything is sent, that a journal belongs to this model."""
        if self.shared.journal is not None:
            info, meta = self.shared.facts.info(), self.shared.facts.meta()
            defaults = parse_json(self.shared.caller.call(calls.custom_settings()))
            self.shared.journal.bind(identity_of(info, meta, defaults), "models")

    def _receiving(self) -> None:
        """Run the receiver; whatever goes wrong ends the pipeline, and is raised to the caller."""
        try:
            self.shared.facts.ask()
            self.course.receive_all()
            self.shared.outlet.end()
            self.shared.linger()
        except UploadCancelledError:
            self.shared.outlet.end()
        except BaseException as error:  # noqa: BLE001 - raised again on the caller's thread
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """End the pipeline with an error, once what came before it has been taken."""
        shared = self.shared
        if shared.is_overtime() and isinstance(error, errors.TransportError):
            error = chained(shared.overtime(), error)
        try:
            shared.cancel.set()
            self.course.end_sending(None)
            shared.facts.give_up(error)
            self._note_place(error)
            shared.ledger.close()
            note_failures(error, shared.ledger)
        finally:
            shared.outlet.end(error)  # whatever else goes wrong: the caller must not wait for ever

    def _note_place(self, error: BaseException) -> None:
        """Note on an error which items have a result; none is no news."""
        if passed := self.shared.outlet.passed:
            of_all = "" if self.course.total is None else f" of {self.course.total}"
            error.add_note(
                f"{passed}{of_all} items came through before this; those after them have no result"
            )


def _has_started(thread: threading.Thread) -> bool:
    """Whether a thread runs, or has run; one whose start was interrupted shows up in a moment, or never."""
    for _ in range(100):
        if thread.ident is not None:
            return True
        threading.Event().wait(0.005)
    return False


def note_failures(error: BaseException, ledger: Ledger) -> None:
    """Note on an error what went wrong while cleaning up after it, each once."""
    for failure in ledger.failures:
        note = f"while cleaning up: {failure}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)


def chained(error: errors.JobTimeoutError, cause: BaseException) -> errors.JobTimeoutError:
    """Return the error with its cause."""
    error.__cause__ = cause
    return error
