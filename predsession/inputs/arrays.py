"""Which arrays are images. What is wrong with the others is said before anything is sent, with the remedy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from predsession.errors import SourceError

CHANNELS = (1, 3, 4)


def check_array(array: npt.NDArray[np.generic], where: str) -> npt.NDArray[np.uint8]:
    """Return the array if it is an image.

    Parameters
    ----------
    array : ndarray
        Anything.
    where : str
        How to name it: ``input`` or ``input[3]``.

    Returns
    -------
    (H, W) or (H, W, 1|3|4) uint8 ndarray
        The same array; it need not be contiguous.

    Raises
    ------
    SourceError
        Wrong shape or dtype; the message has both, and what to do about it.
    """
    problems = [text for text in (_wrong_shape(array.shape), _wrong_dtype(array)) if text]
    if problems:
        raise SourceError(
            f"{where}: an array of shape {array.shape} and dtype {array.dtype} is not an image: "
            f"{'; '.join(problems)}."
            " An image is (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), uint8, RGB"
        )
    return array.view(np.ndarray).astype(np.uint8, copy=False)


def _wrong_shape(shape: tuple[int, ...]) -> str:
    """Say what is wrong with the shape, and what to do."""
    if 0 in shape:
        return "it has no pixels"
    if len(shape) == 2 or (len(shape) == 3 and shape[2] in CHANNELS):
        return ""
    if len(shape) == 3 and shape[0] in CHANNELS:
        return "the channels come first; use a.transpose(1, 2, 0)"
    if len(shape) == 4 and shape[3] in CHANNELS:
        return "it is a batch; use list(a)"
    if len(shape) == 4 and shape[1] in CHANNELS:
        return "it is a batch with the channels first; use list(a.transpose(0, 2, 3, 1))"
    return "the shape is not that of an image"


def _wrong_dtype(array: npt.NDArray[np.generic]) -> str:
    """Say what is wrong with the dtype, and what to do."""
    dtype = array.dtype
    if dtype == np.uint8:
        return ""
    if dtype.kind == "f":
        # Whether a float image runs to 1 or to 255 shows in its largest value.
        unit = array.size == 0 or bool(np.fmax.reduce(array, axis=None) <= 1)
        return "values from 0 to 1 become (a * 255).astype(np.uint8)" if unit else "use a.astype(np.uint8)"
    if dtype.kind == "b":
        return "use a.astype(np.uint8) * 255"
    if dtype.kind == "u" and dtype.itemsize == 2:
        return "16 bits become (a // 257).astype(np.uint8)"
    if dtype.kind in "iu":
        return "values from 0 to 255 become a.astype(np.uint8)"
    if dtype.kind == "O":
        return "it holds objects; pass the images as a list"
    return "the dtype is not that of an image"


def as_gray_or_rgb(array: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return (H, W) or (H, W, 3): a single channel squeezed, alpha dropped."""
    # Alpha is dropped, not blended: that is what a stock server makes of an RGBA file, so an array and the
    # file it was read from give the same picture.
    if array.ndim == 3:
        return array[..., 0] if array.shape[2] == 1 else array[..., :3]
    return array
