"""Pictures made small for a page: bounded in bytes, whatever they show; large photographs decoded scaled."""

from __future__ import annotations

import io
import math
from contextlib import suppress

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, JpegImagePlugin, features

from predsession.errors import SourceError
from predsession.prediction import Prediction
from predsession.wire.geometry import Size

SIDE = 288
"""The longer side of a thumbnail, in pixels."""
MOST_BYTES = 6000
"""Of one; as base64 it is a third more."""

KIND = "webp" if features.check("webp") else "jpeg"
"""What thumbnails are encoded as. Some builds of Pillow have no WebP, which is smaller by a third."""

_ATTEMPTS = ((SIDE, 62), (SIDE, 44), (SIDE, 28), (208, 26), (128, 20), (72, 10))
"""Sides and qualities, until one is small enough; noise of the last size is, in either kind."""
_ORIENTATION = 0x0112


def small_picture(prediction: Prediction) -> Image.Image:
    """Get a prediction's picture, small.

    Parameters
    ----------
    prediction : Prediction
        Of a JPEG file, which is decoded at an eighth of its size where that is enough; of anything else,
        what its loader gives.

    Returns
    -------
    Image
        RGB, upright, no side longer than `SIDE`. A small picture is not enlarged.

    Raises
    ------
    SourceError
        If it cannot be had, or is not the one that was predicted. What a caller's own loader raises comes as
        it is.
    """
    picture = _from_jpeg(prediction)
    if picture is None:
        picture = _from_pixels(prediction.load_image(), prediction.size)
    picture.thumbnail((SIDE, SIDE), reducing_gap=2.0)
    return picture


def _from_jpeg(prediction: Prediction) -> Image.Image | None:
    """Decode a JPEG file scaled; None for all else, and for a file that is damaged or another picture."""
    if prediction.path is None or prediction.frame_index is not None:
        return None
    # Pillow's own class for the format: `Image.open` has a limit of its own, for the whole process.
    with suppress(OSError, SyntaxError, ValueError), JpegImagePlugin.JpegImageFile(prediction.path) as image:
        turned = 1
        with suppress(Exception):  # the EXIF data of a thousand cameras; the pixels are good
            turned = image.getexif().get(_ORIENTATION, 1)
        stored = Size(*(image.size[::-1] if turned in range(5, 9) else image.size))
        if stored == prediction.size:
            share = min(2 * SIDE / max(image.size), 1)  # twice as large, as what is scaled well needs
            image.draft("RGB", (math.ceil(image.width * share), math.ceil(image.height * share)))
            picture = image.convert("RGB")
            with suppress(Exception):
                ImageOps.exif_transpose(picture, in_place=True)
            return picture
    return None


def _from_pixels(pixels: npt.NDArray[np.uint8], size: Size) -> Image.Image:
    """Take a loader's picture, if it is the one that was predicted."""
    if pixels.shape != (size.height, size.width, 3):
        raise SourceError(
            f"it is now {' x '.join(map(str, pixels.shape[1::-1]))} pixels, "
            f"the prediction was made on {size.width} x {size.height}"
        )
    return Image.fromarray(np.ascontiguousarray(pixels, np.uint8))


def packed(picture: Image.Image) -> bytes:
    """Encode a small picture.

    Parameters
    ----------
    picture : Image
        RGB, at most `SIDE` pixels wide and high.

    Returns
    -------
    bytes
        A file of the kind `KIND`, no longer than `MOST_BYTES`: what shows much detail has less quality.
    """
    data = b""
    for side, quality in _ATTEMPTS:
        if side < max(picture.size):
            picture = picture.copy()
            picture.thumbnail((side, side))
        buffer = io.BytesIO()
        # WebP's method 2 takes less than half the time of its default, for a twentieth more bytes.
        picture.save(buffer, KIND, quality=quality, method=2)
        data = buffer.getvalue()
        if len(data) <= MOST_BYTES:
            break
    return data
