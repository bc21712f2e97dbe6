"""All jobs: how they are added, advanced, read, stopped and forgotten.

Invariant: what a caller is told has been stored first.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from predsession.errors import PredSessionError
from predsession.server.config import Limits
from predsession.server.job import PAUSE_AT, Job, JobFacts
from predsession.server.schedule import Schedule
from predsession.server.store import JobRow, Progress, Store
from predsession.wire.jsontypes import JSONObject
from predsession.wire.stages import Stage


class UnknownJobError(PredSessionError):
    """A call names a job that is not, or no longer, known."""


@dataclass(frozen=True, slots=True)
class Advance:
    """What a batch brought for one job.

    Parameters
    ----------
    job : Job
        The job.
    items : sequence of bytes
        New results, in order, the wire's JSON.
    settled : int
        How many of its items are no longer in a worker's hands.
    failure : JSONObject or None
        What ends the job, after these items.
    """

    job: Job
    items: Sequence[bytes]
    settled: int
    failure: JSONObject | None = None


class Jobs:
    """The jobs of a server; only its loop uses them.

    Parameters
    ----------
    store : Store
        Where they are kept.
    schedule : Schedule
        Where they queue.
    limits : Limits
        How long they are kept.
    stock : bool
        Whether a stop does not reach a job that runs.
    """

    def __init__(self, store: Store, schedule: Schedule, *, limits: Limits, stock: bool) -> None:
        self._store = store
        self._schedule = schedule
        self._limits = limits
        self._stock = stock
        self._jobs: dict[str, Job] = {}
        self._keys: dict[str, Job] = {}
        self._sessions: dict[str, float] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        """Iterate over all, oldest first."""
        return iter(list(self._jobs.values()))

    def restore(self) -> None:
        """Take up the jobs of the server that ran before on this folder."""
        unread = self._store.unread()
        since = time.monotonic() - time.time()
        for row in self._store.load():
            job = Job(
                row.uuid, JobFacts.from_json(row.facts), row.created + since, row.created, row.submit_key
            )
            job.restore(row.done, row.state, unread.get(row.uuid, 0))
            job.updated = job.touched = time.monotonic()
            self._keep(job)

    def folder(self, job: str) -> Path:
        """Return the folder of a job's uploads."""
        return self._store.uploads / job

    def new_uuid(self) -> str:
        """Return a name for a job."""
        return uuid.uuid4().hex

    def by_key(self, key: str) -> Job | None:
        """Return the job that was submitted with this key."""
        return self._keys.get(key)

    async def add(self, name: str, facts: JobFacts, submit_key: str | None = None) -> Job:
        """Store a new job and queue it.

        Parameters
        ----------
        name : str
            Its uuid; the uploads are there already.
        facts : JobFacts
            What was asked.
        submit_key : str or None
            If a job with this key exists, that one is returned and nothing is added.

        Returns
        -------
        Job
            The job.
        """
        job = Job(name, facts, time.monotonic(), time.time(), submit_key)
        row = JobRow(name, submit_key, job.created_epoch, facts.to_json(), 0, job.state())
        stored = await self._store.add(row)
        if stored != name:
            return self._jobs[stored]
        self._keep(job)
        return job

    def _keep(self, job: Job) -> None:
        """Know a job, and queue it if it has not ended."""
        self._jobs[job.uuid] = job
        if job.submit_key is not None:
            self._keys[job.submit_key] = job
        if not job.ended:
            self._schedule.add(job)

    def get(self, name: str) -> Job:
        """Return a job, and renew its lease.

        Parameters
        ----------
        name : str
            Its uuid.

        Returns
        -------
        Job
            The job.

        Raises
        ------
        UnknownJobError
            If there is none, or no longer.
        """
        job = self._jobs.get(name)
        if job is None:
            raise UnknownJobError(name)
        job.touched = time.monotonic()
        if job.facts.session is not None:
            self._sessions[job.facts.session] = job.touched
        return job

    def of_session(self, session: str | None) -> list[Job]:
        """Return the jobs of a session, or all, and renew the session's lease."""
        if session is None:
            return list(self._jobs.values())
        self._sessions[session] = time.monotonic()
        return [job for job in self._jobs.values() if job.facts.session == session]

    def begin(self, job: Job) -> None:
        """Note that a worker has a job's first items."""
        if job.stage is Stage.PREPARING:
            job.go(Stage.INFERENCE)
            job.updated = time.monotonic()

    async def record(self, parts: Sequence[Advance]) -> None:
        """Store what a batch brought, then tell those who wait.

        Parameters
        ----------
        parts : sequence of Advance
            One for each job of the batch.
        """
        live = [part for part in parts if part.job.uuid in self._jobs and not part.job.ended]
        steps = [(part, _stage_after(part)) for part in live]
        await self._store.append([_progress(part, stage) for part, stage in steps])
        for part, stage in steps:
            self._publish(part, stage)
        for part in live:
            await self._end_if_stopped(part.job)

    def _publish(self, part: Advance, stage: Stage) -> None:
        """Let callers see what has been stored."""
        job = part.job
        job.done += len(part.items)
        job.in_flight -= part.settled
        job.pending += len(part.items)
        job.paused = job.paused or job.pending >= PAUSE_AT
        job.go(stage, part.failure)
        self._changed(job)

    def _changed(self, job: Job) -> None:
        """Tell those who wait, and drop a job that has ended from the queue."""
        job.updated = time.monotonic()
        if job.ended:
            self._schedule.discard(job)
        job.notify()

    async def fail(self, job: Job, failure: JSONObject) -> None:
        """End a job with an error."""
        if not job.ended:
            await self._end(job, Stage.ERROR, failure)

    async def stop(self, job: Job) -> None:
        """Stop a job: what a worker has begun is finished, nothing more is begun."""
        job.stopped = True
        job.updated = time.monotonic()
        if not self._stock and not job.ended:
            self._schedule.discard(job)
            await self._end_if_stopped(job)

    async def clear(self, job: Job) -> None:
        """Stop a job and let it go soon."""
        await self.stop(job)
        if job.cleared_at is None:
            job.cleared_at = time.monotonic()

    async def _end_if_stopped(self, job: Job) -> None:
        """End a stopped job once no worker has any of its items."""
        if job.stopped and not job.in_flight and not job.ended and not self._stock:
            await self._end(job, Stage.CANCELLED)

    async def _end(self, job: Job, stage: Stage, failure: JSONObject | None = None) -> None:
        """Store the end of a job, then show it."""
        await self._store.set_state(job.uuid, job.state(stage, failure))
        if not job.ended:
            job.go(stage, failure)
            self._changed(job)

    async def pop(self, job: Job) -> list[bytes]:
        """Take all unread results of a job away, as a stock server does.

        Parameters
        ----------
        job : Job
            The job.

        Returns
        -------
        list of bytes
            The wire's JSON of each, in order.
        """
        items = await self._store.pop(job.uuid)
        job.pending -= len(items)
        job.acked = max(job.acked, job.done - job.pending)
        if items:
            job.updated = time.monotonic()
        job.paused = False
        return items

    async def read(self, job: Job, *, ack: int, limit: int) -> list[tuple[int, bytes]]:
        """Return the results after a number, and forget those up to it.

        Parameters
        ----------
        job : Job
            The job.
        ack : int
            The highest number that has arrived.
        limit : int
            How many to return at most.

        Returns
        -------
        list of (int, bytes)
            Number and JSON of each.
        """
        gone, items = await self._store.read(job.uuid, ack=ack, limit=limit)
        job.pending -= gone
        job.acked = max(job.acked, ack)
        job.paused = False
        return items

    async def remove(self, job: Job) -> None:
        """Forget a job and all that belongs to it."""
        job.stopped = True
        self._jobs.pop(job.uuid, None)
        if job.submit_key is not None:
            self._keys.pop(job.submit_key, None)
        self._schedule.discard(job)
        job.notify()
        await self._store.remove(job.uuid)

    async def sweep(self) -> None:
        """Stop and forget what is over its time."""
        now = time.monotonic()
        for job in list(self._jobs.values()):
            if self._expired(job, now):
                await self.remove(job)
        live = {job.facts.session for job in self._jobs.values()}
        self._sessions = {name: seen for name, seen in self._sessions.items() if name in live}

    def _expired(self, job: Job, now: float) -> bool:
        """Whether a job's time is over."""
        if job.cleared_at is not None and now - job.cleared_at > self._limits.cleared_s:
            return job.ended or not self._stock
        seen = max(job.touched, self._sessions.get(job.facts.session or "", 0.0))
        if job.facts.extension and now - seen > self._limits.lease_s:
            return True
        return job.ended and now - job.updated > self._limits.unread_s

    def release(self) -> None:
        """Wake everybody who waits, because the server ends."""
        for job in self._jobs.values():
            job.notify()


def _stage_after(part: Advance) -> Stage:
    """Return the stage of a job once the part is stored."""
    job = part.job
    if part.failure is not None:
        return Stage.ERROR
    if job.done + len(part.items) < job.facts.total:
        return job.stage
    return Stage.CANCELLED if job.stopped else Stage.FINISHED


def _progress(part: Advance, stage: Stage) -> Progress:
    """Return what is stored of a part."""
    return Progress(part.job.uuid, part.job.done + 1, part.items, part.job.state(stage, part.failure))
