"""ONNX networks as they are: named arrays in, named arrays out.

onnxruntime gives no NumPy array of bfloat16; such a network is fed and read through the memory of its values.

References
----------
.. [1] ONNX, "TensorProto.DataType": the numbers of the types.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnxruntime

from predsession.server.models.card import ModelLoadError
from predsession.server.models.network import open_network
from predsession.server.models.tensors import (
    Array,
    BadTensorError,
    TensorFacts,
    TensorSpec,
    read_quantization,
)
from predsession.wire.jsontypes import JSONObject
from predsession.wire.oip.datatypes import BF16, BYTES, DATATYPES

_TYPES: Mapping[str, str] = MappingProxyType({
    "tensor(bool)": "BOOL",
    "tensor(int8)": "INT8",
    "tensor(uint8)": "UINT8",
    "tensor(int16)": "INT16",
    "tensor(uint16)": "UINT16",
    "tensor(int32)": "INT32",
    "tensor(uint32)": "UINT32",
    "tensor(int64)": "INT64",
    "tensor(uint64)": "UINT64",
    "tensor(float16)": "FP16",
    "tensor(bfloat16)": BF16,
    "tensor(float)": "FP32",
    "tensor(double)": "FP64",
    "tensor(string)": BYTES,
})  # fmt: skip
_ONNX_BF16 = 16
_ELSEWHERE = re.compile(rb"(?:\x0a|\x8a\x80*\x00)(?:\x08|\x88\x80*\x00)location")
"""The key under which a tensor names the file that its numbers are in, with every way to write its length."""


class OnnxNetwork:
    """A network; open one with `open_tensors`, on the thread that is to run it.

    Parameters
    ----------
    session : onnxruntime.InferenceSession
        Open.
    facts : TensorFacts
        What it takes and gives.
    """

    def __init__(self, session: onnxruntime.InferenceSession, facts: TensorFacts) -> None:
        self.facts = facts
        self._session: onnxruntime.InferenceSession | None = session
        self._by_memory = any(spec.datatype == BF16 for spec in (*facts.inputs, *facts.outputs))
        self._outputs = {spec.name: spec for spec in facts.outputs}
        self._texts = [spec.name for spec in facts.inputs if spec.datatype == BYTES]

    def run(self, inputs: dict[str, Array], wanted: Sequence[str]) -> dict[str, Array]:
        """Run the network.

        Parameters
        ----------
        inputs : dict of ndarray
            As its facts say.
        wanted : sequence of str
            Outputs.

        Returns
        -------
        dict of ndarray
            The wanted ones, new.

        Raises
        ------
        BadTensorError
            If an element of a BYTES tensor is no text.
        """
        assert self._session is not None, "it is closed"
        names = list(wanted)
        # A network reads whole vectors: what lies askew in the body of a call is laid straight.
        fed = {name: np.require(array, requirements=("C", "A")) for name, array in inputs.items()}
        fed |= {name: _texts(fed[name], name) for name in self._texts}
        if self._by_memory:
            values = self._session.run_with_ort_values(
                names, {name: _to_value(array) for name, array in fed.items()}
            )
            return {
                name: _from_value(one, self._outputs[name]) for name, one in zip(names, values, strict=True)
            }
        return dict(zip(names, self._session.run(names, fed), strict=True))

    def stream(self, inputs: dict[str, Array], wanted: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Yield the one answer that there is."""
        yield self.run(inputs, wanted)

    def close(self) -> None:
        """Free the network."""
        self._session = None


def open_tensors(
    source: Path | bytes,
    name: str,
    *,
    threads: int = 0,
    entries: Mapping[str, str] | None = None,
    quantization: JSONObject | None = None,
) -> OnnxNetwork:
    """Open a network.

    Parameters
    ----------
    source : Path or bytes
        The file, or what is in it; the latter may name no other files.
    name : str
        What it is called in messages.
    threads : int
        How many threads one run may use; 0 for as many as there are processors.
    entries : mapping of str to str, optional
        onnxruntime's own settings.
    quantization : JSONObject, optional
        Scales and zero points of its tensors.

    Returns
    -------
    OnnxNetwork
        Ready.

    Raises
    ------
    ModelLoadError
        If it cannot be opened, or has what the protocol cannot carry.
    """
    if isinstance(source, bytes) and _ELSEWHERE.search(source):
        raise ModelLoadError(f"{name}: its numbers are in other files; a model that is sent must be whole")
    session = open_network(source, threads=threads or os.cpu_count() or 1, entries=entries, name=name)
    inputs = tuple(_spec(one, "input", name) for one in session.get_inputs())
    outputs = tuple(_spec(one, "output", name) for one in session.get_outputs())
    checked = read_quantization(quantization or {}, (*inputs, *outputs))
    return OnnxNetwork(session, TensorFacts(inputs, outputs, "onnxruntime_onnx", quantization=checked))


def _spec(one: onnxruntime.NodeArg, kind: str, name: str) -> TensorSpec:
    """Describe one input or output."""
    datatype = _TYPES.get(one.type)
    if datatype is None:
        raise ModelLoadError(
            f"{name}: its {kind} {one.name} is {one.type}, which cannot be sent or received here"
        )
    return TensorSpec(
        one.name, datatype, tuple(side if isinstance(side, int) and side >= 0 else -1 for side in one.shape)
    )


def _texts(array: Array, name: str) -> Array:
    """Return a BYTES tensor as onnxruntime wants it."""
    flat = np.empty(array.size, object)
    try:
        flat[:] = [each.decode() if isinstance(each, bytes) else each for each in array.reshape(-1).tolist()]
    except UnicodeDecodeError:
        raise BadTensorError(f"input {name}: an element is no text in UTF-8") from None
    return flat.reshape(array.shape)


def _to_value(array: Array) -> onnxruntime.OrtValue:
    """Return onnxruntime's own value of an array, which must outlive it."""
    if array.dtype.name == "bfloat16":
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), _ONNX_BF16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def _from_value(value: onnxruntime.OrtValue, spec: TensorSpec) -> Array:
    """Return a copy of a value."""
    if spec.datatype != BF16:
        plain: Array = value.numpy()
        return plain
    array: Array = np.empty(tuple(value.shape()), DATATYPES[BF16].dtype)
    if array.size:
        ctypes.memmove(array.ctypes.data, value.data_ptr(), array.nbytes)
    return array
