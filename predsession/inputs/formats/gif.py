"""GIF: the blocks of the first frame. GIF is never sent as it is: a stock server refuses it.

References
----------
GIF89a specification (CompuServe, 1990), sections 17 to 27.
"""

from __future__ import annotations

from predsession.inputs.formats.header import BadImage, Header, Kind, Octets
from predsession.wire.geometry import Size

_EXTENSION, _IMAGE, _TRAILER = 0x21, 0x2C, 0x3B
_TRUNCATED = "truncated GIF: it ends within the first frame"


def read_gif(octets: Octets) -> Header:
    """Read the size, and make sure that the first frame is whole.

    Parameters
    ----------
    octets : Octets
        The file. Frames after the first are not looked at, nor is the trailer, which some writers forget.

    Returns
    -------
    Header
        Never portable.

    Raises
    ------
    BadImage
        Cut short within the first frame, or no frame at all.
    """
    screen = octets.at(6, 7)
    if len(screen) < 7:
        raise BadImage(_TRUNCATED)
    size = Size(int.from_bytes(screen[:2], "little"), int.from_bytes(screen[2:4], "little"))
    place = 13 + _table_bytes(screen[4])
    while True:
        kind = octets.at(place, 1)
        if not kind:
            raise BadImage(_TRUNCATED)
        if kind[0] == _IMAGE:
            return Header(Kind.GIF, _first_frame(octets, place, size), portable=False)
        if kind[0] != _EXTENSION:
            what = "it has no picture" if kind[0] == _TRAILER else "no block where one must be"
            raise BadImage(f"damaged GIF: {what}")
        place = _after_blocks(octets, place + 2)


def _first_frame(octets: Octets, place: int, screen: Size) -> Size:
    """Walk over the frame's data; return the size of the picture that decoders make."""
    frame = octets.at(place + 1, 9)
    if len(frame) < 9:
        raise BadImage(_TRUNCATED)
    _after_blocks(octets, place + 10 + _table_bytes(frame[8]) + 1)
    left, top, width, height = (int.from_bytes(frame[i : i + 2], "little") for i in (0, 2, 4, 6))
    # A first frame that sticks out makes the screen larger.
    return Size(max(screen.width, left + width), max(screen.height, top + height))


def _table_bytes(flags: int) -> int:
    """Return how many bytes the colour table takes that these flags announce."""
    return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0


def _after_blocks(octets: Octets, place: int) -> int:
    """Return the place after a chain of data blocks and the empty one that ends it."""
    while True:
        length = octets.at(place, 1)
        if not length:
            raise BadImage(_TRUNCATED)
        place += 1 + length[0]
        if not length[0]:
            return place
