"""The bare protocol with somebody's server: our codecs, and nothing of our client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

import grpc
import numpy as np
import requests
from google.protobuf.message import Message
from interop.oip.theirs import Theirs

from predsession.wire.oip.datatypes import datatype_of
from predsession.wire.oip.messages import InferReply, InferRequest, Tensor
from predsession.wire.oip.methods import MAX_MESSAGE_BYTES, METHODS
from predsession.wire.oip.packing import pack, unpack
from predsession.wire.oip.protobuf import reply_from_message, request_to_message
from predsession.wire.oip.regions import REGION, SIZE
from predsession.wire.oip.rest import HEADER_LENGTH, reply_from_body, request_to_body

SECONDS = 30.0
OPTIONS = [
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.use_local_subchannel_pool", 1),
]


class Refused(Exception):
    """What a server answers that does not do it.

    Parameters
    ----------
    status : str or int
        gRPC's name of it, or HTTP's number.
    text : str
        What it says.
    """

    def __init__(self, status: str | int, text: str) -> None:
        super().__init__(status, text)
        self.status, self.text = status, text


def tensor(name: str, array: np.ndarray, **parameters: Any) -> Tensor:
    """Return an array as a tensor."""
    kind = datatype_of(array.dtype)
    assert kind is not None
    return Tensor(name, kind.wire, array.shape, pack(array, kind.wire), parameters)


def in_region(name: str, array: np.ndarray, region: str) -> Tensor:
    """Return a tensor whose bytes are in a region, with the datatype and the shape of an array."""
    plain = tensor(name, array)
    return Tensor(name, plain.datatype, plain.shape, None, {REGION: region, SIZE: array.nbytes})


def arrays(reply: InferReply) -> dict[str, Any]:
    """Return a reply's arrays by name; those whose bytes did not come are None."""
    return {
        each.name: None
        if each.data is None or (not each.data and 0 not in each.shape)
        else unpack(each.data, each.datatype, each.shape)
        for each in reply.outputs
    }


class Bare:
    """Calls of somebody's server, over both doors; a context manager.

    Parameters
    ----------
    server : Theirs
        Whose.
    """

    def __init__(self, server: Theirs) -> None:
        self.server = server
        self._channel = grpc.insecure_channel(server.grpc, OPTIONS)
        self._web = requests.Session()
        self._web.trust_env = False
        self._web.headers.update({**server.headers, "Accept-Encoding": "identity"})

    def call(
        self, method_name: str, message: Message | None = None, /, *, secret: bool = True, **fields: Any
    ) -> Any:
        """Call a method over gRPC, with a message or one of these fields, and return what comes."""
        method = METHODS[method_name]
        calling = self._channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.reply.FromString,
        )
        metadata = self.server.metadata if secret else ()
        try:
            return calling(message or method.request(**fields), timeout=SECONDS, metadata=metadata)
        except grpc.RpcError as error:
            raise Refused(error.code().name, error.details()) from None

    def web(self, method: str, path: str, **keywords: Any) -> requests.Response:
        """Call over HTTP; statuses above 299 are `Refused`."""
        answer = self._web.request(method, self.server.http + path, timeout=SECONDS, **keywords)
        if answer.status_code >= 300:
            raise Refused(answer.status_code, answer.text)
        return answer

    def infer(self, request: InferRequest) -> InferReply:
        """Infer over gRPC, with raw bytes."""
        return reply_from_message(self.call("ModelInfer", request_to_message(request)))

    def infer_web(self, request: InferRequest, *, binary: bool = True) -> InferReply:
        """Infer over HTTP."""
        body = request_to_body(request, binary=binary)
        headers = {"Content-Type": "application/json"}
        if body.json_length is not None:
            headers[HEADER_LENGTH] = str(body.json_length)
        answer = self.web("POST", f"/v2/models/{request.model}/infer", data=bytes(body), headers=headers)
        length = answer.headers.get(HEADER_LENGTH)
        return reply_from_body(answer.content, None if length is None else int(length))

    def stream(self, requests: Iterable[InferRequest], reply: type[Message] | None = None) -> Any:
        """Open a stream, and return gRPC's own call: an iterator of messages."""
        method = METHODS["ModelStreamInfer"]
        calling = self._channel.stream_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=(reply or method.reply).FromString,
        )
        messages: Iterator[Message] = iter([request_to_message(each) for each in requests])
        return calling(messages, timeout=SECONDS, metadata=self.server.metadata)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close both."""
        self._channel.close()
        self._web.close()
