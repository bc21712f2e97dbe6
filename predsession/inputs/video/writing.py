"""Pictures into a clip, each with its own time."""

from __future__ import annotations

from fractions import Fraction
from os import PathLike
from types import TracebackType
from typing import Self

import numpy as np

from predsession.inputs.video.probing import Picture, need_av
from predsession.wire.geometry import Size


class ClipWriter:
    """Writes pictures into an H.264 clip, at the times they are given.

    Parameters
    ----------
    path : str or PathLike
        The file to write; its suffix chooses the container.
    size : Size
        Of every picture; an odd width or height is widened by one, as H.264 wants even ones.
    rate : float
        Frames a second, on average.
    """

    def __init__(self, path: str | PathLike[str], size: Size, *, rate: float) -> None:
        need_av("Writing a clip")
        import av

        self._container = av.open(str(path), "w")
        self._stream = self._container.add_stream("libx264", rate=Fraction(rate).limit_denominator(1001))
        self._stream.width = size.width + size.width % 2
        self._stream.height = size.height + size.height % 2
        self._stream.pix_fmt = "yuv420p"
        self._stream.options = {"crf": "20", "preset": "veryfast"}
        self._time_base = Fraction(1, 90_000)
        self._stream.codec_context.time_base = self._time_base

    def write(self, picture: Picture, seconds: float) -> None:
        """Add a picture, (H, W, 3) uint8 RGB, shown from this time on."""
        import av

        padded = np.pad(
            picture,
            ((0, self._stream.height - picture.shape[0]), (0, self._stream.width - picture.shape[1]), (0, 0)),
            mode="edge",
        )
        frame = av.VideoFrame.from_ndarray(padded, format="rgb24")
        frame.pts, frame.time_base = round(seconds / self._time_base), self._time_base
        self._container.mux(self._stream.encode(frame))

    def close(self) -> None:
        """Finish the file."""
        self._container.mux(self._stream.encode(None))
        self._container.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
