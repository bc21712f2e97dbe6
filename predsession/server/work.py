"""What a job works on beside uploaded pictures: frames of a clip, pictures of the library; and how.

Plain values that survive a restart as JSON.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeVar, cast

from predsession.wire.geometry import Size
from predsession.wire.jsontypes import JSON, JSONObject, as_object


@dataclass(frozen=True, slots=True)
class ClipWork:
    """Frames of a clip.

    Parameters
    ----------
    start : int
        The first.
    step : int
        From one to the next; negative backward.
    count : int
        How many.
    length : int
        Frames the clip has.
    width, height : int
        Of the upright picture, pixels.
    rate : float
        The clip's frames a second.
    name : str
        What the caller called it.
    path : str or None
        The file; None where it is the job's upload.
    video_id : int or None
        In the library.
    dataset_id, project_id : int or None
        Likewise.
    """

    start: int
    step: int
    count: int
    length: int
    width: int
    height: int
    rate: float
    name: str = ""
    path: str | None = None
    video_id: int | None = None
    dataset_id: int | None = None
    project_id: int | None = None

    @property
    def size(self) -> Size:
        """Of the upright picture."""
        return Size(self.width, self.height)

    def frame(self, number: int) -> int:
        """Return the frame that the job's item with this number is; numbers start at 1."""
        return self.start + (number - 1) * self.step


@dataclass(frozen=True, slots=True)
class TrackWork:
    """How a clip is tracked.

    Parameters
    ----------
    asked : str
        The tracker that the caller named.
    runs : str
        The tracker that runs.
    settings : JSONObject
        Complete.
    low : float
        The lowest score that the tracker looks at.
    """

    asked: str
    runs: str
    settings: JSONObject
    low: float


@dataclass(frozen=True, slots=True)
class WriteWork:
    """How predictions are written back to the library.

    Parameters
    ----------
    mode : str
        ``append``, ``replace``, ``create`` or ``iou_merge``.
    threshold : float
        For ``iou_merge``: a prediction that overlaps a present object of its class by more is left out.
    project : str or None
        The folder of the project they are written to; None where each picture's own is meant.
    suffix : str
        Added to the names of classes.
    """

    mode: str
    threshold: float
    project: str | None
    suffix: str


Work = ClipWork | TrackWork | WriteWork
Kind = TypeVar("Kind", ClipWork, TrackWork, WriteWork)


def to_json(work: Work | None) -> JSON:
    """Return the fields as a JSON object, null for None."""
    return None if work is None else asdict(work)


def from_json(kind: type[Kind], data: JSON) -> Kind | None:
    """Return what `to_json` wrote."""
    return None if data is None else kind(**cast("dict[str, Any]", dict(as_object(data))))
