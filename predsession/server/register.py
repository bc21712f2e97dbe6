"""Which jobs a server knows: by name, by submit key, by session; and when each was last named."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from predsession.errors import PredSessionError
from predsession.server.job import Job
from predsession.server.slices import Slice, slices


class UnknownJobError(PredSessionError):
    """A call names a job that is not, or no longer, known."""


class Register:
    """The jobs that are known; only the server's loop uses it.

    Parameters
    ----------
    uploads : Path
        The folder where their uploads are.
    """

    def __init__(self, uploads: Path) -> None:
        self._uploads = uploads
        self._jobs: dict[str, Job] = {}
        self._keys: dict[str, Job] = {}
        self._sessions: dict[str, float] = {}
        self._going: set[str] = set()
        self.held = 0
        """Bytes of uploads on the disk."""

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        """Iterate over all, oldest first."""
        return iter(list(self._jobs.values()))

    def upload(self, job: str) -> Path:
        """Return the file of a job's upload."""
        return self._uploads / job

    def pictures(self, job: Job) -> list[Slice]:
        """Return where the pictures of a job lie."""
        return slices(self.upload(job.uuid), job.facts.sizes)

    def new_uuid(self) -> str:
        """Return a name for a job."""
        return uuid.uuid4().hex

    def by_key(self, key: str) -> Job | None:
        """Return the job that was submitted with this key, and renew its lease."""
        job = self._keys.get(key)
        return None if job is None or job.uuid in self._going else self.get(job.uuid)

    def _enter(self, job: Job) -> None:
        """Know a job."""
        self._jobs[job.uuid] = job
        self.held += job.held
        if job.submit_key is not None:
            self._keys[job.submit_key] = job

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
        self.renew(job)
        return job

    def renew(self, job: Job) -> None:
        """Renew the lease of a job, and of its session."""
        job.touched = time.monotonic()
        if job.facts.session is not None:
            self._sessions[job.facts.session] = job.touched

    def of_session(self, session: str | None) -> list[Job]:
        """Return the jobs of a session, or all, and renew the session's lease."""
        if session is None:
            return list(self._jobs.values())
        jobs = [job for job in self._jobs.values() if job.facts.session == session]
        if jobs:
            self._sessions[session] = time.monotonic()
        return jobs

    def seen(self, job: Job) -> float:
        """Return when a call last named a job or its session."""
        return max(job.touched, self._sessions.get(job.facts.session or "", 0.0))

    def forget_sessions(self) -> None:
        """Drop the lease of sessions that have no jobs."""
        live = {job.facts.session for job in self._jobs.values()}
        self._sessions = {name: seen for name, seen in self._sessions.items() if name in live}
