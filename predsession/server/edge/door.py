"""The edge interface's gRPC door: bytes and statuses around `calls`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import grpc
from google.protobuf.message import Message

from predsession.server.config import EdgeDoor, Limits
from predsession.server.edge.calls import ABSENT, Calls
from predsession.server.edge.models import Models
from predsession.server.grpcdoor import GrpcDoor, Reply, abort, absent, once, to_bytes
from predsession.server.service import Service
from predsession.wire.edge.methods import MAX_MESSAGE_BYTES, METHODS, SERVICE, Method

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
        await self.start({SERVICE: {name: _handler(method, self._calls) for name, method in METHODS.items()}})

    async def close(self) -> None:
        """End streams, let calls under way finish within the grace, and end registered models."""
        if self._calls is not None:
            self._calls.closing.set()
        await self.stop(self._limits.grace if self._calls is not None else None)
        if self._models is not None:
            await self._models.close()


def _handler(method: Method, calls: Calls) -> Handler:
    """Return gRPC's handler for one call."""
    make = grpc.unary_stream_rpc_method_handler if method.streams else grpc.unary_unary_rpc_method_handler
    behaviour: Callable[[Message, Context], Awaitable[Reply | None]]
    if method.name in ABSENT:
        behaviour = absent(ABSENT[method.name])
    elif method.streams:
        behaviour = _stream(calls.stream_infer)
    else:
        behaviour = once(calls.by_name()[method.name])
    handler: Handler = make(
        behaviour, request_deserializer=method.request.FromString, response_serializer=to_bytes
    )
    return handler


def _stream(call: Callable[..., Awaitable[None]]) -> Callable[[Message, Context], Awaitable[None]]:
    """Return what answers many times."""

    async def behaviour(request: Message, context: Context) -> None:
        try:
            await call(request, context.write)
        except Exception as error:  # noqa: BLE001 - the border: a bug is one call's failure, not the server's
            await abort(context, error)

    return behaviour
