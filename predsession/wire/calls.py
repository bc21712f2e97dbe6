"""Every call of the job protocol: endpoint, state, and whether it may be sent twice.

References: docs/protocol.md; the endpoint names and state keys are Supervisely 6.74.51's, those of the
extension ``predsession/1`` are marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from predsession.wire.jsontypes import JSON, JSONObject


class Repeat(Enum):
    """What a second sending of the same call may do."""

    SAFE = "safe"
    """Nothing: it reads, or says again what was said."""
    KEYED = "keyed"
    """Nothing: the server knows it by its key; but a fault that it tells in JSON is its last word."""
    REFUSED = "refused"
    """Harm, unless the server did not act on the first: it could not be reached, or answered 429 or 503."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request, as data.

    Parameters
    ----------
    endpoint : str
        The last part of the URL.
    state : mapping
        Goes into the JSON body as ``state``, or beside the files as a form field.
    repeat : Repeat
        Whether the transport may try again by itself.
    headers : mapping
        Beside the transport's own.
    token_in_body : bool
        Whether the token also travels in the JSON body: a platform's server resolves ids with it.
    """

    endpoint: str
    state: JSONObject = field(default_factory=dict)
    repeat: Repeat = Repeat.SAFE
    headers: Mapping[str, str] = field(default_factory=dict)
    token_in_body: bool = False


def session_info() -> Call:
    """Ask what the server is and can do."""
    return Call("get_session_info")


def model_meta() -> Call:
    """Ask for the model's classes and tags."""
    return Call("get_model_meta")


def custom_settings() -> Call:
    """Ask for the model's settings and their defaults."""
    return Call("get_custom_inference_settings")


def pop(uuid: str) -> Call:
    """Fetch the pending results; they are gone on the server then, so it is not repeated blindly."""
    return Call("pop_inference_results", {"inference_request_uuid": uuid}, Repeat.REFUSED)


def pop_acked(uuid: str, *, ack: int, after: int | None = None, wait: float | None, limit: int) -> Call:
    """Fetch results by number and let the server forget those up to `ack` (extension ``ack``).

    Parameters
    ----------
    uuid : str
        The job.
    ack : int
        The number of the last result that nobody needs any more; 0 at first.
    after : int or None
        The number of the last result that has arrived (extension ``after``); None where that is `ack`.
    wait : float or None
        Seconds the server may hold the answer (extension ``wait``); None where it has no such thing.
    limit : int
        How many results at most.

    Returns
    -------
    Call
        Safe to repeat: the same question has the same answer.
    """
    state: dict[str, JSON] = {"inference_request_uuid": uuid, "ack": ack, "limit": limit}
    if wait is not None:
        state["wait"] = wait
    if after is not None:
        state["after"] = after
    return Call("pop_inference_results", state)


def list_jobs(session: str | None = None) -> Call:
    """Ask for the live jobs of a session, or for all (extension ``list``)."""
    return Call("list_inference_requests", {} if session is None else {"session": session})


def progress(uuid: str) -> Call:
    """Ask how far the job is; consumes nothing."""
    return _by_uuid("get_inference_progress", uuid)


def status(uuid: str) -> Call:
    """Ask for the job's status; consumes nothing."""
    return _by_uuid("get_inference_status", uuid)


def result(uuid: str) -> Call:
    """Ask for the job's final result; consumes nothing."""
    return _by_uuid("get_inference_result", uuid)


def stop(uuid: str) -> Call:
    """Ask the server to stop the job."""
    return _by_uuid("stop_inference", uuid)


def clear(uuid: str) -> Call:
    """Let the server forget the job."""
    return _by_uuid("clear_inference_request", uuid)


def _by_uuid(endpoint: str, uuid: str) -> Call:
    """Build a call that needs nothing but the job's id."""
    return Call(endpoint, {"inference_request_uuid": uuid})
