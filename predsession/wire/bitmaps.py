"""Masks as the wire carries them: base64 of (usually zlib-packed) PNG. Text to arrays and back.

Invariant: what a text may cost is known before it is unpacked. The PNG's header is read first, its size is
held against the picture's, and no more than such a PNG can need is unpacked after it.

References
----------
PROTOCOL.md, section 5: ``bitmap`` and ``alpha_mask``. PNG: https://www.w3.org/TR/png-3/.
"""

from __future__ import annotations

import binascii
import io
import struct
import zlib
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from predsession.errors import ProtocolError
from predsession.wire.geometry import MAX_MASK_PIXELS, Size

if TYPE_CHECKING:
    from PIL import Image

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER_BYTES = 33  # signature 8, IHDR: length 4, name 4, fields 13, checksum 4
_HEAD_CHARS = 680  # 510 bytes: a deflate block's code tables and the header behind them fit
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by the PNG's colour type
_EXTRA_BYTES = 1 << 17  # palette, checksums, and a text or two beside the pixels

# Pillow reports a damaged PNG in all these ways; none of them may reach the caller. Warnings are listed
# because whoever runs with warnings as errors gets them as exceptions.
_PILLOW_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
    struct.error,
    zlib.error,
    Warning,
)


def png_size(text: str) -> tuple[int, int]:
    """Return a mask's width and height; nothing but the PNG's header is unpacked.

    Parameters
    ----------
    text : str
        base64 of zlib-packed or plain PNG.

    Returns
    -------
    tuple of int
        Width and height, in pixels, each at least 1.

    Raises
    ------
    ProtocolError
        If it is no base64 of a PNG.
    """
    head = b""
    if len(text) > _HEAD_CHARS:
        head = _header(_unbase64(text[:_HEAD_CHARS], b""))
    if len(head) < 24:  # a head full of empty blocks, or line breaks in the text: rare, so read it all
        head = _header(_unbase64(text, None))
    return _size_in(head)


def decode_mask(text: str, *, within: Size) -> npt.NDArray[np.bool_]:
    """Unpack a mask.

    Parameters
    ----------
    text : str
        base64 of zlib-packed or plain PNG: 1-bit palette, gray, gray or RGB with alpha, RGB.
    within : Size
        Of the picture; a mask that is larger is refused before it is unpacked.

    Returns
    -------
    (H, W) bool ndarray
        True where the object is: index other than 0 or not transparent in a palette, a gray other than 0,
        an alpha above 0; in a PNG that is not zlib-packed, any channel above 0.

    Raises
    ------
    ProtocolError
        If it is no base64 of a PNG, is damaged, or is larger than the picture.
    """
    raw = _unbase64(text, None)
    packed = not raw.startswith(_SIGNATURE[:4])
    png = _inflate(raw, within) if packed else raw
    _check_size(_size_in(png), within)
    plain = _plain_pixels(png) if packed else None
    if plain is not None:
        return plain
    from PIL import PngImagePlugin

    try:
        with PngImagePlugin.PngImageFile(io.BytesIO(png)) as image:
            # PngImageFile and not Image.open: the limit on pixels is ours, checked above; Pillow's own is
            # a setting of the whole process, and warns.
            return _object_pixels(image) if packed else _lit_pixels(image)
    except _PILLOW_ERRORS as error:
        raise ProtocolError(f"the PNG cannot be read ({type(error).__name__}: {error})") from None


def encode_mask(mask: npt.NDArray[np.bool_]) -> str:
    """Pack a mask as a stock server does: 1-bit palette PNG, zlib, base64.

    Parameters
    ----------
    mask : (H, W) bool ndarray
        True where the object is; H and W at least 1.

    Returns
    -------
    str
        What goes into ``bitmap.data``.
    """
    height, width = mask.shape
    rows = np.zeros((height, 1 + (width + 7) // 8), np.uint8)  # each row begins with its filter: 0, none
    rows[:, 1:] = np.packbits(mask, axis=1)
    png = b"".join(
        (
            _SIGNATURE,
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0)),
            _PALETTE,
            _chunk(b"IDAT", zlib.compress(rows.tobytes())),
            _END,
        )
    )
    return binascii.b2a_base64(zlib.compress(png), newline=False).decode("ascii")


def _chunk(name: bytes, body: bytes) -> bytes:
    """Frame one chunk of a PNG."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


_PALETTE = _chunk(b"PLTE", b"\x00\x00\x00\xff\xff\xff") + _chunk(b"tRNS", b"\x00")
_END = _chunk(b"IEND", b"")


def _unbase64(text: str, otherwise: bytes | None) -> bytes:
    """Decode base64; what cannot be decoded gives the second argument, or an error where that is None."""
    try:
        return binascii.a2b_base64(text)
    except ValueError:  # binascii.Error, and text that is not ASCII
        if otherwise is not None:
            return otherwise
        raise ProtocolError("it is no base64") from None


def _header(raw: bytes) -> bytes:
    """Return the first bytes of the PNG, as far as they are there."""
    if raw.startswith(_SIGNATURE[:4]):
        return raw[:_HEADER_BYTES]
    try:
        return zlib.decompressobj().decompress(raw, _HEADER_BYTES)
    except zlib.error:
        return b""


def _size_in(head: bytes) -> tuple[int, int]:
    """Read width and height out of a PNG's first bytes."""
    if not head.startswith(_SIGNATURE) or head[12:16] != b"IHDR" or len(head) < 24:
        raise ProtocolError("it is no PNG, packed with zlib or plain")
    width, height = struct.unpack(">II", head[16:24])
    if not width or not height:
        raise ProtocolError(f"the PNG's header says {width} x {height} pixels")
    return width, height


def _check_size(size: tuple[int, int], within: Size) -> None:
    """Refuse a mask that cannot belong to the picture."""
    if size[0] > within.width or size[1] > within.height or size[0] * size[1] > MAX_MASK_PIXELS:
        raise ProtocolError(
            f"the PNG claims {size[0]} x {size[1]} pixels, in a picture of {within.width} x {within.height}"
        )


def _inflate(raw: bytes, within: Size) -> bytes:
    """Unpack zlib: first the PNG's header, then no more than a PNG of that size can need."""
    unpack = zlib.decompressobj()
    try:
        head = unpack.decompress(raw, _HEADER_BYTES)
        _check_size(_size_in(head), within)
        body = unpack.decompress(unpack.unconsumed_tail, _byte_limit(head))
    except zlib.error as error:
        raise ProtocolError(f"the zlib stream is damaged ({error})") from None
    if not unpack.eof:
        raise ProtocolError(
            "the zlib stream unpacks to more than its PNG can need"
            if unpack.unconsumed_tail
            else "the zlib stream is cut short"
        )
    return head + body


def _byte_limit(head: bytes) -> int:
    """Return how long a PNG with this header can be: its rows as they are, should they not pack at all."""
    width, height, depth, kind = struct.unpack(">IIBB", head[16:26].ljust(10, b"\0"))
    row = 1 + (int(width) * int(depth) * _CHANNELS.get(kind, 4) + 7) // 8
    return 2 * row * int(height) + _EXTRA_BYTES  # twice: the extra rows of an interlaced one, and the framing


def _plain_pixels(png: bytes) -> npt.NDArray[np.bool_] | None:
    """Return what counts as the object in a PNG as servers send it; None for any other, or a damaged one."""
    # One bit a pixel, a palette whose first entry is clear, not interlaced: a third of the time that it takes
    # Pillow. What is not as expected in the least is left to Pillow, and so is what is wrong with it.
    fields = struct.unpack(">IIBBBBB", png[16:29].ljust(13, b"\xff"))
    width, height = fields[:2]
    chunks = _chunks(png) if fields[2:] == (1, 3, 0, 0, 0) else None
    if chunks is None or chunks.get(b"tRNS", b"\0") != b"\0":
        return None
    row = 1 + (width + 7) // 8
    try:
        unpack = zlib.decompressobj()
        raw = unpack.decompress(chunks[b"IDAT"], row * height + 1)
    except (zlib.error, KeyError):
        return None
    if not unpack.eof or len(raw) != row * height:
        return None
    rows = _unfiltered(np.frombuffer(raw, np.uint8).reshape(height, row))
    return None if rows is None else np.unpackbits(rows, axis=1, count=width).view(np.bool_)


def _unfiltered(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8] | None:
    """Return rows without their filters; None for others than none, left and up, or for many changes."""
    filters, pixels = rows[:, 0], rows[:, 1:]
    if not filters.any():
        return pixels
    # A row that does not stand on the one above it, and those that stand on it, are summed up together.
    anchors = [0, *(np.flatnonzero(filters[1:] != _UP) + 1).tolist()]
    if filters.max() > _UP or len(anchors) > _MOST_ANCHORS:
        return None
    pixels = pixels.copy()
    for begin, end in zip(anchors, [*anchors[1:], len(pixels)], strict=True):
        if filters[begin] == _LEFT:
            np.add.accumulate(pixels[begin], out=pixels[begin], dtype=np.uint8)
        np.add.accumulate(pixels[begin:end], axis=0, out=pixels[begin:end], dtype=np.uint8)
    return pixels


_LEFT, _UP = 1, 2
"""PNG's filters: the byte on the left, the byte above."""
_MOST_ANCHORS = 32


def _chunks(png: bytes) -> dict[bytes, bytes] | None:
    """Return the chunks of a PNG by name; None if they are not as expected, many, damaged or cut short."""
    found: list[tuple[bytes, bytes]] = []
    at = len(_SIGNATURE)
    while at + 12 <= len(png) and len(found) < _MOST_CHUNKS:
        length, name = struct.unpack(">I4s", png[at : at + 8])
        end = at + 12 + length
        if end > len(png) or zlib.crc32(png[at + 4 : end - 4]) != int.from_bytes(png[end - 4 : end], "big"):
            return None
        found.append((name, png[at + 8 : end - 4]))
        if name == b"IEND":
            break
        at = end
    order = [name for name, _ in groupby(found, key=itemgetter(0))]
    if order not in _ORDERS or sum(name != b"IDAT" for name, _ in found) != len(order) - 1:
        return None
    pixels = b"".join(body for name, body in found if name == b"IDAT")
    return {**dict(found), b"IDAT": pixels}


_ORDERS = ([b"IHDR", b"PLTE", b"IDAT", b"IEND"], [b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"])
_MOST_CHUNKS = 64
"""Of a PNG that is read without Pillow."""


def _object_pixels(image: Image.Image) -> npt.NDArray[np.bool_]:
    """Return what counts as the object in a zlib-packed PNG."""
    if image.mode == "P":
        return _opaque_entries(np.asarray(image), image.info.get("transparency"))
    return _lit_pixels(image.getchannel("A") if image.mode in {"LA", "RGBA", "PA"} else image)


def _opaque_entries(indexes: npt.NDArray[np.uint8], alpha: object) -> npt.NDArray[np.bool_]:
    """Return where the palette's entry has some alpha, or, without alpha, is not the first."""
    if isinstance(alpha, bytes):  # an alpha for each of the first entries
        table = np.ones(256, np.bool_)
        table[: len(alpha)] = np.frombuffer(alpha[:256], np.uint8) != 0
        return np.take(table, indexes)
    clear: npt.NDArray[np.bool_] = indexes != (alpha if isinstance(alpha, int) else 0)
    return clear


def _lit_pixels(image: Image.Image) -> npt.NDArray[np.bool_]:
    """Return where any channel is above 0."""
    if image.mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    pixels: npt.NDArray[np.uint8] = np.asarray(image)
    lit: npt.NDArray[np.bool_] = pixels != 0
    return np.logical_or.reduce(lit, axis=2) if lit.ndim == 3 else lit
