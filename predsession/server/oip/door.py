"""The protocol's gRPC door: messages and statuses around `calls`."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import grpc
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message

from predsession.errors import ProtocolError
from predsession.server.config import Door as HttpDoor
from predsession.server.config import Limits, OipDoor
from predsession.server.grpcdoor import GrpcDoor, Reply, abort, absent, once, reading, to_bytes
from predsession.server.oip.calls import Calls
from predsession.server.oip.streaming import Streaming
from predsession.server.statuses import CallError
from predsession.wire.jsontypes import JSONObject
from predsession.wire.oip import inference_pb2 as pb
from predsession.wire.oip.methods import (
    MAX_MESSAGE_BYTES,
    METHODS,
    OUR_METHODS,
    OUR_SERVICE,
    SERVICE,
    Method,
)
from predsession.wire.oip.protobuf import reply_to_bytes, request_from_bytes
from predsession.wire.oip.residency import COMPRESS

if TYPE_CHECKING:
    # Generic in their stubs only.
    Context = grpc.aio.ServicerContext[Message, Reply]
    Handler = grpc.RpcMethodHandler[Message, Reply]
    _Asked = TypeVar("_Asked")
    _Told = TypeVar("_Told")
    _Handler: TypeAlias = grpc.RpcMethodHandler[_Asked, _Told] | None
Unary = Callable[..., Awaitable[Message]]
_ABSENT = "SystemSharedMemory"
_OPEN = frozenset({METHODS["ServerLive"].path, METHODS["ServerReady"].path})
"""What is answered without a token."""
_CLOSED = "this server wants a token, in the metadata as authorization: Bearer …"


class Door(GrpcDoor):
    """The server's gRPC side. Make it in the server's loop.

    Parameters
    ----------
    config : OipDoor
        Where.
    calls : Calls
        What answers.
    limits : Limits
        The largest message, and how many calls are answered at the same time.
    door : predsession.server.config.Door
        With the token, and the certificate.
    """

    def __init__(self, config: OipDoor, calls: Calls, limits: Limits, *, door: HttpDoor) -> None:
        super().__init__(
            config.addresses,
            limits,
            message_bytes=min(limits.body, MAX_MESSAGE_BYTES),
            interceptors=[] if door.token is None else [_Tokens(door.token)],
            credentials=_credentials(door),
        )
        self._calls = calls
        self._limits = limits
        self._is_open = False

    async def open(self) -> None:
        """Answer, from now on; the models are loaded."""
        answers = Answers(self._calls)
        self._is_open = True
        await self.start({
            SERVICE: {name: _handler(name, method, answers) for name, method in METHODS.items()},
            OUR_SERVICE: {name: _handler(name, method, answers) for name, method in OUR_METHODS.items()},
        })  # fmt: skip

    async def close(self) -> None:
        """End streams, and let calls under way finish within the grace."""
        self._calls.closing.set()
        await self.stop(self._limits.grace if self._is_open else None)


class Answers:
    """Each call's message to the message that answers it.

    Parameters
    ----------
    calls : Calls
        What answers.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def by_name(self) -> dict[str, Unary]:
        """Return what answers each call that answers once, and needs only its message."""
        return {
            "ServerLive": self._live,
            "ServerReady": self._ready,
            "ServerMetadata": self._server_metadata,
            "ModelReady": self._model_ready,
            "ModelMetadata": self._model_metadata,
            "ModelConfig": self._model_config,
            "ModelStatistics": self._statistics,
            "RepositoryIndex": self._index,
            "RepositoryModelLoad": self._load,
            "RepositoryModelUnload": self._unload,
            "Renew": self._renew,
            "End": self._end,
            "Forget": self._forget,
        }

    async def infer(self, request: bytes, context: Context) -> bytes:
        """Run a model, once; its tensors are never copied into a message."""
        asked = request_from_bytes(request)
        reply = await self._calls.infer(asked)
        if asked.parameters.get(COMPRESS):
            context.set_compression(grpc.Compression.Gzip)
            await context.send_initial_metadata(())  # which has the choice: with the answer it is too late
        return reply_to_bytes(reply)

    async def stream(self, requests: AsyncIterator[bytes], context: Context) -> None:
        """Run models as requests come."""
        await Streaming(self._calls, context.write).run(requests)

    async def _live(self, _: Message) -> Message:
        return pb.ServerLiveResponse(live=True)

    async def _ready(self, _: Message) -> Message:
        return pb.ServerReadyResponse(ready=self._calls.ready())

    async def _server_metadata(self, _: Message) -> Message:
        return _filled(self._calls.server_metadata(), pb.ServerMetadataResponse())

    async def _model_ready(self, request: pb.ModelReadyRequest) -> Message:
        try:
            ready = self._calls.model_ready(request.name, request.version)
        except CallError as error:
            if error.code != "NOT_FOUND":
                raise
            ready = False  # as Triton has it
        return pb.ModelReadyResponse(ready=ready)

    async def _model_metadata(self, request: pb.ModelMetadataRequest) -> Message:
        return _filled(self._calls.model_metadata(request.name, request.version), pb.ModelMetadataResponse())

    async def _model_config(self, request: pb.ModelConfigRequest) -> Message:
        config = self._calls.model_config(request.name, request.version)
        return _filled({"config": config}, pb.ModelConfigResponse())

    async def _statistics(self, request: pb.ModelStatisticsRequest) -> Message:
        return _filled(self._calls.statistics(request.name, request.version), pb.ModelStatisticsResponse())

    async def _index(self, request: pb.RepositoryIndexRequest) -> Message:
        return _filled({"models": self._calls.index(ready=request.ready)}, pb.RepositoryIndexResponse())

    async def _load(self, request: pb.RepositoryModelLoadRequest) -> Message:
        await self._calls.load(request.model_name, _said(request.parameters))
        return pb.RepositoryModelLoadResponse()

    async def _unload(self, request: pb.RepositoryModelUnloadRequest) -> Message:
        await self._calls.unload(request.model_name, _said(request.parameters))
        return pb.RepositoryModelUnloadResponse()

    async def _renew(self, request: pb.RenewRequest) -> Message:
        return _filled(self._calls.renew(request.session, request.lease_s), pb.RenewResponse())

    async def _end(self, request: pb.EndRequest) -> Message:
        return _filled(await self._calls.end(request.session), pb.EndResponse())

    async def _forget(self, request: pb.ForgetRequest) -> Message:
        return _filled(self._calls.forget(request.session, request.keys), pb.ForgetResponse())


def _handler(name: str, method: Method, answers: Answers) -> Handler:
    """Return gRPC's handler for one call."""
    make: Callable[..., Handler] = (
        grpc.stream_stream_rpc_method_handler if method.streams else grpc.unary_unary_rpc_method_handler
    )
    behaviour: Callable[..., Awaitable[Reply | None]]
    if name.startswith(_ABSENT):
        behaviour = absent("this server has no shared memory; see the extension predsession_residency")
    elif method.streams:
        behaviour = _bordered(answers.stream)
    elif name == "ModelInfer":
        behaviour = _bordered(answers.infer)
    else:
        behaviour = reading(method.request, once(answers.by_name()[name]))
    return make(behaviour, response_serializer=to_bytes)


def _bordered(call: Callable[..., Awaitable[Reply | None]]) -> Callable[..., Awaitable[Reply | None]]:
    """Return a call whose errors are statuses."""

    async def behaviour(request: object, context: Context) -> Reply | None:
        try:
            return await call(request, context)
        except ProtocolError as error:
            return await abort(context, CallError("INVALID_ARGUMENT", str(error)))
        except Exception as error:  # noqa: BLE001 - the border: a bug is one call's failure, not the server's
            return await abort(context, error)

    return behaviour


def _filled(content: JSONObject, message: Message) -> Message:
    """Write a JSON object into a message; the names of its fields are the same."""
    ParseDict(dict(content), message, ignore_unknown_fields=True)
    return message


def _said(
    parameters: Mapping[str, pb.ModelRepositoryParameter],
) -> dict[str, bool | int | str | bytes]:
    """Read the parameters of a load; one without a value is left out."""
    read: dict[str, bool | int | str | bytes] = {}
    for name, value in parameters.items():
        choice = value.WhichOneof("parameter_choice")
        if choice is not None:
            read[name] = getattr(value, choice)
    return read


def _credentials(door: HttpDoor) -> grpc.ServerCredentials | None:
    """Return what TLS needs, where HTTP has it."""
    if door.certfile is None or door.keyfile is None:
        return None
    return grpc.ssl_server_credentials([(door.keyfile.read_bytes(), door.certfile.read_bytes())])


class _Tokens(grpc.aio.ServerInterceptor):
    """Lets in who shows the token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler[_Asked, _Told]]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Handler[_Asked, _Told]:
        """Hand the call on, or have it refused."""
        if handler_call_details.method in _OPEN or self._is_shown(handler_call_details):
            return await continuation(handler_call_details)
        return grpc.unary_unary_rpc_method_handler(_refused)

    def _is_shown(self, details: grpc.HandlerCallDetails) -> bool:
        """Whether the metadata has the token."""
        shown = dict(details.invocation_metadata or ())
        scheme, _, rest = str(shown.get("authorization", "")).partition(" ")
        token = str(shown.get("x-api-key", "")) or (rest if scheme.lower() == "bearer" else "")
        # In constant time, so that the time taken tells nothing about the token.
        return hmac.compare_digest(token.encode(), self._token)


async def _refused(_: object, context: Context) -> Reply:
    """Refuse a call."""
    return await abort(context, CallError("UNAUTHENTICATED", _CLOSED))
