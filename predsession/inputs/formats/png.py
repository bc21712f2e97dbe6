"""PNG: the chunks, from the header to the end chunk.

References
----------
W3C PNG specification, third edition: chunk layout, IHDR, eXIf, IEND. Raw profiles: ImageMagick's text chunks.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from predsession.inputs.formats.header import BadImage, Header, Kind, Octets
from predsession.inputs.formats.tiff import Orientation, exif_orientation, xmp_orientation
from predsession.wire.geometry import Size

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_TEXTS = frozenset({b"tEXt", b"zTXt", b"iTXt"})
_MAX_TEXT = 1 << 20


@dataclass(slots=True)
class _Found:
    """What the chunks said."""

    size: Size | None = None
    depth: int = 8
    has_pixels: bool = False
    exif: Orientation | None = None
    elsewhere: int | None = None  # orientation in XMP or in a raw profile


def read_png(octets: Octets) -> Header:
    """Walk over the chunks to the end chunk; the pixels are passed over.

    Parameters
    ----------
    octets : Octets
        The file; what follows the end chunk is ignored.

    Returns
    -------
    Header
        Not portable with 16 bits a sample, or where the orientation is not in eXIf, whole: OpenCV looks
        nowhere else.

    Raises
    ------
    BadImage
        Cut short, or a chunk that must be there is not.
    """
    if octets.at(0, 8) != _SIGNATURE:
        raise BadImage("damaged PNG: the signature is not whole")
    found = _Found()
    _walk(octets, found)
    if found.size is None or not found.has_pixels:
        raise BadImage("damaged PNG: it has no picture")
    orientation = found.exif.value if found.exif else found.elsewhere or 1
    certain = orientation == 1 or (found.exif is not None and found.exif.certain)
    portable = found.depth <= 8 and certain
    return Header(Kind.PNG, found.size, orientation=orientation, portable=portable)


def _walk(octets: Octets, found: _Found) -> None:
    """Note what each chunk says, up to the end chunk."""
    place = 8
    while True:
        head = octets.at(place, 8)
        length, name = int.from_bytes(head[:4], "big"), head[4:]
        place += 12 + length
        if len(head) < 8 or place > octets.size:
            raise BadImage("truncated PNG: the end chunk is missing")
        if name == b"IEND":
            return
        if name == b"IDAT":
            found.has_pixels = True
        elif found.size is None:
            _note_header(octets.at(place - length - 4, length) if name == b"IHDR" else b"", found)
        elif name == b"eXIf":
            found.exif = exif_orientation(octets.at(place - length - 4, length))
        elif name in _TEXTS:
            _note_text(name, octets.at(place - length - 4, min(length, _MAX_TEXT)), found)


def _note_header(header: bytes, found: _Found) -> None:
    """Note size and depth; this chunk must be the first."""
    if len(header) != 13:
        raise BadImage("damaged PNG: it does not begin with its header")
    found.size = Size(int.from_bytes(header[:4], "big"), int.from_bytes(header[4:8], "big"))
    found.depth = header[8]


def _note_text(name: bytes, payload: bytes, found: _Found) -> None:
    """Note the orientation that a text chunk states, in XMP or in a raw EXIF profile."""
    keyword, _, rest = payload.partition(b"\x00")
    if keyword not in {b"XML:com.adobe.xmp", b"Raw profile type exif"}:
        return
    text = _inflated(rest[1:]) if name == b"zTXt" else rest
    if keyword == b"XML:com.adobe.xmp":
        found.elsewhere = found.elsewhere or xmp_orientation(text)
        return
    # "\nexif\n   <length>\n<hexadecimal digits in lines>"
    digits = b"".join(text.split()[2:])
    try:
        profile = bytes.fromhex(digits.decode("ascii"))
    except ValueError:
        return
    stated = exif_orientation(profile.removeprefix(b"Exif\x00\x00"))
    found.elsewhere = stated.value if stated else found.elsewhere


def _inflated(data: bytes) -> bytes:
    """Return the text, or nothing where it is damaged; never more than a megabyte."""
    try:
        return zlib.decompressobj().decompress(data, _MAX_TEXT)
    except zlib.error:
        return b""
