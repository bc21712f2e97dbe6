"""Tracked jobs: their detections go through a tracker, in the order of the frames, before they are stored.

Invariants:

* Ids begin at 1 in every job, and no other job has a part in them.
* A tracker is a function of the detections before, and those are stored with the results. So a server that is
  started again brings it to where it stood, by its own past, before the next frame.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from predsession.server.detections import unpack
from predsession.server.inference import describe_error
from predsession.server.job import Advance, Job
from predsession.server.store import Store
from predsession.server.tracking import Tracker, make_tracker
from predsession.wire.jsontypes import JSON

_HOLE = b'"customBigData":{}}'
Ids = npt.NDArray[np.int64]


class Tracks:
    """The trackers of the jobs that go on.

    Parameters
    ----------
    store : Store
        With the detections of the server before.
    stock : bool
        Whether objects without a track are left out, as a stock server does.
    """

    def __init__(self, store: Store, *, stock: bool) -> None:
        self._store = store
        self._stock = stock
        self._trackers: dict[str, Tracker] = {}

    def apply(self, part: Advance) -> Advance:
        """Track what a batch brought; for a thread.

        Parameters
        ----------
        part : Advance
            The next results of a tracked job.

        Returns
        -------
        Advance
            With the ids in the items; if the tracker failed, with that as what ends the job.
        """
        items: list[bytes] = []
        try:
            tracker = self._of(part.job)
            for item, rows in zip(part.items, part.rows, strict=True):
                items.append(self._tracked(item, rows, tracker))
        except Exception as error:  # noqa: BLE001 - a tracker may be somebody else's code
            failure = describe_error(error, "tracker")
            return Advance(part.job, part.first, items, part.settled, failure, part.rows[: len(items)])
        return Advance(part.job, part.first, items, part.settled, part.failure, part.rows)

    def warm(self, job: Job) -> None:
        """Bring a job's tracker to where it stood; for a thread."""
        tracker = self._of(job)
        for rows in self._store.stored(job.uuid, "detections"):
            tracker.update(unpack(rows))

    def forget(self, job: Job) -> None:
        """Let go of the tracker of a job that has ended."""
        self._trackers.pop(job.uuid, None)

    def _of(self, job: Job) -> Tracker:
        """Return a job's tracker."""
        tracker = self._trackers.get(job.uuid)
        if tracker is None:
            tracking, clip = job.facts.tracking, job.facts.clip
            assert tracking is not None
            assert clip is not None
            tracker = make_tracker(tracking.runs, tracking.settings, rate=clip.rate / abs(clip.step))
            self._trackers[job.uuid] = tracker
        return tracker

    def _tracked(self, item: bytes, rows: bytes, tracker: Tracker) -> bytes:
        """Return an item with its ids; a bad frame is one without detections."""
        detections = unpack(rows)
        ids = tracker.update(detections)[detections.shown]
        if _HOLE not in item:
            return item
        if self._stock and (ids < 0).any():
            return _without_strays(item, ids)
        return _with_ids(item, ids.tolist())


def _with_ids(item: bytes, ids: Sequence[int]) -> bytes:
    """Write the ids of its objects into an item."""
    head, tail = item.rsplit(_HOLE, 1)
    return b"".join((head, b'"customBigData":', json.dumps(ids, separators=(",", ":")).encode(), b"}", tail))


def _without_strays(item: bytes, ids: Ids) -> bytes:
    """Leave out the objects without a track."""
    data: dict[str, JSON] = json.loads(item)
    annotation = data["annotation"]
    assert isinstance(annotation, dict)
    kept = ids >= 0
    annotation["objects"] = [one for one, keep in zip(annotation["objects"], kept, strict=True) if keep]
    annotation["customBigData"] = ids[kept].tolist()
    return json.dumps(data, separators=(",", ":")).encode()
