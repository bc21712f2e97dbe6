"""The trackers of Roboflow's ``trackers`` package (extra ``tracking``), behind our own seam.

They know nothing of classes, and number their tracks across all instances in the process. So each class has a
tracker of its own, and ids are given out anew, from 1.

References
----------
https://trackers.roboflow.com; written for its version 2.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Protocol

import numpy as np
import numpy.typing as npt

from predsession.server.bytetrack import ByteTrackOptions
from predsession.server.detections import Detections
from predsession.wire.jsontypes import JSON, JSONObject

DEFAULTS: Mapping[str, JSONObject] = {
    "botsort": asdict(ByteTrackOptions()),
    "ocsort": {
        "track_high_thresh": 0.4,
        "track_low_thresh": 0.15,
        "match_iou": 0.3,
        "direction_weight": 0.2,
        "delta_t": 3,
        "confirm_hits": 2,
        "lost_seconds": 2.0,
    },
}
"""Tracker to its settings; those of BoT-SORT have ByteTrack's names, so that either may run for the other."""
_FRAMES_A_SECOND = 30  # the package counts a lost track's frames at this rate, whatever the clip's


class _Foreign(Protocol):
    """A tracker of the package, with its own detections in and out."""

    def update(self, detections: object) -> object:
        """Take the next frame."""


class RoboflowTracker:
    """One tracker of the package for each class.

    Parameters
    ----------
    name : str
        ``botsort`` or ``ocsort``.
    settings : JSONObject
        Complete, as in `DEFAULTS`.
    rate : float
        Frames a second that it will see.
    """

    def __init__(self, name: str, settings: JSONObject, *, rate: float) -> None:
        self._make = _makers()[name](settings, rate)
        self._low = float(str(settings["track_low_thresh"]))
        self._of_class: dict[int, _Foreign] = {}
        self._ids: dict[tuple[int, int], int] = {}

    def update(self, detections: Detections) -> npt.NDArray[np.int64]:
        """Take the next frame; return the track of each detection, from 1, or -1 for none."""
        ids = np.full(len(detections), -1, np.int64)
        strong = detections.scores >= self._low
        # Every class that was ever seen hears of every frame, or its lost tracks would not grow old.
        for number in sorted({*self._of_class, *detections.class_ids[strong].tolist()}):
            rows = np.flatnonzero(strong & (detections.class_ids == number))
            if number not in self._of_class:
                self._of_class[number] = self._make()
            for row, track in zip(rows, self._update_class(number, detections, rows), strict=True):
                ids[row] = -1 if track < 0 else self._ids.setdefault((number, track), len(self._ids) + 1)
        return ids

    def _update_class(self, number: int, detections: Detections, rows: npt.NDArray[np.int64]) -> list[int]:
        """Return the package's own id for each row of a class; it may answer in another order."""
        import supervision

        seen = supervision.Detections(
            xyxy=detections.boxes[rows].astype(np.float64),
            confidence=detections.scores[rows],
            class_id=detections.class_ids[rows],
            data={"row": np.arange(len(rows))},
        )
        answer = self._of_class[number].update(seen)
        found: list[int] = [-1] * len(rows)
        tracks = getattr(answer, "tracker_id", None)
        places = getattr(answer, "data", {}).get("row", ())
        for place, track in zip(places, () if tracks is None else tracks, strict=False):
            found[int(place)] = int(track)
        return found


def _makers() -> dict[str, Callable[[JSONObject, float], Callable[[], _Foreign]]]:
    """Return for each name what reads the settings and returns what makes a tracker."""
    import trackers

    def botsort(settings: JSONObject, rate: float) -> Callable[[], _Foreign]:
        return lambda: trackers.BoTSORTTracker(
            **_shared(settings, rate),
            track_activation_threshold=settings["new_track_thresh"],
            minimum_iou_threshold_first_assoc=settings["match_iou"],
            minimum_iou_threshold_second_assoc=settings["low_match_iou"],
            minimum_iou_threshold_unconfirmed_assoc=settings["new_match_iou"],
            enable_cmc=False,  # it would need the pixels, which are in another process, and gone
        )

    def ocsort(settings: JSONObject, rate: float) -> Callable[[], _Foreign]:
        return lambda: trackers.OCSORTTracker(
            **_shared(settings, rate),
            minimum_iou_threshold=settings["match_iou"],
            direction_consistency_weight=settings["direction_weight"],
            delta_t=settings["delta_t"],
        )

    return {"botsort": botsort, "ocsort": ocsort}


def _shared(settings: JSONObject, rate: float) -> dict[str, JSON]:
    """Return the arguments that all of them have."""
    return {
        "lost_track_buffer": round(float(str(settings["lost_seconds"])) * _FRAMES_A_SECOND),
        "frame_rate": rate,
        "minimum_consecutive_frames": settings["confirm_hits"],
        "high_conf_det_threshold": settings["track_high_thresh"],
    }
