"""What is known of a clip: its frames, their times, its size; all but the first without decoding."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from predsession.errors import MissingExtraError, SourceError
from predsession.wire.geometry import Size

if TYPE_CHECKING:
    import av

Picture = npt.NDArray[np.uint8]

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
        raise SourceError(f"{name} cannot be read as a video: {words(error)}") from None


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
        for _, frames in decoded(container, container.streams.video[0]):
            seen += len(frames)
            last = max([last, *(int(frame.pts) for frame in frames if frame.pts is not None)])
    return seen if clip.counted else int(np.searchsorted(clip.pts, last, side="right"))


def decoded(
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


def words(error: Exception) -> str:
    """Return what PyAV says, without the path that it repeats."""
    return str(getattr(error, "strerror", None) or error)
