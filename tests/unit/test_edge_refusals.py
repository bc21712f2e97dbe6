"""The runtime's own words, and the error that they are."""

from __future__ import annotations

import pytest

from predsession import (
    AuthError,
    NotFoundError,
    PredSessionError,
    RateLimitError,
    RefusedError,
    RequestTimeoutError,
)
from predsession.edge.refusals import from_refusal


@pytest.mark.parametrize(("words", "kind", "status"), [
    ("Inference timeout", RequestTimeoutError, None),
    ("Batch timeout", RequestTimeoutError, None),
    ("Model not found", NotFoundError, 404),
    ("Model not found: m", NotFoundError, 404),
    ("Session not found: s was destroyed", NotFoundError, 404),
    ("Model not allowed in this session: m; s may use n", AuthError, 403),
    ("Session over its max_qps: s has 3 calls a second", RateLimitError, 429),
    ("Session over its max_concurrent: 2 calls of s are running", RateLimitError, 429),
    ("Inference failed: model m: Inference timeout", RefusedError, 200),
    ("Scheduler queue full", RefusedError, 200),
    ("", RefusedError, 200),
])  # fmt: skip
def test_words(words: str, kind: type[PredSessionError], status: int | None) -> None:
    """Each of the fixed words has the error that a status would be; a model's own words never have."""
    error = from_refusal(words, what="Infer", endpoint="here")
    assert type(error) is kind
    assert getattr(error, "status", None) == status
    assert str(error).startswith("Infer at here: ")
    assert words in str(error)
