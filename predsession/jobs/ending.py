"""The end of a job: its final result is kept, it is cleared, and what went wrong is told."""

from __future__ import annotations

from collections.abc import Sequence

from predsession import errors
from predsession.jobs.job import JobReader
from predsession.jobs.shared import Shared
from predsession.wire import calls
from predsession.wire.httpreply import is_unknown_job, parse_json
from predsession.wire.jsontypes import JSON
from predsession.wire.replies import JobState
from predsession.wire.stages import Stage


def finish(shared: Shared, reader: JobReader, finals: list[JSON]) -> None:
    """Take a job that was read to its end out of the world.

    Parameters
    ----------
    shared : Shared
        The pipeline's.
    reader : JobReader
        Who read it.
    finals : list
        Where its final result is added, if it has one.
    """
    if reader.miscounted is not None and not (reader.state and reader.state.finished):
        shared.ledger.abandon(reader.uuid)
        return
    if reader.expired:
        shared.ledger.lost(reader.uuid)
        return
    if reader.state is not None and reader.state.has_final:
        reply = shared.caller.call(calls.result(reader.uuid))
        if not is_unknown_job(reply):
            finals.append(parse_json(reply))
    shared.clear_when_handled(reader)


def check_failed(reader: JobReader, missing: Sequence[str], *, sent: int, unit: str) -> None:
    """Raise for a job that failed, or was stopped by somebody else.

    Parameters
    ----------
    reader : JobReader
        Who read it.
    missing : sequence of str
        The names of what has no result.
    sent : int
        How many results were expected.
    unit : str
        What they are: ``images`` or ``frames``.

    Raises
    ------
    JobFailedError
        With the server's type, message and traceback.
    JobCancelledError
        If results are missing.
    """
    state = reader.state
    if state is None or reader.expired:
        return
    if failed(state):
        fault = state.exception
        kind, text = (fault.type, fault.message) if fault else ("", "")
        raise errors.JobFailedError(
            f"job {reader.uuid} failed on the server: {kind or 'error'}: {text or 'no message'}; "
            f"{len(missing)} of its {sent} {unit} have no result",
            type=kind,
            server_message=text,
            traceback=fault.traceback if fault else "",
            uuid=reader.uuid,
            stage=state.stage_text,
            items=missing,
        )
    if state.stage is Stage.CANCELLED and missing:
        raise errors.JobCancelledError(
            f"job {reader.uuid} was stopped by somebody else; {len(missing)} of its {sent} {unit} have no "
            "result. Another client, or an administrator, may be clearing this server's jobs.",
            uuid=reader.uuid,
            stage=state.stage_text,
            items=missing,
        )


def failed(state: JobState) -> bool:
    """Whether the server reports an exception."""
    return state.exception is not None or state.stage is Stage.ERROR


def missing_results(names: Sequence[str], tries: int, reader: JobReader | None) -> errors.JobError:
    """Make the error for items whose results cannot be had: of a job that is known no longer, or of some.

    Parameters
    ----------
    names : sequence of str
        The items.
    tries : int
        How many jobs there were for them.
    reader : JobReader or None
        Who read the last one.

    Returns
    -------
    JobExpiredError or MissingResultsError
        By whether the server still knew the last job.
    """
    more = ", ..." if len(names) > 5 else ""
    listed = f"{', '.join(names[:5])}{more}"
    uuid = reader.uuid if reader is not None else ""
    jobs = "one job" if tries == 1 else f"{tries} jobs"
    if reader is not None and reader.expired:
        return errors.JobExpiredError(
            f"the server no longer knows job {uuid}: it was restarted, or somebody cleared the job; "
            f"{len(names)} items have no result after {jobs}: {listed}",
            uuid=uuid,
            items=names,
        )
    return errors.MissingResultsError(
        f"{len(names)} items have no result after {jobs}: {listed}", uuid=uuid, items=names
    )


def untrusted(names: Sequence[str], reader: JobReader) -> errors.MissingResultsError:
    """Make the error for a stock server's results that do not fit the images, once some were handed over.

    Parameters
    ----------
    names : sequence of str
        All images of the job.
    reader : JobReader
        Who read it.

    Returns
    -------
    MissingResultsError
        Its cause is what the reader found.
    """
    listed = f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
    error = errors.MissingResultsError(
        f"{reader.miscounted}, and only their order tells which belongs to which: none of them is to be "
        f"trusted, those already handed over neither: {listed}. Run these images again; does another client "
        "read this server's jobs?",
        uuid=reader.uuid,
        stage=reader.state.stage_text if reader.state else "",
        items=names,
    )
    error.__cause__ = reader.miscounted
    return error
