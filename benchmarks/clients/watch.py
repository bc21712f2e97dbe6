"""Notes when each call of a session begins and ends, by way of requests' own adapter."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TypeVar
from unittest import mock
from urllib.parse import urlsplit

from requests.adapters import HTTPAdapter

Span = tuple[str, float, float]
"""The call, and its beginning and end on the machine's monotonic clock."""
_T = TypeVar("_T")
UPLOADS = frozenset({"inference_batch_async", "inference_video_async"})


def watch() -> list[Span]:
    """Watch every call from now on.

    Returns
    -------
    list of Span
        Fills as calls end. One that is still sending is in it, too, with an end of infinity.
    """
    spans: list[Span] = []
    mock.patch.object(HTTPAdapter, "send", _noted(HTTPAdapter.send, spans)).start()  # for good
    return spans


def _noted(send: Callable[..., _T], spans: list[Span]) -> Callable[..., _T]:
    """Return the adapter's method with notes taken around it."""

    def noted(self: HTTPAdapter, request: object, *args: object, **kwargs: object) -> _T:
        name = PurePosixPath(urlsplit(str(getattr(request, "url", ""))).path).name
        place, began = len(spans), time.monotonic()
        spans.append((name, began, float("inf")))
        try:
            return send(self, request, *args, **kwargs)
        finally:
            spans[place] = (name, began, time.monotonic())

    return noted
