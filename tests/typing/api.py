"""How callers use the package, as a type checker sees it. Only checked, never run."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import assert_type

import numpy as np
import numpy.typing as npt

from predsession import (
    ItemError,
    ModelMeta,
    Prediction,
    PredictionSession,
    Report,
    SessionProgress,
    SessionStatus,
    Size,
)
from predsession.edge import BatchInferItem, DetectedObject, InferenceClient, InferenceResult


def iterate(array: npt.NDArray[np.uint8]) -> None:
    """Iterate predictions; `if prediction:` tells one from an item error."""
    with PredictionSession("http://127.0.0.1:8000", [array, "a.jpg", Path("b.png")], conf=0.5) as session:
        assert_type(len(session), int)
        for outcome in session:
            assert_type(outcome, Prediction | ItemError)
            if outcome:
                assert_type(outcome, Prediction)
                assert_type(outcome.boxes, npt.NDArray[np.float32])
                assert_type(outcome.size, Size)
            else:
                assert_type(outcome, ItemError)
                assert_type(outcome.reason, str)
    assert_type(session.report(), Report)


def look(session: PredictionSession) -> None:
    """Look at a session."""
    assert_type(session.progress(), SessionProgress)
    assert_type(session.status(), SessionStatus)
    assert_type(session.model_meta, ModelMeta)
    assert_type(session.errors, tuple[ItemError, ...])
    assert_type(session.inference_request_uuid, str | None)
    assert_type(session.next(timeout=1.0), Prediction | ItemError)


async def iterate_async() -> None:
    """Iterate from an event loop."""
    async with PredictionSession(input="photos/", api_setting=3, on_error="yield") as session:
        async for outcome in session:
            assert_type(outcome, Prediction | ItemError)


def edge(array: npt.NDArray[np.uint8]) -> None:
    """Ask an edge runtime."""
    with InferenceClient("127.0.0.1:50051") as client:
        assert_type(client.infer(array, "m"), InferenceResult)
        assert_type(client.infer_async(array, "m"), Future[InferenceResult])
        assert_type(client.infer_batch([BatchInferItem(array, "m")]), list[InferenceResult])
        assert_type(client.infer_with_tensors("m", [array]), list[npt.NDArray[np.generic]])
        assert_type(client.infer(array, "m").to_prediction(4, 4), Prediction)
        for number, result in client.subscribe("camera", "m"):
            assert_type(number, int)
            assert_type(result.objects, tuple[DetectedObject, ...])
