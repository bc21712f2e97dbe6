"""The JSON of a job, key by key as a stock server writes it.

References
----------
docs/protocol.md, "Polling".
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from predsession.server.job import Job
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.stages import Stage

_HOLE = '"pending_results":[]'


def dump(value: JSON) -> bytes:
    """Return compact JSON."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # Half a character, in the name of a file or in a model's message; an escape of it is valid JSON.
        return json.dumps(value, separators=(",", ":")).encode()


def true_progress(job: Job) -> dict[str, JSON]:
    """Return how far a job is: bytes that arrived until it starts, items from then on.

    Parameters
    ----------
    job : Job
        The job.

    Returns
    -------
    dict
        ``status``, ``current``, ``total`` and ``is_size``.
    """
    preparing = job.stage is Stage.PREPARING
    current = job.facts.size if preparing else job.done
    total = job.facts.size if preparing else job.facts.total
    return {"status": job.stage.value, "current": current, "total": total, "is_size": False}


def job_object(job: Job, pending: JSON, *, progress: JSONObject | None = None) -> dict[str, JSON]:
    """Return the object that progress and pop answer with.

    Parameters
    ----------
    job : Job
        The job.
    pending : JSON
        A count in the one, a list in the other.
    progress : JSONObject or None
        Stands in for the true progress.

    Returns
    -------
    dict
        In the recorded order of keys.
    """
    true = true_progress(job)
    return {
        "uuid": job.uuid,
        "stage": job.stage.value,
        "progress": progress or true,
        "pending_results": pending,
        "final_result": job.has_final,
        "exception": job.exception,
        "is_inferring": job.stage is Stage.INFERENCE,
        "stopped": job.stopped,
        "paused": job.paused,
        "finished": job.ended,
        "created_at": job.created,
        "updated_at": job.updated,
        "cancel_inference": job.stopped,
        "has_result": job.has_final,
        "preparing_progress": true,
        "result": job.has_final,
    }


def progress_answer(job: Job) -> dict[str, JSON]:
    """Return the answer of ``get_inference_progress``.

    Parameters
    ----------
    job : Job
        The job.

    Returns
    -------
    dict
        Outside the stage of inference ``progress`` says 0 of 1, as on a stock server.
    """
    shown: JSONObject | None = None if job.stage is Stage.INFERENCE else {"current": 0, "total": 1}
    return job_object(job, max(0, job.pending), progress=shown)


def status_answer(job: Job, memory: JSONObject) -> dict[str, JSON]:
    """Return the answer of ``get_inference_status``.

    Parameters
    ----------
    job : Job
        The job.
    memory : JSONObject
        ``gpu_memory`` and ``ram_memory``.

    Returns
    -------
    dict
        With the true progress.
    """
    return {
        "uuid": job.uuid,
        "stage": job.stage.value,
        "progress": {"message": job.stage.value, **true_progress(job)},
        "exception": job.exception,
        "is_inferring": job.stage is Stage.INFERENCE,
        "stopped": job.stopped,
        "paused": job.paused,
        "finished": job.ended,
        **memory,
    }


def tracker_of(job: Job) -> dict[str, JSON]:
    """Return which tracker was asked for, and which one runs, should that one not be installed."""
    tracking = job.facts.tracking
    if tracking is None:
        return {}
    return {"tracker": {"asked": tracking.asked, "runs": tracking.runs, "settings": tracking.settings}}


def pop_answer(flags: dict[str, JSON], items: Sequence[bytes]) -> bytes:
    """Return the answer of ``pop_inference_results``.

    Parameters
    ----------
    flags : dict
        What `job_object` gave before the items were read, with an empty list of them: so ``finished`` never
        says that nothing more will come when something may.
    items : sequence of bytes
        The stored JSON of each; spliced in, not read and written again.

    Returns
    -------
    bytes
        JSON.
    """
    head, tail = dump(flags).decode().split(_HOLE, 1)
    body = b",".join(items)
    return b"".join((head.encode(), b'"pending_results":[', body, b"]", tail.encode()))


def numbered(number: int, item: bytes) -> bytes:
    """Return an item with its number in the job in front."""
    return b'{"number":%d,%b' % (number, item[1:])


def listed(job: Job) -> dict[str, JSON]:
    """Return a job's entry in ``list_inference_requests``.

    Parameters
    ----------
    job : Job
        The job.

    Returns
    -------
    dict
        What a client needs to find it again.
    """
    progress = {"current": job.done, "total": job.facts.total}
    return {
        "uuid": job.uuid,
        "model": job.facts.model,
        "session": job.facts.session,
        "first_index": job.facts.first_index,
        "indexes": None if job.facts.indexes is None else list(job.facts.indexes),
        "stage": job.stage.value,
        "progress": progress,
        "pending_results": max(0, job.pending),
        "acked": job.acked,
        "stopped": job.stopped,
        "finished": job.ended,
        "created_at": job.created,
        "updated_at": job.updated,
        "age_s": time.monotonic() - job.created,
        "lease": job.facts.extension,
        **tracker_of(job),
    }
