"""TIFF: the first directory; and the orientation in EXIF, which is a TIFF directory too.

References
----------
TIFF 6.0 (Adobe, 1992), sections 2 and 8; BigTIFF (Aware Systems) for 64-bit offsets; CIPA DC-008 for EXIF.
"""

from __future__ import annotations

import re
import struct

from predsession.inputs.formats.header import BadImage, BytesOctets, Header, Kind, Octets
from predsession.wire.geometry import Size

_ORDERS = {b"II": "<", b"MM": ">"}
_TYPES = {1: "B", 3: "H", 4: "I", 16: "Q"}  # BYTE, SHORT, LONG, LONG8: all a header of an image needs
_MAX_VALUES = 1_000_000
_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC = 256, 257, 258, 259, 262
_STRIPS, _ORIENTATION, _STRIP_BYTES, _PLANAR, _TILES, _TILE_BYTES, _SAMPLE_FORMAT = (
    273,
    274,
    279,
    284,
    324,
    325,
    339,
)
# None, LZW, Deflate (both numbers), PackBits: what every decoder has.
_USUAL_COMPRESSIONS = frozenset({1, 5, 8, 32946, 32773})
# Bits a sample by photometric interpretation: gray (black is zero) and RGB. Palettes and "white is zero"
# are read in more ways than one; alpha is blended by libtiff's RGBA reader (OpenCV), and dropped by Pillow.
_USUAL_SAMPLES = {1: (8,), 2: (8, 8, 8)}
_XMP = re.compile(rb"tiff:Orientation(?:=[\"']|>)([1-8])")

Directory = dict[int, tuple[int, ...]]


def read_tiff(octets: Octets) -> Header:
    """Read the first picture's directory, and make sure that its data lie within the file.

    Parameters
    ----------
    octets : Octets
        The file, of either byte order, classic or BigTIFF.

    Returns
    -------
    Header
        Portable only for 8-bit gray and RGB in the usual compressions, upright.

    Raises
    ------
    BadImage
        No readable directory, no size, or data beyond the end of the file.
    """
    directory, big = _read_directory(octets)
    size = Size(_first(directory, _WIDTH, 0), _first(directory, _HEIGHT, 0))
    for places, lengths in ((_STRIPS, _STRIP_BYTES), (_TILES, _TILE_BYTES)):
        ends = map(sum, zip(directory.get(places, ()), directory.get(lengths, ()), strict=False))
        if max(ends, default=0) > octets.size:
            raise BadImage("truncated TIFF: the picture's data lie beyond the end of the file")
    orientation = _orientation(directory)
    portable = not big and orientation == 1 and _is_usual(directory)
    return Header(Kind.TIFF, size, orientation=orientation, portable=portable)


def exif_orientation(exif: bytes) -> int | None:
    """Return the orientation, 1 to 8, that EXIF data (from the byte order on) state, or None."""
    # Damaged EXIF data state none: decoders show such a picture as it is stored.
    try:
        directory, _ = _read_directory(BytesOctets(exif))
    except BadImage:
        return None
    return _orientation(directory) if _ORIENTATION in directory else None


def xmp_orientation(xmp: bytes) -> int | None:
    """Return the orientation, 1 to 8, that an XMP packet states, or None."""
    match = _XMP.search(xmp)
    return int(match[1]) if match else None


def _orientation(directory: Directory) -> int:
    """Return the orientation; 1 where it is absent or no such number exists."""
    value = _first(directory, _ORIENTATION, 1)
    return value if 1 <= value <= 8 else 1


def _is_usual(directory: Directory) -> bool:
    """Return whether every decoder reads this kind of picture, and the same way."""
    return (
        directory.get(_BITS, (1,)) == _USUAL_SAMPLES.get(_first(directory, _PHOTOMETRIC, 0))
        and _first(directory, _COMPRESSION, 1) in _USUAL_COMPRESSIONS
        and _first(directory, _PLANAR, 1) == 1
        and set(directory.get(_SAMPLE_FORMAT, (1,))) == {1}
    )


def _first(directory: Directory, tag: int, default: int) -> int:
    """Return the first value of a tag."""
    values = directory.get(tag)
    return values[0] if values else default


def _read_directory(octets: Octets) -> tuple[Directory, bool]:
    """Return the whole numbers of the first directory by tag, and whether the file is a BigTIFF."""
    head = octets.at(0, 16)
    order = _ORDERS.get(head[:2])
    if order is None:
        raise BadImage("damaged TIFF: no byte order")
    big = head[2:4] in {b"+\x00", b"\x00+"}
    try:
        place = struct.unpack_from(f"{order}Q" if big else f"{order}I", head, 8 if big else 4)[0]
        counter = struct.Struct(f"{order}Q" if big else f"{order}H")
        count = counter.unpack(octets.at(place, counter.size))[0]
        entry = struct.Struct(f"{order}HHQ8s" if big else f"{order}HHI4s")
        table = octets.at(place + counter.size, entry.size * min(count, 4096))
        whole = len(table) // entry.size * entry.size
        return {
            tag: values
            for tag, kind, number, inline in entry.iter_unpack(table[:whole])
            if (values := _values(octets, order, (kind, number, inline)))
        }, big
    except struct.error:
        raise BadImage("truncated TIFF: its directory lies beyond the end of the file") from None


def _values(octets: Octets, order: str, entry: tuple[int, int, bytes]) -> tuple[int, ...]:
    """Return the whole numbers of an entry, from inside it or from where it points; none for other types."""
    kind, number, inline = entry
    code = _TYPES.get(kind)
    if code is None or not 0 < number <= _MAX_VALUES:
        return ()
    numbers = struct.Struct(f"{order}{number}{code}")
    if numbers.size <= len(inline):
        return numbers.unpack_from(inline)
    place = struct.unpack(f"{order}{'Q' if len(inline) == 8 else 'I'}", inline)[0]
    data = octets.at(place, numbers.size)
    # Cut off here it is damaged, but only what is asked for later matters: the reader sees no values.
    return numbers.unpack(data) if len(data) == numbers.size else ()
