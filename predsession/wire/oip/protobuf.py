"""Requests and replies in gRPC's messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence

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

_INT64 = 1 << 63


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
        if tensor.data is not None:
            message.raw_input_contents.append(bytes(tensor.data))
    return message


def request_from_message(message: pb.ModelInferRequest) -> InferRequest:
    """Read a request.

    Parameters
    ----------
    message : ModelInferRequest
        With raw bytes or typed fields.

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
    data = _input_bytes(message, tensors)
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
    message = pb.ModelInferResponse(model_name=reply.model, model_version=reply.version, id=reply.id)
    _fill(message.parameters, reply.parameters)
    for tensor in reply.outputs:
        added = message.outputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        _fill(added.parameters, tensor.parameters)
        message.raw_output_contents.append(b"" if tensor.data is None else bytes(tensor.data))
    return message


def reply_from_message(message: pb.ModelInferResponse) -> InferReply:
    """Read a reply.

    Parameters
    ----------
    message : ModelInferResponse
        With raw bytes or typed fields.

    Returns
    -------
    InferReply
        What is answered.

    Raises
    ------
    ProtocolError
        If outputs and bytes do not fit together.
    """
    raw: Sequence[bytes] = message.raw_output_contents
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


def _input_bytes(message: pb.ModelInferRequest, tensors: Sequence[Tensor]) -> list[Buffer | None]:
    """Return each input's bytes; None for one that has them elsewhere."""
    elsewhere = [KEPT in tensor.parameters or REGION in tensor.parameters for tensor in tensors]
    if not message.raw_input_contents:
        return [
            None if gone else from_contents(each.contents, each.datatype, tuple(each.shape))
            for each, gone in zip(message.inputs, elsewhere, strict=True)
        ]
    if any(each.HasField("contents") for each in message.inputs):
        raise ProtocolError("inputs came in typed fields and in raw_input_contents: one of the two")
    here = elsewhere.count(False)
    if len(message.raw_input_contents) != here:
        raise ProtocolError(
            f"{here} inputs that are to have bytes came with {len(message.raw_input_contents)} raw contents"
        )
    raw: Iterable[bytes] = iter(message.raw_input_contents)
    return [None if gone else next(iter(raw)) for gone in elsewhere]


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
    read: dict[str, Parameter] = {}
    for name, value in given.items():
        choice = value.WhichOneof("parameter_choice")
        if choice is not None:
            read[name] = getattr(value, choice)
    return read
