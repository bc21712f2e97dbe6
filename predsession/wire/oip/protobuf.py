"""Requests and replies in gRPC's messages."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from predsession.errors import ProtocolError
from predsession.wire.oip import inference_pb2 as pb
from predsession.wire.oip.contents import from_contents
from predsession.wire.oip.messages import (
    Buffer,
    InferReply,
    InferRequest,
    Parameter,
    Parameters,
    Tensor,
    Wanted,
)
from predsession.wire.oip.regions import REGION
from predsession.wire.oip.residency import ABSENT, KEPT
from predsession.wire.protofields import bytes_field, take_out

M = TypeVar("M", bound=Message)
_INT64 = 1 << 63
_MOST_PARAMETERS = 1000
_RAW_INPUTS, _RAW_OUTPUTS = 7, 6
"""The numbers of the fields that hold the tensors' bytes."""
_SMALL = 1 << 14
"""Bytes of a reply below which copying its tensors is cheaper than looking for them."""


def request_to_bytes(request: InferRequest) -> bytes:
    """Write a request; the tensors' bytes are copied once.

    Parameters
    ----------
    request : InferRequest
        What is asked.

    Returns
    -------
    bytes
        A ``ModelInferRequest`` with raw bytes.
    """
    pieces: list[Buffer] = [_request_head(request).SerializeToString()]
    for tensor in request.inputs:
        if tensor.data is not None:
            pieces += bytes_field(_RAW_INPUTS, tensor.data)
    return b"".join(pieces)


def request_from_bytes(data: bytes) -> InferRequest:
    """Read a request; the tensors' bytes are views of it.

    Parameters
    ----------
    data : bytes
        A ``ModelInferRequest``.

    Returns
    -------
    InferRequest
        What is asked.

    Raises
    ------
    ProtocolError
        If it is none, or inputs and bytes do not fit together.
    """
    rest, raw = take_out(data, _RAW_INPUTS)
    return request_from_message(_parsed(pb.ModelInferRequest, rest), raw)


def reply_to_bytes(reply: InferReply) -> bytes:
    """Write a reply; the tensors' bytes are copied once.

    Parameters
    ----------
    reply : InferReply
        What is answered.

    Returns
    -------
    bytes
        A ``ModelInferResponse`` with raw bytes.
    """
    pieces: list[Buffer] = [_reply_head(reply).SerializeToString()]
    for tensor in reply.outputs:
        pieces += bytes_field(_RAW_OUTPUTS, b"" if tensor.data is None else tensor.data)
    return b"".join(pieces)


def reply_from_bytes(data: bytes) -> InferReply:
    """Read a reply; the tensors' bytes are views of it.

    Parameters
    ----------
    data : bytes
        A ``ModelInferResponse``.

    Returns
    -------
    InferReply
        What is answered.

    Raises
    ------
    ProtocolError
        If it is none, or outputs and bytes do not fit together.
    """
    if len(data) < _SMALL:
        return reply_from_message(_parsed(pb.ModelInferResponse, data))
    rest, raw = take_out(data, _RAW_OUTPUTS)
    return reply_from_message(_parsed(pb.ModelInferResponse, rest), raw)


def _parsed(kind: type[M], data: bytes) -> M:
    """Read a message."""
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise ProtocolError(f"the bytes are no {kind.DESCRIPTOR.name}: {error}") from None


def request_to_message(request: InferRequest) -> pb.ModelInferRequest:
    """Write a request.

    Parameters
    ----------
    request : InferRequest
        What is asked.

    Returns
    -------
    ModelInferRequest
        With raw bytes.
    """
    message = _request_head(request)
    message.raw_input_contents.extend(bytes(each.data) for each in request.inputs if each.data is not None)
    return message


def _request_head(request: InferRequest) -> pb.ModelInferRequest:
    """Write a request without its tensors' bytes."""
    message = pb.ModelInferRequest(
        model_name=request.model,
        model_version=request.version,
        id=request.id,
        outputs=[_wanted_to_message(each) for each in request.outputs],
    )
    _fill(message.parameters, request.parameters)
    for tensor in request.inputs:
        added = message.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        _fill(added.parameters, tensor.parameters)
    return message


def request_from_message(message: pb.ModelInferRequest, raw: Sequence[Buffer] | None = None) -> InferRequest:
    """Read a request.

    Parameters
    ----------
    message : ModelInferRequest
        With raw bytes or typed fields.
    raw : sequence of bytes or memoryview, optional
        The raw bytes, if they were taken out of the message.

    Returns
    -------
    InferRequest
        What is asked.

    Raises
    ------
    ProtocolError
        If inputs and bytes do not fit together.
    """
    tensors = [
        Tensor(each.name, each.datatype, tuple(each.shape), None, _parameters(each.parameters))
        for each in message.inputs
    ]
    data = _input_bytes(message, tensors, raw or message.raw_input_contents)
    return InferRequest(
        model=message.model_name,
        inputs=tuple(_with(tensor, one) for tensor, one in zip(tensors, data, strict=True)),
        outputs=tuple(Wanted(each.name, _parameters(each.parameters)) for each in message.outputs),
        version=message.model_version,
        id=message.id,
        parameters=_parameters(message.parameters),
    )


def reply_to_message(reply: InferReply) -> pb.ModelInferResponse:
    """Write a reply.

    Parameters
    ----------
    reply : InferReply
        What is answered.

    Returns
    -------
    ModelInferResponse
        With raw bytes, none for a tensor that has none here.
    """
    message = _reply_head(reply)
    message.raw_output_contents.extend(
        b"" if each.data is None else bytes(each.data) for each in reply.outputs
    )
    return message


def _reply_head(reply: InferReply) -> pb.ModelInferResponse:
    """Write a reply without its tensors' bytes."""
    message = pb.ModelInferResponse(model_name=reply.model, model_version=reply.version, id=reply.id)
    _fill(message.parameters, reply.parameters)
    for tensor in reply.outputs:
        added = message.outputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        _fill(added.parameters, tensor.parameters)
    return message


def reply_from_message(message: pb.ModelInferResponse, raw: Sequence[Buffer] | None = None) -> InferReply:
    """Read a reply.

    Parameters
    ----------
    message : ModelInferResponse
        With raw bytes or typed fields.
    raw : sequence of bytes or memoryview, optional
        The raw bytes, if they were taken out of the message.

    Returns
    -------
    InferReply
        What is answered.

    Raises
    ------
    ProtocolError
        If outputs and bytes do not fit together.
    """
    raw = raw or message.raw_output_contents
    if raw and len(raw) != len(message.outputs):
        raise ProtocolError(f"{len(message.outputs)} outputs came with {len(raw)} raw contents")
    outputs: list[Tensor] = []
    for place, each in enumerate(message.outputs):
        shape, parameters = tuple(each.shape), _parameters(each.parameters)
        data: Buffer | None = None
        if not parameters.get(ABSENT) and REGION not in parameters:
            data = raw[place] if raw else from_contents(each.contents, each.datatype, shape)
        outputs.append(Tensor(each.name, each.datatype, shape, data, parameters))
    return InferReply(
        model=message.model_name,
        outputs=tuple(outputs),
        version=message.model_version,
        id=message.id,
        parameters=_parameters(message.parameters),
    )


def _wanted_to_message(wanted: Wanted) -> pb.ModelInferRequest.InferRequestedOutputTensor:
    """Write an output that is asked for."""
    message = pb.ModelInferRequest.InferRequestedOutputTensor(name=wanted.name)
    _fill(message.parameters, wanted.parameters)
    return message


def _input_bytes(
    message: pb.ModelInferRequest, tensors: Sequence[Tensor], raw: Sequence[Buffer]
) -> list[Buffer | None]:
    """Return each input's bytes; None for one that has them elsewhere."""
    elsewhere = [KEPT in tensor.parameters or REGION in tensor.parameters for tensor in tensors]
    if not raw:
        return [
            None if gone else from_contents(each.contents, each.datatype, tuple(each.shape))
            for each, gone in zip(message.inputs, elsewhere, strict=True)
        ]
    if any(each.HasField("contents") for each in message.inputs):
        raise ProtocolError("inputs came in typed fields and in raw_input_contents: one of the two")
    here = elsewhere.count(False)
    if len(raw) != here:
        raise ProtocolError(f"{here} inputs that are to have bytes came with {len(raw)} raw contents")
    contents = iter(raw)
    return [None if gone else next(contents) for gone in elsewhere]


def _with(tensor: Tensor, data: Buffer | None) -> Tensor:
    """Return a tensor with its bytes."""
    return Tensor(tensor.name, tensor.datatype, tensor.shape, data, tensor.parameters)


def _fill(target: MutableMapping[str, pb.InferParameter], parameters: Parameters) -> None:
    """Write parameters into a message's map."""
    for name, value in parameters.items():
        target[name].MergeFrom(_parameter(value))


def _parameter(value: Parameter) -> pb.InferParameter:
    """Write one parameter."""
    if isinstance(value, bool):
        return pb.InferParameter(bool_param=value)
    if isinstance(value, int):
        return (
            pb.InferParameter(int64_param=value) if value < _INT64 else pb.InferParameter(uint64_param=value)
        )
    if isinstance(value, float):
        return pb.InferParameter(double_param=value)
    return pb.InferParameter(string_param=value)


def _parameters(given: Mapping[str, pb.InferParameter]) -> Parameters:
    """Read a message's map; one without a value is left out."""
    if len(given) > _MOST_PARAMETERS:
        raise ProtocolError(f"{len(given)} parameters; at most {_MOST_PARAMETERS} are possible")
    read: dict[str, Parameter] = {}
    for name, value in given.items():
        choice = value.WhichOneof("parameter_choice")
        if choice is not None:
            read[name] = getattr(value, choice)
    return read
