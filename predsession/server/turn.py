"""The results of a job whose turn it is, and what they mean for its stage."""

from __future__ import annotations

from predsession.server.job import Advance, Job
from predsession.server.store_rows import Progress
from predsession.wire.stages import Stage


def in_turn(job: Job) -> list[Advance]:
    """Take out a job's results whose turn it is.

    Parameters
    ----------
    job : Job
        With results in `Job.early`.

    Returns
    -------
    list of Advance
        All of them joined to one; empty if those that come next are not there.
    """
    joined: Advance | None = None
    done = job.done
    while not job.ended and (part := job.early.pop(done + 1, None)) is not None:
        done += len(part.items)
        items = part.items if joined is None else [*joined.items, *part.items]
        rows = part.rows if joined is None else [*joined.rows, *part.rows]
        joined = Advance(job, job.done + 1, items, 0, part.failure, rows)
        if part.failure is not None:
            break
    return [] if joined is None else [joined]


def stage_after(part: Advance, *, special: bool) -> Stage:
    """Return the stage of a job once a part is stored.

    Parameters
    ----------
    part : Advance
        The next results.
    special : bool
        Whether something remains to be done when all are stored.

    Returns
    -------
    Stage
        The stage.
    """
    job = part.job
    if part.failure is not None:
        return Stage.ERROR
    if job.done + len(part.items) < job.facts.total:
        return job.stage
    if job.stopped:
        return Stage.CANCELLED
    return Stage.POSTPROCESS if special else Stage.FINISHED


def progress_of(part: Advance, stage: Stage) -> Progress:
    """Return what is stored of a part."""
    return Progress(part.job.uuid, part.first, part.items, part.job.state(stage, part.failure), part.rows)
