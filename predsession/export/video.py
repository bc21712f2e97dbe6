"""A clip of the predictions: each frame with what was found, tracks with the way they came."""

from __future__ import annotations

from collections import deque
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from predsession.errors import ItemError, SourceError
from predsession.export.held import HeldFile
from predsession.export.target import Existing, Target, on_disk
from predsession.export.writing import Closing
from predsession.inputs.video import ClipWriter, need_av, probe
from predsession.prediction import Prediction

SUFFIXES = (".mp4", ".m4v", ".mov", ".mkv")
"""Containers for H.264."""
TRAIL = 30
"""Frames that a track's way goes back."""


class VideoExport(Closing):
    """Writes drawn frames into an H.264 clip, at the times and in the order in which they come.

    Parameters
    ----------
    target : Target, str or PathLike
        The clip to write; its folder is made. A path alone must not be there yet.

    Raises
    ------
    MissingExtraError
        If the extra ``video`` is not installed.
    SourceError
        If the suffix names no container for H.264, or the place cannot be used.
    """

    def __init__(self, target: Target | str | PathLike[str]) -> None:
        super().__init__()
        need_av("Writing a clip")
        target = target if isinstance(target, Target) else Target(path=Path(target))
        self._path = target.path
        if self._path.suffix.lower() not in SUFFIXES:
            raise SourceError(f"{self._path} cannot be written: use one of {', '.join(SUFFIXES)}")
        if target.existing is Existing.APPEND:
            raise SourceError(f"{self._path}: a clip cannot be added to; choose another name")
        self._held = HeldFile(target)
        self._writer: ClipWriter | None = None
        self._first = 0.0
        self._source = ""
        self._trails: dict[int, deque[tuple[float, float]]] = {}

    def write(self, outcome: Prediction | ItemError) -> None:
        """Add the frame of a prediction.

        Parameters
        ----------
        outcome : Prediction or ItemError
            A prediction of a clip: its frame is loaded and drawn on. A frame that failed is left out.

        Raises
        ------
        SourceError
            If it is no frame of a clip, or would be written over the clip that it comes from.
        """
        if isinstance(outcome, ItemError):
            self.left_out["item errors"] += 1
            return
        prediction = outcome
        seconds = prediction.timestamp
        if prediction.frame_index is None or seconds is None or prediction.path is None:
            raise SourceError(f"{prediction.name or 'a prediction'} is no frame of a clip that is at hand")
        if self._writer is None:
            self._open(prediction.path, prediction)
        elif prediction.path != self._source:
            raise SourceError(
                f"{self._path} can hold one clip, not also {prediction.path}: run them one by one"
            )
        assert self._writer is not None
        if prediction.track_ids is not None:
            # What no track was made of are the detector's doubts, which only the tracker wanted to see.
            prediction = prediction.where(prediction.track_ids >= 0)
        picture = prediction.visualize(trails=self._along(prediction))
        with on_disk(self._path):
            self._writer.write(picture, abs(seconds - self._first))

    def _open(self, source: str, prediction: Prediction) -> None:
        """Begin the clip with its first frame's size and its source's rate."""
        if self._path.exists() and self._path.samefile(source):
            raise SourceError(f"{self._path} is the clip itself; choose another name")
        self._source = source
        self._first = prediction.timestamp or 0.0
        with on_disk(self._path):
            self._writer = ClipWriter(self._path, prediction.size, rate=probe(source).rate)

    def _along(self, prediction: Prediction) -> list[npt.NDArray[np.floating] | None] | None:
        """Return the way each tracked object came."""
        ids = prediction.track_ids
        if ids is None:
            return None
        trails: list[npt.NDArray[np.floating] | None] = []
        for number, (x1, _, x2, y2) in zip(ids, prediction.boxes, strict=True):
            if number < 0:
                trails.append(None)
                continue
            way = self._trails.setdefault(int(number), deque(maxlen=TRAIL))
            way.append((float(x1 + x2) / 2, float(y2)))
            trails.append(np.array(way, np.float32))
        return trails

    def finish(self) -> None:
        """Write what the clip ends with.

        Raises
        ------
        DiskError
            If it cannot be written, or is there no longer; names the file.
        """
        self._end()
        self._held.keep()
        self.close()

    def close(self) -> None:
        """Finish the clip, as far as it came; it may be done twice."""
        try:
            self._end()
        finally:
            self._held.close()

    def _end(self) -> None:
        """Write what the clip ends with, if one was begun."""
        writer, self._writer = self._writer, None
        if writer is not None and self._held.is_ours:  # a fork writes nothing into its parent's clip
            with on_disk(self._path):
                writer.close()
