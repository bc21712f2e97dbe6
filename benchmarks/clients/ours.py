"""A session of ours over a source, from its making to its last prediction.

The task: ``url``, ``input`` (a path; a file of arrays where it ends in .npy), and optionally ``keywords`` of
the session, ``read`` (attributes of each prediction), ``stop_after`` (predictions), ``pause`` (seconds in
the loop's body), ``imports`` (modules to import before memory is looked at), ``modules`` (tell what was
imported in the end), ``watch`` (look at the uploads), ``timeline`` (tell when everything was).

The answer: ``count`` of predictions; seconds to the ``first`` and the ``last`` of them, and until the
session was ``closed``; ``peak`` megabytes beyond what was held at the beginning; of the uploads, seconds to
the beginning of the first (``first_upload``) and to the end of the last (``sent``).
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.clients import memory
from benchmarks.clients.watch import UPLOADS, watch
from benchmarks.process import answer, read_task
from predsession import PredictionSession
from predsession.wire.jsontypes import JSON, as_list, as_object

OPEN: Callable[..., PredictionSession] = PredictionSession


@dataclass(slots=True)
class Loop:
    """The caller's loop, and what it notices.

    Parameters
    ----------
    read : list of str
        Attributes of each prediction to look at.
    pause : float
        Seconds to spend on each.
    stop_after : int or None
        Predictions after which to leave.
    note : bool
        Whether to keep when each began and ended.
    """

    read: list[str]
    pause: float = 0.0
    stop_after: int | None = None
    note: bool = False
    count: int = 0
    first: float = 0.0
    last: float = 0.0
    bodies: list[tuple[float, float]] = field(default_factory=list)

    def take(self, session: PredictionSession) -> None:
        """Iterate."""
        for prediction in session:
            taken = time.monotonic()
            for name in self.read:
                getattr(prediction, name)
            self.last = time.monotonic()
            self.first = self.first or taken
            self.count += 1
            if self.pause:
                time.sleep(self.pause)
            if self.note:
                self.bodies.append((taken, time.monotonic()))
            if self.count == self.stop_after:
                break


def run(task: dict[str, JSON]) -> dict[str, JSON]:
    """Do the task."""
    memory.import_all(str(name) for name in as_list(task.get("imports")))
    source = _source(str(task["input"]))
    spans = watch() if task.get("watch") or task.get("timeline") else []
    loop = Loop(
        [str(name) for name in as_list(task.get("read"))],
        float(str(task.get("pause") or 0)),
        int(str(task["stop_after"])) if task.get("stop_after") else None,
        bool(task.get("timeline")),
    )
    gc.collect()
    base = memory.held()
    memory.forget_most()
    began = time.monotonic()
    with OPEN(str(task["url"]), source, **as_object(task.get("keywords"))) as session:
        loop.take(session)
    found: dict[str, JSON] = {
        "count": loop.count,
        "first": loop.first - began,
        "last": loop.last - began,
        "closed": time.monotonic() - began,
        "peak": memory.most() - base,
    }
    if task.get("modules"):
        found["modules"] = sorted(sys.modules)
    if spans:
        uploads = [span for span in spans if span[0] in UPLOADS]
        found["first_upload"] = uploads[0][1] - began
        found["sent"] = max(ended for _, _, ended in uploads) - began
    if task.get("timeline"):
        found |= {
            "began": began,
            "spans": [list(span) for span in spans],
            "bodies": [list(body) for body in loop.bodies],
        }
    return found


def _source(place: str) -> object:
    """Return what to hand to the session."""
    return list(np.load(place)) if place.endswith(".npy") else place


if __name__ == "__main__":
    answer(run(read_task()))
