"""How long jobs are kept: lease, clear, age, number."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time

from predsession.server.config import Limits
from predsession.server.job import Job
from predsession.server.jobs import Jobs

_log = logging.getLogger("predsession.server")


class Keeping:
    """Forgets jobs whose time is over.

    Parameters
    ----------
    jobs : Jobs
        All jobs.
    limits : Limits
        How long, and how many.
    stock : bool
        Whether a cleared job is kept while it runs, as on a stock server.
    """

    def __init__(self, jobs: Jobs, limits: Limits, *, stock: bool) -> None:
        self._jobs = jobs
        self._limits = limits
        self._stock = stock

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(self._limits.sweep)
            try:
                await self.sweep()
            except (OSError, sqlite3.Error) as error:
                _log.error("old jobs cannot be removed: %s; trying again", error)

    async def sweep(self) -> None:
        """Stop and forget what is over its time, and the oldest finished jobs beyond the limit."""
        now = time.monotonic()
        for job in self._jobs:
            if self._is_over(job, now):
                await self._jobs.remove(job)
        surplus = len(self._jobs) - self._limits.kept
        for job in [job for job in self._jobs if job.ended][: max(0, surplus)]:
            await self._jobs.remove(job)
        self._jobs.forget_sessions()

    def _is_over(self, job: Job, now: float) -> bool:
        """Whether a job's time is over."""
        if job.cleared_at is not None and now - job.cleared_at > self._limits.cleared:
            return job.ended or not self._stock
        if job.facts.extension and now - self._jobs.seen(job) > self._limits.lease:
            return True
        return job.ended and now - max(job.updated, job.touched) > self._limits.unread
