"""A clip of the predictions: each frame with what was found, tracks with the way they came."""

from __future__ import annotations

from collections import deque
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from predsession.errors import SourceError
from predsession.inputs.video import ClipWriter, need_av, probe
from predsession.prediction import Prediction

SUFFIXES = (".mp4", ".m4v", ".mov", ".mkv")
"""Containers for H.264."""
TRAIL = 30
"""Frames that a track's way goes back."""


class VideoExport:
    """Writes drawn frames into an H.264 clip, at the times and in the order in which they come.

    Parameters
    ----------
    path : str or PathLike
        The clip to write; its folder is made.

    Raises
    ------
    MissingExtraError
        If the extra ``video`` is not installed.
    SourceError
        If the suffix names no container for H.264.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        need_av("Writing a clip")
        self._path = Path(path)
        if self._path.suffix.lower() not in SUFFIXES:
            raise SourceError(f"{self._path} cannot be written: use one of {', '.join(SUFFIXES)}")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._writer: ClipWriter | None = None
        self._first = 0.0
        self._source = ""
        self._trails: dict[int, deque[tuple[float, float]]] = {}

    def write(self, prediction: Prediction) -> None:
        """Add the frame of a prediction.

        Parameters
        ----------
        prediction : Prediction
            Of a clip; its frame is loaded and drawn on.

        Raises
        ------
        SourceError
            If it is no frame of a clip, or would be written over the clip that it comes from.
        """
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
        self._writer.write(picture, abs(seconds - self._first))

    def _open(self, source: str, prediction: Prediction) -> None:
        """Begin the clip with its first frame's size and its source's rate."""
        if self._path.exists() and self._path.samefile(source):
            raise SourceError(f"{self._path} is the clip itself; choose another name")
        self._source = source
        self._first = prediction.timestamp or 0.0
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

    def close(self) -> None:
        """Finish the clip."""
        if self._writer is not None:
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
