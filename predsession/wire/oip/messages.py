"""A request and a reply as values, however they travel: gRPC and HTTP make the same of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Parameter = bool | int | float | str
Parameters = Mapping[str, Parameter]
Buffer = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor on its way, in or out.

    Parameters
    ----------
    name : str
        As the model has it.
    datatype : str
        The protocol's name: "FP32".
    shape : tuple of int
        Of the whole tensor, batch included.
    data : bytes, memoryview or None
        Little-endian, in C order, packed as `predsession.wire.oip.packing` says; None where the bytes are
        somewhere else, or are not sent.
    parameters : mapping
        What is said about it.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: Buffer | None = field(default=None, repr=False)
    parameters: Parameters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wanted:
    """An output that is asked for.

    Parameters
    ----------
    name : str
        As the model has it.
    parameters : mapping
        What is said about it.
    """

    name: str
    parameters: Parameters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InferRequest:
    """What is asked of a model.

    Parameters
    ----------
    model : str
        Its name.
    inputs : tuple of Tensor
        In any order.
    outputs : tuple of Wanted
        Which are wanted; none stands for all.
    version : str
        Of the model; empty for the server's choice.
    id : str
        Comes back with the reply.
    parameters : mapping
        What is said about the call.
    """

    model: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Wanted, ...] = ()
    version: str = ""
    id: str = ""
    parameters: Parameters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InferReply:
    """What a model answers.

    Parameters
    ----------
    model : str
        Its name.
    outputs : tuple of Tensor
        In the server's order.
    version : str
        Of the model.
    id : str
        That of the request.
    parameters : mapping
        What is said about it.
    """

    model: str
    outputs: tuple[Tensor, ...]
    version: str = ""
    id: str = ""
    parameters: Parameters = field(default_factory=dict)
