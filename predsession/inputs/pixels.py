"""Pixels: encoded images, PIL images and arrays, decoded upright to 8-bit gray or RGB; and back to PNG.

How other kinds of pixels become 8 bits:

==================  ===========================================================================
16 bits a sample    value // 257, so that 65535 becomes 255; never clipped
32 bits, floats     by range: up to 1 (floats only) times 255; up to 255 as they are; up to 65535
                    // 257; anything else is refused, because no scale can be told
palette, 1 bit      the colours they stand for
alpha               dropped, not blended, as servers do with an RGBA file
CMYK, YCbCr, LAB    converted to RGB
==================  ===========================================================================

Files are opened with Pillow's own class for the format, not with ``Image.open``: the limit on pixels is then
ours alone (`ImageLimits`), not one that is global to the process. (Pillow's classes for WebP and TIFF look at
``PIL.Image.MAX_IMAGE_PIXELS`` themselves: who raises our limit above the default raises that one too.)
"""

from __future__ import annotations

import io
import threading
from functools import cache
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFile

from predsession.inputs.encoding import Encoding
from predsession.inputs.formats import BadImage, Header, Kind

_ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# Pillow loads an opened image on first use, which two threads must not do to one image at a time.
_LOADING = threading.Lock()


def decode(stream: BinaryIO, header: Header) -> npt.NDArray[np.uint8]:
    """Decode an encoded image.

    Parameters
    ----------
    stream : BinaryIO
        The file, at its first byte.
    header : Header
        What `read_header` said of it.

    Returns
    -------
    (H, W) or (H, W, 3) uint8 ndarray
        Gray or RGB, upright; of several frames the first.

    Raises
    ------
    BadImage
        Its kind of pixels cannot be told to 8 bits. Pillow raises its own errors for damaged data.
    """
    try:
        image = _plugins()[header.kind](stream)
    except SyntaxError as error:  # how Pillow's classes say that they do not know the data
        raise BadImage(f"damaged {header.kind.name}: {error}") from error
    with image:
        image.load()
        # Newer Pillows turn a TIFF upright while they load it, and then no longer state its orientation.
        orientation = _stated_orientation(image) if header.kind is Kind.TIFF else header.orientation
        return _upright(image, orientation)


def picture_pixels(image: Image.Image) -> npt.NDArray[np.uint8]:
    """Return the pixels of a PIL image.

    Parameters
    ----------
    image : PIL.Image.Image
        Of any mode. It is loaded, if it was not, and otherwise left as it is.

    Returns
    -------
    (H, W) or (H, W, 3) uint8 ndarray
        Gray or RGB; upright, by the orientation that the image carries.

    Raises
    ------
    BadImage
        Its kind of pixels cannot be told to 8 bits. Pillow raises its own errors for damaged data.
    """
    with _LOADING:
        image.load()
        return _upright(image, _stated_orientation(image))


_LARGEST = {Kind.WEBP: 16_383, Kind.JPEG: 65_535}
"""Pixels that a side may have."""


def encode(pixels: npt.NDArray[np.uint8], encoding: Encoding) -> tuple[Kind, bytes]:
    """Encode pixels.

    Parameters
    ----------
    pixels : (H, W) or (H, W, 3) uint8 array
        Gray or RGB.
    encoding : Encoding
        How.

    Returns
    -------
    tuple of Kind and bytes
        The format, which is PNG where the one wanted cannot hold so large a picture, and the file.
    """
    kind = encoding.kind if max(pixels.shape) <= _LARGEST.get(encoding.kind, 1 << 31) else Kind.PNG
    lossless = encoding.quality is None
    # Each as quick as it can be without loss. A new image carries no metadata to write.
    how: dict[Kind, dict[str, int | bool]] = {
        Kind.PNG: {"compress_level": 1},
        Kind.WEBP: {"lossless": True, "method": 0, "quality": 0}
        if lossless
        else {"quality": encoding.quality or 0},
        Kind.JPEG: {"quality": encoding.quality or 95},
    }
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, kind.name, **how.get(kind, {}))
    return kind, buffer.getvalue()


@cache
def _plugins() -> dict[Kind, type[ImageFile.ImageFile]]:
    """Return Pillow's class for each format; imported on first use, because few sessions need any."""
    from PIL import (
        BmpImagePlugin,
        GifImagePlugin,
        JpegImagePlugin,
        PngImagePlugin,
        TiffImagePlugin,
        WebPImagePlugin,
    )

    return {
        Kind.JPEG: JpegImagePlugin.JpegImageFile,
        Kind.PNG: PngImagePlugin.PngImageFile,
        Kind.BMP: BmpImagePlugin.BmpImageFile,
        Kind.WEBP: WebPImagePlugin.WebPImageFile,
        Kind.TIFF: TiffImagePlugin.TiffImageFile,
        Kind.GIF: GifImagePlugin.GifImageFile,
    }


def _stated_orientation(image: Image.Image) -> int:
    """Return the orientation a loaded image carries; 1 where its metadata cannot be read."""
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # noqa: BLE001 - damaged EXIF makes Pillow raise anything, and no orientation is lost
        return 1


def _upright(image: Image.Image, orientation: int) -> npt.NDArray[np.uint8]:
    """Return the pixels as 8-bit gray or RGB, turned."""
    plain = _gray_or_rgb(image)
    turn = _TURNS.get(orientation)
    return np.asarray(plain if turn is None else plain.transpose(turn))


def _gray_or_rgb(image: Image.Image) -> Image.Image:
    """Return the image in mode L or RGB."""
    mode = image.mode
    if mode in {"L", "RGB"}:
        return image
    if mode in {"1", "LA"}:
        return image.convert("L")
    if mode == "La":
        return image.convert("LA").convert("L")
    if mode in {"P", "PA", "RGBa"}:
        # By way of RGBA: straight to RGB, a palette with transparency makes Pillow warn.
        return image.convert("RGBA").convert("RGB")
    if mode in {"RGBA", "RGBX", "CMYK", "YCbCr", "HSV"}:
        return image.convert("RGB")
    if mode == "LAB":
        return _from_lab(image)
    if mode in {"I", "F"} or mode.startswith("I;16"):
        # A 16-bit PNG had mode I in older Pillows.
        sixteen = mode.startswith("I;16") or image.format == "PNG"
        return Image.fromarray(_eight_bits(np.asarray(image), sixteen=sixteen))
    raise BadImage(f"pixels of mode {mode} are not supported: convert the image to RGB")


def _eight_bits(values: npt.NDArray[np.number], *, sixteen: bool) -> npt.NDArray[np.uint8]:
    """Scale wide gray values to 8 bits; the table is at the top of the file."""
    low, high = float(values.min()), float(values.max())
    if not (low >= 0 and high <= 65535):  # also where there are NaNs
        raise BadImage(f"values from {low:g} to {high:g} have no known scale: convert it to 8 bits")
    if sixteen or high > 255:
        return (values // 257).astype(np.uint8)
    if values.dtype.kind == "f":
        scaled = values.astype(np.float64) * (255 if high <= 1 else 1)
        return np.rint(scaled).astype(np.uint8)
    return values.astype(np.uint8)


def _from_lab(image: Image.Image) -> Image.Image:
    """Convert CIE LAB, which Pillow does by way of colour profiles only."""
    from PIL import ImageCms

    lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    turned = ImageCms.profileToProfile(image, lab, srgb, outputMode="RGB")
    if turned is None:
        raise BadImage("pixels of mode LAB could not be converted")
    return turned
