"""What the readers of headers share: the bytes they look at, the answer they give."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from predsession.wire.geometry import Size


class BadImage(Exception):  # noqa: N818 - never leaves the room: images.py turns it into an ItemError
    """The bytes are no image that can be sent; the message is the reason, without the item's name."""


class Kind(Enum):
    """A format, with the suffix and the content type a server expects."""

    JPEG = (".jpg", "image/jpeg")
    PNG = (".png", "image/png")
    BMP = (".bmp", "image/bmp")
    WEBP = (".webp", "image/webp")
    TIFF = (".tiff", "image/tiff")
    GIF = (".gif", "image/gif")

    @property
    def suffix(self) -> str:
        """The suffix, with its dot."""
        return self.value[0]

    @property
    def content_type(self) -> str:
        """The media type."""
        return self.value[1]


class Octets(Protocol):
    """Bytes that can be looked at from any place: a file, or memory."""

    @property
    def size(self) -> int:
        """How many there are."""

    def at(self, offset: int, count: int) -> bytes:
        """Return up to `count` bytes from `offset`; fewer at the end, none beyond."""


@dataclass(frozen=True, slots=True)
class BytesOctets:
    """Bytes in memory."""

    data: bytes

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.data)

    def at(self, offset: int, count: int) -> bytes:
        """Return up to `count` bytes from `offset`."""
        return self.data[offset : offset + count]


@dataclass(frozen=True, slots=True)
class Header:
    """What is known of an image without decoding it.

    Parameters
    ----------
    kind : Kind
        The format, by content.
    stored : Size
        Width and height as the pixels are stored.
    orientation : int
        EXIF orientation, 1 to 8: how to turn the stored pixels upright.
    portable : bool
        Whether every server is known to read the file the same way, so that it can go as it is.
    """

    kind: Kind
    stored: Size
    orientation: int = 1
    portable: bool = True

    @property
    def upright(self) -> Size:
        """Width and height of the picture as it is looked at."""
        width, height = self.stored
        return Size(height, width) if self.orientation >= 5 else self.stored
