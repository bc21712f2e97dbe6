"""What the doors that speak gRPC share: addresses, the server behind them, and statuses around errors.

A door runs in the server's loop. A call whose caller has gone is cancelled there and then, so that nothing is
computed for nobody.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from predsession.server.address import Address, DoorError, Held
from predsession.server.config import Limits
from predsession.server.memory import keep_freed
from predsession.server.statuses import CallError
from predsession.server.texts import for_header

Reply = Message | bytes
R = TypeVar("R", bound=Reply | None)
if TYPE_CHECKING:
    # Generic in their stubs only.
    Context = grpc.aio.ServicerContext[Message, Reply]
    Handler = grpc.RpcMethodHandler[Message, Reply]
Behaviour = Callable[[Message, "Context"], Awaitable[Reply]]
_log = logging.getLogger("predsession.server")


class GrpcDoor:
    """Addresses on which gRPC is spoken. Make it in the server's loop.

    Parameters
    ----------
    addresses : sequence of str
        Well-formed.
    limits : Limits
        How many calls are answered at the same time.
    message_bytes : int
        The largest message.
    interceptors : sequence
        gRPC's.
    credentials : ServerCredentials or None
        For TLS, where an address is not a socket's file.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        limits: Limits,
        *,
        message_bytes: int,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        self._addresses = [Address.read(text) for text in addresses]
        self._credentials = credentials
        self._server = grpc.aio.server(
            interceptors=list(interceptors),
            options=(
                ("grpc.max_send_message_length", message_bytes),
                ("grpc.max_receive_message_length", message_bytes),
                ("grpc.so_reuseport", 0),  # two servers on one port would share its callers out between them
            ),
            maximum_concurrent_rpcs=limits.connections,
        )
        self._held: list[Held] = []
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
            bound = address.beside()
            try:
                port = self._take(bound)
            except RuntimeError:
                text = f"cannot listen on {address.target}: it is taken, or no address of this machine"
                raise DoorError(text) from None
            held = address.move_in(bound)
            if held is not None:
                self._held.append(held)
            self.bound.append(address.shown(port))

    def _take(self, address: Address) -> int:
        """Take one address, and return its port."""
        if self._credentials is None or address.path is not None:
            port: int = self._server.add_insecure_port(address.target)
        else:
            port = self._server.add_secure_port(address.target, self._credentials)
        return port

    async def start(self, services: Mapping[str, Mapping[str, Handler]]) -> None:
        """Answer, from now on.

        Parameters
        ----------
        services : mapping
            Each service's name on the wire to its calls' names and handlers.
        """
        self._server.add_generic_rpc_handlers(
            tuple(grpc.method_handlers_generic_handler(name, dict(calls)) for name, calls in services.items())
        )
        keep_freed()
        if not self.bound:  # what is behind it is spoken with over HTTP alone
            return
        await self._server.start()
        _log.info("serving over gRPC on %s", ", ".join(self.bound))

    async def stop(self, grace: float | None) -> None:
        """Let calls under way finish within so many seconds, and give the addresses back."""
        await self._server.stop(grace)
        for held in self._held:
            held.shut()


def once(call: Callable[..., Awaitable[Reply]]) -> Behaviour:
    """Return what answers once.

    Parameters
    ----------
    call : callable
        Takes the request's message.

    Returns
    -------
    callable
        As gRPC wants it.
    """

    async def behaviour(request: Message, context: Context) -> Reply:
        try:
            return await call(request)
        except Exception as error:  # noqa: BLE001 - the border: a bug is one call's failure, not the server's
            return await abort(context, error)

    return behaviour


def reading(
    kind: type[Message], behaviour: Callable[[Message, Context], Awaitable[R]]
) -> Callable[[bytes, Context], Awaitable[R | Reply]]:
    """Return what takes a request as bytes; gRPC's own deserializer would log a caller's mistake as a bug.

    Parameters
    ----------
    kind : type of Message
        What the bytes should be.
    behaviour : callable
        Takes the message.

    Returns
    -------
    callable
        As gRPC wants it where there is no deserializer.
    """

    async def read(data: bytes, context: Context) -> R | Reply:
        try:
            request = kind.FromString(data)
        except DecodeError as error:
            text = f"the request is no {kind.DESCRIPTOR.full_name}: {error}"
            return await abort(context, CallError("INVALID_ARGUMENT", text))
        return await behaviour(request, context)

    return read


def absent(text: str) -> Behaviour:
    """Return what says that there is no such thing, in these words."""

    async def behaviour(_: Message, context: Context) -> Reply:
        return await abort(context, CallError("UNIMPLEMENTED", text))

    return behaviour


async def abort(context: Context, error: Exception) -> Reply:
    """End a call with a status.

    Parameters
    ----------
    context : ServicerContext
        The call's.
    error : Exception
        A `CallError`, or a bug.

    Returns
    -------
    Message or bytes
        Never: gRPC raises.
    """
    if isinstance(error, CallError):
        return await context.abort(grpc.StatusCode[error.code], for_header(error.text))
    _log.error("%s", "".join(traceback.format_exception(error)))
    return await context.abort(grpc.StatusCode.INTERNAL, for_header(f"Exception: {error!r}"))


def to_bytes(reply: Reply) -> bytes:
    """Write a reply that is not written yet."""
    return reply if isinstance(reply, bytes) else reply.SerializeToString()
