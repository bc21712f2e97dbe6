"""A source of clips: which files, which frames of each, known before anything is sent where that can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from predsession.errors import MissingExtraError, SourceError
from predsession.inputs.folders import is_clip
from predsession.inputs.frames import FrameOptions, choose_frames
from predsession.inputs.items import printable
from predsession.inputs.video import Clip, can_decode, probe

CONTENT_TYPES = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".avi": "video/x-msvideo",
    ".mkv": "video/x-matroska",
    ".webm": "video/webm",
}


@dataclass(frozen=True, slots=True)
class ClipItem:
    """One clip, and the frames that are wanted of it.

    Parameters
    ----------
    path : str
        The file, as the caller wrote it.
    nbytes : int
        Its length.
    clip : Clip or None
        What is known of it; None without the extra ``video``.
    frames : range or None
        The frames, in the order in which they are predicted; None for all, as many as the server finds.
    stride : int
        Of all, where `frames` is None.
    first_index : int or None
        The index of its first prediction in the source; None after a clip of unknown length.
    """

    path: str
    nbytes: int
    clip: Clip | None
    frames: range | None
    stride: int
    first_index: int | None

    @property
    def name(self) -> str:
        """The file's name."""
        return Path(self.path).name

    @property
    def label(self) -> str:
        """How messages name it."""
        return printable(self.path)

    @property
    def suffix(self) -> str:
        """The suffix in lower case: the server goes by it."""
        return Path(self.path).suffix.lower()


class ClipSource:
    """Clips that run one after the other.

    Parameters
    ----------
    clips : sequence of ClipItem
        In order.
    """

    def __init__(self, clips: Sequence[ClipItem]) -> None:
        self._clips = tuple(clips)

    def __iter__(self) -> Iterator[ClipItem]:
        return iter(self._clips)

    @property
    def total(self) -> int | None:
        """How many frames will come; None if that is not known of each clip."""
        counts = [len(item.frames) for item in self._clips if item.frames is not None]
        return sum(counts) if len(counts) == len(self._clips) else None

    @property
    def description(self) -> str:
        """A short name for bars and reprs."""
        return self._clips[0].label if len(self._clips) == 1 else f"list of {len(self._clips)} videos"

    def __repr__(self) -> str:
        return f"<ClipSource {self.description}>"


def open_clips(source: object, options: FrameOptions) -> ClipSource:
    """Open a source of clips.

    Parameters
    ----------
    source : object
        What the caller handed in: it `names_clips`.
    options : FrameOptions
        Which frames.

    Returns
    -------
    ClipSource
        The clips, in order.

    Raises
    ------
    SourceError
        If a clip is missing or unreadable, a list mixes clips with other things, or the options do not fit.
    MissingExtraError
        If the options need a clip's length, and the extra ``video`` is not installed.
    """
    entries: list[object] = list(source) if isinstance(source, list | tuple) else [source]
    clips = [str(entry) for entry in entries if is_clip(entry)]
    if len(clips) < len(entries):
        other = next(entry for entry in entries if not is_clip(entry))
        raise SourceError(
            f"a list holds images or videos, not both: {clips[0]!r} is a video, {str(other)[:80]!r} is not"
        )
    if not can_decode() and not options.whole:
        raise MissingExtraError("video", "Choosing frames of a clip, which must be counted first,")
    items: list[ClipItem] = []
    first: int | None = 0
    for path in clips:
        items.append(_open(path, options, first))
        frames = items[-1].frames
        first = None if first is None or frames is None else first + len(frames)
    return ClipSource(items)


def _open(path: str, options: FrameOptions, first: int | None) -> ClipItem:
    """Look into one clip."""
    path = str(Path(path).expanduser()) if path.startswith("~") else path
    try:
        nbytes = Path(path).stat().st_size
    except OSError as error:
        raise SourceError(f"no such video: {path!r} ({error.strerror})") from None
    if not nbytes:
        raise SourceError(f"{path!r} is an empty file")
    if not can_decode():
        return ClipItem(path, nbytes, None, None, options.stride, first)
    clip = probe(path)
    frames = choose_frames(options, clip.times.tolist(), clip=path)
    return ClipItem(path, nbytes, clip, frames, options.stride, first)
