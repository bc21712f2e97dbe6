"""Reading a call's body, the way a stock server does, down to its faults."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from predsession.server.config import Limits
from predsession.server.job import Job
from predsession.server.jobs import Jobs
from predsession.server.json_text import read_json
from predsession.server.refusal import SLOW, Fault, Refusal, explained, unknown_job
from predsession.server.register import UnknownJobError
from predsession.wire.jsontypes import JSONObject

UUID = "inference_request_uuid"


async def read_json_state(request: Request, limits: Limits) -> JSONObject:
    """Return the state of a JSON call.

    Parameters
    ----------
    request : Request
        The call.
    limits : Limits
        The largest body, and how long it may take.

    Returns
    -------
    JSONObject
        The state.

    Raises
    ------
    Fault
        If there is no body, or no state in it; a stock server trips over both.
    Refusal
        If the body is too large, too slow, or no JSON object.
    """
    body = await read_body(request, limits)
    if not body:
        raise Fault("AttributeError(\"'State' object has no attribute 'state'\")")
    try:
        data = read_json(body)
    except ValueError as error:
        raise Refusal(400, explained(f"The body is not JSON: {error}")) from error
    state = data.get("state") if isinstance(data, dict) else None
    if state is None:
        raise Fault("AttributeError(\"'NoneType' object has no attribute 'get'\")")
    if not isinstance(state, dict):
        raise Refusal(400, explained("state is not a JSON object"))
    return state


async def read_body(request: Request, limits: Limits) -> bytes:
    """Read a whole body.

    Parameters
    ----------
    request : Request
        The call.
    limits : Limits
        The largest body, and how long it may take.

    Returns
    -------
    bytes
        The body, empty where there is none.

    Raises
    ------
    Refusal
        If it is larger, or does not come in time.
    """
    body = bytearray()
    try:
        # As a whole: it is small, and a byte now and then would hold a place that others want.
        async with asyncio.timeout(limits.idle):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limits.call:
                    raise Refusal(413, explained(f"The body is larger than {limits.call} bytes."))
    except TimeoutError:
        raise Refusal(SLOW, explained(f"The body took more than {limits.idle:g} seconds.")) from None
    return bytes(body)


def named_job(state: JSONObject, jobs: Jobs, *, success: bool = False) -> Job:
    """Return the job that a state names.

    Parameters
    ----------
    state : JSONObject
        Of the call.
    jobs : Jobs
        Where to look.
    success : bool
        Whether the refusal carries ``success``, as that of stop and clear does.

    Returns
    -------
    Job
        Its lease is renewed.

    Raises
    ------
    Refusal
        If the state names none.
    Fault
        If there is no such job.
    """
    uuid = state.get(UUID)
    if not uuid:
        message = f"Error: '{UUID}' is required."
        raise Refusal(400, {"message": message, "success": False} if success else {"message": message})
    try:
        return jobs.get(str(uuid))
    except UnknownJobError as error:
        raise Fault(unknown_job(str(uuid), len(jobs))) from error


def whole_number(state: JSONObject, name: str) -> int | None:
    """Return a key of the extension that counts something.

    Parameters
    ----------
    state : JSONObject
        Of the call.
    name : str
        The key.

    Returns
    -------
    int or None
        None where it is not given.

    Raises
    ------
    Refusal
        If it is no whole number of at least 0.
    """
    value = state.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Refusal(400, explained(f"{name} is {value!r}; it must be a whole number of at least 0"))
    return value


def seconds(state: JSONObject, name: str, *, most: float) -> float:
    """Return a key of the extension that is a time, 0 where it is not given.

    Parameters
    ----------
    state : JSONObject
        Of the call.
    name : str
        The key.
    most : float
        More is cut to this.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    Refusal
        If it is no number of at least 0.
    """
    value = state.get(name, 0)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= 0:
        raise Refusal(400, explained(f"{name} is {value!r}; it must be a number of seconds"))
    return min(float(value), most)
