"""Trackers: which there are, what can be set, and which one runs.

A tracker takes the detections of one frame after the other, and says for each to which track it belongs.
ByteTrack is our own; OC-SORT and BoT-SORT are those of Roboflow's ``trackers`` (extra ``tracking``). The name
``botsort`` is accepted in any case, because a Supervisely client asks for nothing else: without the extra
ByteTrack runs, and the job's status says so.
"""

from __future__ import annotations

import difflib
import importlib.util
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Protocol

import numpy as np
import numpy.typing as npt

from predsession.server.bytetrack import ByteTrack, ByteTrackOptions
from predsession.server.detections import Detections
from predsession.server.refusal import Refusal, explained
from predsession.server.work import TrackWork
from predsession.wire.jsontypes import JSON, JSONObject

OURS, STOCK = "bytetrack", "botsort"
_MORE = "ocsort"

_STOCK_ONLY = frozenset({
    "name", "device", "half", "fp16", "per_class", "track_buffer", "match_thresh", "proximity_thresh",
    "appearance_thresh", "cmc_method", "frame_rate", "fuse_first_associate", "fuse_score", "with_reid",
    "reid_weights", "fast_reid_config", "fast_reid_weights", "min_box_area", "aspect_ratio_thresh", "mot20",
    "ablation", "max_age", "min_hits", "det_thresh", "iou_threshold",
})  # fmt: skip
"""What a Supervisely client may set for BoT-SORT; beyond the three thresholds it changes nothing here."""


class Tracker(Protocol):
    """What follows objects from frame to frame."""

    def update(self, detections: Detections) -> npt.NDArray[np.int64]:
        """Take the next frame; return the track of each detection, from 1, or -1 for none."""


def has_extra() -> bool:
    """Whether the extra ``tracking`` is installed."""
    return importlib.util.find_spec("trackers") is not None


def tracker_names() -> list[str]:
    """Return the names that a client may ask for; the first is the one to take without a wish."""
    return [OURS, *([_MORE] if has_extra() else []), STOCK]


def tracker_settings() -> dict[str, JSON]:
    """Return what can be set for each tracker, with the defaults.

    Returns
    -------
    dict
        Name of the tracker to its settings.
    """
    return {name: dict(_defaults(name)) for name in tracker_names()}


def runs_as(name: str) -> str:
    """Return the tracker that runs where this one is asked for."""
    return OURS if name == STOCK and not has_extra() else name


def read_tracking(name: JSON, given: JSON) -> TrackWork | None:
    """Check what a submit asks for.

    Parameters
    ----------
    name : JSON
        ``state.tracker``; None or an empty text for no tracking.
    given : JSON
        ``state.tracker_settings``.

    Returns
    -------
    TrackWork or None
        Complete.

    Raises
    ------
    Refusal
        If there is no such tracker or setting, or a value makes no sense; the message names it.
    """
    if name is None or name == "":
        return None
    if not isinstance(name, str) or name.lower() not in tracker_names():
        names = ", ".join(tracker_names())
        raise Refusal(400, explained(f"There is no tracker {name!r}; there are {names}."))
    if given is not None and not isinstance(given, Mapping):
        raise Refusal(400, explained(f"tracker_settings is {given!r}; it must be an object"))
    asked = name.lower()
    settings = _complete(asked, given or {})
    low = settings.get("track_low_thresh", ByteTrackOptions().track_low_thresh)
    return TrackWork(asked, runs_as(asked), settings, float(str(low)))


def make_tracker(name: str, settings: JSONObject, *, rate: float) -> Tracker:
    """Make a tracker.

    Parameters
    ----------
    name : str
        One that runs: see `runs_as`.
    settings : JSONObject
        Complete, from `read_tracking`.
    rate : float
        Frames a second that it will see.

    Returns
    -------
    Tracker
        New.
    """
    if name != OURS:
        from predsession.server.roboflow import RoboflowTracker

        return RoboflowTracker(name, settings, rate=rate)
    values = {key: settings[key] for key in asdict(ByteTrackOptions())}
    numbers = {key: float(str(value)) for key, value in values.items()}
    hits = int(numbers.pop("confirm_hits"))
    return ByteTrack(ByteTrackOptions(**numbers, confirm_hits=hits), rate=rate)


def _defaults(name: str) -> JSONObject:
    """Return a tracker's settings with their defaults."""
    if runs_as(name) == OURS:
        return asdict(ByteTrackOptions())
    from predsession.server.roboflow import DEFAULTS

    return DEFAULTS[name]


def _complete(name: str, given: JSONObject) -> JSONObject:
    """Fill in the defaults; refuse what is unknown or makes no sense."""
    settings = dict(_defaults(name))
    for key, value in given.items():
        if key not in settings:
            if name == STOCK and key in _STOCK_ONLY:
                continue
            near = difflib.get_close_matches(key, settings, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(settings))}."
            raise Refusal(400, explained(f"The tracker {name} has no setting {key!r}; {hint}"))
        problem = _problem(key, value, settings[key])
        if problem:
            raise Refusal(400, explained(f"tracker setting {key!r} is {value!r}; it must be {problem}"))
        settings[key] = value
    return settings


def _problem(key: str, value: JSON, default: JSON) -> str:
    """Return what a value must be, if it is not."""
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "a number"
    if isinstance(default, int):
        return "" if isinstance(value, int) and value >= 1 else "a whole number of at least 1"
    most = 1.0 if key.endswith(("thresh", "iou")) else math.inf
    return "" if 0 <= value <= most and value < math.inf else f"from 0 to {most:g}"
