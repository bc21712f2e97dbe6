"""What gRPC and the server say went wrong -> our errors. No gRPC here: names and texts in, an error out.

======================  =====================================================================================
status                  error
======================  =====================================================================================
UNAVAILABLE             `ConnectError` if the call never left, else `TransportError`
DEADLINE_EXCEEDED       `RequestTimeoutError`
CANCELLED               `TransportError`: somebody else's doing; our own cancels raise nothing here
DATA_LOSS               `ProtocolError`; INTERNAL and RESOURCE_EXHAUSTED too, where it is this side that
                        cannot read what came
INVALID_ARGUMENT,       `InvalidRequestError`
OUT_OF_RANGE
NOT_FOUND               `NotFoundError`, status 404
UNIMPLEMENTED           `NotFoundError`, status 501: this server does not offer the call
UNAUTHENTICATED,        `AuthError`
PERMISSION_DENIED
RESOURCE_EXHAUSTED      `UploadTooLargeError` if a message was too large, else `RateLimitError`
FAILED_PRECONDITION,    `RefusedError`
ALREADY_EXISTS,
ABORTED
UNKNOWN, INTERNAL       `ServerFaultError`
``success=false``       `RefusedError`
======================  =====================================================================================

References
----------
https://grpc.io/docs/guides/status-codes/
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from predsession.errors import (
    AuthError,
    ConnectError,
    InvalidRequestError,
    NotFoundError,
    PredSessionError,
    ProtocolError,
    RateLimitError,
    RefusedError,
    RequestTimeoutError,
    ResponseError,
    ServerFaultError,
    TransportError,
    UploadTooLargeError,
)

# What gRPC writes when there was no connection to send the call on; nothing else is taken as "not sent". A
# server that hands on the failure of a call of its own says the same: the connection's state tells.
_NEVER_LEFT = (
    "failed to connect to all addresses",
    "dns resolution failed",
    "name resolution failure",
    "errors resolving",
)
_CANNOT_READ = ("exception deserializing response", "client: received message larger than max")
_TOO_LARGE = "message larger than max"

# gRPC's statuses as the HTTP ones that gateways make of them.
_ANSWERS = MappingProxyType({
    "INVALID_ARGUMENT": (InvalidRequestError, 400),
    "OUT_OF_RANGE": (InvalidRequestError, 400),
    "FAILED_PRECONDITION": (RefusedError, 400),
    "UNAUTHENTICATED": (AuthError, 401),
    "PERMISSION_DENIED": (AuthError, 403),
    "NOT_FOUND": (NotFoundError, 404),
    "ALREADY_EXISTS": (RefusedError, 409),
    "ABORTED": (RefusedError, 409),
    "RESOURCE_EXHAUSTED": (RateLimitError, 429),
    "UNKNOWN": (ServerFaultError, 500),
    "INTERNAL": (ServerFaultError, 500),
    "UNIMPLEMENTED": (NotFoundError, 501),
})  # fmt: skip


def from_status(
    code: str,
    details: str,
    *,
    method: str,
    endpoint: str,
    seconds: float | None = None,
    may_have_left: Callable[[], bool] = lambda: False,
) -> PredSessionError:
    """Return the error that a gRPC status stands for.

    Parameters
    ----------
    code : str
        Its name: "NOT_FOUND".
    details : str
        The text that came with it.
    method : str
        What was called.
    endpoint : str
        Where.
    seconds : float or None
        The deadline it had.
    may_have_left : callable
        Whether there is a connection on which the call can have been sent.

    Returns
    -------
    PredSessionError
        With the text in its message.
    """
    said = " ".join(details.split())
    lower = said.lower()
    where = f"{method} at {endpoint}"
    if code == "DEADLINE_EXCEEDED":
        waited = "in time" if seconds is None else f"within {seconds:g} s"
        return RequestTimeoutError(f"{where}: no answer {waited}", url=endpoint)
    if code == "UNAVAILABLE" and lower.startswith(_NEVER_LEFT) and not may_have_left():
        return ConnectError(f"{where}: no connection, nothing was sent ({said})", url=endpoint)
    if code == "DATA_LOSS" or lower.startswith(_CANNOT_READ):
        return ProtocolError(f"{where}: the answer cannot be read ({code}: {said})", url=endpoint)
    if code not in _ANSWERS:
        return TransportError(f"{where}: the call broke off ({code}: {said})", url=endpoint)
    kind, status = _ANSWERS[code]
    if code == "UNIMPLEMENTED":
        said = f"the server does not offer the call ({said})" if said else "not offered by this server"
    if code == "RESOURCE_EXHAUSTED" and _TOO_LARGE in lower:
        kind, status = UploadTooLargeError, 413
    return kind(
        f"{where}: {said or 'no reason given'} ({code})", status=status, body_head=details, url=endpoint
    )


def refused(message: str, *, what: str, endpoint: str) -> ResponseError:
    """Return the error for an answer that says no.

    Parameters
    ----------
    message : str
        The server's own words.
    what : str
        What was asked, on what.
    endpoint : str
        Where.

    Returns
    -------
    ResponseError
        A `RefusedError`.
    """
    said = " ".join(message.split()) or "no reason given"
    return RefusedError(f"{what} at {endpoint}: {said}", status=200, body_head=message, url=endpoint)
