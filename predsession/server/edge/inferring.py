"""Infer and InferBatch: a request to a picture in the queue, an answer to a reply."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from predsession.server.config import Limits
from predsession.server.edge.answer import form
from predsession.server.edge.models import EdgeModel, Models
from predsession.server.edge.sessions import QuotaError, Sessions
from predsession.server.shots import PRIORITIES, QueueFullError, Shot, ShotAnswer, error_text
from predsession.server.texts import shortened
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.methods import MAX_MESSAGE_BYTES
from predsession.wire.geometry import Size

USUAL_MS = 5000
"""The deadline of a request that has none."""
NEEDS_DEVICE = (
    "frames by dma_fd or buffer_id lie in a camera's own memory, which this server has none of: send the data"
)
_OK = pb.Status(success=True)
_MOST_DIMS = 8
_LEAST_MARGIN_S, _MOST_MARGIN_S = 0.02, 0.25
_FRAMING, _REFUSAL = 64, 128  # bytes: around each answer of a batch, and of one that says no for its size


class BadInputError(Exception):
    """A tensor that is no picture; the message is for the caller."""


class DeviceNeededError(Exception):
    """A request that only a device can answer."""


def reply(message: str) -> pb.InferResponse:
    """Return the interface's "no".

    Parameters
    ----------
    message : str
        Why.

    Returns
    -------
    InferResponse
        Of a call that succeeded, as gRPC sees it.
    """
    return pb.InferResponse(status=pb.Status(success=False, message=shortened(message)))


def read_picture(tensors: Sequence[pb.Tensor], max_pixels: int) -> tuple[bytes, Size]:
    """Read a picture off a request.

    Parameters
    ----------
    tensors : sequence of Tensor
        One, (H, W, 3) or (1, H, W, 3) uint8, RGB.
    max_pixels : int
        Of the largest.

    Returns
    -------
    tuple of bytes and Size
        Its pixels, in C order, and its size.

    Raises
    ------
    BadInputError
        If it is none.
    DeviceNeededError
        If its pixels lie elsewhere.
    """
    if len(tensors) != 1:
        raise BadInputError(f"there are {len(tensors)} tensors; the model takes one")
    tensor = tensors[0]
    if (tensor.buffer_id or tensor.dma_fd > 0) and not tensor.data:
        raise DeviceNeededError
    shape = tuple(tensor.shape)
    if len(shape) == 4 and shape[0] == 1:
        shape = shape[1:]
    if tensor.dtype != pb.UINT8 or len(shape) != 3 or shape[2] != 3 or min(shape) < 1:
        known = pb.DataType.Name(tensor.dtype) if tensor.dtype in pb.DataType.values() else tensor.dtype
        said = tuple(tensor.shape) if len(shape) <= _MOST_DIMS else f"of {len(shape)} dimensions,"
        raise BadInputError(f"the tensor is {said} {known}; wanted (H, W, 3) UINT8, RGB")
    height, width, _ = shape
    if width * height > max_pixels:
        raise BadInputError(f"{width} x {height} pixels; the limit is {max_pixels}")
    data = tensor.data
    if len(data) != width * height * 3:
        raise BadInputError(f"the tensor is {shape} UINT8, and has {len(data)} bytes")
    return data, Size(width, height)


def failure_text(answer: ShotAnswer) -> str:
    """Return the interface's words for what went wrong with a picture.

    Parameters
    ----------
    answer : ShotAnswer
        With an error.

    Returns
    -------
    str
        What is put into the status.
    """
    assert answer.error is not None, "a picture that went wrong has an error"
    what = "Postprocess" if answer.error["type"] == "BadResultError" else "Inference"
    return f"{what} failed: {error_text(answer.error)}"


def patience(timeout_ms: int, left: float | None) -> float:
    """Return how long a batch may take, so that its answer reaches a caller who waits no longer than it said.

    Parameters
    ----------
    timeout_ms : int
        What the request says; 0 for the usual.
    left : float or None
        Seconds until the caller gives up, where that is known.

    Returns
    -------
    float
        Seconds from now: where the caller's own end comes first, a margin before it.
    """
    seconds = (timeout_ms or 2 * USUAL_MS) / 1000
    if left is None:
        return seconds
    margin = min(max(left / 20, _LEAST_MARGIN_S), _MOST_MARGIN_S, left / 2)
    return min(seconds, left - margin)


@dataclass(frozen=True, slots=True)
class Inferring:
    """Answers requests for pictures.

    Parameters
    ----------
    models : Models
        Which there are.
    sessions : Sessions
        Whose quotas count.
    limits : Limits
        What is refused.
    most_bytes : int
        The largest reply.
    """

    models: Models
    sessions: Sessions
    limits: Limits
    most_bytes: int = MAX_MESSAGE_BYTES

    async def infer(self, request: pb.InferRequest) -> bytes:
        """Answer one request.

        Parameters
        ----------
        request : InferRequest
            As it came.

        Returns
        -------
        bytes
            An ``InferResponse``, whether it went well or not.

        Raises
        ------
        DeviceNeededError
            If the picture lies in a device's memory.
        """
        model = self.models.get(request.model_id)
        if model is None:
            return reply("Model not found").SerializeToString()
        try:
            with self.sessions.enter(request.session_id, model.id), model.used():
                return await self._infer(request, model)
        except QuotaError as error:
            return reply(str(error)).SerializeToString()
        except BadInputError as error:
            return reply(f"Invalid input: {error}").SerializeToString()
        except QueueFullError:
            return reply("Scheduler queue full").SerializeToString()
        except TimeoutError:
            return reply("Inference timeout").SerializeToString()

    async def _infer(self, request: pb.InferRequest, model: EdgeModel) -> bytes:
        """Put the picture into the queue, and wait."""
        pixels, size = read_picture(request.inputs, self.limits.pixels)
        wanted = form(frame=False, outputs=True, findings=not model.raw_only)
        shot = Shot(pixels, size, wanted, min(request.priority, PRIORITIES - 1))
        model.runner.shoot(shot)
        try:
            async with asyncio.timeout((request.timeout_ms or USUAL_MS) / 1000):
                answer = await shot.answer
        finally:
            if shot.answer.cancelled():
                await model.runner.take_back()
        if answer.error is not None:
            return reply(failure_text(answer)).SerializeToString()
        times = pb.InferResponse(
            status=_OK,
            infer_time_us=round(answer.taken * 1e6),
            queue_time_us=round(answer.queued * 1e6),
            hw_infer_time_us=round(answer.model * 1e6),
        )
        # A message is its fields, in any order: the worker wrote the first of them.
        whole = answer.message + times.SerializeToString()
        return whole if len(whole) <= self.most_bytes else _no_room(whole, self.most_bytes)

    async def infer_batch(self, request: pb.InferBatchRequest, *, left: float | None = None) -> bytes:
        """Answer several requests, each by its own model, in order.

        Parameters
        ----------
        request : InferBatchRequest
            As it came.
        left : float or None
            Seconds until its caller gives up. What is late then must not cost what is done.

        Returns
        -------
        bytes
            An ``InferBatchResponse``.
        """
        count = len(request.requests)
        if not count:
            return _no_batch("Empty batch")
        if count > self.limits.frames:
            return too_many(self.limits.frames)
        began = time.monotonic()
        seconds = patience(request.timeout_ms, left)
        answers = await asyncio.gather(*(self._item(one, seconds) for one in request.requests))
        fitting = _fitting(answers, self.most_bytes)
        message = pb.InferBatchResponse(responses=[pb.InferResponse.FromString(one) for one in fitting])
        good = sum(one.status.success for one in message.responses)
        message.status.success = good == count
        message.status.message = f"{good}/{count} succeeded"
        message.total_time_us = round((time.monotonic() - began) * 1e6)
        return message.SerializeToString()

    async def _item(self, request: pb.InferRequest, seconds: float) -> bytes:
        """Answer one of a batch; the others go on whatever happens to it."""
        try:
            async with asyncio.timeout(seconds):
                return await self.infer(request)
        except TimeoutError:
            return reply("Batch timeout").SerializeToString()
        except DeviceNeededError:
            return reply(f"Not supported: {NEEDS_DEVICE}").SerializeToString()


def too_large(size: int, most: int) -> str:
    """Return the words instead of an answer that cannot be sent.

    Parameters
    ----------
    size : int
        Its bytes.
    most : int
        How many may be.

    Returns
    -------
    str
        For the status.
    """
    return f"Answer too large: {size} bytes; the limit is {most}"


def too_many(most: int) -> bytes:
    """Return what is answered to a batch of more items than may be.

    Parameters
    ----------
    most : int
        How many may be.

    Returns
    -------
    bytes
        An ``InferBatchResponse``.
    """
    return _no_batch(f"More than {most} items; see --limit-frames")


def _no_batch(message: str) -> bytes:
    """Refuse a batch as a whole."""
    return pb.InferBatchResponse(status=pb.Status(success=False, message=message)).SerializeToString()


def _no_room(answer: bytes, most: int) -> bytes:
    """Return what is answered instead of something too large."""
    return reply(too_large(len(answer), most)).SerializeToString()


def _fitting(answers: Sequence[bytes], most: int) -> list[bytes]:
    """Return the answers that fit into one message, in order, and a refusal for each that does not."""
    room = most - _FRAMING * (len(answers) + 1)
    room -= sum(min(len(one), _REFUSAL) for one in answers)
    fitting = []
    for answer in answers:
        more = max(0, len(answer) - _REFUSAL)
        if more <= room:
            room -= more
            fitting.append(answer)
        else:
            fitting.append(_no_room(answer, most))
    return fitting
