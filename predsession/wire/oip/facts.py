"""What a server says of itself and of its models, as values; gRPC's messages and JSON are read alike.

References
----------
.. [1] Open Inference Protocol, "Server Metadata", "Model Metadata"; Triton, "Model Configuration Extension",
   "Model Repository Extension", "Statistics Extension".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from predsession.errors import ProtocolError
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object
from predsession.wire.oip.residency import QUANTIZATION


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server is.

    Parameters
    ----------
    name : str
        "triton", "mlserver", "predsession".
    version : str
        Its own.
    extensions : frozenset of str
        What it knows beside the protocol.
    """

    name: str
    version: str
    extensions: frozenset[str]


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """An input or an output of a model.

    Parameters
    ----------
    name : str
        What it is called.
    datatype : str
        The protocol's name: "FP32".
    shape : tuple of int
        -1 where any size will do.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a model takes and gives.

    Parameters
    ----------
    name : str
        What it is called.
    versions : tuple of str
        Which there are.
    platform : str
        What runs it.
    inputs, outputs : tuple of TensorFacts
        In the server's order; empty where it does not say.
    """

    name: str
    versions: tuple[str, ...]
    platform: str
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]


@dataclass(frozen=True, slots=True)
class Quantization:
    """How a tensor's whole numbers stand for real ones: ``real = (whole - zero_point) * scale``.

    Parameters
    ----------
    scale : tuple of float
        One, or one for each position on `axis`.
    zero_point : tuple of int
        Likewise.
    axis : int or None
        Which dimension has scales of its own; None for one scale of the whole tensor.
    """

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What a model's configuration says beside its metadata.

    Parameters
    ----------
    decoupled : bool
        Whether it answers a request any number of times.
    quantization : mapping of str to Quantization
        By the tensor's name.
    optional : frozenset of str
        Inputs that a call may leave out.
    """

    decoupled: bool = False
    quantization: Mapping[str, Quantization] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ModelState:
    """A model in a server's repository.

    Parameters
    ----------
    name, version : str
        Which.
    state : str
        "READY", "UNAVAILABLE", or empty where it is not known.
    reason : str
        Why it is not ready; of our server also `predsession.wire.oip.residency.SHARED`.
    """

    name: str
    version: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class Counters:
    """How often and how long a model ran so far; times in nanoseconds, all versions together.

    Parameters
    ----------
    calls : int
        That went well.
    queue_ns, input_ns, infer_ns, output_ns : int
        Waiting, preparing inputs, the model itself, preparing outputs.
    """

    calls: int
    queue_ns: int
    input_ns: int
    infer_ns: int
    output_ns: int


def as_json(message: Message) -> JSONObject:
    """Return a message as JSON has it, by the protocol's own names.

    Parameters
    ----------
    message : Message
        Any.

    Returns
    -------
    mapping
        Whole numbers of 64 bits are texts, as in protobuf's JSON.
    """
    content: JSONObject = MessageToDict(message, preserving_proto_field_name=True)
    return content


def read_server(content: JSON) -> ServerFacts:
    """Read a server's metadata.

    Parameters
    ----------
    content : JSON
        As it came.

    Returns
    -------
    ServerFacts
        What it says.

    Raises
    ------
    ProtocolError
        If it says nothing of the kind.
    """
    given = as_object(content)
    name = given.get("name")
    if not isinstance(name, str):
        raise ProtocolError("the server's metadata has no name: is it an Open Inference Protocol server?")
    extensions = frozenset(str(each) for each in as_list(given.get("extensions")))
    return ServerFacts(name, str(given.get("version") or ""), extensions)


def read_model(content: JSON) -> ModelFacts:
    """Read a model's metadata.

    Parameters
    ----------
    content : JSON
        As it came.

    Returns
    -------
    ModelFacts
        What it says.

    Raises
    ------
    ProtocolError
        If a tensor has no name, datatype or shape.
    """
    given = as_object(content)
    return ModelFacts(
        name=str(given.get("name") or ""),
        versions=tuple(str(each) for each in as_list(given.get("versions"))),
        platform=str(given.get("platform") or ""),
        inputs=tuple(_tensor(as_object(each)) for each in as_list(given.get("inputs"))),
        outputs=tuple(_tensor(as_object(each)) for each in as_list(given.get("outputs"))),
    )


def _tensor(given: JSONObject) -> TensorFacts:
    """Read one tensor."""
    name, kind = given.get("name"), given.get("datatype")
    if not isinstance(name, str) or not isinstance(kind, str):
        raise ProtocolError(f"a tensor in a model's metadata needs name, datatype and shape: {sorted(given)}")
    return TensorFacts(name, kind, tuple(_whole(side) for side in as_list(given.get("shape"))))


def _whole(value: JSON) -> int:
    """Return a whole number, which may be written as text."""
    try:
        return int(str(value))
    except ValueError:
        raise ProtocolError(f"{value!r} is no whole number") from None


def read_config(content: JSON) -> ModelConfig:
    """Read a model's configuration.

    Parameters
    ----------
    content : JSON
        As it came.

    Returns
    -------
    ModelConfig
        What concerns us of it.

    Raises
    ------
    ProtocolError
        If scales are there that cannot be read.
    """
    given = as_object(content)
    policy = as_object(given.get("model_transaction_policy"))
    text = as_object(as_object(given.get("parameters")).get(QUANTIZATION)).get("string_value")
    quantization: Mapping[str, Quantization] = {}
    if isinstance(text, str):
        try:
            quantization = read_quantization(json.loads(text))
        except ValueError as error:
            raise ProtocolError(f"{given.get('name')}: {QUANTIZATION} cannot be read: {error}") from None
    inputs = map(as_object, as_list(given.get("input")))
    optional = frozenset(str(each.get("name")) for each in inputs if each.get("optional") is True)
    return ModelConfig(policy.get("decoupled") is True, quantization, optional)


def read_quantization(content: JSON) -> Mapping[str, Quantization]:
    """Read the scales of a model's tensors.

    Parameters
    ----------
    content : JSON
        As `predsession.wire.oip.residency.QUANTIZATION` describes it.

    Returns
    -------
    mapping of str to Quantization
        By the tensor's name.

    Raises
    ------
    ValueError
        If it is something else.
    """
    if not isinstance(content, Mapping):
        raise ValueError("wanted an object, tensor name to scales")
    return {name: _quantization(name, as_object(each)) for name, each in content.items()}


def _quantization(name: str, given: JSONObject) -> Quantization:
    """Read one tensor's scales."""
    scales = tuple(float(str(each)) for each in as_list(given.get("scale")))
    zeros = tuple(int(str(each)) for each in as_list(given.get("zero_point", [0] * len(scales))))
    axis = given.get("axis")
    if not scales or len(zeros) != len(scales) or not all(0 < each < float("inf") for each in scales):
        raise ValueError(f"{name} needs scales above 0, and as many zero points")
    if axis is not None and (not isinstance(axis, int) or isinstance(axis, bool)):
        raise ValueError(f"{name}: the axis is {axis!r}")
    if axis is None and len(scales) > 1:
        raise ValueError(f"{name} has {len(scales)} scales and no axis")
    return Quantization(scales, zeros, axis)


def read_index(content: JSON) -> list[ModelState]:
    """Read a repository's index.

    Parameters
    ----------
    content : JSON
        The list, or an object with it.

    Returns
    -------
    list of ModelState
        In the server's order.
    """
    listed = as_object(content).get("models") if isinstance(content, Mapping) else content
    states = []
    for each in map(as_object, as_list(listed)):
        name, version, state, reason = (
            str(each.get(key) or "") for key in ("name", "version", "state", "reason")
        )
        # MLServer's gRPC side writes "State.READY".
        states.append(ModelState(name, version, state.removeprefix("State."), reason))
    return states


def read_counters(content: JSON) -> Counters:
    """Read a model's statistics.

    Parameters
    ----------
    content : JSON
        As it came.

    Returns
    -------
    Counters
        Of all its versions together.

    Raises
    ------
    ProtocolError
        If a number is none.
    """
    listed = [as_object(each) for each in as_list(as_object(content).get("model_stats"))]
    parts = [as_object(each.get("inference_stats")) for each in listed]

    def total(key: str, what: str) -> int:
        return sum(_whole(as_object(part.get(key)).get(what, 0)) for part in parts)

    times = (total(key, "ns") for key in ("queue", "compute_input", "compute_infer", "compute_output"))
    return Counters(total("success", "count"), *times)
