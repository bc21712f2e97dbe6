"""The gRPC server: bytes and statuses around `calls`. gRPC's only room on this side.

It runs in the server's loop. A call whose caller has gone is cancelled there and then, so that nothing is
computed for nobody.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import grpc
from google.protobuf.message import Message

from predsession.server.config import EdgeDoor, Limits
from predsession.server.edge.address import Address, DoorError
from predsession.server.edge.calls import ABSENT, CallError, Calls
from predsession.server.edge.models import Models
from predsession.server.memory import keep_freed
from predsession.server.service import Service
from predsession.wire.edge.methods import MAX_MESSAGE_BYTES, METHODS, SERVICE, Method

Reply = Message | bytes
if TYPE_CHECKING:
    # Generic in their stubs only.
    Context = grpc.aio.ServicerContext[Message, Reply]
    Handler = grpc.RpcMethodHandler[Message, Reply]
_log = logging.getLogger("predsession.server")

_OPTIONS = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.so_reuseport", 0),  # two servers on one port would share its callers out between them
)
_LONGEST_TEXT = 1000  # a status travels in a header, and callers' own words are in it


class Door:
    """The server's gRPC side. Make it in the server's loop.

    Parameters
    ----------
    config : EdgeDoor
        Where, and which cameras there are.
    limits : Limits
        What is refused.
    """

    def __init__(self, config: EdgeDoor, limits: Limits) -> None:
        self._config = config
        self._limits = limits
        self._addresses = [Address.read(text) for text in config.addresses]
        self._server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=self._limits.connections)
        self._models: Models | None = None
        self._calls: Calls | None = None
        self.bound: list[str] = []
        """The addresses, as callers use them."""

    def listen(self) -> None:
        """Take the addresses.

        Raises
        ------
        DoorError
            If one is taken, or not ours.
        """
        for address in self._addresses:
            address.make_room()
            try:
                port = self._server.add_insecure_port(address.target)
            except RuntimeError:
                text = f"cannot listen on {address.target}: it is taken, or no address of this machine"
                raise DoorError(text) from None
            if address.path is not None:
                address.path.chmod(0o660)  # its group may call, as on a device
            self.bound.append(address.shown(port))

    async def start(self, service: Service) -> None:
        """Answer, from now on.

        Parameters
        ----------
        service : Service
            With its models loaded.
        """
        self._models = Models(service, may_register=self._config.register)
        self._calls = Calls(self._models, self._config, self._limits)
        handlers = {name: _handler(method, self._calls) for name, method in METHODS.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        keep_freed()
        await self._server.start()
        _log.info("serving over gRPC on %s", ", ".join(self.bound))

    async def close(self) -> None:
        """End streams, let calls under way finish within the grace, and end registered models."""
        if self._calls is not None:
            self._calls.closing.set()
        await self._server.stop(self._limits.grace if self._calls is not None else None)
        if self._models is not None:
            await self._models.close()
        for address in self._addresses[: len(self.bound)]:
            address.shut()


def _handler(method: Method, calls: Calls) -> Handler:
    """Return gRPC's handler for one call."""
    make = grpc.unary_stream_rpc_method_handler if method.streams else grpc.unary_unary_rpc_method_handler
    behaviour: Callable[[Message, Context], Awaitable[Reply | None]]
    if method.name in ABSENT:
        behaviour = _absent(method.name)
    elif method.streams:
        behaviour = _stream(calls.stream_infer)
    else:
        behaviour = _unary(calls.by_name()[method.name])
    handler: Handler = make(
        behaviour, request_deserializer=method.request.FromString, response_serializer=_to_bytes
    )
    return handler


def _to_bytes(reply: Reply) -> bytes:
    """Write a reply that is not written yet."""
    return reply if isinstance(reply, bytes) else reply.SerializeToString()


def _unary(call: Callable[..., Awaitable[Reply]]) -> Callable[[Message, Context], Awaitable[Reply]]:
    """Return what answers once."""

    async def behaviour(request: Message, context: Context) -> Reply:
        try:
            return await call(request)
        except Exception as error:  # noqa: BLE001 - the border: a bug is one call's failure, not the server's
            return await _abort(context, error)

    return behaviour


def _stream(call: Callable[..., Awaitable[None]]) -> Callable[[Message, Context], Awaitable[None]]:
    """Return what answers many times."""

    async def behaviour(request: Message, context: Context) -> None:
        try:
            await call(request, context.write)
        except Exception as error:  # noqa: BLE001 - as above
            await _abort(context, error)

    return behaviour


def _absent(name: str) -> Callable[[Message, Context], Awaitable[Reply]]:
    """Return what says that there is no such thing."""

    async def behaviour(_: Message, context: Context) -> Reply:
        return await _abort(context, CallError("UNIMPLEMENTED", ABSENT[name]))

    return behaviour


async def _abort(context: Context, error: Exception) -> Reply:
    """End a call with a status."""
    if isinstance(error, CallError):
        return await context.abort(grpc.StatusCode[error.code], error.text[:_LONGEST_TEXT])
    _log.error("%s", "".join(traceback.format_exception(error)))
    return await context.abort(grpc.StatusCode.INTERNAL, f"Exception: {error!r}"[:_LONGEST_TEXT])
