"""All jobs: how they are added, advanced, read, stopped and forgotten.

Invariants:

* What a caller is told has been stored first.
* A job's results are stored in the order of its items, whichever worker was quicker.
* What is done beside storing, tracking and writing back, is done in that order, before it is stored.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Mapping, Sequence

from predsession.errors import PredSessionError
from predsession.server.aftermath import Aftermath
from predsession.server.job import PAUSE_AT, Advance, Job, JobFacts
from predsession.server.register import Register
from predsession.server.schedule import Schedule
from predsession.server.store import Store
from predsession.server.store_rows import JobRow
from predsession.server.turn import in_turn, progress_of, stage_after
from predsession.wire.jsontypes import JSONObject
from predsession.wire.stages import Stage

_RETRY_S = 1.0
_LOOKS, _LOOK_S = 200, 0.01
_log = logging.getLogger("predsession.server")


class BusyKeyError(PredSessionError):
    """The job that was submitted with a key is being removed, and that takes long."""


class Jobs(Register):
    """The jobs of a server, and what becomes of them; only its loop uses them.

    Parameters
    ----------
    store : Store
        Where they are kept.
    schedules : mapping of str to Schedule
        Where they queue, by model.
    stock : bool
        Whether a stop does not reach a job of pictures that runs.
    aftermath : Aftermath or None
        What is done beside storing.
    """

    def __init__(
        self,
        store: Store,
        schedules: Mapping[str, Schedule],
        *,
        stock: bool,
        aftermath: Aftermath | None = None,
    ) -> None:
        super().__init__(store.uploads)
        self._store = store
        self._schedules = schedules
        self._stock = stock
        self._aftermath = aftermath
        self._cold: list[Job] = []
        self._storing = asyncio.Lock()
        self.failing = False
        """Whether the disk refuses what should be stored."""

    def restore(self) -> None:
        """Take up the jobs of the server that ran before on this folder."""
        unread = self._store.unread()
        now = time.monotonic()
        since = now - time.time()
        for row in self._store.load():
            facts = JobFacts.from_json(row.facts)
            job = Job(row.uuid, facts, row.created + since, row.created, row.submit_key)
            job.restore(row.done, row.state, unread.get(row.uuid, 0), now=now)
            job.held = self._store.held(row.uuid)
            if facts.model not in self._schedules and not job.ended:
                message = f"this server has no model {facts.model!r} any more"
                job.go(Stage.ERROR, {"type": "ModelLoadError", "message": message, "traceback": ""})
            if job.stopped and not job.ended and self._can_stop(job):
                job.go(Stage.CANCELLED)
            if self._is_special(job) and not job.ended:
                self._cold.append(job)
            self._keep(job, queue=job not in self._cold)

    async def resume(self) -> None:
        """Drop uploads that no job needs; queue the jobs that first have to come to where they stood."""
        for job in self:
            await self._discard(job)
        while self._cold and self._aftermath is not None:
            job = self._cold.pop(0)
            failure = await self._aftermath.resume(job)
            if job.ended or job.uuid not in self._jobs:
                continue
            if failure is not None:
                await self.fail(job, failure)
            elif job.done < job.facts.total:
                self._schedules[job.facts.model].add(job)
            else:
                job.go(Stage.INFERENCE)
                job.go(Stage.POSTPROCESS)
                self._aftermath.complete(job, self._finish)

    def _is_special(self, job: Job) -> bool:
        """Whether something is done beside storing."""
        return self._aftermath is not None and self._aftermath.concerns(job)

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

        Raises
        ------
        BusyKeyError
            If the job with this key is being removed and does not go.
        """
        job = Job(name, facts, time.monotonic(), time.time(), submit_key)
        keeps = facts.tracking is not None
        row = JobRow(name, submit_key, job.created_epoch, facts.to_json(), 0, job.state(), keeps)
        for _ in range(_LOOKS):
            stored = await self._store.add(row)
            if stored == name:
                self._keep(job)
                return job
            if stored in self._jobs and stored not in self._going:
                return self.get(stored)
            await asyncio.sleep(_LOOK_S)  # that job is being removed at this very moment
        raise BusyKeyError("the job with this key is being removed")

    def _keep(self, job: Job, *, queue: bool = True) -> None:
        """Know a job, and queue it if it has not ended."""
        self._enter(job)
        if queue and not job.ended:
            self._schedules[job.facts.model].add(job)

    def begin(self, job: Job) -> float | None:
        """Note that a worker has a job's first items; return how long it waited, if they are."""
        if job.stage is not Stage.PREPARING:
            return None
        job.go(Stage.INFERENCE)
        job.updated = time.monotonic()
        return job.updated - job.created

    async def record(self, parts: Sequence[Advance]) -> None:
        """Store what a batch brought as far as it is its turn, then tell those who wait.

        Parameters
        ----------
        parts : sequence of Advance
            One for each job of the batch.
        """
        for part in parts:
            if part.items or part.failure is not None:
                part.job.early[part.first] = part
        async with self._storing:
            await self._store_in_turn([part.job for part in parts])
        for part in parts:
            # Not before: a job that is stopped meanwhile must not end before its last results are stored.
            part.job.in_flight -= part.settled
            await self._end_if_stopped(part.job)
            await self._discard(part.job)

    async def _store_in_turn(self, jobs: Sequence[Job]) -> None:
        """Store the results whose turn it is; if the disk refuses, wait and try again."""
        parts = [part for job in jobs if job.uuid in self._jobs for part in in_turn(job)]
        if self._aftermath is not None:
            parts = [await self._aftermath.apply(part) for part in parts]
        steps = [(part, stage_after(part, special=self._is_special(part.job))) for part in parts]
        while steps:
            try:
                await self._store.append([progress_of(part, stage) for part, stage in steps])
                break
            except (sqlite3.Error, OSError) as error:
                self.failing = True
                _log.error("results cannot be stored: %s; trying again", error)
                await asyncio.sleep(_RETRY_S)
        self.failing = False
        for part, stage in steps:
            self._publish(part, stage)
            if part.job.stage is Stage.POSTPROCESS and self._aftermath is not None:
                self._aftermath.complete(part.job, self._finish)

    async def _finish(self, job: Job, failure: JSONObject | None) -> None:
        """End a job of which nothing remains to be done."""
        if failure is not None:
            await self.fail(job, failure)
        elif not job.ended and job.uuid in self._jobs:
            await self._end(job, Stage.FINISHED)

    def _publish(self, part: Advance, stage: Stage) -> None:
        """Let callers see what has been stored."""
        job = part.job
        job.done += len(part.items)
        job.pending += len(part.items)
        job.paused = job.paused or job.pending >= PAUSE_AT
        if not job.ended:
            job.go(stage, part.failure)
        self._changed(job)

    def _changed(self, job: Job) -> None:
        """Tell those who wait, and drop a job that has ended from the queue."""
        job.updated = time.monotonic()
        if job.ended:
            job.early.clear()
            self._schedules[job.facts.model].discard(job)
        if self._aftermath is not None and (job.ended or job.uuid not in self._jobs):
            self._aftermath.forget(job)
        job.notify()

    async def fail(self, job: Job, failure: JSONObject) -> None:
        """End a job with an error."""
        if not job.ended:
            _log.error("job %s failed with %s: %s", job.uuid, failure["type"], failure["message"])
            await self._end(job, Stage.ERROR, failure)

    async def stop(self, job: Job) -> None:
        """Stop a job: what a worker has begun is finished, nothing more is begun."""
        job.stopped = True
        job.updated = time.monotonic()
        if self._can_stop(job) and not job.ended:
            self._schedules[job.facts.model].discard(job)
            await self._store.mark(job.uuid, "stopped")
            await self._end_if_stopped(job)

    def _can_stop(self, job: Job) -> bool:
        """Whether a stop reaches a job that runs; on a stock server not one of uploaded pictures."""
        return not self._stock or job.facts.clip is not None

    async def clear(self, job: Job) -> None:
        """Stop a job and let it go soon."""
        await self.stop(job)
        if job.cleared_at is None:
            job.cleared_at = time.monotonic()
            job.notify()
            await self._store.mark(job.uuid, "stopped", "cleared")

    async def _end_if_stopped(self, job: Job) -> None:
        """End a stopped job once no worker has any of its items."""
        if job.stopped and not job.in_flight and not job.ended and self._can_stop(job):
            await self._end(job, Stage.CANCELLED)

    async def _end(self, job: Job, stage: Stage, failure: JSONObject | None = None) -> None:
        """Store the end of a job, then show it."""
        await self._store.set_state(job.uuid, job.state(stage, failure))
        if not job.ended:
            job.go(stage, failure)
            self._changed(job)
        await self._discard(job)

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
        job.acked += len(items)
        if items:
            job.updated = time.monotonic()
        job.paused = False
        return items

    async def read(self, job: Job, *, ack: int, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return the results after a number, and forget those up to it.

        Parameters
        ----------
        job : Job
            The job.
        ack : int
            The highest number that may be forgotten.
        after : int
            The number after which the answer begins.
        limit : int
            How many to return at most.

        Returns
        -------
        list of (int, bytes)
            Number and JSON of each.
        """
        gone, items = await self._store.read(job.uuid, ack=min(ack, job.done), after=after, limit=limit)
        job.pending -= gone
        job.acked = max(job.acked, min(ack, job.done))
        job.paused = False
        return items

    async def _discard(self, job: Job) -> None:
        """Remove the upload of a job that has ended; a stock server's cache still needs it."""
        if job.ended and job.held and not self._stock and job.uuid in self._jobs:
            self.held -= job.held
            job.held = 0
            await self._store.discard(job.uuid)

    async def remove(self, job: Job) -> None:
        """Forget a job and all that belongs to it; if the database refuses, it is known until a later try."""
        job.stopped = True
        if job.facts.model in self._schedules:
            self._schedules[job.facts.model].discard(job)
        self._going.add(job.uuid)
        try:
            await self._store.remove(job.uuid)
        except BaseException:
            job.cleared_at = job.cleared_at or time.monotonic()
            raise
        finally:
            self._going.discard(job.uuid)
        if self._jobs.pop(job.uuid, None) is None:
            return
        if self._aftermath is not None:
            self._aftermath.forget(job)
        self.held -= job.held
        if job.submit_key is not None:
            self._keys.pop(job.submit_key, None)
        job.notify()

    def release(self) -> None:
        """Wake everybody who waits, because the server ends."""
        for job in self._jobs.values():
            job.notify()
