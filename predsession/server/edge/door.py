"""The edge interface's gRPC door: bytes and statuses around `calls`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import grpc
from google.protobuf.message import Message

from predsession.server.config import EdgeDoor, Limits
from predsession.server.edge.calls import ABSENT, Calls
from predsession.server.edge.inferring import too_many
from predsession.server.edge.models import Models
from predsession.server.grpcdoor import GrpcDoor, Reply, abort, absent, once, reading, to_bytes
from predsession.server.service import Service
from predsession.wire.edge.methods import MAX_MESSAGE_BYTES, METHODS, SERVICE, Method
from predsession.wire.edge.requests import has_more_items

if TYPE_CHECKING:
    # Generic in their stubs only.
    Context = grpc.aio.ServicerContext[Message, Reply]
    Handler = grpc.RpcMethodHandler[Message, Reply]


class Door(GrpcDoor):
    """The server's gRPC side. Make it in the server's loop.

    Parameters
    ----------
    config : EdgeDoor
        Where, and which cameras there are.
    limits : Limits
        What is refused.
    """

    def __init__(self, config: EdgeDoor, limits: Limits) -> None:
        super().__init__(config.addresses, limits, message_bytes=MAX_MESSAGE_BYTES)
        self._config = config
        self._limits = limits
        self._models: Models | None = None
        self._calls: Calls | None = None

    async def open(self, service: Service) -> None:
        """Answer, from now on.

        Parameters
        ----------
        service : Service
            With its models loaded.
        """
        self._models = Models(service, may_register=self._config.register)
        self._calls = Calls(self._models, self._config, self._limits)
        calls, limits = self._calls, self._limits
        await self.start({SERVICE: {name: _handler(each, calls, limits) for name, each in METHODS.items()}})

    def release(self) -> None:
        """Hear that the server is about to end."""
        if self._models is not None:
            self._models.release()

    async def close(self) -> None:
        """End streams, let calls under way finish within the grace, and end registered models."""
        if self._calls is not None:
            self._calls.closing.set()
        await self.stop(self._limits.grace if self._calls is not None else None)
        if self._models is not None:
            await self._models.close()


def _handler(method: Method, calls: Calls, limits: Limits) -> Handler:
    """Return gRPC's handler for one call."""
    make = grpc.unary_stream_rpc_method_handler if method.streams else grpc.unary_unary_rpc_method_handler
    behaviour: Callable[..., Awaitable[Reply | None]]
    if method.name in ABSENT:
        behaviour = absent(ABSENT[method.name])
    elif method.streams:
        behaviour = reading(method.request, _stream(calls.stream_infer))
    elif method.name == "InferBatch":
        behaviour = _counted(reading(method.request, _timed(calls.infer_batch)), limits.frames)
    else:
        behaviour = reading(method.request, once(calls.by_name()[method.name]))
    handler: Handler = make(behaviour, response_serializer=to_bytes)
    return handler


def _timed(call: Callable[..., Awaitable[Reply]]) -> Callable[[Message, Context], Awaitable[Reply]]:
    """Return what answers once, and knows how long its caller waits."""

    async def behaviour(request: Message, context: Context) -> Reply:
        answer = once(partial(call, left=context.time_remaining()))
        return await answer(request, context)

    return behaviour


def _counted(
    behaviour: Callable[[bytes, Context], Awaitable[Reply]], most: int
) -> Callable[[bytes, Context], Awaitable[Reply]]:
    """Refuse a batch of too many items unread; as messages they take a hundred times the room."""

    async def count(data: bytes, context: Context) -> Reply:
        return too_many(most) if has_more_items(data, most) else await behaviour(data, context)

    return count


def _stream(call: Callable[..., Awaitable[None]]) -> Callable[[Message, Context], Awaitable[None]]:
    """Return what answers many times."""

    async def behaviour(request: Message, context: Context) -> None:
        try:
            await call(request, context.write)
        except Exception as error:  # noqa: BLE001 - the border: a bug is one call's failure, not the server's
            await abort(context, error)

    return behaviour
