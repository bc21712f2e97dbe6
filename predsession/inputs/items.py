"""One input, as a value: where its bytes are, what it is called, its place in the source.

Invariant: making an item reads nothing. `Item.label` and every ``repr`` are safe to print: one line, no
query string of a URL (signed URLs carry their secret there).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True, slots=True)
class FileContent:
    """An image file, read when it is sent.

    Parameters
    ----------
    path : str
        As the caller wrote it, or the caller's folder joined with the file's place in it.
    """

    path: str


@dataclass(frozen=True, slots=True)
class BytesContent:
    """An encoded image in memory.

    Parameters
    ----------
    data : bytes
        The file's content.
    url : str or None
        Where the bytes were fetched from, if they were.
    """

    data: bytes = field(repr=False)
    url: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class ArrayContent:
    """Pixels, encoded when they are sent.

    Parameters
    ----------
    array : (H, W) or (H, W, 1|3|4) uint8 ndarray
        Gray, RGB or RGBA.
    """

    array: npt.NDArray[np.uint8] = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class PictureContent:
    """A PIL image, encoded when it is sent.

    Parameters
    ----------
    image : PIL.Image.Image
        Of any mode; one that was opened and not yet loaded is loaded when it is sent.
    """

    image: Image.Image


@dataclass(frozen=True, slots=True)
class UrlContent:
    """The address of an image; whoever owns a socket fetches it.

    Parameters
    ----------
    url : str
        http or https.
    """

    url: str = field(repr=False)


Content = FileContent | BytesContent | ArrayContent | PictureContent | UrlContent


@dataclass(frozen=True, slots=True)
class Item:
    """One unit of a source, which yields one prediction.

    Parameters
    ----------
    index : int
        Position in the source, from 0.
    name : str
        File name, last part of the URL, or ``image_0003`` for what has none.
    content : Content
        Where the bytes are.
    """

    index: int
    name: str
    content: Content

    @property
    def path(self) -> str | None:
        """The file's path, or None for what is no file."""
        return self.content.path if isinstance(self.content, FileContent) else None

    @property
    def url(self) -> str | None:
        """The address, whether fetched or not, or None for what has none."""
        return self.content.url if isinstance(self.content, BytesContent | UrlContent) else None

    @property
    def label(self) -> str:
        """How messages name the item: its path, its URL without secrets, or its name; always one line."""
        if self.path is not None:
            return printable(self.path)
        return printable(self.name) if self.url is None else shown_url(self.url)


def item_at(index: int, content: Content) -> Item:
    """Return the item at this place of a source, with the name its content gives it."""
    return Item(index=index, name=_name(content) or f"image_{index:04d}", content=content)


def with_bytes(item: Item, data: bytes) -> Item:
    """Return the item of a URL with the bytes that were fetched from there; `Item.url` stays visible."""
    return replace(item, content=BytesContent(data, url=item.url))


def _name(content: Content) -> str:
    """Return the last part of path or URL, or nothing."""
    if isinstance(content, FileContent):
        return os.path.basename(content.path)
    if isinstance(content, UrlContent):
        return unquote(urlsplit(content.url).path).rstrip("/").rpartition("/")[2]
    if isinstance(content, PictureContent):
        # Image.open leaves the file's name on the image; whatever makes a new image from it drops it.
        opened = getattr(content.image, "filename", "")
        return os.path.basename(os.fsdecode(opened)) if isinstance(opened, str | bytes) else ""
    return ""


def printable(text: str) -> str:
    """Return the text on one line, what cannot be printed (newlines, lone surrogates) escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shown_url(url: str) -> str:
    """Return the URL without user, password, query, fragment and a session's token, on one line."""
    try:
        parts = urlsplit(url)
    except ValueError:  # no URL at all: what of it is secret cannot be told
        return printable(url.partition("://")[0]) + "://..."
    host = parts.netloc.rpartition("@")[2]
    path = re.sub(r"(/net/)[^/]+", r"\1***", parts.path)  # a platform's way of addressing a session
    return printable(urlunsplit((parts.scheme, host, path, "", "")) + ("?..." if parts.query else ""))
