"""The answer to each call: a `Reply` in, a frozen value or an error of ours out.

Unknown fields, unknown stages and odd totals are survived; a broken promise (a missing field, a result
that is no object) is a `ProtocolError`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from predsession import errors
from predsession.wire.httpreply import Reply, error_text, parse_json
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object
from predsession.wire.stages import Stage, parse_stage

FEATURES = frozenset({"ack", "after", "wait", "idempotency", "item_errors", "lease", "list", "float_boxes"})
MOST_ITEMS = 10_000_000
"""No job has more; a total beyond is one of those that mean "not known". `list` makes room for that many."""
SHORTEST_LEASE = 0.1
"""Seconds; who asks for less is asked for signs of life no more often."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server says of itself.

    Parameters
    ----------
    app_name : str
        The model's, or the application's, name.
    features : frozenset of str
        Of the extension ``predsession/1``; empty for a stock server.
    lease : float or None
        Seconds after which a job that nobody names is stopped; at least 0.1. None where it has no leases.
    max_batch_size : int or None
        The model's own limit.
    raw : mapping
        The whole answer.
    """

    app_name: str = ""
    features: frozenset[str] = frozenset()
    lease: float | None = None
    max_batch_size: int | None = None
    raw: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerException:
    """The exception a job ended with, as the server tells it."""

    type: str
    message: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class JobState:
    """A job as a pop, a progress or a status call shows it.

    Parameters
    ----------
    stage : Stage
        Where it stands.
    stage_text : str
        In the server's own words.
    results : sequence of mapping
        The result items that came along; none with progress and status.
    pending : int
        How many results wait, where only their count came along.
    current, total : int or None
        Items done and to do, where the server knows.
    finished : bool
        Nothing can come after this answer.
    exception : ServerException or None
        What it failed with.
    has_final : bool
        Whether a final result can be fetched.
    raw : mapping
        The whole answer.
    """

    stage: Stage
    stage_text: str = ""
    results: Sequence[JSONObject] = ()
    pending: int = 0
    current: int | None = None
    total: int | None = None
    finished: bool = False
    exception: ServerException | None = None
    has_final: bool = False
    raw: JSONObject = field(default_factory=dict)


def parse_info(reply: Reply) -> ServerInfo:
    """Read the answer to ``get_session_info``."""
    body = as_object(parse_json(reply))
    extension = as_object(body.get("predsession"))
    listed = {name for name in as_list(extension.get("features")) if isinstance(name, str)}
    known = extension.get("version") == 1
    return ServerInfo(
        app_name=str(body.get("app_name") or ""),
        features=frozenset(listed & FEATURES) if known else frozenset(),
        lease=_lease(extension.get("lease_s")) if known else None,
        max_batch_size=_count(body.get("max_batch_size")),
        raw=body,
    )


def parse_submitted(reply: Reply) -> str:
    """Read the answer to a submit.

    Parameters
    ----------
    reply : Reply
        The answer.

    Returns
    -------
    str
        The job's uuid.

    Raises
    ------
    ProtocolError
        If there is none.
    RefusedError
        If the server answered "no".
    """
    body = as_object(parse_json(reply))
    uuid = body.get("inference_request_uuid")
    if isinstance(uuid, str) and uuid:
        return uuid
    if body.get("success") is False:
        raise errors.RefusedError(
            f"{reply.url} refused the job: {error_text(reply)}",
            status=reply.status,
            body_head=reply.head,
            url=reply.url,
        )
    raise errors.ProtocolError(
        f"{reply.url} accepted the job but named no inference_request_uuid: {reply.head!r}", url=reply.url
    )


def parse_job(reply: Reply) -> JobState:
    """Read the answer to a pop, a progress or a status call.

    Parameters
    ----------
    reply : Reply
        The answer.

    Returns
    -------
    JobState
        What it says.

    Raises
    ------
    ProtocolError
        If it is not an object, names no stage, or its results are not objects.
    """
    body = parse_json(reply)
    if not isinstance(body, Mapping) or not isinstance(body.get("stage"), str):
        raise errors.ProtocolError(f"{reply.url} answered without a stage: {reply.head!r}", url=reply.url)
    pending = _count(body.get("pending_results"))
    # Where results are only counted, a stock server's progress is true in one stage alone (docs/protocol.md).
    truth = "progress" if pending is None or "preparing_progress" not in body else "preparing_progress"
    numbers = as_object(body.get(truth))
    return JobState(
        stage=parse_stage(body["stage"]),
        stage_text=str(body["stage"]),
        results=_results(body.get("pending_results"), reply),
        pending=pending or 0,
        current=_count(numbers.get("current")),
        total=_total(numbers.get("total")),
        finished=body.get("finished") is True,
        exception=_exception(body.get("exception")),
        has_final=body.get("has_result") is True or body.get("final_result") is True,
        raw=body,
    )


def _results(value: JSON, reply: Reply) -> Sequence[JSONObject]:
    """Check the pending results; a count, as progress gives it, is none."""
    items = as_list(value)
    found = [item for item in items if isinstance(item, Mapping)]
    if len(found) != len(items):
        raise errors.ProtocolError(f"{reply.url} sent a result that is not an object", url=reply.url)
    return found


def _exception(value: JSON) -> ServerException | None:
    """Read the ``exception`` field; any text is taken where the shape is another."""
    if value is None or value is False:
        return None
    parts = as_object(value)
    if not parts:
        return ServerException("", str(value)[: errors.BODY_HEAD])
    return ServerException(
        str(parts.get("type") or ""), str(parts.get("message") or ""), str(parts.get("traceback") or "")
    )


def _number(value: JSON) -> float | None:
    """Return a finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number of hundreds of digits
        return None


def _total(value: JSON) -> int | None:
    """Return how many items a job has, or None where that is not known."""
    count = _count(value)
    return count if count is not None and count <= MOST_ITEMS else None


def _lease(value: JSON) -> float | None:
    """Return a lease, or None where it is none; signs of life for one of 0 would be a storm."""
    seconds = _number(value)
    return max(seconds, SHORTEST_LEASE) if seconds is not None and seconds > 0 else None


def _count(value: JSON) -> int | None:
    """Return a count of 0 or more, or None: servers say -1, null and worse for "not known"."""
    number = _number(value)
    return int(number) if number is not None and 0 <= number < 2**53 else None


@dataclass(frozen=True, slots=True)
class ItemFault:
    """What an item error on the wire says (extension ``item_errors``)."""

    type: str
    message: str


def parse_item_fault(item: JSONObject) -> ItemFault | None:
    """Return the fault if the result item is an item error, else None."""
    if "error" not in item or "annotation" in item:
        return None
    fault = as_object(item["error"])
    return ItemFault(str(fault.get("type") or "ItemError"), str(fault.get("message") or item["error"]))


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job in the server's list (extension ``list``).

    Parameters
    ----------
    uuid : str
        The job.
    session : str or None
        The session it belongs to.
    first_index : int or None
        Position in the session's source of its first item.
    indexes : tuple of int or None
        Of each, where they do not follow one another.
    acked : int
        How many of its results nobody needs any more.
    current, total : int or None
        Items done and to do.
    stage_text : str
        Where it stands, in the server's words.
    age : float or None
        Seconds since it was started.
    raw : mapping
        The whole entry.
    """

    uuid: str
    session: str | None = None
    first_index: int | None = None
    indexes: tuple[int, ...] | None = None
    acked: int = 0
    current: int | None = None
    total: int | None = None
    stage_text: str = ""
    age: float | None = None
    raw: JSONObject = field(default_factory=dict)


def parse_job_list(reply: Reply) -> list[LiveJob]:
    """Read the answer to ``list_inference_requests``."""
    return [_live_job(as_object(entry)) for entry in as_list(as_object(parse_json(reply)).get("requests"))]


def _live_job(entry: JSONObject) -> LiveJob:
    """Read one entry of the list."""
    session, numbers = entry.get("session"), as_object(entry.get("progress"))
    return LiveJob(
        uuid=str(entry.get("uuid") or ""),
        session=session if isinstance(session, str) else None,
        first_index=_count(entry.get("first_index")),
        indexes=_counts(entry.get("indexes")),
        acked=_count(entry.get("acked")) or 0,
        current=_count(numbers.get("current")),
        total=_total(numbers.get("total")),
        stage_text=str(entry.get("stage") or ""),
        age=_number(entry.get("age_s")),
        raw=entry,
    )


def _counts(value: JSON) -> tuple[int, ...] | None:
    """Return a list of counts, None for anything else."""
    counts = [_count(each) for each in as_list(value)]
    known = tuple(count for count in counts if count is not None)
    return known if known and len(known) == len(counts) else None
