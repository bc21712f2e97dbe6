"""BMP: the two headers, and room for the rows they promise.

References
----------
Microsoft: BITMAPFILEHEADER, BITMAPCOREHEADER, BITMAPINFOHEADER.
"""

from __future__ import annotations

import struct

from predsession.inputs.formats.header import BadImage, Header, Kind, Octets
from predsession.wire.geometry import Size

_CORE = 12  # bytes of the oldest header, the only one with 16-bit sizes
_UNCOMPRESSED = 0


def read_bmp(octets: Octets) -> Header:
    """Read the size, and make sure that the rows are all there.

    Parameters
    ----------
    octets : Octets
        The file. The size it states for itself is often wrong, and is not asked.

    Returns
    -------
    Header
        Portable for uncompressed pictures of 8, 24 or 32 bits.

    Raises
    ------
    BadImage
        Cut short.
    """
    head = octets.at(0, 34)
    try:
        width, height, bits, compression = _fields(head)
    except struct.error:
        raise BadImage("truncated BMP: it ends within its header") from None
    size = Size(max(width, 0), abs(height))  # rows stored from the top down have a negative height
    if compression == _UNCOMPRESSED:
        row = (size.width * bits + 31) // 32 * 4
        if int.from_bytes(head[10:14], "little") + row * size.height > octets.size:
            raise BadImage("truncated BMP: rows are missing")
    return Header(Kind.BMP, size, portable=compression == _UNCOMPRESSED and bits in {8, 24, 32})


def _fields(head: bytes) -> tuple[int, int, int, int]:
    """Return width, height (signed), bits a pixel and compression."""
    if int.from_bytes(head[14:18], "little") == _CORE:
        width, height, _, bits = struct.unpack_from("<HHHH", head, 18)
        return width, height, bits, _UNCOMPRESSED
    width, height, _, bits, compression = struct.unpack_from("<iiHHI", head, 18)
    return width, height, bits, compression
