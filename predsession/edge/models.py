"""What a runtime tells of its models and of itself, as plain values that JSON can hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from predsession.errors import SourceError
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.tensors import DTYPES, to_spec


class TensorSpec(TypedDict, total=False):
    """A model's input or output: ``dtype`` by its name, ``layout`` such as "NHWC", 0 bytes if it follows."""

    shape: Sequence[int]
    dtype: str
    name: str
    layout: str
    byte_size: int


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model on the runtime. Older runtimes fill a part of it only.

    Parameters
    ----------
    model_id : str
        What calls name it.
    name : str
        What people call it.
    model_path : str
        On the runtime's host.
    version : str
        Its own.
    inputs, outputs : tuple of TensorSpec
        In its own order.
    estimated_tops : float
        Operations a second, in 10**12.
    estimated_memory : int
        As the runtime counts it.
    load_timestamp : int
        As the runtime counts it.
    owner_id : str
        Who registered it.
    transient : bool
        Whether it goes with its owner.
    batch_size : int
        Pictures it takes at once; 0 where the runtime does not say.
    """

    model_id: str
    name: str = ""
    model_path: str = ""
    version: str = ""
    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()
    estimated_tops: float = 0.0
    estimated_memory: int = 0
    load_timestamp: int = 0
    owner_id: str = ""
    transient: bool = False
    batch_size: int = 0


class ModelStats(TypedDict):
    """Counters of one model; times in microseconds, as the wire has them."""

    model_id: str
    total_inferences: int
    total_errors: int
    avg_latency_us: int
    current_qps: float
    queue_depth: int
    hw_fps: float
    avg_skew_us: int
    max_skew_us: int
    skew_samples: int


class SystemStats(TypedDict):
    """Counters of the device; utilizations are 0 to 1, -1 where they are not known."""

    model_stats: list[ModelStats]
    device_utilization: float
    device_temperature: float
    total_memory_bytes: int
    used_memory_bytes: int
    cpu_utilization: float
    dsp_utilization: float
    ram_total_kib: int
    ram_used_kib: int


def from_model_info(message: pb.ModelInfo) -> ModelInfo:
    """Read a model's description.

    Parameters
    ----------
    message : ModelInfo
        As it came.

    Returns
    -------
    ModelInfo
        As a value.
    """
    return ModelInfo(
        model_id=message.model_id,
        name=message.name,
        model_path=message.model_path,
        version=message.version,
        inputs=tuple(_from_spec(each) for each in message.inputs),
        outputs=tuple(_from_spec(each) for each in message.outputs),
        estimated_tops=message.estimated_tops,
        estimated_memory=message.estimated_memory,
        load_timestamp=message.load_timestamp,
        owner_id=message.owner_id,
        transient=message.transient,
        batch_size=message.batch_size,
    )


def _from_spec(message: pb.TensorSpec) -> TensorSpec:
    """Read a tensor's description."""
    dtype = DTYPES.get(message.dtype)
    return TensorSpec(
        shape=tuple(message.shape),
        dtype=f"type {int(message.dtype)}" if dtype is None else dtype.name,
        name=message.name,
        layout=message.layout,
        byte_size=message.byte_size,
    )


def to_specs(specs: Iterable[TensorSpec] | None) -> list[pb.TensorSpec]:
    """Write descriptions of tensors.

    Parameters
    ----------
    specs : iterable of TensorSpec, or None
        Mappings with ``shape`` and ``dtype``, and what else is known.

    Returns
    -------
    list of TensorSpec
        As messages.

    Raises
    ------
    SourceError
        If one lacks its shape or its dtype, has an unknown key, or the wire lacks the dtype.
    """
    messages = []
    for spec in specs or ():
        if "shape" not in spec or "dtype" not in spec:
            raise SourceError(f"a tensor is described by shape and dtype; this one has {sorted(spec)}")
        unknown = sorted(spec.keys() - TensorSpec.__annotations__.keys())
        if unknown:
            raise SourceError(f"a tensor's description has {unknown}; known: {[*TensorSpec.__annotations__]}")
        messages.append(to_spec(**spec))
    return messages


def from_stats(message: pb.SystemStats) -> SystemStats:
    """Read the counters.

    Parameters
    ----------
    message : SystemStats
        As it came.

    Returns
    -------
    dict
        As `SystemStats`.
    """
    return SystemStats(
        model_stats=[_from_model_stats(each) for each in message.model_stats],
        device_utilization=message.device_utilization,
        device_temperature=message.device_temperature,
        total_memory_bytes=message.total_memory_bytes,
        used_memory_bytes=message.used_memory_bytes,
        cpu_utilization=message.cpu_utilization,
        dsp_utilization=message.dsp_utilization,
        ram_total_kib=message.ram_total_kib,
        ram_used_kib=message.ram_used_kib,
    )


def _from_model_stats(message: pb.InferenceStats) -> ModelStats:
    """Read the counters of one model."""
    return ModelStats(
        model_id=message.model_id,
        total_inferences=message.total_inferences,
        total_errors=message.total_errors,
        avg_latency_us=message.avg_latency_us,
        current_qps=message.current_qps,
        queue_depth=message.queue_depth,
        hw_fps=message.hw_fps,
        avg_skew_us=message.avg_skew_us,
        max_skew_us=message.max_skew_us,
        skew_samples=message.skew_samples,
    )
