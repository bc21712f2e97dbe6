"""A client for AI runtimes on cameras and boards that speak ``aipc.inference``; extra ``[edge]``.

>>> from predsession.edge import InferenceClient
>>> with InferenceClient("127.0.0.1:50051") as client:  # doctest: +SKIP
...     result = client.infer(picture, "yolov8n")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from predsession.errors import MissingExtraError

if TYPE_CHECKING:
    from predsession.edge.client import InferenceClient
    from predsession.edge.generation import FinishReason, TokenStream
    from predsession.edge.models import ModelInfo, ModelStats, SystemStats, TensorSpec
    from predsession.edge.result import BatchInferItem, InferenceResult
    from predsession.edge.subscription import Subscription
    from predsession.wire.edge.parts import (
        BoundingBox,
        Classification,
        DepthMap,
        DetectedObject,
        Embedding,
        LandmarkPoint,
        LandmarkSet,
        OcrLine,
        Parts,
        SegmentationMask,
    )

__all__ = [
    "BatchInferItem",
    "BoundingBox",
    "Classification",
    "DepthMap",
    "DetectedObject",
    "Embedding",
    "FinishReason",
    "InferenceClient",
    "InferenceResult",
    "LandmarkPoint",
    "LandmarkSet",
    "ModelInfo",
    "ModelStats",
    "OcrLine",
    "Parts",
    "SegmentationMask",
    "Subscription",
    "SystemStats",
    "TensorSpec",
    "TokenStream",
]

_PARTS = "predsession.wire.edge.parts"
_HOMES = {
    "BatchInferItem": "predsession.edge.result",
    "BoundingBox": _PARTS,
    "Classification": _PARTS,
    "DepthMap": _PARTS,
    "DetectedObject": _PARTS,
    "Embedding": _PARTS,
    "FinishReason": "predsession.edge.generation",
    "InferenceClient": "predsession.edge.client",
    "InferenceResult": "predsession.edge.result",
    "LandmarkPoint": _PARTS,
    "LandmarkSet": _PARTS,
    "ModelInfo": "predsession.edge.models",
    "ModelStats": "predsession.edge.models",
    "OcrLine": _PARTS,
    "Parts": _PARTS,
    "SegmentationMask": _PARTS,
    "Subscription": "predsession.edge.subscription",
    "SystemStats": "predsession.edge.models",
    "TensorSpec": "predsession.edge.models",
    "TokenStream": "predsession.edge.generation",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used; say which extra is missing, if it is."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'predsession.edge' has no attribute {name!r}")
    try:
        value: object = getattr(importlib.import_module(home), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in {"grpc", "google"}:
            raise
        raise MissingExtraError("edge", "a client of an edge runtime") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, those not yet imported included."""
    return sorted({*globals(), *__all__})
