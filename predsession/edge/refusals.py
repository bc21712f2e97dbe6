"""A runtime's "no", in its own words -> our errors, the same as where a gRPC status says it.

=====================================  ============================================================
words                                  error
=====================================  ============================================================
"Inference timeout", "Batch timeout"   `RequestTimeoutError`: our deadline, noticed over there
"Model not found",                     `NotFoundError`, status 404
"Session not found"
"Model not allowed in this session"    `AuthError`, status 403
"Session over its max_qps",            `RateLimitError`, status 429
"Session over its max_concurrent"
anything else                          `RefusedError`
=====================================  ============================================================

The first three are every runtime's; those of sessions are our server's, for others keep no quotas.
"""

from __future__ import annotations

from types import MappingProxyType

from predsession.errors import (
    AuthError,
    NotFoundError,
    PredSessionError,
    RateLimitError,
    RequestTimeoutError,
    ResponseError,
)
from predsession.rpc.faults import refused

_LATE = frozenset({"Inference timeout", "Batch timeout"})
_KINDS: MappingProxyType[str, tuple[type[ResponseError], int]] = MappingProxyType({
    "Model not found": (NotFoundError, 404),
    "Session not found": (NotFoundError, 404),
    "Model not allowed in this session": (AuthError, 403),
    "Session over its max_qps": (RateLimitError, 429),
    "Session over its max_concurrent": (RateLimitError, 429),
})  # fmt: skip


def from_refusal(message: str, *, what: str, endpoint: str) -> PredSessionError:
    """Return the error for an answer that says no.

    Parameters
    ----------
    message : str
        The runtime's own words.
    what : str
        What was asked, on what.
    endpoint : str
        Where.

    Returns
    -------
    PredSessionError
        With the words in its message.
    """
    said = " ".join(message.split())
    if said in _LATE:
        return RequestTimeoutError(f"{what} at {endpoint}: {said}", url=endpoint)
    # What follows a colon are particulars.
    kind, status = _KINDS.get(said.partition(":")[0], (None, 0))
    if kind is None:
        return refused(message, what=what, endpoint=endpoint)
    return kind(f"{what} at {endpoint}: {said}", status=status, body_head=message, url=endpoint)
