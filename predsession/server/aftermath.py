"""What is done with results beside storing them: tracking, the final result, writing back to the library."""

from __future__ import annotations

from predsession.server.final import write_final
from predsession.server.job import Advance, Job
from predsession.server.store import Store
from predsession.server.tracks import Tracks
from predsession.server.writing import Writing


class Aftermath:
    """See `jobs.Aftermath`.

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

    def concerns(self, job: Job) -> bool:
        """Whether anything is done for this job."""
        return job.facts.tracking is not None or job.facts.writing is not None

    def apply(self, part: Advance) -> Advance:
        """Take the next results, in order; return them as they are to be stored."""
        if part.job.facts.tracking is not None:
            return self._tracks.apply(part)
        return part if self._writing is None else self._writing.apply(part)

    def resume(self, job: Job) -> None:
        """Come to where a job stood that is taken up again."""
        if job.facts.tracking is not None and job.done < job.facts.total:
            self._tracks.warm(job)

    def complete(self, job: Job) -> None:
        """Write the final result of a tracked job."""
        if job.facts.tracking is not None:
            write_final(job, self._store.stored(job.uuid, "results"), self._store.finals / job.uuid)

    def forget(self, job: Job) -> None:
        """Let go of a job that has ended."""
        self._tracks.forget(job)
