"""Run inputs through a deployed vision model and iterate its predictions.

>>> from predsession import PredictionSession
>>> with PredictionSession("http://127.0.0.1:8000", "photos/") as session:  # doctest: +SKIP
...     for prediction in session:
...         print(prediction.name, prediction.boxes)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from predsession import plots as plots
    from predsession.errors import (
        AuthError,
        ClipShorterWarning,
        ConnectError,
        DiskError,
        InvalidRequestError,
        ItemError,
        JobCancelledError,
        JobError,
        JobExpiredError,
        JobFailedError,
        JobTimeoutError,
        JournalError,
        MissingExtraError,
        MissingResultsError,
        NotFoundError,
        PredSessionError,
        ProtocolError,
        RateLimitError,
        RefusedError,
        RequestTimeoutError,
        ResponseError,
        ResultsGoneWarning,
        ServerFaultError,
        SessionBusyError,
        SessionClosedError,
        SourceError,
        StoreError,
        TransportError,
        UnfinishedFileWarning,
        UploadTooLargeError,
    )
    from predsession.export.reading import read_predictions
    from predsession.export.saving import Saved, save_predictions
    from predsession.http.transport import ConnectionOptions
    from predsession.jobs.counters import Report
    from predsession.model import DeployedModel, connect
    from predsession.prediction import Prediction
    from predsession.prediction.gallery import grid
    from predsession.prediction.table import to_pandas
    from predsession.progress import SessionProgress, SessionStatus
    from predsession.session import PredictionSession
    from predsession.tracks import Track
    from predsession.wire.fields import Tag
    from predsession.wire.geometry import MaskCrop, Size
    from predsession.wire.meta import ClassInfo, ModelMeta, TagInfo
    from predsession.wire.replies import ServerInfo
    from predsession.wire.skeleton import Skeleton, SkeletonEdge, SkeletonNode

__version__ = "0.1.0"

__all__ = [
    "AuthError",
    "ClassInfo",
    "ClipShorterWarning",
    "ConnectError",
    "ConnectionOptions",
    "DeployedModel",
    "DiskError",
    "InvalidRequestError",
    "ItemError",
    "JobCancelledError",
    "JobError",
    "JobExpiredError",
    "JobFailedError",
    "JobTimeoutError",
    "JournalError",
    "MaskCrop",
    "MissingExtraError",
    "MissingResultsError",
    "ModelMeta",
    "NotFoundError",
    "PredSessionError",
    "Prediction",
    "PredictionSession",
    "ProtocolError",
    "RateLimitError",
    "RefusedError",
    "Report",
    "RequestTimeoutError",
    "ResponseError",
    "ResultsGoneWarning",
    "Saved",
    "ServerFaultError",
    "ServerInfo",
    "SessionBusyError",
    "SessionClosedError",
    "SessionProgress",
    "SessionStatus",
    "Size",
    "Skeleton",
    "SkeletonEdge",
    "SkeletonNode",
    "SourceError",
    "StoreError",
    "Tag",
    "TagInfo",
    "Track",
    "TransportError",
    "UnfinishedFileWarning",
    "UploadTooLargeError",
    "connect",
    "grid",
    "read_predictions",
    "save_predictions",
    "to_pandas",
]

_HOMES = {
    "ConnectionOptions": "predsession.http.transport",
    "ClipShorterWarning": "predsession.errors",
    "ResultsGoneWarning": "predsession.errors",
    "Track": "predsession.tracks",
    "DeployedModel": "predsession.model",
    "connect": "predsession.model",
    "AuthError": "predsession.errors",
    "ClassInfo": "predsession.wire.meta",
    "ConnectError": "predsession.errors",
    "DiskError": "predsession.errors",
    "InvalidRequestError": "predsession.errors",
    "ItemError": "predsession.errors",
    "JobCancelledError": "predsession.errors",
    "JobError": "predsession.errors",
    "JobExpiredError": "predsession.errors",
    "JobFailedError": "predsession.errors",
    "JobTimeoutError": "predsession.errors",
    "JournalError": "predsession.errors",
    "MaskCrop": "predsession.wire.geometry",
    "MissingExtraError": "predsession.errors",
    "MissingResultsError": "predsession.errors",
    "ModelMeta": "predsession.wire.meta",
    "NotFoundError": "predsession.errors",
    "PredSessionError": "predsession.errors",
    "Prediction": "predsession.prediction",
    "PredictionSession": "predsession.session",
    "ProtocolError": "predsession.errors",
    "RateLimitError": "predsession.errors",
    "RefusedError": "predsession.errors",
    "Report": "predsession.jobs.counters",
    "RequestTimeoutError": "predsession.errors",
    "ResponseError": "predsession.errors",
    "ServerFaultError": "predsession.errors",
    "ServerInfo": "predsession.wire.replies",
    "SessionBusyError": "predsession.errors",
    "SessionClosedError": "predsession.errors",
    "Saved": "predsession.export.saving",
    "SessionProgress": "predsession.progress",
    "SessionStatus": "predsession.progress",
    "Size": "predsession.wire.geometry",
    "Skeleton": "predsession.wire.skeleton",
    "SkeletonEdge": "predsession.wire.skeleton",
    "SkeletonNode": "predsession.wire.skeleton",
    "SourceError": "predsession.errors",
    "StoreError": "predsession.errors",
    "Tag": "predsession.wire.fields",
    "TagInfo": "predsession.wire.meta",
    "TransportError": "predsession.errors",
    "UnfinishedFileWarning": "predsession.errors",
    "UploadTooLargeError": "predsession.errors",
    "grid": "predsession.prediction.gallery",
    "read_predictions": "predsession.export.reading",
    "save_predictions": "predsession.export.saving",
    "to_pandas": "predsession.prediction.table",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that importing the package is quick."""
    if name == "plots":  # a module, which `import predsession` alone brings along when it is used
        return importlib.import_module("predsession.plots")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'predsession' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, those not yet imported included."""
    return sorted({*globals(), *__all__})
