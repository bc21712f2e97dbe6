"""ModelStreamInfer: requests as they come, each with its own answers, an error among them. No gRPC here.

A request that cannot be answered has an answer that says why, and the stream goes on.

References
----------
.. [1] Triton, ``ModelStreamInfer`` and "Decoupled Backends and Models".
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable

from predsession.errors import ProtocolError
from predsession.server.oip.calls import Calls
from predsession.server.statuses import CallError
from predsession.server.texts import shortened
from predsession.wire.oip import inference_pb2 as pb
from predsession.wire.oip.messages import InferRequest
from predsession.wire.oip.protobuf import reply_to_bytes, request_from_bytes
from predsession.wire.protofields import bytes_field

_AHEAD = 32
"""Requests of one stream that are being answered; more are not read until one is done."""
_RESPONSE = 2  # the field of a ModelStreamInferResponse that holds the reply
_log = logging.getLogger("predsession.server")


class _GoneError(Exception):
    """Nobody reads any more."""


class Streaming:
    """One stream.

    Parameters
    ----------
    calls : Calls
        What answers.
    write : callable
        Sends a message; waits while its reader does not read.
    """

    def __init__(self, calls: Calls, write: Callable[..., Awaitable[None]]) -> None:
        self._calls = calls
        self._write = write
        self._room = asyncio.Semaphore(_AHEAD)
        self._turn = asyncio.Lock()

    async def run(self, requests: AsyncIterator[bytes]) -> None:
        """Answer until there are no more requests, or the server ends.

        Parameters
        ----------
        requests : async iterator
            As they come.

        Raises
        ------
        CallError
            If the server ends.
        """
        answering = asyncio.create_task(self._answer(requests))
        closing = asyncio.create_task(self._calls.closing.wait())
        try:
            await asyncio.wait([answering, closing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (answering, closing):
                task.cancel()
            await asyncio.gather(answering, closing, return_exceptions=True)
        if answering.cancelled():
            raise CallError("UNAVAILABLE", "the server is ending")
        answering.result()

    async def _answer(self, requests: AsyncIterator[bytes]) -> None:
        """Answer requests, several at the same time; a model does its own in order."""
        async with asyncio.TaskGroup() as group:
            async for request in requests:
                await self._room.acquire()
                group.create_task(self._one(request))

    async def _one(self, data: bytes) -> None:
        """Answer one request."""
        try:
            await self._answered(data)
        except _GoneError:
            return
        finally:
            self._room.release()

    async def _answered(self, data: bytes) -> None:
        """Send the answers to one request, or why there is none."""
        number = ""
        try:
            request = request_from_bytes(data)
            number = request.id
            await self._replies(request)
        except _GoneError:
            raise
        except (CallError, ProtocolError) as error:
            await self._send(_failed(number, error.text if isinstance(error, CallError) else str(error)))
        except Exception as error:  # noqa: BLE001 - the border: a bug is one request's failure
            _log.error("%s", "".join(traceback.format_exception(error)))
            await self._send(_failed(number, f"Exception: {error!r}"))

    async def _replies(self, request: InferRequest) -> None:
        """Send each answer to one request."""
        async with contextlib.aclosing(self._calls.stream(request)) as replies:
            async for reply in replies:
                await self._send(b"".join(bytes_field(_RESPONSE, reply_to_bytes(reply))))

    async def _send(self, message: bytes) -> None:
        """Send a message, one after the other."""
        async with self._turn:
            try:
                await self._write(message)
            except Exception as error:  # gRPC's own, of several kinds, once the stream is broken
                raise _GoneError from error


def _failed(number: str, text: str) -> bytes:
    """Return the answer that says why there is none; with the request's id, so that it can be told."""
    head = pb.ModelInferResponse(id=number)
    return pb.ModelStreamInferResponse(error_message=shortened(text), infer_response=head).SerializeToString()
