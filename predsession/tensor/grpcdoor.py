"""A server over gRPC."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import TypeVar

from google.protobuf.message import Message

from predsession.errors import NotFoundError, ProtocolError, ResponseError, ServerFaultError
from predsession.rpc.channel import Channel, Manner
from predsession.rpc.faults import refused
from predsession.rpc.flight import Ask, Stream
from predsession.tensor.address import Address
from predsession.tensor.door import END_SECONDS, LoadParameter, Replies
from predsession.wire.oip import inference_pb2 as pb
from predsession.wire.oip.facts import (
    Counters,
    ModelConfig,
    ModelFacts,
    ModelState,
    ServerFacts,
    as_json,
    read_config,
    read_counters,
    read_index,
    read_model,
    read_server,
)
from predsession.wire.oip.messages import InferReply, InferRequest
from predsession.wire.oip.methods import MAX_MESSAGE_BYTES, METHODS, OUR_METHODS
from predsession.wire.oip.protobuf import reply_from_bytes, reply_from_message, request_to_bytes
from predsession.wire.oip.residency import SESSION

T = TypeVar("T")
M = TypeVar("M", bound=Message)
NOT_OFFERED = 501


class GrpcDoor:
    """A server over gRPC; the connection is made when it is first used.

    Parameters
    ----------
    address : Address
        Where.
    headers : mapping of str to str
        Sent along with every call, a secret perhaps.
    compressed : bool
        Whether requests are.
    seconds : float
        The deadline of calls that have none of their own.
    """

    def __init__(
        self, address: Address, *, headers: Mapping[str, str], compressed: bool, seconds: float
    ) -> None:
        metadata = tuple((name.lower(), value) for name, value in headers.items())
        manner = Manner(MAX_MESSAGE_BYTES, metadata, compressed, address.secure)
        self._channel = Channel(address.target, manner)
        self._seconds = seconds
        self._shown = address.shown

    @property
    def shown(self) -> str:
        """The address, as it may be shown."""
        return self._shown

    def server(self) -> ServerFacts:
        """Ask what the server is."""
        return read_server(
            as_json(self._call("ServerMetadata", pb.ServerMetadataRequest(), pb.ServerMetadataResponse))
        )

    def ready(self) -> bool:
        """Ask whether the server answers calls."""
        return self._call("ServerReady", pb.ServerReadyRequest(), pb.ServerReadyResponse).ready

    def model_ready(self, name: str) -> bool:
        """Ask whether a model does."""
        try:
            return self._call("ModelReady", pb.ModelReadyRequest(name=name), pb.ModelReadyResponse).ready
        except NotFoundError:
            return False
        except ServerFaultError as error:
            if "not found" in str(error).lower():  # MLServer has no status for it
                return False
            raise

    def model(self, name: str) -> ModelFacts:
        """Ask what a model takes and gives."""
        reply = self._call("ModelMetadata", pb.ModelMetadataRequest(name=name), pb.ModelMetadataResponse)
        return read_model(as_json(reply))

    def config(self, name: str) -> ModelConfig:
        """Ask how a model is configured; an empty answer where the server does not say."""
        try:
            reply = self._call("ModelConfig", pb.ModelConfigRequest(name=name), pb.ModelConfigResponse)
        except NotFoundError:
            return ModelConfig()
        return read_config(as_json(reply.config))

    def infer(self, request: InferRequest, seconds: float) -> InferReply:
        """Run a model, and wait."""
        return reply_from_bytes(self._channel.call(_ask_infer(request, seconds)))

    def submit(self, request: InferRequest, seconds: float, then: Callable[[InferReply], T]) -> Future[T]:
        """Run a model, and go on."""
        ask = _ask_infer(request, seconds)
        return self._channel.submit(ask, lambda reply: then(reply_from_bytes(reply)))

    def stream(self, request: InferRequest, *, bare: bool) -> Replies:
        """Run a model that answers many times."""
        payload = request_to_bytes(request)
        path = METHODS["ModelStreamInfer"].path
        if bare:
            return _Bare(
                self._channel.stream(Ask(path, payload, pb.ModelInferResponse.FromString, None, many=True))
            )
        enveloped = Ask(path, payload, pb.ModelStreamInferResponse.FromString, None, many=True)
        return _Enveloped(self._channel.stream(enveloped), f"{request.model!r}", self._shown)

    def index(self) -> Sequence[ModelState]:
        """Ask which models the server's repository has."""
        reply = self._call("RepositoryIndex", pb.RepositoryIndexRequest(), pb.RepositoryIndexResponse)
        return read_index(as_json(reply))

    def load(self, name: str, parameters: Mapping[str, LoadParameter], seconds: float) -> None:
        """Have a model loaded."""
        request = pb.RepositoryModelLoadRequest(model_name=name)
        for key, value in parameters.items():
            if isinstance(value, bytes):
                request.parameters[key].bytes_param = value
            else:
                request.parameters[key].string_param = value
        self._call("RepositoryModelLoad", request, pb.RepositoryModelLoadResponse, seconds)

    def unload(self, name: str, seconds: float, session: str = "") -> None:
        """Have a model unloaded; as far as one session is concerned, where our server is told of one."""
        request = pb.RepositoryModelUnloadRequest(model_name=name)
        if session:
            request.parameters[SESSION].string_param = session
        self._call("RepositoryModelUnload", request, pb.RepositoryModelUnloadResponse, seconds)

    def counters(self, name: str) -> Counters | None:
        """Ask how often and how long a model ran; None where the server does not count."""
        request = pb.ModelStatisticsRequest(name=name)
        try:
            reply = self._call("ModelStatistics", request, pb.ModelStatisticsResponse)
        except NotFoundError:
            return None
        return read_counters(as_json(reply))

    def counted(self) -> list[str]:
        """Ask which models the server counts calls of."""
        reply = self._call("ModelStatistics", pb.ModelStatisticsRequest(), pb.ModelStatisticsResponse)
        return list(dict.fromkeys(each.name for each in reply.model_stats))

    def register(self, region: str, key: str, size: int) -> None:
        """Tell the server of a region of shared memory."""
        request = pb.SystemSharedMemoryRegisterRequest(name=region, key=key, byte_size=size)
        self._call("SystemSharedMemoryRegister", request, pb.SystemSharedMemoryRegisterResponse)

    def knows(self, region: str) -> bool:
        """Ask whether the server knows a region of shared memory."""
        request = pb.SystemSharedMemoryStatusRequest(name=region)
        try:
            reply = self._call("SystemSharedMemoryStatus", request, pb.SystemSharedMemoryStatusResponse)
        except ResponseError:
            return False
        return region in reply.regions

    def unregister(self, region: str) -> None:
        """Tell the server to forget one."""
        request = pb.SystemSharedMemoryUnregisterRequest(name=region)
        self._call("SystemSharedMemoryUnregister", request, pb.SystemSharedMemoryUnregisterResponse)

    def renew(self, session: str, lease: float) -> None:
        """Keep a session's tensors and models for so many seconds."""
        self._call("Renew", pb.RenewRequest(session=session, lease_s=lease), pb.RenewResponse)

    def end(self, session: str) -> None:
        """Let a session's tensors and models go."""
        self._call("End", pb.EndRequest(session=session), pb.EndResponse, END_SECONDS)

    def forget(self, session: str, keys: Sequence[str]) -> None:
        """Let some of a session's tensors go."""
        self._call("Forget", pb.ForgetRequest(session=session, keys=keys), pb.ForgetResponse)

    def close(self) -> None:
        """Close the connection; it may be done twice."""
        self._channel.close()

    def _call(self, method: str, request: Message, reply: type[M], seconds: float | None = None) -> M:
        """Make a call."""
        path = (METHODS.get(method) or OUR_METHODS[method]).path
        ask = Ask(
            path, request.SerializeToString(), reply.FromString, self._seconds if seconds is None else seconds
        )
        return self._channel.call(ask)


def _ask_infer(request: InferRequest, seconds: float) -> Ask[bytes]:
    """Write a request for one answer."""
    return Ask(METHODS["ModelInfer"].path, request_to_bytes(request), bytes, seconds)


class _Bare:
    """Replies as they are: MLServer's stream."""

    def __init__(self, stream: Stream[pb.ModelInferResponse]) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[InferReply]:
        """Return itself."""
        return self

    def __next__(self) -> InferReply:
        """Return the next."""
        return reply_from_message(next(self._stream))

    def cancel(self) -> None:
        """End it, here and on the server."""
        self._stream.cancel()


class _Enveloped:
    """Replies beside which an error may come: Triton's stream."""

    def __init__(self, stream: Stream[pb.ModelStreamInferResponse], what: str, where: str) -> None:
        self._stream = stream
        self._what, self._where = what, where

    def __iter__(self) -> Iterator[InferReply]:
        """Return itself."""
        return self

    def __next__(self) -> InferReply:
        """Return the next; raise where the server said no."""
        message = next(self._stream)
        if message.error_message:
            what = f"ModelStreamInfer with {self._what}"
            raise refused(message.error_message, what=what, endpoint=self._where)
        if not message.HasField("infer_response"):
            raise ProtocolError(f"ModelStreamInfer at {self._where}: neither an answer nor an error")
        return reply_from_message(message.infer_response)

    def cancel(self) -> None:
        """End it, here and on the server."""
        self._stream.cancel()
