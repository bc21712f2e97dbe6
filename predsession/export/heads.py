"""Sizes of picture files from their heads: for formats that leave it to the picture how large it is."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from predsession.errors import SourceError
from predsession.export.putting import ORIENTATION
from predsession.wire.geometry import Size

_UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError, Image.DecompressionBombWarning)


def upright_size(picture: Path) -> Size:
    """Return the size of a picture that is upright; its pixels are not read.

    Parameters
    ----------
    picture : Path
        The file.

    Returns
    -------
    Size
        Turned by its EXIF orientation, as boxes have it.

    Raises
    ------
    SourceError
        If it is no picture; names it.
    """
    try:
        with Image.open(picture) as image:
            width, height = image.size
            turned = image.getexif().get(ORIENTATION, 1) in (5, 6, 7, 8)
    except _UNREADABLE as error:
        raise SourceError(f"{picture} is no picture whose size can be read ({error})") from None
    return Size(height, width) if turned else Size(width, height)
