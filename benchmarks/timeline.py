"""One run, watched: when its uploads, the model's batches, its polls and the caller's loop were busy.

All of it is on one clock: Linux's monotonic one is the same for every process of a machine.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.clients.watch import UPLOADS
from benchmarks.pictures import PHOTO, folder
from benchmarks.process import run_client
from benchmarks.servers import our_server
from predsession.wire.jsontypes import JSON, as_list

IMAGES = 100
MODEL = 0.012
"""Seconds of the model for each image."""
LOOP = 0.006
"""Seconds of the caller's loop for each prediction."""
Spans = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Timeline:
    """When each was busy: beginnings and ends, in seconds from the session's making.

    Parameters
    ----------
    upload, inference, poll, consume : list of (float, float)
        The client's uploads until they are answered; the model's batches; the client's polls until they are
        answered; the body of the caller's loop.
    """

    upload: Spans
    inference: Spans
    poll: Spans
    consume: Spans


def record() -> Timeline:
    """Run photos through a model of some milliseconds each, with a caller that takes half as long.

    Returns
    -------
    Timeline
        As it was.
    """
    with tempfile.TemporaryDirectory() as place, our_server("Bars") as url:
        run_client("ours", {"url": url, "input": str(folder(PHOTO, 3))})  # the server's first is slower
        trace = Path(place, "trace")
        settings: dict[str, JSON] = {"delay": MODEL, "trace": str(trace)}
        task: dict[str, JSON] = {
            "url": url,
            "input": str(folder(PHOTO, IMAGES)),
            "read": ["boxes", "scores", "classes"],
            "pause": LOOP,
            "timeline": True,
            "keywords": {"settings": settings},
        }
        found = run_client("ours", task)
        batches: list[JSON] = [json.loads(line) for line in trace.read_text().splitlines()]
    began = float(str(found["began"]))
    spans = [as_list(each) for each in as_list(found["spans"])]
    return Timeline(
        upload=_spans([span[1:] for span in spans if span[0] in UPLOADS], began),
        inference=_spans(batches, began),
        poll=_spans([span[1:] for span in spans if span[0] == "pop_inference_results"], began),
        consume=_spans(as_list(found["bodies"]), began),
    )


def _spans(pairs: object, began: float) -> Spans:
    """Return beginnings and ends from the run's beginning on."""
    assert isinstance(pairs, list)
    return [(float(pair[0]) - began, float(pair[1]) - began) for pair in pairs]
