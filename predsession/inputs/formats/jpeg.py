"""JPEG: the segments up to the picture, and the end marker after it.

References
----------
ITU-T T.81, annex B (markers and segments); CIPA DC-008 (EXIF in APP1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from predsession.inputs.formats.header import BadImage, Header, Kind, Octets
from predsession.inputs.formats.tiff import Orientation, exif_orientation, xmp_orientation
from predsession.wire.geometry import Size

_SOI, _EOI, _SOS, _APP1 = 0xD8, 0xD9, 0xDA, 0xE1
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # DHT, JPG and DAC share the range
_BARE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length
_MAX_SEGMENTS = 10_000
_WINDOW = 1 << 16
# Inside a scan FF is followed by 00 (stuffed), by a restart marker, by more FF (fill), or it is a marker.
_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")


@dataclass(slots=True)
class _Found:
    """What the segments before the picture said."""

    size: Size | None = None
    exif: Orientation | None = None
    xmp: int | None = None


def read_jpeg(octets: Octets) -> Header:
    """Read size and orientation, and make sure that the picture has an end.

    Parameters
    ----------
    octets : Octets
        The file; MPO (several JPEGs in one) and padding after the end are fine.

    Returns
    -------
    Header
        Not portable where only XMP gives the orientation (OpenCV does not look there, Pillow does), or EXIF
        data that are damaged elsewhere, which some readers give up on.

    Raises
    ------
    BadImage
        Cut short before or inside the picture, or damaged.
    """
    found = _Found()
    scan = _walk_to_scan(octets, found)
    if found.size is None:
        raise BadImage("damaged JPEG: no frame header before the picture")
    # The end marker of a thumbnail lies before the scan, so it is never taken for the picture's.
    at_once = octets.size - 2 >= scan and octets.at(octets.size - 2, 2) == b"\xff\xd9"
    if not at_once and not _has_end(octets, scan):
        raise BadImage("truncated JPEG: the end-of-image marker is missing")
    orientation = found.exif.value if found.exif else found.xmp or 1
    portable = orientation == 1 or (found.exif is not None and found.exif.certain)
    return Header(Kind.JPEG, found.size, orientation=orientation, portable=portable)


def _walk_to_scan(octets: Octets, found: _Found) -> int:
    """Note what the segments say; return where the data of the first scan begin."""
    place = 2
    for _ in range(_MAX_SEGMENTS):
        head = octets.at(place, 4)
        if head[:2] == b"\xff\xd9":
            raise BadImage("damaged JPEG: it has no picture")
        if len(head) < 4:
            raise BadImage("truncated JPEG: it ends before the picture begins")
        marker = head[1]
        if head[0] != 0xFF:
            place = _next_marker(octets, place)
        elif marker == 0xFF:
            place += 1
        elif marker in _BARE:
            place += 2
        else:
            length = int.from_bytes(head[2:4], "big")
            if marker in _FRAMES:
                found.size = _frame_size(octets.at(place + 4, 5))
            elif marker == _APP1:
                _note_metadata(octets.at(place + 4, length - 2), found)
            place += 2 + max(length, 2)
            if marker == _SOS:
                return place
    raise BadImage("damaged JPEG: no picture after 10,000 segments")


def _next_marker(octets: Octets, place: int) -> int:
    """Skip bytes between segments, as decoders do."""
    skipped = octets.at(place, _WINDOW).find(b"\xff")
    if skipped < 0:
        raise BadImage("damaged JPEG: no marker where one must be")
    return place + skipped


def _frame_size(frame: bytes) -> Size:
    """Return the size a frame header states."""
    if len(frame) < 5:
        raise BadImage("truncated JPEG: it ends before the picture begins")
    return Size(int.from_bytes(frame[3:5], "big"), int.from_bytes(frame[1:3], "big"))


def _note_metadata(payload: bytes, found: _Found) -> None:
    """Note the orientation an APP1 segment states; the first statement counts."""
    if payload.startswith(b"Exif\x00\x00"):
        found.exif = found.exif or exif_orientation(payload[6:])
    elif payload.startswith(b"http://ns.adobe.com/xap/1.0/\x00"):
        found.xmp = found.xmp or xmp_orientation(payload)


def _has_end(octets: Octets, place: int) -> bool:
    """Return whether an end marker follows the scan, looking at tables between scans segment by segment."""
    while place < octets.size - 1:
        window = octets.at(place, _WINDOW)
        match = _MARKER.search(window)
        if match is None:
            place += max(1, len(window) - 1)  # the last byte may be half a marker
            continue
        marker = window[match.start() + 1]
        place += match.start() + 2
        if marker == _EOI:
            return True
        if marker not in _BARE:
            place += int.from_bytes(octets.at(place, 2), "big")
    return False
