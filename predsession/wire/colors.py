"""Colours of classes: R, G, B from 0 to 255, the wire's ``#RRGGBB``, and where there is none, a good one."""

from __future__ import annotations

import colorsys
import zlib

from predsession.wire.jsontypes import JSON

RGB = tuple[int, int, int]


def spread_color(number: int) -> RGB:
    """Return the colour of that number: neighbours in number are far apart in hue.

    Parameters
    ----------
    number : int
        0 or greater.

    Returns
    -------
    tuple of int
        R, G, B, each 0 to 255; never near white or black, so that it shows on most photographs.
    """
    # A turn of 0.618 of the circle leaves the largest gap to every hue before it; the lightness changes
    # with it, because the eye tells few hues apart.
    hue = (0.02 + number * 0.618034) % 1.0
    light = (0.52, 0.40, 0.62)[number % 3]
    red, green, blue = colorsys.hls_to_rgb(hue, light, 0.85)
    return round(red * 255), round(green * 255), round(blue * 255)


def named_color(title: str) -> RGB:
    """Return the colour of a title that no model describes: always the same for the same title.

    Parameters
    ----------
    title : str
        A class's name.

    Returns
    -------
    tuple of int
        R, G, B.
    """
    return spread_color(zlib.crc32(title.encode("utf-8", "replace")) % 4096)


def color_from(value: JSON, otherwise: RGB) -> RGB:
    """Return the colour in ``#RRGGBB``, or the other: a colour that cannot be read is not worth an error."""
    if isinstance(value, str) and len(value) == 7 and value[0] == "#":
        try:
            number = int(value[1:], 16)
        except ValueError:
            return otherwise
        return number >> 16, number >> 8 & 255, number & 255
    return otherwise


def color_text(color: RGB) -> str:
    """Return a colour as ``#RRGGBB``."""
    return "#{:02X}{:02X}{:02X}".format(*color)
