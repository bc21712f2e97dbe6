"""Clips: probe, read a frame, write; live streams. The only room that knows PyAV (extra ``video``).

Invariants: frame i is the i-th that a player shows, counted from 0 (by presentation time, edit lists
applied); pictures are upright, whatever rotation the clip states; times are the stream's own, never the
index divided by a rate.
"""

from predsession.inputs.video.live import LiveStream
from predsession.inputs.video.probing import (
    Clip,
    ClipKey,
    Picture,
    can_decode,
    clip_key,
    count_frames,
    need_av,
    probe,
)
from predsession.inputs.video.reading import ClipReader, FrameLoader
from predsession.inputs.video.writing import ClipWriter

__all__ = [
    "Clip",
    "ClipKey",
    "ClipReader",
    "ClipWriter",
    "FrameLoader",
    "LiveStream",
    "Picture",
    "can_decode",
    "clip_key",
    "count_frames",
    "need_av",
    "probe",
]
