"""From an item to what goes into an upload, with every fault of the input turned into an `ItemError`.

A file goes as it is where every server is known to read it the same way; then only its header and its end
are looked at. Everything else (arrays, PIL images, GIF, 16 bits, rare TIFFs, an orientation where not every
decoder looks for it) is decoded here and sent upright as PNG, without loss.

Invariant: the frame of the result is the upright picture, on any server, however the picture was handed in;
`Encoded.size` states it. A bare array has no orientation: it is taken as it is.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from predsession.errors import ItemError
from predsession.inputs.arrays import as_gray_or_rgb
from predsession.inputs.encoding import Encoding
from predsession.inputs.formats import BadImage, Header, Kind, Octets, read_header
from predsession.inputs.items import (
    ArrayContent,
    BytesContent,
    FileContent,
    Item,
    PictureContent,
    UrlContent,
    with_bytes,
)
from predsession.inputs.opening import FileStream, octets_of
from predsession.prediction import Loader
from predsession.wire.geometry import Size

__all__ = [
    "DEFAULT_LIMITS",
    "Encoded",
    "ImageLimits",
    "Loader",
    "image_loader",
    "prepare",
    "reencode",
    "with_bytes",
]


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What is too large to be sent.

    Parameters
    ----------
    max_pixels : int
        Width times height. The default is Pillow's own hard limit.
    max_bytes : int or None
        Encoded bytes of one image; None for no limit.
    """

    max_pixels: int = 178_956_970
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Encoded:
    """What goes into one part of an upload.

    Parameters
    ----------
    suffix : str
        Of the real format, whatever the file is called: ``.jpg``.
    content_type : str
        Media type of the real format.
    nbytes : int
        How many bytes `open` gives.
    size : Size
        Width and height of the upright picture, pixels: the frame of the result.
    open : callable
        Gives a new stream from the first byte, every time. Raises OSError where the file has vanished, or no
        longer has `nbytes` bytes; preparing the item again then says what is the matter.
    """

    suffix: str
    content_type: str
    nbytes: int
    size: Size
    open: Callable[[], BinaryIO]


DEFAULT_LIMITS = ImageLimits()
PLAIN = Encoding(Kind.PNG)
"""What every server knows."""


def prepare(item: Item, limits: ImageLimits = DEFAULT_LIMITS, *, encoding: Encoding = PLAIN) -> Encoded:
    """Make an item ready to be sent, decoding it only where it cannot go as it is.

    Parameters
    ----------
    item : Item
        A file, bytes, an array or a PIL image; a URL only after `with_bytes`.
    limits : ImageLimits
        What is too large.
    encoding : Encoding
        How pixels travel.

    Returns
    -------
    Encoded
        The original bytes, or the upright picture encoded here.

    Raises
    ------
    ItemError
        Unreadable, empty, no image, cut short, damaged, or too large.
    """
    with _faults_of(item):
        if not isinstance(item.content, FileContent | BytesContent):
            return _encoded_here(item, limits, encoding)
        with octets_of(item.content) as octets:
            header, nbytes = _header(octets, limits), octets.size
        if not header.portable:
            return _encoded_here(item, limits, encoding)
        stream = (
            partial(io.BytesIO, item.content.data)
            if isinstance(item.content, BytesContent)
            else FileStream(item.content.path, nbytes)
        )
        return _within(
            Encoded(header.kind.suffix, header.kind.content_type, nbytes, header.upright, stream), limits
        )


def reencode(item: Item, limits: ImageLimits = DEFAULT_LIMITS) -> Encoded:
    """Decode an item wholly and encode it anew, for a server that refused the original bytes.

    Parameters
    ----------
    item : Item
        As for `prepare`.
    limits : ImageLimits
        What is too large.

    Returns
    -------
    Encoded
        A PNG of the upright picture.

    Raises
    ------
    ItemError
        It cannot be decoded here either, or is too large.
    """
    with _faults_of(item):
        return _encoded_here(item, limits)


def image_loader(item: Item, limits: ImageLimits = DEFAULT_LIMITS) -> Loader | None:
    """Return what loads the item's picture later, in this process or, pickled, in another.

    Parameters
    ----------
    item : Item
        Any item.
    limits : ImageLimits
        What is too large to be decoded.

    Returns
    -------
    callable or None
        Gives an (H, W, 3) uint8 RGB array, upright, new at each call; raises `ItemError`. None for a URL that
        has not been fetched.
    """
    if isinstance(item.content, UrlContent):
        return None
    if isinstance(item.content, FileContent):
        # Absolute, because the picture may be asked for after a change of directory.
        item = replace(item, content=FileContent(os.path.abspath(item.content.path)))
    return _ItemLoader(item, limits)


@dataclass(frozen=True, slots=True)
class _ItemLoader:
    """Loads one item's picture."""

    item: Item
    limits: ImageLimits

    def __call__(self) -> npt.NDArray[np.uint8]:
        """Return the picture, (H, W, 3) uint8 RGB, upright."""
        with _faults_of(self.item):
            pixels = _pixels(self.item, self.limits)
            return np.array(pixels if pixels.ndim == 3 else np.stack([pixels] * 3, axis=-1))


def _header(octets: Octets, limits: ImageLimits) -> Header:
    """Read the header, and refuse a picture that is too large."""
    header = read_header(octets)
    _check_pixels(header.stored, limits)
    return header


def _check_pixels(size: Size, limits: ImageLimits) -> None:
    """Refuse a picture with too many pixels."""
    if size.width * size.height > limits.max_pixels:
        raise BadImage(
            f"{size.width} x {size.height} pixels are more than the limit of "
            f"{limits.max_pixels:,} (max_pixels)"
        )


def _within(encoded: Encoded, limits: ImageLimits) -> Encoded:
    """Refuse what has too many bytes."""
    if limits.max_bytes is not None and encoded.nbytes > limits.max_bytes:
        raise BadImage(
            f"{encoded.nbytes:,} bytes are more than the limit of {limits.max_bytes:,} (max_bytes)"
        )
    return encoded


def _encoded_here(item: Item, limits: ImageLimits, encoding: Encoding = PLAIN) -> Encoded:
    """Decode the item and encode its upright picture."""
    from predsession.inputs.pixels import encode

    pixels = _pixels(item, limits)
    kind, data = encode(pixels, encoding)
    size = Size(pixels.shape[1], pixels.shape[0])
    return _within(
        Encoded(kind.suffix, kind.content_type, len(data), size, partial(io.BytesIO, data)), limits
    )


def _pixels(item: Item, limits: ImageLimits) -> npt.NDArray[np.uint8]:
    """Return the item's upright picture, (H, W) or (H, W, 3)."""
    # Most files go as they are: what decodes them is imported when it is needed.
    from predsession.inputs.pixels import decode, picture_pixels

    content = item.content
    if isinstance(content, ArrayContent):
        _check_pixels(Size(content.array.shape[1], content.array.shape[0]), limits)
        return as_gray_or_rgb(content.array)
    if isinstance(content, PictureContent):
        _check_pixels(Size(*content.image.size), limits)
        return picture_pixels(content.image)
    if isinstance(content, FileContent | BytesContent):
        with octets_of(content) as octets:
            header = _header(octets, limits)
        with (
            io.BytesIO(content.data)
            if isinstance(content, BytesContent)
            else open(content.path, "rb") as stream
        ):
            return decode(stream, header)
    raise BadImage("the URL has not been fetched")


@contextmanager
def _faults_of(item: Item) -> Iterator[None]:
    """Turn whatever goes wrong with an item into its `ItemError`."""
    try:
        yield
    except ItemError:
        raise
    except BadImage as error:
        raise _item_error(item, str(error)) from error
    except FileNotFoundError as error:
        raise _item_error(item, "the file is not there (any more)") from error
    except OSError as error:
        reason = f"cannot be read: {error.strerror}" if error.strerror else f"cannot be decoded: {error}"
        raise _item_error(item, reason) from error
    except MemoryError as error:
        raise _item_error(item, "there is not enough memory to decode it") from error
    except Exception as error:  # decoders raise anything on damaged data: struct.error, KeyError...
        raise _item_error(item, f"cannot be decoded: {type(error).__name__}: {error}") from error


def _item_error(item: Item, reason: str) -> ItemError:
    """Return the error that names the item."""
    message = f"cannot send {item.label!r} (input {item.index}): {reason}"
    return ItemError(message, index=item.index, name=item.name, path=item.path, reason=reason)
