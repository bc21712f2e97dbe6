"""Requests that run models, and what their answers say; no connection here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy.typing as npt

from predsession.edge.base import check_priority, seconds_of
from predsession.edge.refusals import from_refusal
from predsession.edge.result import BatchInferItem, InferenceResult
from predsession.errors import (
    AuthError,
    PredSessionError,
    ProtocolError,
    RequestTimeoutError,
    ResponseError,
    SourceError,
)
from predsession.rpc.flight import Ask
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.findings import from_post_result
from predsession.wire.edge.methods import METHODS
from predsession.wire.edge.parts import Parts
from predsession.wire.edge.requests import InferCall, batch_to_bytes
from predsession.wire.edge.tensors import from_tensors

_NOT_OFFERED = 501


def read_infer(reply: pb.InferResponse, model_id: str, endpoint: str) -> InferenceResult:
    """Read one answer.

    Parameters
    ----------
    reply : InferResponse
        As it came.
    model_id : str
        Who was asked, for messages.
    endpoint : str
        Where, for messages.

    Returns
    -------
    InferenceResult
        One that says no has its error.

    Raises
    ------
    ProtocolError
        If a tensor, a vector or a depth map is not what it says.
    """
    error: PredSessionError | None = None
    if not reply.status.success:  # whatever else is in it is not looked at
        error = from_refusal(reply.status.message, what=f"Infer with {model_id!r}", endpoint=endpoint)
    return InferenceResult(
        parts=Parts() if error else from_post_result(reply.post_result),
        raw_outputs=None if error else from_tensors(reply.outputs),
        infer_time_us=reply.infer_time_us,
        queue_time_us=reply.queue_time_us,
        hw_infer_time_us=reply.hw_infer_time_us,
        status_message=reply.status.message,
        error=error,
    )


def failed_infer(error: Exception) -> InferenceResult:
    """Return the result for one picture whose call failed, if it is this picture's failure.

    Parameters
    ----------
    error : Exception
        What was raised.

    Returns
    -------
    InferenceResult
        With the error.

    Raises
    ------
    Exception
        The error itself, if it concerns whatever is asked next as well.
    """
    own = isinstance(error, ProtocolError | RequestTimeoutError | ResponseError)
    if not own or isinstance(error, AuthError) or getattr(error, "status", None) == _NOT_OFFERED:
        raise error
    assert isinstance(error, PredSessionError)
    return InferenceResult(status_message=str(error), error=error)


def read_batch(
    reply: pb.InferBatchResponse, items: Sequence[BatchInferItem], endpoint: str
) -> list[InferenceResult]:
    """Read a batch's answers.

    Parameters
    ----------
    reply : InferBatchResponse
        As it came.
    items : sequence of BatchInferItem
        What was asked.
    endpoint : str
        Where, for messages.

    Returns
    -------
    list of InferenceResult
        One for each item; one that says no, or cannot be read, has its error.

    Raises
    ------
    ProtocolError
        If there are not as many answers as items.
    PredSessionError
        If the batch as a whole was refused; see `predsession.edge.refusals`.
    """
    if len(reply.responses) != len(items):
        if not reply.responses and not reply.status.success:
            no = from_refusal(reply.status.message, what=f"InferBatch of {len(items)}", endpoint=endpoint)
            raise no
        raise ProtocolError(
            f"InferBatch at {endpoint}: {len(reply.responses)} answers to {len(items)} pictures",
            url=endpoint,
        )
    results = []
    for response, item in zip(reply.responses, items, strict=True):
        try:
            results.append(read_infer(response, item.model_id, endpoint))
        except ProtocolError as error:
            results.append(InferenceResult(status_message=str(error), error=error))
    return results


def read_frame(message: pb.StreamInferResponse, what: str, endpoint: str) -> InferenceResult:
    """Read one frame of a subscription.

    Parameters
    ----------
    message : StreamInferResponse
        As it came.
    what : str
        Which stream, which model, for messages.
    endpoint : str
        Where, for messages.

    Returns
    -------
    InferenceResult
        One that says no, or cannot be read, has its error.
    """
    error: PredSessionError | None = None
    parts, outputs = Parts(), None
    if not message.status.success:
        error = from_refusal(message.status.message, what=f"StreamInfer of {what}", endpoint=endpoint)
    else:
        try:
            parts = from_post_result(message.post_result)
            outputs = from_tensors(message.outputs) if message.outputs else None
        except ProtocolError as garbled:
            error = garbled
    return InferenceResult(
        parts=Parts() if error else parts,
        raw_outputs=outputs,
        frame_sequence=message.frame_sequence,
        timestamp_ns=message.timestamp_ns,
        skew_us=message.skew_us,
        status_message=message.status.message,
        error=error,
    )


def ask_infer(
    inputs: Iterable[npt.ArrayLike], model_id: str, timeout_ms: int, *, priority: int, session_id: str
) -> Ask[pb.InferResponse]:
    """Write a request for one model.

    Parameters
    ----------
    inputs : iterable of array-like
        In the model's own order.
    model_id : str
        Which model.
    timeout_ms : int
        Milliseconds, as the wire has them.
    priority : int
        0 to 7.
    session_id : str
        Whose quota it takes.

    Returns
    -------
    Ask
        With its deadline.

    Raises
    ------
    SourceError
        If something cannot be sent as it is.
    """
    seconds = seconds_of(timeout_ms)
    call = _call(inputs, model_id, timeout_ms, priority=priority, session_id=session_id)
    return Ask(METHODS["Infer"].path, call.to_bytes(), pb.InferResponse.FromString, seconds)


def ask_batch(items: Sequence[BatchInferItem], timeout_ms: int) -> Ask[pb.InferBatchResponse]:
    """Write a request for several pictures.

    Parameters
    ----------
    items : sequence of BatchInferItem
        At least one.
    timeout_ms : int
        Milliseconds for all of them, as the wire has them.

    Returns
    -------
    Ask
        With its deadline, a little after the one that the runtime is told.

    Raises
    ------
    SourceError
        If something cannot be sent as it is.
    """
    seconds = seconds_of(timeout_ms)
    # A runtime that ends the batch on time tells what is done; it is not to be cut off over that.
    seconds += min(max(seconds / 20, 0.02), 0.25)
    calls = [_call([each.image], each.model_id, each.timeout_ms, priority=each.priority) for each in items]
    return Ask(
        METHODS["InferBatch"].path,
        batch_to_bytes(calls, int(timeout_ms)),
        pb.InferBatchResponse.FromString,
        seconds,
    )


def _call(
    inputs: Iterable[npt.ArrayLike], model_id: str, timeout_ms: int, *, priority: int, session_id: str = ""
) -> InferCall:
    """Check one request."""
    seconds_of(timeout_ms)
    check_priority(priority)
    if not model_id:
        raise SourceError("model_id is empty; list_models() tells what the runtime has")
    return InferCall.of(
        model_id, inputs, timeout_ms=int(timeout_ms), priority=priority, session_id=session_id
    )
