"""The course of jobs that are there already: begun by another process, or left by it.

Rule: with ``ack`` the server keeps what the first process had not dealt with, and the list says where each
job's items stand in that session's source. A stock server knows neither: one job can be read on by its uuid,
what was popped before is gone, and nothing tells the places but how many were computed. Names and paths are
on no server.
"""

from __future__ import annotations

from collections.abc import Sequence

from predsession import errors
from predsession.jobs.attachment import Attachment
from predsession.jobs.batch import Outcome
from predsession.jobs.ending import check_failed, finish, missing_results
from predsession.jobs.flight import Flight
from predsession.jobs.forgotten import seems_forgotten
from predsession.jobs.job import JobReader
from predsession.jobs.predicting import Library
from predsession.jobs.shared import Shared
from predsession.wire import calls
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.replies import LiveJob, parse_item_fault, parse_job, parse_job_list


class AttachedCourse:
    """Reads jobs on to their end.

    Parameters
    ----------
    shared : Shared
        The pipeline's.
    target : Attachment
        Which jobs.
    endpoint : str
        The server's URL: pictures of its library are fetched from there.
    token : str or None
        For the server.
    """

    def __init__(
        self, shared: Shared, target: Attachment, *, endpoint: str, token: str | None = None
    ) -> None:
        self._shared = shared
        self._target = target
        self._library = Library(shared, endpoint, token)
        self._flight: Flight[LiveJob] = Flight()
        self._total: int | None = None
        self._base = 0
        self._finals: list[JSON] = []

    def send_all(self) -> None:
        """Find the jobs; nothing is sent."""
        listed = "list" in self._shared.facts.info().features
        jobs = self._listed() if listed else [self._asked()]
        for job in jobs:
            self._shared.ledger.opened(job.uuid)
        if all(job.total is not None for job in jobs):
            self._total = sum((job.total or 0) - job.acked for job in jobs)
        for job in jobs:
            if not self._flight.take_room(1):
                return
            self._flight.put(job)

    def _listed(self) -> list[LiveJob]:
        """Return the jobs as the server lists them, in the source's order."""
        found = parse_job_list(self._shared.caller.call(calls.list_jobs(self._target.session)))
        if self._target.uuid is not None:
            found = [job for job in found if job.uuid == self._target.uuid]
        if not found:
            raise self._unknown()
        return sorted(found, key=lambda job: job.first_index or 0)

    def _asked(self) -> LiveJob:
        """Return the one job that a server without a list is asked for."""
        if self._target.uuid is None:
            raise errors.SourceError(
                "this server cannot list the jobs of a session: attach to one job, by uuid=. "
                "A stock server knows jobs by nothing else."
            )
        if seems_forgotten(self._shared.caller, self._target.uuid):
            raise self._unknown()
        state = parse_job(self._shared.caller.call(calls.progress(self._target.uuid)))
        gone = max(0, (state.current or 0) - state.pending)
        if gone:
            self._shared.warn(
                errors.ResultsGoneWarning(
                    f"{gone} results of job {self._target.uuid} were taken by somebody else, and a server "
                    "without ack has them no longer"
                )
            )
        return LiveJob(self._target.uuid, current=state.current, total=state.total, acked=gone)

    def _unknown(self) -> errors.JobExpiredError:
        """Make the error for what the server does not know."""
        return errors.JobExpiredError(
            f"the server knows no {self._target.description}: it was cleared, or its lease is over",
            uuid=self._target.uuid or "",
        )

    def end_sending(self, error: BaseException | None) -> None:
        """End the flight."""
        self._flight.end(error)

    def receive_all(self) -> None:
        """Read the jobs one after the other."""
        while (job := self._flight.get()) is not None:
            self._read(job)
            self._flight.give_back(1)
            if self._shared.cancel.is_set():
                return

    def _read(self, job: LiveJob) -> None:
        """Read one job to its end."""
        reader = JobReader(self._shared, job.uuid, expected=job.total, identified=True, start=job.acked)
        number = job.acked
        for group in reader.results():
            for item in group:
                number += 1
                outcome = self._outcome(item, self._index(job, number))
                self._shared.hand_over(outcome, handled=reader.handled_by_caller(number))
        if self._shared.cancel.is_set():
            return
        self._base += job.total or number
        finish(self._shared, reader, self._finals)
        expected = job.total if job.total is not None else number
        names = [f"item {self._index(job, one + 1)}" for one in range(number, expected)]
        check_failed(reader, names, sent=expected, unit="items")
        if names or reader.expired:
            raise missing_results(names, 1, reader)

    def _index(self, job: LiveJob, number: int) -> int:
        """Return where a result's item stands in the first session's source."""
        if job.indexes is not None and number <= len(job.indexes):
            return job.indexes[number - 1]
        first = self._base if job.first_index is None else job.first_index
        return first + number - 1

    def _outcome(self, item: JSONObject, index: int) -> Outcome:
        """Turn a result into an outcome."""
        frame = item.get("frame_index")
        fallback = f"image_{index:04d}" if frame is None else f"frame_{frame}"
        name = str(item.get("name") or fallback)
        fault = parse_item_fault(item)
        if fault is not None:
            reason = f"{fault.message} ({fault.type})"
            return errors.ItemError(f"item {index}, {name}: {reason}", index=index, name=name, reason=reason)
        return self._library.predicted(item, index=index, name=name)

    @property
    def total(self) -> int | None:
        """How many results come; None until the server has said so."""
        return self._total

    @property
    def counted(self) -> bool:
        """The server tells."""
        return True

    @property
    def finals(self) -> Sequence[JSON]:
        """The final results of the jobs that had one."""
        return self._finals
