"""The headers of image files: which format, which size, which way up, whether the end is there.

Nothing here decodes pixels or opens files: a reader gets `Octets` and answers with a `Header`, or raises
`BadImage` with a reason. So a header that claims 50,000 x 50,000 pixels costs nothing, and the answer does
not depend on settings of Pillow that are global to the process.
"""

from __future__ import annotations

from collections.abc import Callable

from predsession.inputs.formats.bmp import read_bmp
from predsession.inputs.formats.gif import read_gif
from predsession.inputs.formats.header import BadImage, BytesOctets, Header, Kind, Octets
from predsession.inputs.formats.jpeg import read_jpeg
from predsession.inputs.formats.png import read_png
from predsession.inputs.formats.signatures import looks_like, sniff
from predsession.inputs.formats.tiff import read_tiff
from predsession.inputs.formats.webp import read_webp

__all__ = ["BadImage", "BytesOctets", "Header", "Kind", "Octets", "looks_like", "read_header", "sniff"]

_READERS: dict[Kind, Callable[[Octets], Header]] = {
    Kind.JPEG: read_jpeg,
    Kind.PNG: read_png,
    Kind.BMP: read_bmp,
    Kind.WEBP: read_webp,
    Kind.TIFF: read_tiff,
    Kind.GIF: read_gif,
}


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
    header = _READERS[kind](octets)
    if 0 in header.stored:
        raise BadImage(f"damaged {kind.name}: the header says {header.stored.width} x {header.stored.height}")
    return header
