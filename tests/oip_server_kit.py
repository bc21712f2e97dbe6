"""The Open Inference Protocol for tests: a server with models of tensors, bare clients over gRPC and HTTP.

Both clients take and give the protocol's values, so that one test can ask both doors the same.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
import numpy as np
import requests
import tensor_models
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from server_kit import PATIENCE, Server, until

from predsession.wire.oip import inference_pb2 as pb
from predsession.wire.oip.messages import InferReply, InferRequest, Parameter, Tensor, Wanted
from predsession.wire.oip.methods import METHODS, OUR_METHODS
from predsession.wire.oip.packing import pack, unpack
from predsession.wire.oip.protobuf import reply_from_message, request_to_message
from predsession.wire.oip.rest import HEADER_LENGTH, reply_from_body, request_to_body

MODELS = Path(tensor_models.__file__)
OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class Refused(Exception):
    """A call that was answered with an error: the status's name, and the text."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status
        self.text = text


def give(name: str, array: Any, datatype: str = "", **parameters: Parameter) -> Tensor:
    """Return an input."""
    kind = datatype or {"f": "FP", "i": "INT", "u": "UINT"}[array.dtype.kind] + str(8 * array.dtype.itemsize)
    return Tensor(name, kind, array.shape, bytes(pack(array, kind)), parameters)


def kept(name: str, datatype: str, shape: Sequence[int], key: str) -> Tensor:
    """Return an input that is on the server."""
    return Tensor(name, datatype, tuple(shape), None, {"predsession_kept": key})


def ask(
    model: str,
    *inputs: Tensor,
    outputs: Sequence[Wanted | str] = (),
    number: str = "",
    **parameters: Parameter,
) -> InferRequest:
    """Return a request."""
    wanted = tuple(Wanted(one) if isinstance(one, str) else one for one in outputs)
    return InferRequest(model, inputs, wanted, "", number, parameters)


def pair(a: Sequence[float] = (1, 2), b: Sequence[float] = (3, 4)) -> tuple[Tensor, Tensor]:
    """Return inputs for the network of sums and products."""
    return give("a", np.array(a, np.float32)), give("b", np.array(b, np.float32))


def arrays(reply: InferReply) -> dict[str, Any]:
    """Return the arrays of a reply; None for one that was not sent."""
    return {
        one.name: None if one.data is None else unpack(one.data, one.datatype, one.shape)
        for one in reply.outputs
    }


def slow(number: int, seconds: float = 0.0, *, keep: str = "", **parameters: Parameter) -> InferRequest:
    """Return a call of `Slow`, which comes back with its number; it may be kept."""
    kept = {"predsession_keep": keep} if keep else {}
    inputs = give("number", np.array(number), **kept), give("seconds", np.array(seconds, np.float32))
    return ask("Slow", *inputs, **parameters)


class Grpc:
    """Calls over gRPC."""

    def __init__(
        self, address: str, metadata: Sequence[tuple[str, str]] = (), *, root: bytes | None = None
    ) -> None:
        self.address = address
        if root is None:
            self._channel = grpc.insecure_channel(address, options=OPTIONS)
        else:
            self._channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(root), OPTIONS)
        self._metadata = metadata

    def message(self, name: str, request: Message) -> Any:
        """Send a message."""
        method = METHODS.get(name) or OUR_METHODS[name]
        made = self._channel.unary_unary(
            method.path, request_serializer=to_bytes, response_deserializer=method.reply.FromString
        )
        try:
            return made(request, metadata=self._metadata, timeout=30)
        except grpc.RpcError as error:
            raise Refused(error.code().name, error.details()) from None

    def raw(self, path: str, body: bytes) -> bytes:
        """Send bytes."""
        try:
            return self._channel.unary_unary(path)(body, metadata=self._metadata, timeout=30)
        except grpc.RpcError as error:
            raise Refused(error.code().name, error.details()) from None

    def stream(self, requests: Iterator[pb.ModelInferRequest]) -> Any:
        """Open a stream."""
        method = METHODS["ModelStreamInfer"]
        made = self._channel.stream_stream(
            method.path, request_serializer=to_bytes, response_deserializer=method.reply.FromString
        )
        return made(requests, metadata=self._metadata, timeout=30)

    def infer(self, request: InferRequest) -> InferReply:
        """Run a model."""
        return reply_from_message(self.message("ModelInfer", request_to_message(request)))

    def load(self, name: str, **said: Any) -> None:
        """Load a model; the file under `network`."""
        message = pb.RepositoryModelLoadRequest(model_name=name)
        for key, value in _said(said).items():
            field = "bytes_param" if isinstance(value, bytes) else "string_param"
            setattr(message.parameters[key], field, value)
        self.message("RepositoryModelLoad", message)

    def unload(self, name: str, session: str = "") -> None:
        """Let a model go."""
        message = pb.RepositoryModelUnloadRequest(model_name=name)
        if session:
            message.parameters["predsession_session"].string_param = session
        self.message("RepositoryModelUnload", message)

    def index(self, *, ready: bool = False) -> dict[str, str]:
        """Return the state of each model."""
        reply = self.message("RepositoryIndex", pb.RepositoryIndexRequest(ready=ready))
        return {one.name: one.state for one in reply.models}

    def metadata(self, name: str, version: str = "") -> Mapping[str, Any]:
        """Describe a model."""
        return _told(self.message("ModelMetadata", pb.ModelMetadataRequest(name=name, version=version)))

    def config(self, name: str) -> Mapping[str, Any]:
        """Return a model's configuration."""
        return _told(self.message("ModelConfig", pb.ModelConfigRequest(name=name)))["config"]

    def statistics(self, name: str = "") -> Any:
        """Return what a model has done."""
        return self.message("ModelStatistics", pb.ModelStatisticsRequest(name=name)).model_stats

    def server(self) -> Mapping[str, Any]:
        """Describe the server."""
        return _told(self.message("ServerMetadata", pb.ServerMetadataRequest()))

    def ready(self, name: str, version: str = "") -> bool:
        """Whether a model is."""
        return self.message("ModelReady", pb.ModelReadyRequest(name=name, version=version)).ready

    def renew(self, session: str, lease_s: float = 0.0) -> Mapping[str, Any]:
        """Renew a lease."""
        return _told(self.message("Renew", pb.RenewRequest(session=session, lease_s=lease_s)))

    def end(self, session: str) -> Mapping[str, Any]:
        """End a session."""
        return _told(self.message("End", pb.EndRequest(session=session)))

    def forget(self, session: str, *keys: str) -> Mapping[str, Any]:
        """Forget tensors."""
        return _told(self.message("Forget", pb.ForgetRequest(session=session, keys=keys)))

    def close(self) -> None:
        """Hang up."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    413: "OUT_OF_RANGE",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
}


class Http:
    """The same over HTTP; in JSON alone where `binary` is false."""

    def __init__(self, url: str, *, binary: bool = True) -> None:
        self._url = url
        self._binary = binary
        self.session = requests.Session()

    def send(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send a request."""
        reply = self.session.request(method, f"{self._url}/v2{path}", timeout=30, **options)
        if reply.status_code >= 400 and not path.endswith("/ready"):
            raise Refused(STATUSES[reply.status_code], reply.json()["error"])
        return reply

    def infer(self, request: InferRequest) -> InferReply:
        """Run a model."""
        body = request_to_body(request, binary=self._binary)
        headers = {} if body.json_length is None else {HEADER_LENGTH: str(body.json_length)}
        reply = self.send("POST", f"/models/{request.model}/infer", data=bytes(body), headers=headers)
        length = reply.headers.get(HEADER_LENGTH)
        return reply_from_body(reply.content, None if length is None else int(length))

    def load(self, name: str, **said: Any) -> None:
        """Load a model; the file under `network`."""
        written = {
            key: base64.b64encode(value).decode() if isinstance(value, bytes) else value
            for key, value in _said(said).items()
        }
        self.send("POST", f"/repository/models/{name}/load", json={"parameters": written})

    def unload(self, name: str, session: str = "") -> None:
        """Let a model go."""
        said = {"parameters": {"predsession_session": session}} if session else {}
        self.send("POST", f"/repository/models/{name}/unload", json=said)

    def index(self, *, ready: bool = False) -> dict[str, str]:
        """Return the state of each model."""
        listed = self.send("POST", "/repository/index", json={"ready": ready}).json()
        return {one["name"]: one["state"] for one in listed}

    def metadata(self, name: str, version: str = "") -> Mapping[str, Any]:
        """Describe a model."""
        return self.send("GET", f"/models/{name}{f'/versions/{version}' if version else ''}").json()

    def config(self, name: str) -> Mapping[str, Any]:
        """Return a model's configuration."""
        return self.send("GET", f"/models/{name}/config").json()

    def statistics(self, name: str = "") -> Any:
        """Return what a model has done."""
        told = self.send("GET", f"/models/{name}/stats" if name else "/models/stats").json()
        return [pb_from(one) for one in told["model_stats"]]

    def server(self) -> Mapping[str, Any]:
        """Describe the server."""
        return self.send("GET", "").json()

    def ready(self, name: str, version: str = "") -> bool:
        """Whether a model is."""
        reply = self.send("GET", f"/models/{name}{f'/versions/{version}' if version else ''}/ready")
        return reply.status_code == 200

    def renew(self, session: str, lease_s: float = 0.0) -> Mapping[str, Any]:
        """Renew a lease."""
        return self.send("PUT", f"/predsession/sessions/{session}", json={"lease_s": lease_s}).json()

    def end(self, session: str) -> Mapping[str, Any]:
        """End a session."""
        return self.send("DELETE", f"/predsession/sessions/{session}").json()

    def forget(self, session: str, *keys: str) -> Mapping[str, Any]:
        """Forget tensors."""
        return self.send("POST", f"/predsession/sessions/{session}/forget", json={"keys": keys}).json()

    def sessions(self) -> dict[str, Mapping[str, Any]]:
        """List the sessions."""
        listed = self.send("GET", "/predsession/sessions").json()["sessions"]
        return {one["session"]: one for one in listed}

    def close(self) -> None:
        """Hang up."""
        self.session.close()


Client = Grpc | Http


def pb_from(one: Mapping[str, Any]) -> pb.ModelStatistics:
    """Return statistics as gRPC has them."""
    from google.protobuf.json_format import Parse

    return Parse(json.dumps(one), pb.ModelStatistics())


def to_bytes(message: Message) -> bytes:
    """Write a message."""
    return message.SerializeToString()


def _said(said: Mapping[str, Any]) -> dict[str, Any]:
    """Name the parameters of a load as the protocol does."""
    names = {"network": "file:1/model.onnx", "config": "config"}
    return {names.get(key, f"predsession_{key}"): value for key, value in said.items()}


def _told(message: Message) -> Mapping[str, Any]:
    """Read a message as a dict, numbers as numbers."""
    told = MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    return json.loads(json.dumps(told), object_hook=_numbers)


def _numbers(one: dict[str, Any]) -> dict[str, Any]:
    """Protobuf's JSON has 64-bit numbers as texts."""
    whole = ("tensors", "bytes")
    numbered = {key: int(value) if key in whole else value for key, value in one.items()}
    for key in ("shape", "dims"):
        if key in numbered:
            numbered[key] = [int(side) for side in numbered[key]]
    return numbered


@contextmanager
def oip_server(folder: Path, *more: str, models: Sequence[str] = ()) -> Iterator[Server]:
    """Run a server with pixels, a network, a repository, and models of `tensor_models`."""
    repository = folder / "repository"
    (repository / "half" / "1").mkdir(parents=True)
    (repository / "half" / "1" / "model.onnx").write_bytes(tensor_models.identity("FP16"))
    scales = json.dumps({"x": {"scale": [0.25], "zero_point": [3]}})
    config = {"parameters": {"predsession_quantization": {"string_value": scales}}}
    (repository / "half" / "config.json").write_text(json.dumps(config))
    (repository / "arith.onnx").write_bytes(tensor_models.arithmetic())
    (repository / "broken.onnx").write_bytes(b"no network")
    (repository / "four.onnx").write_bytes(tensor_models.identity("INT4"))
    arguments = ["pixels", "--oip-grpc", "127.0.0.1:0", "--oip-grpc", f"unix:{folder}/oip.sock"]
    arguments += ["--repository", str(repository), "--tensor-model", f"net={repository}/arith.onnx"]
    for model in models:
        arguments += ["--tensor-model", f"{MODELS}:{model}"]
    with Server(*arguments, *more) as running:
        yield running


class Held:
    """A call of `Slow` that runs, for sure, until it is let go; a context manager."""

    def __init__(
        self, server: Server, client: Client, seconds: float = -1, *, keep: str = "", **parameters: Parameter
    ) -> None:
        self.number = time.time_ns()
        self._come: list[InferReply | Refused] = []
        request = slow(self.number, seconds, keep=keep, **parameters)
        self._thread = threading.Thread(target=self._ask, args=(client, request))
        self._thread.start()
        until(lambda: tensor_models.runs(self.number) in server.log, "a call that runs")

    def _ask(self, client: Client, request: InferRequest) -> None:
        try:
            self._come.append(client.infer(request))
        except Refused as error:
            self._come.append(error)

    def result(self) -> InferReply | Refused:
        """Wait for the answer, or for how it was refused."""
        self._thread.join(PATIENCE)
        return self._come[0]

    def leave(self) -> InferReply | Refused:
        """Let it go, and return what it came back with."""
        tensor_models.leave(self.number)
        return self.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.is_alive():
            self.leave()


def refused(call: Callable[..., object], *arguments: Any, **options: Any) -> Refused:
    """Return how a call was refused."""
    try:
        call(*arguments, **options)
    except Refused as error:
        return error
    raise AssertionError("it was not refused")
