"""TIFF: the first directory; and the orientation in EXIF, which is a TIFF directory too.

References
----------
TIFF 6.0 (Adobe, 1992), sections 2 and 8; BigTIFF (Aware Systems) for 64-bit offsets; CIPA DC-008 for EXIF.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import NamedTuple

from predsession.inputs.formats.header import BadImage, BytesOctets, Header, Kind, Octets
from predsession.wire.geometry import Size

_ORDERS = {b"II": "<", b"MM": ">"}
_NUMBERS = {1: "B", 3: "H", 4: "I", 16: "Q"}  # BYTE, SHORT, LONG, LONG8: all a header of an image needs
_SHORT = 3
_BYTES = {
    1: 1,
    2: 1,
    3: 2,
    4: 4,
    5: 8,
    6: 1,
    7: 1,
    8: 2,
    9: 4,
    10: 8,
    11: 4,
    12: 8,
    13: 4,
    16: 8,
    17: 8,
    18: 8,
}
_MAX_ENTRIES, _MAX_VALUE = 4096, 8 << 20
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


class Orientation(NamedTuple):
    """An EXIF orientation, 1 to 8, and whether the data around it are whole, so that all readers find it."""

    value: int
    certain: bool


@dataclass(slots=True)
class _Directory:
    """The whole numbers of a directory by tag."""

    big: bool
    whole: bool = True  # no entry, and no value of an entry, lies beyond the end
    values: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def first(self, tag: int, default: int) -> int:
        """Return the first value of a tag."""
        values = self.values.get(tag)
        return values[0] if values else default

    @property
    def orientation(self) -> int:
        """The orientation; 1 where it is absent or no such number exists."""
        value = self.first(_ORIENTATION, 1)
        return value if 1 <= value <= 8 else 1


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
    directory = _read_directory(octets)
    size = Size(directory.first(_WIDTH, 0), directory.first(_HEIGHT, 0))
    for places, lengths in ((_STRIPS, _STRIP_BYTES), (_TILES, _TILE_BYTES)):
        ends = map(
            sum, zip(directory.values.get(places, ()), directory.values.get(lengths, ()), strict=False)
        )
        if max(ends, default=0) > octets.size:
            raise BadImage("truncated TIFF: the picture's data lie beyond the end of the file")
    portable = not directory.big and directory.orientation == 1 and _is_usual(directory)
    return Header(Kind.TIFF, size, orientation=directory.orientation, portable=portable)


def exif_orientation(exif: bytes) -> Orientation | None:
    """Return the orientation that EXIF data (from the byte order on) state, or None."""
    try:
        directory = _read_directory(BytesOctets(exif))
    except BadImage:
        return None
    return Orientation(directory.orientation, directory.whole) if _ORIENTATION in directory.values else None


def xmp_orientation(xmp: bytes) -> int | None:
    """Return the orientation, 1 to 8, that an XMP packet states, or None."""
    match = _XMP.search(xmp)
    return int(match[1]) if match else None


def _is_usual(directory: _Directory) -> bool:
    """Return whether every decoder reads this kind of picture, and the same way."""
    return (
        directory.values.get(_BITS, (1,)) == _USUAL_SAMPLES.get(directory.first(_PHOTOMETRIC, 0))
        and directory.first(_COMPRESSION, 1) in _USUAL_COMPRESSIONS
        and directory.first(_PLANAR, 1) == 1
        and set(directory.values.get(_SAMPLE_FORMAT, (1,))) == {1}
    )


def _read_directory(octets: Octets) -> _Directory:
    """Read the first directory."""
    head = octets.at(0, 16)
    order = _ORDERS.get(head[:2])
    if order is None:
        raise BadImage("damaged TIFF: no byte order")
    directory = _Directory(big=head[2:4] in {b"+\x00", b"\x00+"})
    directory.whole = directory.big or head[2:4] in {b"*\x00", b"\x00*"}
    try:
        place = struct.unpack_from(
            f"{order}Q" if directory.big else f"{order}I", head, 8 if directory.big else 4
        )[0]
        counter = struct.Struct(f"{order}Q" if directory.big else f"{order}H")
        count = counter.unpack(octets.at(place, counter.size))[0]
    except struct.error:
        raise BadImage("truncated TIFF: its directory lies beyond the end of the file") from None
    entry = struct.Struct(f"{order}HHQ8s" if directory.big else f"{order}HHI4s")
    table = octets.at(place + counter.size, entry.size * min(count, _MAX_ENTRIES))
    directory.whole &= len(table) == entry.size * count
    for tag, kind, number, inline in entry.iter_unpack(table[: len(table) // entry.size * entry.size]):
        data = _payload(octets, order, (_BYTES.get(kind, 0) * number, inline))
        directory.whole &= data is not None and kind in _BYTES and tag not in directory.values
        # Of a repeated tag readers take the first or the last, and some take an orientation as SHORT only.
        directory.whole &= tag != _ORIENTATION or (kind, number) == (_SHORT, 1)
        if data and kind in _NUMBERS:
            directory.values[tag] = struct.unpack(f"{order}{number}{_NUMBERS[kind]}", data)
    return directory


def _payload(octets: Octets, order: str, entry: tuple[int, bytes]) -> bytes | None:
    """Return the bytes of an entry, from inside it or from where it points; None where they are cut off."""
    length, inline = entry
    if length <= len(inline):
        return inline[:length]
    place = int.from_bytes(inline, "little" if order == "<" else "big")
    if length > _MAX_VALUE or place + length > octets.size:
        return None
    return octets.at(place, length)
