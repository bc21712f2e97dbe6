"""Models that take named arrays and give named arrays: what the server asks of one, and what it checks.

``docs/models.md`` has an example. No array of a model's is trusted: a wrong name, datatype or shape is the
error of the call that it was computed for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from predsession.errors import PredSessionError
from predsession.server.models.card import ModelLoadError
from predsession.server.models.results import BadResultError
from predsession.server.texts import encodable
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.oip.datatypes import DATATYPES, Datatype

Array = npt.NDArray[np.generic]
Arrays = Mapping[str, Array]
_MOST_SIDES = 32


class TensorModel(Protocol):
    """A model of named arrays.

    Each tensor is described by its datatype, as the Open Inference Protocol calls it, and its shape, in which
    -1 stands for any size. The arrays that `infer` is given must not be changed.

    Optional: ``load()``, called once before the first call; ``environment``, a dict of texts that is set
    before that, where the one who loads the model says something; ``quantization``, a dict of tensor names to
    dicts of ``scale``, ``zero_point`` and ``axis``; ``decoupled = True`` with ``stream(inputs)``, a generator
    of dicts of arrays, in place of `infer`; ``close()``, called when the model goes.
    """

    @property
    def inputs(self) -> Mapping[str, tuple[str, Sequence[int]]]:
        """Names to datatypes and shapes."""

    @property
    def outputs(self) -> Mapping[str, tuple[str, Sequence[int]]]:
        """The same of what it gives."""

    def infer(self, inputs: dict[str, Array]) -> Arrays:
        """Return the outputs."""


class Runnable(Protocol):
    """What a thread runs: a user's model behind its checks, or a network."""

    def run(self, inputs: dict[str, Array], wanted: Sequence[str]) -> dict[str, Array]:
        """Return the wanted outputs."""

    def stream(self, inputs: dict[str, Array], wanted: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Yield them, many times."""

    def close(self) -> None:
        """Let go of everything."""


class BadTensorError(PredSessionError):
    """An input that the model cannot take, whatever its datatype and shape; the message says why."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input or output.

    Parameters
    ----------
    name : str
        As the model has it.
    datatype : str
        The protocol's name: "FP32".
    shape : tuple of int
        -1 for any size.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]

    @property
    def kind(self) -> Datatype:
        """What the datatype is."""
        return DATATYPES[self.datatype]

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether a tensor of this shape is one of these."""
        return len(shape) == len(self.shape) and all(
            side >= 0 and wanted in {-1, side} for side, wanted in zip(shape, self.shape, strict=True)
        )

    def __str__(self) -> str:
        return f"{self.datatype} {list(self.shape)}"


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """What callers may know of a model.

    Parameters
    ----------
    inputs, outputs : tuple of TensorSpec
        In the model's order.
    platform : str
        "onnxruntime_onnx", "python", "predsession_picture".
    decoupled : bool
        Whether one request has any number of answers.
    quantization : JSONObject
        `predsession.wire.oip.residency.QUANTIZATION` has its form; empty where there is none.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    platform: str
    decoupled: bool = False
    quantization: JSONObject = field(default_factory=dict)


def describe_tensors(model: object) -> TensorFacts:
    """Read what a user's model says of itself.

    Parameters
    ----------
    model : object
        A `TensorModel`, loaded.

    Returns
    -------
    TensorFacts
        Checked.

    Raises
    ------
    ModelLoadError
        If it is none; the message names the attribute.
    """
    decoupled = bool(getattr(model, "decoupled", False))
    method = "stream" if decoupled else "infer"
    name = type(model).__name__
    if not callable(getattr(model, method, None)):
        raise ModelLoadError(f"{name} has no method {method}(inputs)")
    outputs = _specs(model, "outputs")
    if not outputs:
        raise ModelLoadError(f"{name}.outputs is empty")
    inputs = _specs(model, "inputs")
    quantization = read_quantization(getattr(model, "quantization", None) or {}, (*inputs, *outputs))
    return TensorFacts(inputs, outputs, "python", decoupled, quantization)


def _specs(model: object, attribute: str) -> tuple[TensorSpec, ...]:
    """Return the tensors that an attribute lists."""
    where = f"{type(model).__name__}.{attribute}"
    value = getattr(model, attribute, None)
    if not isinstance(value, Mapping):
        raise ModelLoadError(f"{where} must be a dict of names to (datatype, shape)")
    return tuple(_spec(f"{where}[{name!r}]", name, one) for name, one in value.items())


def _spec(where: str, name: object, value: object) -> TensorSpec:
    """Return one of them."""
    pair = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else ()
    if not isinstance(name, str) or not name or encodable(name) != name or len(pair) != 2:
        raise ModelLoadError(f"{where} must be (datatype, shape)")
    datatype, shape = pair
    if datatype not in DATATYPES:
        raise ModelLoadError(
            f"{where} has the datatype {datatype!r}; it must be one of {', '.join(DATATYPES)}"
        )
    if not isinstance(shape, Sequence) or not all(_is_side(side) for side in shape):
        raise ModelLoadError(f"{where} has the shape {shape!r}; it must be a list of sizes, -1 for any")
    if len(shape) > _MOST_SIDES:
        raise ModelLoadError(f"{where} has {len(shape)} sides; at most {_MOST_SIDES} are possible")
    return TensorSpec(name, str(datatype), tuple(int(side) for side in shape))


def _is_side(side: object) -> bool:
    """Whether it is a size, or -1."""
    return isinstance(side, int) and not isinstance(side, bool) and side >= -1


def read_quantization(value: object, specs: Sequence[TensorSpec]) -> JSONObject:
    """Check scales and zero points.

    Parameters
    ----------
    value : object
        A mapping of tensor names to mappings of ``scale``, ``zero_point`` and ``axis``.
    specs : sequence of TensorSpec
        The model's tensors.

    Returns
    -------
    JSONObject
        The same as JSON has it.

    Raises
    ------
    ModelLoadError
        If it is something else, or names a tensor that the model does not have.
    """
    if not isinstance(value, Mapping):
        raise ModelLoadError("quantization must be a dict of tensor names to dicts")
    names = {spec.name for spec in specs}
    read: dict[str, JSON] = {}
    for name, one in value.items():
        if name not in names:
            raise ModelLoadError(f"quantization names {name!r}; the tensors are {', '.join(sorted(names))}")
        read[str(name)] = _scales(str(name), one)
    return read


def _scales(name: str, one: object) -> JSONObject:
    """Check those of one tensor."""
    if not isinstance(one, Mapping) or not set(one) <= {"scale", "zero_point", "axis"} or "scale" not in one:
        raise ModelLoadError(f"quantization of {name} must have scale, and may have zero_point and axis")
    try:
        scale = [float(each) for each in np.asarray(one["scale"], np.float64).reshape(-1)]
        zero = [int(each) for each in np.asarray(one.get("zero_point", [0] * len(scale))).reshape(-1)]
        axis = {} if one.get("axis") is None else {"axis": int(one["axis"])}
    except (TypeError, ValueError) as error:
        raise ModelLoadError(f"quantization of {name}: {error}") from None
    if not scale or len(zero) != len(scale) or not all(math.isfinite(each) and each for each in scale):
        raise ModelLoadError(f"quantization of {name}: wanted as many zero points as scales, none of them 0")
    if len(scale) > 1 and not axis:
        raise ModelLoadError(f"quantization of {name}: {len(scale)} scales need an axis")
    return {"scale": scale, "zero_point": zero, **axis}


def check_arrays(returned: object, facts: TensorFacts, wanted: Sequence[str]) -> dict[str, Array]:
    """Check what a user's model returned.

    Parameters
    ----------
    returned : object
        To be a mapping of every output's name to its array.
    facts : TensorFacts
        What was promised.
    wanted : sequence of str
        The outputs that are used.

    Returns
    -------
    dict of ndarray
        Copies: the model may use its buffers again.

    Raises
    ------
    BadResultError
        If it is not what was promised.
    """
    if not isinstance(returned, Mapping):
        raise BadResultError(f"the model returned {type(returned).__name__}, not a dict of arrays")
    promised = {spec.name: spec for spec in facts.outputs}
    unknown = [str(name) for name in returned if name not in promised]
    missing = [name for name in wanted if name not in returned]
    if unknown or missing:
        said = f"{', '.join(map(str, returned)) or 'nothing'}; it promised {', '.join(promised)}"
        raise BadResultError(f"the model returned {said}")
    return {name: _checked(returned[name], promised[name]) for name in wanted}


def _checked(value: object, spec: TensorSpec) -> Array:
    """Return a copy of one output, if it is what was promised."""
    array = np.asarray(value)
    dtype = spec.kind.dtype
    texts = dtype.kind == "O" and array.dtype.kind in "OSU"
    if not texts and array.dtype != dtype:
        raise BadResultError(f"the model returned {spec.name} as {array.dtype}; it promised {spec}")
    if not spec.fits(array.shape):
        raise BadResultError(
            f"the model returned {spec.name} with shape {list(array.shape)}; it promised {spec}"
        )
    copied: Array = np.array(array, dtype=object if texts else dtype, order="C")
    return copied
