"""What callers are told of a model, in the protocol's form and in Triton's."""

from __future__ import annotations

from collections.abc import Sequence

from predsession.server.models.tensors import TensorFacts, TensorSpec
from predsession.wire.jsontext import dumps
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.oip.datatypes import BYTES
from predsession.wire.oip.residency import QUANTIZATION

_NONE_OF_TRITONS = frozenset({"INT4", "UINT4"})


def metadata_of(name: str, facts: TensorFacts) -> JSONObject:
    """Return ``ModelMetadataResponse``.

    Parameters
    ----------
    name : str
        The model's.
    facts : TensorFacts
        What it is.

    Returns
    -------
    JSONObject
        -1 stands for any size.
    """
    return {
        "name": name,
        "versions": ["1"],
        "platform": facts.platform,
        "inputs": [_tensor(spec) for spec in facts.inputs],
        "outputs": [_tensor(spec) for spec in facts.outputs],
    }


def _tensor(spec: TensorSpec) -> JSONObject:
    """Describe a tensor."""
    return {"name": spec.name, "datatype": spec.datatype, "shape": list(spec.shape)}


def config_of(name: str, facts: TensorFacts) -> JSONObject:
    """Return ``ModelConfig``.

    Parameters
    ----------
    name : str
        The model's.
    facts : TensorFacts
        What it is.

    Returns
    -------
    JSONObject
        Shapes are whole: there is no batch dimension beside them. Scales are among the parameters.
    """
    parameters: dict[str, JSON] = {}
    if facts.quantization:
        parameters[QUANTIZATION] = {"string_value": dumps(facts.quantization).decode()}
    return {
        "name": name,
        "platform": facts.platform,
        "backend": facts.platform.split("_", maxsplit=1)[0],
        "max_batch_size": 0,
        "input": _configured(facts.inputs),
        "output": _configured(facts.outputs),
        "instance_group": [{"name": f"{name}_0", "kind": "KIND_CPU", "count": 1}],
        "parameters": parameters,
        "model_transaction_policy": {"decoupled": facts.decoupled},
    }


def _configured(specs: Sequence[TensorSpec]) -> list[JSON]:
    """Describe tensors as a configuration does."""
    return [
        {"name": spec.name, "data_type": _data_type(spec.datatype), "dims": list(spec.shape)}
        for spec in specs
    ]


def _data_type(datatype: str) -> str:
    """Return Triton's name; it has none for what has four bits."""
    if datatype in _NONE_OF_TRITONS:
        return "TYPE_INVALID"
    return "TYPE_STRING" if datatype == BYTES else f"TYPE_{datatype}"
