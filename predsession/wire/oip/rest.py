"""Requests and replies over HTTP: JSON, or JSON with the tensors' bytes after it.

With Triton's binary extension a body is JSON first, whose length the header `HEADER_LENGTH` gives, then the
bytes of each tensor that has ``binary_data_size`` among its parameters, in order. Without the header it is
JSON alone, and the tensors have ``data``.

References
----------
.. [1] Open Inference Protocol, "Inference Request JSON Object"; Triton, "Binary Tensor Data Extension".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from predsession.errors import ProtocolError
from predsession.wire.jsontext import dumps, loads
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object
from predsession.wire.oip.contents import from_json_data, to_json_data
from predsession.wire.oip.messages import (
    Buffer,
    InferReply,
    InferRequest,
    Parameters,
    Tensor,
    Wanted,
)
from predsession.wire.oip.regions import REGION
from predsession.wire.oip.residency import KEPT

HEADER_LENGTH = "Inference-Header-Content-Length"
BINARY = "binary_tensor_data"
"""The extension's name in a server's metadata."""
_SIZE, _ASK, _ASK_ALL = "binary_data_size", "binary_data", "binary_data_output"


@dataclass(frozen=True, slots=True)
class Body:
    """A body, and the length of its JSON.

    Parameters
    ----------
    parts : tuple of bytes or memoryview
        One after the other.
    json_length : int or None
        What `HEADER_LENGTH` is to say; None for JSON alone.
    """

    parts: tuple[Buffer, ...]
    json_length: int | None = None

    def __bytes__(self) -> bytes:
        """Return it in one piece."""
        return b"".join(self.parts)


def request_to_body(request: InferRequest, *, binary: bool) -> Body:
    """Write a request.

    Parameters
    ----------
    request : InferRequest
        What is asked.
    binary : bool
        Whether the server knows the binary extension; it is asked for binary outputs then, too.

    Returns
    -------
    Body
        To be posted.

    Raises
    ------
    ProtocolError
        If a tensor cannot be written in JSON.
    """
    content: dict[str, JSON] = {"id": request.id} if request.id else {}
    parameters = (
        {**request.parameters, _ASK_ALL: True} if binary and not request.outputs else request.parameters
    )
    if parameters:
        content["parameters"] = dict(parameters)
    inputs, parts = _write(request.inputs, [binary] * len(request.inputs))
    content["inputs"] = inputs
    if request.outputs:
        content["outputs"] = [_write_wanted(each, binary=binary) for each in request.outputs]
    return _body(content, parts, binary=binary)


def request_from_body(
    body: Buffer, json_length: int | None, model: str, *, version: str = ""
) -> InferRequest:
    """Read a request.

    Parameters
    ----------
    body : bytes or memoryview
        As it came.
    json_length : int or None
        What `HEADER_LENGTH` says.
    model : str
        From the path.
    version : str
        From the path.

    Returns
    -------
    InferRequest
        What is asked.

    Raises
    ------
    ProtocolError
        If it is not what the protocol says.
    """
    content, rest = _split(body, json_length)
    inputs = content.get("inputs")
    if not isinstance(inputs, Sequence) or isinstance(inputs, str):
        raise ProtocolError('the request has no list "inputs"')
    outputs = as_list(content.get("outputs"))
    return InferRequest(
        model=model,
        inputs=_read(inputs, rest, "input"),
        outputs=tuple(_read_wanted(as_object(each)) for each in outputs),
        version=version,
        id=str(content.get("id") or ""),
        parameters=_parameters(content.get("parameters")),
    )


def reply_to_body(reply: InferReply, request: InferRequest) -> Body:
    """Write a reply.

    Parameters
    ----------
    reply : InferReply
        What is answered.
    request : InferRequest
        What was asked, and with it which outputs are to be binary.

    Returns
    -------
    Body
        To be answered with.

    Raises
    ------
    ProtocolError
        If a tensor that was not asked for as binary cannot be written in JSON.
    """
    content: dict[str, JSON] = {"model_name": reply.model, "model_version": reply.version or "1"}
    if reply.id:
        content["id"] = reply.id
    if reply.parameters:
        content["parameters"] = dict(reply.parameters)
    every = bool(request.parameters.get(_ASK_ALL))
    asked = {each.name: bool(each.parameters.get(_ASK, every)) for each in request.outputs}
    binary = [asked.get(tensor.name, every) for tensor in reply.outputs]
    outputs, parts = _write(reply.outputs, binary)
    content["outputs"] = outputs
    return _body(content, parts, binary=any(binary))


def reply_from_body(body: Buffer, json_length: int | None) -> InferReply:
    """Read a reply.

    Parameters
    ----------
    body : bytes or memoryview
        As it came.
    json_length : int or None
        What `HEADER_LENGTH` says.

    Returns
    -------
    InferReply
        What is answered.

    Raises
    ------
    ProtocolError
        If it is not what the protocol says.
    """
    content, rest = _split(body, json_length)
    outputs = content.get("outputs")
    if not isinstance(outputs, Sequence) or isinstance(outputs, str):
        raise ProtocolError('the reply has no list "outputs"')
    return InferReply(
        model=str(content.get("model_name") or ""),
        outputs=_read(outputs, rest, "output"),
        version=str(content.get("model_version") or ""),
        id=str(content.get("id") or ""),
        parameters=_parameters(content.get("parameters")),
    )


def _body(content: JSONObject, parts: Sequence[Buffer], *, binary: bool) -> Body:
    """Put JSON and bytes together."""
    text = dumps(content)
    return Body((text, *parts), len(text) if binary else None)


def _write(tensors: Sequence[Tensor], binary: Sequence[bool]) -> tuple[list[JSON], list[Buffer]]:
    """Write tensors, each in JSON or beside it."""
    written: list[JSON] = []
    parts: list[Buffer] = []
    for tensor, raw in zip(tensors, binary, strict=True):
        one: dict[str, JSON] = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
        parameters: dict[str, JSON] = dict(tensor.parameters)
        if tensor.data is not None and raw:
            parameters[_SIZE] = len(tensor.data)
            parts.append(tensor.data)
        elif tensor.data is not None:
            one["data"] = to_json_data(tensor.data, tensor.datatype, tensor.shape)
        if parameters:
            one["parameters"] = parameters
        written.append(one)
    return written, parts


def _write_wanted(wanted: Wanted, *, binary: bool) -> JSON:
    """Write an output that is asked for."""
    elsewhere = REGION in wanted.parameters
    parameters: dict[str, JSON] = dict(wanted.parameters)
    if binary and not elsewhere:
        parameters[_ASK] = True
    return {"name": wanted.name, **({"parameters": parameters} if parameters else {})}


def _read_wanted(content: JSONObject) -> Wanted:
    """Read an output that is asked for."""
    name = content.get("name")
    if not isinstance(name, str):
        raise ProtocolError("an output that is asked for has no name")
    return Wanted(name, _parameters(content.get("parameters")))


def _split(body: Buffer, json_length: int | None) -> tuple[JSONObject, memoryview]:
    """Part JSON and bytes."""
    whole = memoryview(body)
    length = len(whole) if json_length is None else json_length
    if not 0 < length <= len(whole):
        raise ProtocolError(f"{HEADER_LENGTH} is {length}; the body has {len(whole)} bytes")
    try:
        content = loads(bytes(whole[:length]))
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the body is no JSON: {error}") from None
    if not isinstance(content, Mapping):
        raise ProtocolError("the body is no JSON object")
    return content, whole[length:]


def _read(tensors: Sequence[JSON], rest: memoryview, kind: str) -> tuple[Tensor, ...]:
    """Read tensors, each from JSON or from what follows it."""
    read: list[Tensor] = []
    at = 0
    for each in tensors:
        content = as_object(each)
        name, datatype, shape = content.get("name"), content.get("datatype"), _shape(content.get("shape"))
        if not isinstance(name, str) or not isinstance(datatype, str) or shape is None:
            raise ProtocolError(f"an {kind} needs a name, a datatype and a shape; this has {sorted(content)}")
        parameters = dict(_parameters(content.get("parameters")))
        size = parameters.pop(_SIZE, None)
        data: Buffer | None = None
        if size is not None:
            if not isinstance(size, int) or isinstance(size, bool) or size < 0 or at + size > len(rest):
                raise ProtocolError(f"{kind} {name}: {size} bytes are announced, {len(rest) - at} follow")
            data, at = rest[at : at + size], at + size
        elif "data" in content:
            data = from_json_data(content["data"], datatype, shape)
        elif kind == "input" and not {KEPT, REGION} & parameters.keys():
            raise ProtocolError(f"{kind} {name} has neither data nor binary_data_size")
        read.append(Tensor(name, datatype, shape, data, parameters))
    if at != len(rest):
        raise ProtocolError(f"{len(rest) - at} bytes follow that belong to no {kind}")
    return tuple(read)


def _shape(value: JSON) -> tuple[int, ...] | None:
    """Return a shape, or None if it is none."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    sides = [side for side in value if isinstance(side, int) and not isinstance(side, bool)]
    return tuple(sides) if len(sides) == len(value) else None


def _parameters(value: JSON) -> Parameters:
    """Return the parameters that are plain values."""
    return {name: one for name, one in as_object(value).items() if isinstance(one, bool | int | float | str)}
