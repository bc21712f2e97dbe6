"""The headers of image files: which format, which size, which way up, whether the end is there.

Nothing here decodes pixels or opens files: a reader gets `Octets` and answers with a `Header`, or raises
`BadImage` with a reason. So a header that claims 50,000 x 50,000 pixels costs nothing, and the answer does
not depend on settings of Pillow that are global to the process.
"""

from __future__ import annotations

from collections.abc import Callable

from predsession.inputs.formats.header import BadImage, BytesOctets, Header, Kind, Octets
from predsession.inputs.formats.signatures import looks_like, sniff

__all__ = ["BadImage", "BytesOctets", "Header", "Kind", "Octets", "looks_like", "read_header", "sniff"]


def _reader(kind: Kind) -> Callable[[Octets], Header]:
    """Return what reads a kind of header; it is imported for the first file of its kind."""
    if kind is Kind.JPEG:
        from predsession.inputs.formats.jpeg import read_jpeg as read
    elif kind is Kind.PNG:
        from predsession.inputs.formats.png import read_png as read
    elif kind is Kind.BMP:
        from predsession.inputs.formats.bmp import read_bmp as read
    elif kind is Kind.WEBP:
        from predsession.inputs.formats.webp import read_webp as read
    elif kind is Kind.TIFF:
        from predsession.inputs.formats.tiff import read_tiff as read
    else:
        from predsession.inputs.formats.gif import read_gif as read
    return read


def read_header(octets: Octets) -> Header:
    """Read the header of an encoded image, and look for its end.

    Parameters
    ----------
    octets : Octets
        The whole file, of which a few places are read.

    Returns
    -------
    Header
        Format, size, orientation.

    Raises
    ------
    BadImage
        Empty, no image, cut short, or damaged where it shows without decoding.
    """
    if octets.size == 0:
        raise BadImage("empty file")
    head = octets.at(0, 64)
    kind = sniff(head)
    if kind is None:
        raise BadImage(f"not an image ({looks_like(head)})")
    header = _reader(kind)(octets)
    if 0 in header.stored:
        raise BadImage(f"damaged {kind.name}: the header says {header.stored.width} x {header.stored.height}")
    return header
