"""What an input is known by in a journal: a file by path, size and time, anything else by its content.

Invariant: two inputs have the same identity only if a model cannot tell them apart, but for a file that was
changed without its size and its time changing. An identity says nothing of its input: it is a digest.
"""

from __future__ import annotations

import hashlib
import os

import numpy as np

from predsession.inputs.items import (
    ArrayContent,
    BytesContent,
    Content,
    FileContent,
    Item,
    PictureContent,
    UrlContent,
)

_ORIENTATION = 0x0112


def identity(item: Item) -> str | None:
    """Return what an item is known by.

    Parameters
    ----------
    item : Item
        Any.

    Returns
    -------
    str or None
        Hexadecimal digits; None for a file that cannot be looked at, or a picture that cannot be read.
    """
    try:
        return _digest(*_parts(item.content))
    except (OSError, ValueError, SyntaxError):  # Pillow raises the last for some damaged pictures
        return None


def file_identity(path: str, *more: str) -> str | None:
    """Return what a file is known by, together with how it is to be run."""
    try:
        return _digest(*_file(path), *(part.encode() for part in more))
    except (OSError, ValueError):
        return None


def _parts(content: Content) -> tuple[bytes, ...]:
    """Return what makes a content what it is."""
    if isinstance(content, FileContent):
        return _file(content.path)
    if isinstance(content, UrlContent):
        return b"url", content.url.encode()
    if isinstance(content, BytesContent):
        return b"bytes", content.data
    if isinstance(content, PictureContent):
        picture = content.image
        look = picture.mode, picture.size, picture.getpalette(), picture.info.get("transparency")
        turned = picture.getexif().get(_ORIENTATION)
        return b"picture", repr((*look, turned)).encode(), picture.tobytes()
    assert isinstance(content, ArrayContent)
    array = content.array
    return b"array", repr((array.shape, array.dtype.str)).encode(), np.ascontiguousarray(array).data.tobytes()


def _file(path: str) -> tuple[bytes, ...]:
    """Return where a file is, and how it looks from outside."""
    looks = os.stat(path)
    return b"file", os.fsencode(os.path.abspath(path)), f"{looks.st_size} {looks.st_mtime_ns}".encode()


def _digest(*parts: bytes) -> str:
    """Return a digest of the parts, each with its length."""
    made = hashlib.blake2b(digest_size=16)
    for part in parts:
        made.update(len(part).to_bytes(8, "big"))
        made.update(part)
    return made.hexdigest()
