"""Clips whose every frame holds its own number, so that a frame too early or too late cannot hide."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av

from predsession.server.models.pixels import box_number, number_picture

SIZE = (128, 96)


def write_numbers(
    path: Path,
    count: int = 40,
    *,
    codec: str = "libx264",
    times: Sequence[float] | None = None,
    rotation: int = 0,
    gop: int = 10,
    size: tuple[int, int] = SIZE,
) -> Path:
    """Write a clip; frame i holds the number i, ten frames a second where no times are given."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.codec_context.gop_size = gop
        stream.codec_context.time_base = Fraction(1, 1000)
        if rotation:
            stream.set_display_rotation(rotation)
        for number in range(count):
            frame = av.VideoFrame.from_ndarray(number_picture(number, size), format="rgb24")
            frame.pts = round(1000 * (times[number] if times else number / 10))
            frame.time_base = Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def frames_of(items: Sequence[dict[str, Any]]) -> list[int]:
    """Return the frames of a job's items; fail if one has another frame's number."""
    for item in items:
        figure = item["annotation"]["objects"][0]
        if "box" in figure:
            box = figure["box"]
        else:
            (left, top), (right, bottom) = figure["points"]["exterior"]
            box = [left, top, right + 1, bottom + 1]
        assert box_number(box) == item["frame_index"]
    return [item["frame_index"] for item in items]
