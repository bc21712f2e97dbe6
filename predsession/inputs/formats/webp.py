"""WebP: the RIFF container and the header of its first picture.

References
----------
RFC 9649: section 2.5 (VP8), 2.6 (VP8L), 2.7 (VP8X, EXIF and XMP chunks).
"""

from __future__ import annotations

from collections.abc import Iterator

from predsession.inputs.formats.header import BadImage, Header, Kind, Octets
from predsession.inputs.formats.tiff import exif_orientation, xmp_orientation
from predsession.wire.geometry import Size

_ANIMATED, _XMP, _EXIF = 0x02, 0x04, 0x08  # flags of VP8X
_MAX_METADATA = 1 << 20

Chunk = tuple[bytes, int, int]


def read_webp(octets: Octets) -> Header:
    """Read size, orientation, and whether the container is whole.

    Parameters
    ----------
    octets : Octets
        The file.

    Returns
    -------
    Header
        Not portable when animated or turned: decoders differ there.

    Raises
    ------
    BadImage
        Cut short, or the first chunk is no picture's.
    """
    end = 8 + int.from_bytes(octets.at(4, 4), "little")
    chunks = list(_chunks(octets, end))
    # Some writers forget the padding after an odd last chunk, which decoders do not mind: ask the chunks too.
    if end > octets.size + 1 or any(place + length > octets.size for _, place, length in chunks):
        raise BadImage("truncated WebP: it is shorter than its header says")
    first = octets.at(20, 10)
    if not chunks or len(first) < 10:
        raise BadImage("damaged WebP: it has no picture")
    if chunks[0][0] == b"VP8X":
        return _extended(octets, first, chunks)
    return Header(Kind.WEBP, _simple_size(chunks[0][0], first))


def _simple_size(name: bytes, first: bytes) -> Size:
    """Return the size from the header of a lossy or lossless picture."""
    if name == b"VP8 " and first[3:6] == b"\x9d\x01\x2a":
        return Size(
            int.from_bytes(first[6:8], "little") & 0x3FFF, int.from_bytes(first[8:10], "little") & 0x3FFF
        )
    if name == b"VP8L" and first[0] == 0x2F:
        bits = int.from_bytes(first[1:5], "little")
        return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    raise BadImage("damaged WebP: no picture where one must be")


def _extended(octets: Octets, first: bytes, chunks: list[Chunk]) -> Header:
    """Read the header of a picture with metadata, alpha or animation."""
    flags = first[0]
    size = Size(1 + int.from_bytes(first[4:7], "little"), 1 + int.from_bytes(first[7:10], "little"))
    exif = xmp = None
    for name, place, length in chunks:
        if name == b"EXIF" and flags & _EXIF:
            payload = octets.at(place, min(length, _MAX_METADATA))
            exif = exif_orientation(payload.removeprefix(b"Exif\x00\x00"))
        elif name == b"XMP " and flags & _XMP:
            xmp = xmp_orientation(octets.at(place, min(length, _MAX_METADATA)))
    orientation = exif.value if exif else xmp or 1
    portable = orientation == 1 and not flags & _ANIMATED
    return Header(Kind.WEBP, size, orientation=orientation, portable=portable)


def _chunks(octets: Octets, end: int) -> Iterator[Chunk]:
    """Yield name, place and length of each chunk's data, up to the end of the container."""
    place = 12
    while place < end and len(head := octets.at(place, 8)) == 8:
        length = int.from_bytes(head[4:], "little")
        yield head[:4], place + 8, length
        place += 8 + length + length % 2
