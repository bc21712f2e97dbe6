"""Picture files: reading one upright, writing one, naming one; and a picture as text for a web page."""

from __future__ import annotations

import base64
import io
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from predsession.errors import SourceError

SHOWN_SIDE = 960
"""The longer side of a picture in a notebook, in pixels, at most."""

_WRITTEN = frozenset((".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"))
# The last two are what Pillow says to a picture above its own limit: a warning first, which is an error
# where warnings are.
_UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError, Image.DecompressionBombWarning)
_SIXTEEN_BIT = frozenset(("I", "I;16", "I;16B", "I;16L", "I;16N"))


def read_picture(path: str | PathLike[str]) -> npt.NDArray[np.uint8]:
    """Read a picture file as the model saw it.

    Parameters
    ----------
    path : str or PathLike
        Of an image file.

    Returns
    -------
    (H, W, 3) uint8 ndarray
        RGB, turned upright by its EXIF orientation; 16 bits a sample are scaled to 8.

    Raises
    ------
    SourceError
        If it is not there or is no image.
    """
    try:
        with Image.open(path) as image:
            upright = ImageOps.exif_transpose(image)
            if upright.mode in _SIXTEEN_BIT:
                # Pillow's own conversion clips at 255 and leaves a white picture.
                gray = (np.asarray(upright).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)
                return np.repeat(gray[:, :, None], 3, axis=2)
            if upright.mode != "F":  # a scale of floats cannot be told
                return np.array(upright.convert("RGB"))
            problem = "its samples are floats"
    except _UNREADABLE as error:
        problem = str(error)  # the error itself would keep this call alive, and the prediction that made it
    raise SourceError(
        f"the picture {str(path)!r} cannot be read ({problem}); put it back, or hand one in with image="
    )


def write_picture(picture: npt.NDArray[np.uint8], path: str | PathLike[str]) -> None:
    """Write a picture file; folders that are missing are made.

    Parameters
    ----------
    picture : (H, W, 3) uint8 ndarray
        RGB.
    path : str or PathLike
        Its suffix says the format: .jpg, .png, .webp, .bmp or .tif.

    Raises
    ------
    ValueError
        If the suffix is another one.
    """
    target = Path(path)
    if target.suffix.lower() not in _WRITTEN:
        raise ValueError(f"cannot write {str(path)!r}: wanted one of {', '.join(sorted(_WRITTEN))}")
    target.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(target, quality=92)


def file_name(name: str, index: int) -> str:
    """Return a file name for a drawn picture that no other input of the same source gets.

    Parameters
    ----------
    name : str
        The input's name; it may hold a path, or anything else.
    index : int
        Its position in the source; it keeps a/1.jpg and b/1.jpg apart.

    Returns
    -------
    str
        ``000007_photo.jpg``: the suffix is the input's own where such a file can be written, else .png.
    """
    inner = Path(name.replace("\\", "/").rsplit("/", 1)[-1])
    suffix = inner.suffix.lower()
    kept = "".join(sign if sign.isalnum() or sign in "-_. " else "_" for sign in inner.stem)
    # 50 signs of up to four bytes: well below the 255 bytes that file systems allow.
    return f"{index:06d}_{kept[:50]}".rstrip(" .") + (suffix if suffix in _WRITTEN else ".png")


def inline_picture(picture: npt.NDArray[np.uint8], side: int = SHOWN_SIDE) -> str:
    """Return a picture as the address that an ``img`` shows without a file.

    Parameters
    ----------
    picture : (H, W, 3) uint8 ndarray
        RGB.
    side : int
        How wide and high it is at most, in pixels.

    Returns
    -------
    str
        ``data:image/jpeg;base64,...``.
    """
    image = Image.fromarray(picture)
    image.thumbnail((side, side))
    packed = io.BytesIO()
    image.save(packed, "JPEG", quality=88)
    return "data:image/jpeg;base64," + base64.b64encode(packed.getvalue()).decode("ascii")
