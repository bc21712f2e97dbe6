"""What is done with results beside storing them: tracking, writing back, the final result.

Everything here that computes runs in a thread, so that other jobs go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from predsession.server.final import write_final
from predsession.server.inference import describe_error
from predsession.server.job import Advance, Job
from predsession.server.store import Store
from predsession.server.tracks import Tracks
from predsession.server.writing import Writing
from predsession.wire.jsontypes import JSONObject

End = Callable[[Job, "JSONObject | None"], Awaitable[None]]
"""Ends a job, with an error if there is one."""


class Aftermath:
    """What follows the results.

    Parameters
    ----------
    store : Store
        Where results are kept.
    tracks : Tracks
        Tracks.
    writing : Writing or None
        Writes back; None without a library.
    """

    def __init__(self, store: Store, tracks: Tracks, writing: Writing | None) -> None:
        self._store = store
        self._tracks = tracks
        self._writing = writing
        self._tasks: set[asyncio.Task[None]] = set()

    def concerns(self, job: Job) -> bool:
        """Whether anything is done for this job."""
        return job.facts.tracking is not None or job.facts.writing is not None

    async def apply(self, part: Advance) -> Advance:
        """Take the next results of a job, in order.

        Parameters
        ----------
        part : Advance
            What a batch brought.

        Returns
        -------
        Advance
            What is to be stored.
        """
        if part.job.facts.tracking is not None:
            return await asyncio.to_thread(self._tracks.apply, part)
        if part.job.facts.writing is not None and self._writing is not None:
            return await asyncio.to_thread(self._writing.apply, part)
        return part

    async def resume(self, job: Job) -> JSONObject | None:
        """Come to where a job stood that is taken up again.

        Parameters
        ----------
        job : Job
            Not ended.

        Returns
        -------
        JSONObject or None
            What went wrong, if anything.
        """
        if job.facts.tracking is None or job.done >= job.facts.total:
            return None
        try:
            await asyncio.to_thread(self._tracks.warm, job)
        except Exception as error:  # noqa: BLE001 - a tracker may be somebody else's code
            return describe_error(error, "tracker")
        return None

    def complete(self, job: Job, end: End) -> None:
        """Do what remains for a job, then end it; beside everything else, as it may take long.

        Parameters
        ----------
        job : Job
            All its results are stored. This may be asked for again after a crash.
        end : callable
            Ends it.
        """
        task = asyncio.create_task(self._complete(job, end))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _complete(self, job: Job, end: End) -> None:
        """Do what remains, then end the job."""
        failure: JSONObject | None = None
        try:
            if job.facts.tracking is not None:
                await asyncio.to_thread(self._write_final, job)
                await self._store.let_go(job.uuid)
        except Exception as error:  # noqa: BLE001 - it is this job's failure
            failure = describe_error(error)
        await end(job, failure)

    def _write_final(self, job: Job) -> None:
        """Write the final result of a tracked job."""
        write_final(job, self._store.stored(job.uuid, "results"), self._store.finals / job.uuid)

    def forget(self, job: Job) -> None:
        """Let go of a job that has ended."""
        self._tracks.forget(job)

    async def close(self) -> None:
        """Stop what is under way; a server that is started again does it again."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
