"""Tracks: the same object over the frames of a clip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from predsession.prediction import Prediction
from predsession.wire.jsontypes import JSON, as_list, as_object


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """One object over the frames in which it was seen.

    Parameters
    ----------
    id : int
        Its number, from 1 in each clip.
    class_name : str
        What it is: the class it was given most often.
    path : str or None
        The clip.
    frames : (N,) int64 ndarray
        Frame indexes, ascending.
    boxes : (N, 4) float32 ndarray, xyxy, pixels
        Where it was.
    scores : (N,) float32 ndarray
        How sure the detector was.
    """

    id: int
    class_name: str
    path: str | None
    frames: npt.NDArray[np.int64] = field(repr=False)
    boxes: npt.NDArray[np.float32] = field(repr=False)
    scores: npt.NDArray[np.float32] = field(repr=False)

    def __len__(self) -> int:
        """Return in how many frames it was seen."""
        return len(self.frames)


@dataclass(slots=True)
class _Sightings:
    """A track while it is being gathered: small arrays of numbers, no predictions."""

    classes: dict[str, int] = field(default_factory=dict)
    rows: list[tuple[int, float, float, float, float, float]] = field(default_factory=list)


class TrackBook:
    """Gathers the tracks of predictions as they pass; keeps numbers, not the predictions.

    Where the frames turn round, or another file comes, another clip has begun: one file may be run twice.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], _Sightings] = {}
        self._direction = 0
        """Of the present clip's frames: 1 forward, -1 backward, 0 before the second."""
        self._paths: list[str | None] = []
        """Of the clips, in order."""
        self._frames: list[list[int]] = []
        """Of each clip, those that were seen."""

    def add(self, prediction: Prediction) -> None:
        """Take the tracked objects of a prediction."""
        ids, frame = prediction.track_ids, prediction.frame_index
        if frame is None:
            return
        same = bool(self._paths) and prediction.path == self._paths[-1]
        step = int(np.sign(frame - self._frames[-1][-1])) if same else 0
        if step and step == (self._direction or step):
            self._direction = step
        else:
            self._paths.append(prediction.path)
            self._frames.append([])
            self._direction = 0
        self._frames[-1].append(frame)
        if ids is None:
            return
        rows = zip(ids, prediction.classes, prediction.boxes, prediction.scores, strict=True)
        for number, name, box, score in rows:
            if number < 0:
                continue
            seen = self._open.setdefault((len(self._paths) - 1, int(number)), _Sightings())
            seen.classes[name] = seen.classes.get(name, 0) + 1
            x1, y1, x2, y2 = (float(side) for side in box)
            seen.rows.append((frame, x1, y1, x2, y2, float(score)))

    def tracks(self, finals: Sequence[JSON] = ()) -> list[Track]:
        """Return the tracks, by clip and id.

        Parameters
        ----------
        finals : sequence of JSON
            The final results of the clips, in the clips' order: where one says which tracks there are, a
            tracker that looks back has the last word.

        Returns
        -------
        list of Track
            Each with at least one frame.
        """
        said = [tracked_ids(final) for final in finals]
        fits = len(said) == len(self._paths) and all(said)
        told = [self._by_frame(clip, one) for clip, one in enumerate(said)] if fits else None
        tracks = (
            _track(number, self._paths[clip], self._open[clip, number], told[clip] if told else None)
            for clip, number in sorted(self._open)
        )
        return [track for track in tracks if len(track)]

    def _by_frame(self, clip: int, said: dict[int, set[int]]) -> dict[int, set[int]]:
        """Return a final result's tracks by frame of the clip."""
        # A stock server counts the frames that it tracked, from 0, whichever frames of the clip they are; the
        # embedded one names the clip's. That reading is right which agrees with what was seen.
        frames = self._frames[clip]
        counted = {
            number: {frames[place] for place in places if 0 <= place < len(frames)}
            for number, places in said.items()
        }

        def agreeing(reading: dict[int, set[int]]) -> int:
            return sum(
                row[0] in reading.get(number, ())
                for (place, number), seen in self._open.items()
                if place == clip
                for row in seen.rows
            )

        return max((said, counted), key=agreeing)


def _track(number: int, path: str | None, seen: _Sightings, told: dict[int, set[int]] | None) -> Track:
    """Turn what was gathered into a track, as far as the final result has it."""
    kept = [row for row in sorted(seen.rows) if told is None or row[0] in told.get(number, ())]
    rows = np.array(kept, np.float64).reshape(-1, 6)
    return Track(
        id=number,
        class_name=max(seen.classes, key=lambda name: seen.classes[name]),
        path=path,
        frames=rows[:, 0].astype(np.int64),
        boxes=rows[:, 1:5].astype(np.float32),
        scores=rows[:, 5].astype(np.float32),
    )


def tracked_ids(final: JSON) -> dict[int, set[int]]:
    """Read a server's final result: which tracks it says there are in which frames.

    Parameters
    ----------
    final : JSON
        The final result of a job.

    Returns
    -------
    dict of int to set of int
        Frame indexes by track id; empty where the result has no tracks.
    """
    frames = as_list(as_object(as_object(final).get("video_ann")).get("frames"))
    found: dict[int, set[int]] = {}
    for frame in map(as_object, frames):
        index = frame.get("index")
        for figure in map(as_object, as_list(frame.get("figures"))):
            number = _id(figure)
            if number is not None and isinstance(index, int):
                found.setdefault(number, set()).add(index)
    return found


def _id(figure: Mapping[str, JSON]) -> int | None:
    """Return a figure's track id; the wire has it as text."""
    try:
        return int(str(figure.get("trackId")))
    except ValueError:
        return None


def gather(predictions: Iterable[Prediction]) -> list[Track]:
    """Return the tracks of predictions that were kept.

    Parameters
    ----------
    predictions : iterable of Prediction
        Of tracked clips.

    Returns
    -------
    list of Track
        By clip and id.
    """
    book = TrackBook()
    for prediction in predictions:
        book.add(prediction)
    return book.tracks()
