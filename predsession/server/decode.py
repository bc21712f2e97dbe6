"""Files to pixels: upright, RGB, eight bits, whatever was sent.

Runs in a worker process, and in the server only to look whether a file can be decoded. The rules: EXIF
orientation is applied; more than eight bits are scaled, never clipped; alpha is dropped, as a stock server
does; of several frames the first counts; a picture that is too large is refused by its header.
"""

from __future__ import annotations

import contextlib

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from predsession.errors import PredSessionError
from predsession.server.slices import Slice

Pixels = npt.NDArray[np.uint8]

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF", "PPM")
"""What is opened at all: formats that Pillow decodes in-process and without scripts."""
_GUESS_SHIFT = 3  # a JPEG is checked at an eighth of its size: every byte is read, little is computed


class BadImageError(PredSessionError):
    """A file is no picture, a damaged one, or too large."""


def tolerate_truncation() -> None:
    """Guess the missing part of a cut file, as a stock server does; holds for the whole process."""
    ImageFile.LOAD_TRUNCATED_IMAGES = True


def open_picture(source: Slice, *, max_pixels: int) -> Image.Image:
    """Read a picture's header; its pixels are not decoded yet.

    Parameters
    ----------
    source : Slice
        Where it lies.
    max_pixels : int
        The largest picture that is accepted.

    Returns
    -------
    PIL.Image.Image
        To be closed by the caller.

    Raises
    ------
    BadImageError
        If it is no picture, or too large; the message says why, without the name.
    """
    Image.MAX_IMAGE_PIXELS = None  # the limit is ours, and an error instead of a warning
    try:
        if not source.size:
            raise BadImageError("empty file")
        image = Image.open(source.open(), formats=FORMATS)
    except UnidentifiedImageError:
        raise BadImageError("not a picture of a known format") from None
    except BadImageError:
        raise
    except Exception as error:
        raise BadImageError(_reason(error)) from error
    if image.width * image.height > max_pixels:
        image.close()
        raise BadImageError(f"{image.width} x {image.height} pixels; the limit is {max_pixels}")
    return image


def to_pixels(image: Image.Image) -> Pixels:
    """Decode an opened picture.

    Parameters
    ----------
    image : PIL.Image.Image
        From `open_picture`.

    Returns
    -------
    (H, W, 3) uint8 ndarray
        RGB, upright.

    Raises
    ------
    BadImageError
        If that is not possible.
    """
    try:
        return _eight_bits(_upright(image))
    except BadImageError:
        raise
    except Exception as error:
        raise BadImageError(_reason(error)) from error


def check(source: Slice, *, max_pixels: int) -> None:
    """Look whether a picture can be decoded, at a fraction of the cost.

    Parameters
    ----------
    source : Slice
        Where it lies.
    max_pixels : int
        The largest picture that is accepted.

    Raises
    ------
    BadImageError
        If it cannot.
    """
    with open_picture(source, max_pixels=max_pixels) as image:
        try:
            image.draft(None, (image.width >> _GUESS_SHIFT, image.height >> _GUESS_SHIFT))
            image.load()
        except Exception as error:
            raise BadImageError(_reason(error)) from error


def _reason(error: Exception) -> str:
    """Say why a picture cannot be read, without the path that it has here."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"the file cannot be read: {error.strerror}"
    return f"damaged picture: {error}"


def _upright(image: Image.Image) -> Image.Image:
    """Apply the EXIF orientation; damaged EXIF data counts as none."""
    image.load()
    # In place, because otherwise even an upright picture is copied.
    with contextlib.suppress(Exception):  # the data of a thousand cameras; the pixels are good
        ImageOps.exif_transpose(image, in_place=True)
    return image


def _eight_bits(image: Image.Image) -> Pixels:
    """Return RGB of eight bits."""
    if image.mode.startswith("I"):
        return _gray(np.asarray(image, dtype=np.float32) / 257.0)
    if image.mode == "F":
        return _from_floats(np.asarray(image, dtype=np.float32))
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    # A copy that a model may write to.
    return np.array(image if image.mode == "RGB" else image.convert("RGB"))


def _from_floats(values: npt.NDArray[np.float32]) -> Pixels:
    """Scale floats in 0..1; other ranges have no agreed meaning."""
    if not np.isfinite(values).all() or values.min() < 0 or values.max() > 1:
        raise BadImageError("a picture of floats outside 0..1")
    return _gray(values * 255.0)


def _gray(values: npt.NDArray[np.float32]) -> Pixels:
    """Round gray values in 0..255 and repeat them for three channels."""
    if values.size and (values.min() < 0 or values.max() > 255.5):
        raise BadImageError("a picture with more than 16 bits a value")
    levels: Pixels = np.rint(values).clip(0, 255).astype(np.uint8)
    return np.repeat(levels[:, :, None], 3, axis=2)
