"""Videos, made once and kept beside the pictures: an ordinary one, a large one, a very long one."""

from __future__ import annotations

import io
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path

import av
import numpy as np
from PIL import Image

from benchmarks.pictures import PHOTO, Kind, encoded, kept, strength_for

FRAME = Kind("frame", 1920, 1080, 1_000_000)
"""A frame of the large clip."""
_RATE = 30


def ordinary(frames: int) -> Path:
    """Return a clip of 1280x720 whose frames are photos with moving bars."""

    def fill(target: Path) -> None:
        strength = strength_for(PHOTO)
        pixels = (
            np.asarray(Image.open(io.BytesIO(encoded(PHOTO, number % 30, strength))))
            for number in range(frames)
        )
        _encode(target / "clip.mp4", (av.VideoFrame.from_ndarray(each, "rgb24") for each in pixels))

    return kept(f"clip-{frames}", fill) / "clip.mp4"


def large(megabytes: int) -> Path:
    """Return a clip of so many megabytes: JPEGs of one megabyte each, packed into a file as they are."""

    def fill(target: Path) -> None:
        strength = strength_for(FRAME)
        frames = [encoded(FRAME, number, strength) for number in range(8)]
        with av.open(str(target / "clip.avi"), "w") as clip:
            stream = clip.add_stream("mjpeg", rate=_RATE)
            stream.width, stream.height, stream.pix_fmt = FRAME.width, FRAME.height, "yuvj420p"
            stream.time_base = Fraction(1, _RATE)
            for number in range(megabytes):
                packet = av.Packet(frames[number % len(frames)])
                packet.stream, packet.pts, packet.dts = stream, number, number
                packet.time_base, packet.is_keyframe = stream.time_base, True
                clip.mux(packet)

    return kept(f"large-{megabytes}", fill) / "clip.avi"


def endless(frames: int) -> Path:
    """Return a clip of very many very small frames."""

    def fill(target: Path) -> None:
        frame = av.VideoFrame.from_ndarray(np.full((32, 64, 3), 90, np.uint8), "rgb24")
        _encode(target / "clip.mp4", (frame for _ in range(frames)))

    return kept(f"endless-{frames}", fill) / "clip.mp4"


def _encode(path: Path, frames: Iterator[av.VideoFrame]) -> None:
    """Write frames of one size into an MPEG-4 clip."""
    first = next(frames)
    with av.open(str(path), "w") as clip:
        stream = clip.add_stream("mpeg4", rate=_RATE)
        stream.width, stream.height, stream.pix_fmt = first.width, first.height, "yuv420p"
        stream.bit_rate = 8_000_000
        for number, frame in enumerate(chain([first], frames)):
            frame.pts = number
            clip.mux(stream.encode(frame))
        clip.mux(stream.encode())
