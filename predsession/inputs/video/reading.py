"""Frames of a clip, one by one or in any order: going forward costs one decoding a frame."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from predsession.errors import ItemError
from predsession.inputs.video.probing import (
    Clip,
    ClipKey,
    Picture,
    clip_key,
    decoded,
    open_container,
    probe,
    words,
)

if TYPE_CHECKING:
    import av

OPEN_CLIPS = 2
"""Clips that are kept open for reading frames one after the other."""


class ClipReader:
    """Reads frames of an open clip; one after the other costs one decoding each.

    Parameters
    ----------
    clip : Clip
        From `probe`.
    """

    def __init__(self, clip: Clip) -> None:
        self.clip = clip
        self._container = open_container(clip.path)
        self._stream = self._container.streams.video[0]
        # Not AUTO: with a thread for each frame, a damaged packet takes the sound frames before it along.
        self._stream.thread_type = "SLICE"
        self._frames: Iterator[tuple[int | None, av.VideoFrame]] | None = None
        self._next = 0

    def read(self, index: int) -> Picture:
        """Return one frame.

        Parameters
        ----------
        index : int
            From 0.

        Returns
        -------
        (H, W, 3) uint8 ndarray
            RGB, upright.

        Raises
        ------
        ItemError
            If there is no such frame, or it cannot be decoded.
        """
        import av

        clip = self.clip
        if not 0 <= index < len(clip):
            raise ItemError(f"{clip.path} has no frame {index}: it has {len(clip)}", index=index)
        wanted = int(clip.pts[index])
        try:
            for at, frame in self._from(index):
                if at is None or at < wanted:
                    continue
                self._next = index + 1
                if at == wanted:
                    return upright(frame)
                break
        except av.FFmpegError as error:
            self._frames = None
            raise ItemError(f"frame {index} of {clip.path} cannot be decoded: {words(error)}") from None
        self._frames = None
        raise ItemError(f"frame {index} of {clip.path} cannot be decoded", index=index, path=clip.path)

    def _from(self, index: int) -> Iterator[tuple[int | None, av.VideoFrame]]:
        """Return frames and when each is shown, from where the decoder stands or the keyframe before."""
        place = int(np.searchsorted(self.clip.keyframes, index, side="right")) - 1
        # Where frames can only be counted, the count must begin at the beginning: after a keyframe in the
        # middle the decoder leaves out frames that lean on those before it, and does not say how many.
        keyframe = int(self.clip.keyframes[place]) if place >= 0 and not self.clip.counted else 0
        if self._frames is None or index < self._next or keyframe > self._next:
            self._container.seek(int(self.clip.pts[keyframe]), stream=self._stream, backward=True)
            self._frames = self._count() if self.clip.counted else self._decode()
        return self._frames

    def _decode(self) -> Iterator[tuple[int | None, av.VideoFrame]]:
        """Yield frames from here on."""
        return ((frame.pts, frame) for _, some in decoded(self._container, self._stream) for frame in some)

    def _count(self) -> Iterator[tuple[int | None, av.VideoFrame]]:
        """Yield frames from a keyframe on, which is the first that is shown of those that follow it."""
        pts = self.clip.pts
        place: int | None = None
        for packet, frames in decoded(self._container, self._stream):
            if place is None:
                place = int(np.searchsorted(pts, packet.dts if packet.dts is not None else pts[0]))
            for frame in frames:
                yield int(pts[place]) if place < len(pts) else None, frame
                place += 1

    def close(self) -> None:
        """Close the file."""
        self._container.close()


def upright(frame: av.VideoFrame) -> Picture:
    """Return a decoded frame as RGB, turned as the clip states: (H, W, 3) uint8."""
    picture = frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False)
    turns = round(frame.rotation / 90) % 4
    return np.ascontiguousarray(np.rot90(picture, turns)) if turns else picture


class _OpenClips:
    """The clips that are open for reading, few, the least recently used closed first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: OrderedDict[ClipKey, ClipReader] = OrderedDict()

    def read(self, path: str, index: int) -> Picture:
        """Return a frame of a clip."""
        with self._lock:
            key = clip_key(path)
            reader = self._readers.pop(key, None) or ClipReader(probe(path))
            self._readers[key] = reader
            while len(self._readers) > OPEN_CLIPS:
                self._readers.popitem(last=False)[1].close()
            return reader.read(index)


_open_clips = _OpenClips()


@dataclass(frozen=True, slots=True)
class FrameLoader:
    """Loads a frame of a clip when it is asked for; decodes from the keyframe before it at most.

    Parameters
    ----------
    path : str
        The clip.
    index : int
        The frame.
    """

    path: str
    index: int

    def __call__(self) -> Picture:
        """Return the frame, (H, W, 3) uint8 RGB, upright."""
        return _open_clips.read(self.path, self.index)
