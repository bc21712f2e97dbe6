"""Which source a value means."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import cast

from predsession.errors import SourceError
from predsession.inputs.items import shown_url
from predsession.stream.samples import Decode
from predsession.stream.source import IterableSource, Source

CAMERAS = (
    "rtsp://", "rtsps://", "rtmp://", "srt://", "udp://", "tcp://", "http://", "https://", "/dev/video",
)  # fmt: skip
"""How the address of a camera begins."""
KAFKA = "kafka://"
_METHODS = ("take", "done", "dead", "behind", "close")


def open_source(source: object, *, decode: Decode | None, ahead: int) -> Source:
    """Open a source.

    Parameters
    ----------
    source : Source, iterable, str or PathLike
        A text or a path is a folder, a video, a camera, or ``"kafka://host:port/topic"``.
    decode : callable or None
        From what it has to a sample; for iterables and Kafka.
    ahead : int
        How many samples are taken before they are wanted.

    Returns
    -------
    Source
        Open.

    Raises
    ------
    SourceError
        If it is none of these.
    """
    if isinstance(source, str | os.PathLike):
        return _named(os.fspath(source), decode, ahead)
    if all(callable(getattr(source, name, None)) for name in _METHODS):
        if decode is not None:
            raise SourceError("decode= is for iterables and kafka://; a source is given its own")
        return cast("Source", source)
    if isinstance(source, Iterable):
        return IterableSource(source, decode=decode, ahead=ahead)
    raise SourceError(
        f"source is {type(source).__name__}; wanted an iterable of dicts, a folder, a video, or kafka://host/topic"
    )


def _named(text: str, decode: Decode | None, ahead: int) -> Source:
    """Open what a text means."""
    if text.startswith(KAFKA):
        from predsession.stream.kafka import KafkaSource

        return KafkaSource.from_url(text, decode=decode, ahead=ahead)
    if decode is not None:
        raise SourceError("decode= is for iterables and kafka://; folders, videos and cameras give images")
    if text.startswith(CAMERAS):
        from predsession.stream.cameras import CameraSource

        return CameraSource(text)
    path = Path(text)
    if path.is_dir():
        from predsession.stream.watching import FolderSource

        return FolderSource(path)
    if path.is_file():
        from predsession.stream.cameras import VideoSource

        return VideoSource(path)
    shown = shown_url(text) if "://" in text else text
    raise SourceError(f"{shown!r} is no folder, no video and no camera, and does not begin with kafka://")


def kinds() -> Mapping[str, Callable[[], Callable[..., Source]]]:
    """Return the sources that can be named, each with what imports its class."""

    def kafka() -> Callable[..., Source]:
        from predsession.stream.kafka import KafkaSource

        return KafkaSource

    def folder() -> Callable[..., Source]:
        from predsession.stream.watching import FolderSource

        return FolderSource

    def video() -> Callable[..., Source]:
        from predsession.stream.cameras import VideoSource

        return VideoSource

    def camera() -> Callable[..., Source]:
        from predsession.stream.cameras import CameraSource

        return CameraSource

    return {"kafka": kafka, "folder": folder, "video": video, "camera": camera}
