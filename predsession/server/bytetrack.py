"""ByteTrack: strong detections are matched first, weak ones keep alive what is already tracked.

Each track predicts where its box will be by a Kalman filter of centre and extent: four pairs of place and
speed that know nothing of each other, so that the covariance is three numbers a pair and all tracks are
filtered at once. Boxes are matched by overlap, and only within a class.

References
----------
Zhang et al., "ByteTrack: Multi-Object Tracking by Associating Every Detection Box", ECCV 2022,
arXiv:2110.06864; the noise in proportion to the object's extent is Wojke et al., arXiv:1703.07402.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from predsession.server.detections import Detections

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]

_PLACE_NOISE, _SPEED_NOISE = 1 / 20, 1 / 160
_TWIN_OVERLAP = 0.85
"""A lost track that overlaps a live one by more is the same object."""


@dataclass(frozen=True, slots=True)
class ByteTrackOptions:
    """What can be set.

    Parameters
    ----------
    track_high_thresh : float
        The score from which a detection is strong.
    track_low_thresh : float
        The score below which it is nothing.
    new_track_thresh : float
        The score from which it begins a track.
    match_iou : float
        Overlap needed between a track and a strong detection.
    low_match_iou : float
        Overlap needed with a weak one.
    new_match_iou : float
        Overlap needed between a track that is not confirmed yet and a strong one.
    confirm_hits : int
        Frames in which an object must be seen before it gets an id; in a clip's first frame one is enough.
    lost_seconds : float
        How long a track that is not seen is remembered.
    """

    track_high_thresh: float = 0.4
    track_low_thresh: float = 0.15
    new_track_thresh: float = 0.45
    match_iou: float = 0.2
    low_match_iou: float = 0.4
    new_match_iou: float = 0.3
    confirm_hits: int = 2
    lost_seconds: float = 2.0


class ByteTrack:
    """The tracker.

    Parameters
    ----------
    options : ByteTrackOptions
        Its settings.
    rate : float
        Frames a second that it will see.
    """

    def __init__(self, options: ByteTrackOptions, *, rate: float) -> None:
        self._options = options
        self._lost_frames = max(1, round(options.lost_seconds * rate))
        self._tracks = _Tracks.none()
        self._next_id = 1
        self._frame = 0

    def update(self, detections: Detections) -> Ids:
        """Take the next frame.

        Parameters
        ----------
        detections : Detections
            Of the frame, the weak ones too.

        Returns
        -------
        (N,) int64 ndarray
            The track of each detection; -1 for none.
        """
        self._frame += 1
        tracks, options = self._tracks, self._options
        tracks.predict()
        boxes = detections.boxes.astype(np.float64)
        strong = detections.scores >= options.track_high_thresh
        weak = ~strong & (detections.scores >= options.track_low_thresh)
        confirmed = tracks.ids > 0
        match = _Matching(tracks, boxes, detections.class_ids)
        match.pair(confirmed, strong, least=options.match_iou)
        match.pair(confirmed & tracks.seen, weak, least=options.low_match_iou)
        match.pair(~confirmed, strong, least=options.new_match_iou)
        tracks.correct(match.of_track, boxes)
        fresh = np.flatnonzero(
            strong & (match.of_detection < 0) & (detections.scores >= options.new_track_thresh)
        )
        match.of_detection[fresh] = len(tracks) + np.arange(len(fresh))
        tracks.begin(boxes[fresh], detections.class_ids[fresh])
        self._confirm()
        ids = _ids_of(tracks, match.of_detection)
        self._drop()
        return ids

    def _confirm(self) -> None:
        """Give ids to tracks that have been seen often enough."""
        tracks = self._tracks
        enough = 1 if self._frame == 1 else self._options.confirm_hits
        for row in np.flatnonzero((tracks.ids < 0) & (tracks.hits >= enough)):
            tracks.ids[row] = self._next_id
            self._next_id += 1

    def _drop(self) -> None:
        """Forget tracks that were lost for too long, those not confirmed at once, and twins."""
        tracks = self._tracks
        patience = np.where(tracks.ids > 0, self._lost_frames, 0)
        keep = tracks.missed <= patience
        overlap = _overlaps(tracks.boxes, tracks.boxes, tracks.class_ids, tracks.class_ids)
        lost, live = ~tracks.seen & keep, tracks.seen & (tracks.ids > 0)
        for old in np.flatnonzero(lost):
            twins = np.flatnonzero(live & keep & (overlap[old] > _TWIN_OVERLAP))
            for twin in twins:
                # The older one goes on, as it has the id that was seen for longer.
                keep[old if tracks.age[old] <= tracks.age[twin] else twin] = False
        self._tracks = tracks.rows(keep)


def _ids_of(tracks: _Tracks, of_detection: Ids) -> Ids:
    """Return the id of each detection's track."""
    if not len(tracks):
        return np.full(len(of_detection), -1, np.int64)
    return np.where(of_detection >= 0, tracks.ids[of_detection], -1)


class _Matching:
    """Which track a detection belongs to, and the other way round; -1 for none yet."""

    def __init__(self, tracks: _Tracks, boxes: Floats, class_ids: Ids) -> None:
        self._overlaps = _overlaps(tracks.boxes, boxes, tracks.class_ids, class_ids)
        self.of_track = np.full(len(tracks), -1, np.int64)
        self.of_detection = np.full(len(boxes), -1, np.int64)

    def pair(self, tracks: Marks, detections: Marks, *, least: float) -> None:
        """Pair those that are marked and still alone, with the largest overlap in all."""
        rows = np.flatnonzero(tracks & (self.of_track < 0))
        columns = np.flatnonzero(detections & (self.of_detection < 0))
        overlaps = self._overlaps[np.ix_(rows, columns)]
        # What is too far apart must not draw others away from their partners.
        costs = np.where(overlaps >= least, -overlaps, 0.0)
        for row, column in zip(*linear_sum_assignment(costs), strict=True):
            if overlaps[row, column] >= least:
                self.of_track[rows[row]] = columns[column]
                self.of_detection[columns[column]] = rows[row]


@dataclass(slots=True)
class _Tracks:
    """All tracks, row by row: ``mean`` (T, 4, 2) has place and speed of centre x, y, width, height."""

    mean: Floats
    cov: Floats
    """(T, 4, 3): variance of the place, covariance, variance of the speed."""
    class_ids: Ids
    ids: Ids
    """-1 until confirmed."""
    hits: Ids
    missed: Ids
    """Frames since it was last seen."""
    age: Ids

    @classmethod
    def none(cls) -> _Tracks:
        """Return no tracks."""
        whole = [np.zeros(0, np.int64) for _ in range(5)]
        return cls(np.zeros((0, 4, 2)), np.zeros((0, 4, 3)), *whole)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def seen(self) -> Marks:
        """Which were seen in the last frame."""
        return np.equal(self.missed, 0)

    @property
    def boxes(self) -> Floats:
        """Where they are thought to be, (T, 4) xyxy."""
        centre, extent = self.mean[:, :2, 0], self.mean[:, 2:, 0]
        return np.hstack((centre - extent / 2, centre + extent / 2))

    def _scale(self) -> Floats:
        """Return the extents that the noise is in proportion to, (T, 4)."""
        extent = np.maximum(self.mean[:, 2:, 0], 1.0)
        return np.hstack((extent, extent))

    def predict(self) -> None:
        """Move on by one frame."""
        # The extent of what is out of sight is taken to stay, or it might grow or shrink without end.
        self.mean[self.missed > 0, 2:, 1] = 0.0
        scale = self._scale()
        self.mean[:, :, 0] += self.mean[:, :, 1]
        place, both, speed = (self.cov[:, :, column].copy() for column in range(3))
        self.cov[:, :, 0] = place + 2 * both + speed + (_PLACE_NOISE * scale) ** 2
        self.cov[:, :, 1] = both + speed
        self.cov[:, :, 2] = speed + (_SPEED_NOISE * scale) ** 2
        self.age += 1

    def correct(self, of_track: Ids, boxes: Floats) -> None:
        """Take in what was matched; the others have been missed."""
        hit = of_track >= 0
        self.missed = np.where(hit, 0, self.missed + 1)
        self.hits += hit
        measured = _centred(boxes[of_track[hit]])
        noise = (_PLACE_NOISE * self._scale()[hit]) ** 2
        place, both, speed = (self.cov[hit, :, column] for column in range(3))
        total = place + noise
        gains = place / total, both / total
        error = measured - self.mean[hit, :, 0]
        self.mean[hit] += np.stack([gain * error for gain in gains], axis=-1)
        kept = 1 - gains[0]
        self.cov[hit] = np.stack((kept * place, kept * both, speed - gains[1] * both), axis=-1)

    def begin(self, boxes: Floats, class_ids: Ids) -> None:
        """Add tracks."""
        count = len(boxes)
        if not count:
            return
        measured = _centred(boxes)
        extent = np.maximum(measured[:, 2:], 1.0)
        scale = np.hstack((extent, extent))
        place, speed = (2 * _PLACE_NOISE * scale) ** 2, (10 * _SPEED_NOISE * scale) ** 2
        zeros, ones = np.zeros(count, np.int64), np.ones(count, np.int64)
        fresh = _Tracks(
            np.stack((measured, np.zeros_like(measured)), axis=-1),
            np.stack((place, np.zeros_like(place), speed), axis=-1),
            class_ids.astype(np.int64),
            -ones,
            ones,
            zeros,
            zeros,
        )
        for name in _Tracks.__slots__:
            setattr(self, name, np.concatenate((getattr(self, name), getattr(fresh, name))))

    def rows(self, keep: Marks) -> _Tracks:
        """Return the tracks that are marked."""
        return _Tracks(*(getattr(self, name)[keep] for name in _Tracks.__slots__))


def _centred(boxes: Floats) -> Floats:
    """Turn xyxy into centre x, y, width, height."""
    return np.hstack(((boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]))


def _overlaps(one: Floats, other: Floats, one_class: Ids, other_class: Ids) -> Floats:
    """Return the intersection over union of each with each, 0 between classes."""
    left_top = np.maximum(one[:, None, :2], other[None, :, :2])
    right_bottom = np.minimum(one[:, None, 2:], other[None, :, 2:])
    common = np.clip(right_bottom - left_top, 0, None).prod(axis=2)
    areas = [np.clip(boxes[:, 2:] - boxes[:, :2], 0, None).prod(axis=1) for boxes in (one, other)]
    union = areas[0][:, None] + areas[1][None, :] - common
    overlap = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return np.where(one_class[:, None] == other_class[None, :], overlap, 0.0)
