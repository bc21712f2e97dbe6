"""Clips: probe, read a frame, write. The only room that knows PyAV (extra ``video``).

Invariants: frame i is the i-th that a player shows, counted from 0 (by presentation time, edit lists
applied); pictures are upright, whatever rotation the clip states; times are the stream's own, never the
index divided by a rate.
"""

from __future__ import annotations

import importlib.util
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from predsession.errors import ItemError, MissingExtraError, SourceError
from predsession.wire.geometry import Size

if TYPE_CHECKING:
    import av

Picture = npt.NDArray[np.uint8]

OPEN_CLIPS = 2
"""Clips that are kept open for reading frames one after the other."""
_CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,asf,ogg"


@dataclass(frozen=True, slots=True)
class Clip:
    """What is known of a clip without decoding it, but for its first frame.

    Parameters
    ----------
    path : str
        The file.
    size : Size
        Of the upright picture.
    rotation : int
        Degrees by which a decoded picture is turned counter-clockwise to be upright.
    rate : float
        Frames a second, on average.
    pts : (N,) int64 ndarray
        When each frame is shown, in units of `time_base`, ascending.
    time_base : Fraction
        Seconds.
    keyframes : (K,) int64 ndarray
        Indexes of the frames at which decoding can begin.
    counted : bool
        Whether frames are told by counting from a keyframe: an AVI file knows the order of its frames and
        their rate, and what a decoder says of their times there is guessed.
    """

    path: str
    size: Size
    rotation: int
    rate: float
    pts: npt.NDArray[np.int64] = field(repr=False)
    time_base: Fraction
    keyframes: npt.NDArray[np.int64] = field(repr=False)
    counted: bool = False

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.pts)

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """When each frame is shown, in seconds from the clip's first: (N,) float64."""
        times: npt.NDArray[np.float64] = (self.pts - self.pts[0]) * float(self.time_base)
        return times

    def time_of(self, frame: int) -> float:
        """Return when a frame is shown, in seconds from the clip's first."""
        return float(self.pts[frame] - self.pts[0]) * float(self.time_base)


def can_decode() -> bool:
    """Whether the extra ``video`` is installed."""
    return importlib.util.find_spec("av") is not None


def need_av(purpose: str) -> None:
    """Raise `MissingExtraError` where the extra is missing."""
    if not can_decode():
        raise MissingExtraError("video", purpose)


def open_container(path: str) -> av.container.InputContainer:
    """Open a file for reading.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    av.container.InputContainer
        To be closed by the caller.

    Raises
    ------
    av.FFmpegError
        If it is of no known kind.
    """
    import av

    # A file may be sent by anybody. A playlist would be a clip, too, whose parts are other files, or lie on
    # other hosts; so only containers are opened, and a path is never taken for a protocol.
    limits = {"format_whitelist": _CONTAINERS, "protocol_whitelist": "file"}
    return av.open(f"file:{path}", options=limits)


def probe(path: str | PathLike[str], *, max_pixels: int | None = None) -> Clip:
    """Look into a clip: its frames are counted by demuxing, which costs milliseconds.

    Parameters
    ----------
    path : str or PathLike
        The file.
    max_pixels : int or None
        A larger picture is refused before any is decoded.

    Returns
    -------
    Clip
        What is known of it.

    Raises
    ------
    SourceError
        If it is no clip, has no video stream, or no frame that can be decoded; names the file.
    MissingExtraError
        If the extra ``video`` is not installed.
    """
    need_av("Reading a clip")
    import av

    name = str(path)
    try:
        with open_container(name) as container:
            return _probe(container, name, max_pixels)
    except (av.FFmpegError, OSError, ValueError) as error:
        raise SourceError(f"{name} cannot be read as a video: {_words(error)}") from None


def _probe(container: av.container.InputContainer, name: str, max_pixels: int | None) -> Clip:
    """Read packets, and one frame."""
    if not container.streams.video:
        raise SourceError(f"{name} has no video stream; it may hold only sound")
    stream = container.streams.video[0]
    width, height = stream.codec_context.width, stream.codec_context.height
    if max_pixels is not None and width * height > max_pixels:
        raise SourceError(f"{name} has {width} x {height} pixels; the limit is {max_pixels}")
    counted = "avi" in container.format.name
    packets = [
        (packet.dts if counted or packet.pts is None else packet.pts, packet.is_keyframe)
        for packet in container.demux(stream)
        if packet.size and not packet.is_discard
    ]
    shown = sorted((int(pts), key) for pts, key in packets if pts is not None)
    if not shown or stream.time_base is None:
        raise SourceError(f"{name} has a video stream without a single frame")
    container.seek(0, stream=stream, backward=True)
    first = next(iter(container.decode(stream)), None)
    if first is None:
        raise SourceError(f"{name} has no frame that can be decoded")
    pts = np.array([at for at, _ in shown], np.int64)
    seconds = float((pts[-1] - pts[0]) * stream.time_base)
    stated = float(stream.average_rate or stream.guessed_rate or 25)
    turned = first.rotation % 180 != 0
    return Clip(
        path=name,
        size=Size(first.height, first.width) if turned else Size(first.width, first.height),
        rotation=first.rotation % 360,
        rate=(len(pts) - 1) / seconds if seconds > 0 else stated,
        pts=pts,
        time_base=Fraction(stream.time_base),
        keyframes=np.array([number for number, (_, key) in enumerate(shown) if key], np.int64),
        counted=counted,
    )


ClipKey = tuple[str, int, int, int]


def clip_key(path: str) -> ClipKey:
    """Return what tells a file from another that took its place: inode, size and time of change."""
    try:
        stat = os.stat(path)
    except OSError:
        return path, 0, 0, 0
    return path, stat.st_ino, stat.st_size, stat.st_mtime_ns


def count_frames(clip: Clip) -> int:
    """Decode a whole clip and find out where it really ends.

    Parameters
    ----------
    clip : Clip
        From `probe`, which counts packets.

    Returns
    -------
    int
        One more than the index of the last frame that can be decoded; frames before it may be damaged.
    """
    last, seen = -1, 0
    with open_container(clip.path) as container:
        for _, frames in _decoded(container, container.streams.video[0]):
            seen += len(frames)
            last = max([last, *(int(frame.pts) for frame in frames if frame.pts is not None)])
    return seen if clip.counted else int(np.searchsorted(clip.pts, last, side="right"))


def _decoded(
    container: av.container.InputContainer, stream: av.VideoStream
) -> Iterator[tuple[av.Packet[av.VideoStream], list[av.VideoFrame]]]:
    """Yield packets with the frames that come out; a damaged one takes none of the others with it.

    The library's own iteration ends at the first damaged packet, and with it go the frames before that the
    decoder still holds back.

    Yields
    ------
    tuple of Packet and list of VideoFrame
        In the order of decoding.
    """
    import av

    for packet in container.demux(stream):
        try:
            frames = packet.decode()
        except av.FFmpegError:
            continue
        yield packet, frames


def _words(error: Exception) -> str:
    """Return what PyAV says, without the path that it repeats."""
    return str(getattr(error, "strerror", None) or error)


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
            raise ItemError(f"frame {index} of {clip.path} cannot be decoded: {_words(error)}") from None
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
        return ((frame.pts, frame) for _, some in _decoded(self._container, self._stream) for frame in some)

    def _count(self) -> Iterator[tuple[int | None, av.VideoFrame]]:
        """Yield frames from a keyframe on, which is the first that is shown of those that follow it."""
        pts = self.clip.pts
        place: int | None = None
        for packet, frames in _decoded(self._container, self._stream):
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
