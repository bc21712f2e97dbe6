"""A model for tests: it reads a number that is hidden in the picture, and answers it in every field.

So a test sees at once whether an answer belongs to its picture: a swap, a loss or a double cannot hide.
The number is painted as 32 squares, black or white, large enough for JPEG: 18 bits of number and 14 of check.
"""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from predsession.server.models.base import Arrays, Pixels, Settings

SQUARE = 8
COLUMNS, ROWS = 8, 4
SMALLEST = (COLUMNS * SQUARE, ROWS * SQUARE)
"""Width and height below which a picture holds no number."""
NUMBERS = 1 << 18
"""Numbers go from 0 to this, exclusive."""
_CHECK_BITS = 14


def number_picture(number: int, size: tuple[int, int] = SMALLEST) -> Pixels:
    """Paint a number.

    Parameters
    ----------
    number : int
        From 0 to 262143.
    size : tuple of int
        Width and height, in pixels; at least 64 and 32.

    Returns
    -------
    (height, width, 3) uint8 ndarray
        A gray picture with the number in its upper left corner.

    Raises
    ------
    ValueError
        If the number or the size is out of range.
    """
    width, height = size
    if not 0 <= number < NUMBERS or width < SMALLEST[0] or height < SMALLEST[1]:
        raise ValueError(f"cannot paint {number} into {width} x {height} pixels")
    code = number << _CHECK_BITS | _check(number)
    bits = np.array([code >> place & 1 for place in range(COLUMNS * ROWS)], np.uint8).reshape(ROWS, COLUMNS)
    picture = np.full((height, width, 3), 128, np.uint8)
    picture[: SMALLEST[1], : SMALLEST[0]] = bits.repeat(SQUARE, 0).repeat(SQUARE, 1)[:, :, None] * 255
    return picture


def read_number(picture: Pixels) -> int | None:
    """Read a number back.

    Parameters
    ----------
    picture : (H, W, 3) uint8 ndarray
        What `number_picture` painted, perhaps after a lossy encoding.

    Returns
    -------
    int or None
        None if there is none, or it is damaged.
    """
    if picture.shape[0] < SMALLEST[1] or picture.shape[1] < SMALLEST[0]:
        return None
    squares = picture[: SMALLEST[1], : SMALLEST[0], 1].reshape(ROWS, SQUARE, COLUMNS, SQUARE)
    bits = squares[:, 2:6, :, 2:6].mean(axis=(1, 3)).ravel() > 127
    code = sum(1 << place for place, bit in enumerate(bits) if bit)
    number = code >> _CHECK_BITS
    return number if code & ((1 << _CHECK_BITS) - 1) == _check(number) else None


def number_box(number: int) -> tuple[int, int, int, int]:
    """Return the box that stands for a number: x1, y1, x2, y2, in pixels, inside 64 x 32."""
    left, top = number % 32, number // 32 % 16
    return left, top, left + 1 + number // 512 % 32, top + 1 + number // 16384 % 16


def box_number(box: npt.ArrayLike) -> int:
    """Return the number that a box stands for.

    Parameters
    ----------
    box : (4,) array, xyxy, pixels
        The first box of an answer.

    Returns
    -------
    int
        What the picture held.
    """
    x1, y1, x2, y2 = (round(float(side)) for side in np.asarray(box, float))
    return x1 + 32 * y1 + 512 * (x2 - x1 - 1) + 16384 * (y2 - y1 - 1)


def number_score(number: int) -> float:
    """Return the score that goes with a number, from 0.5 to 0.999."""
    return 0.5 + number % 500 / 1000


class PixelNumbers:
    """The model: one object for a picture with a number, none for any other.

    Settings: ``delay``, seconds for each picture; ``fail_at``, the number at which it raises; ``exit_at`` and
    ``hang_at``, the numbers at which it ends its process or never returns.
    """

    classes = tuple(f"ends in {digit}" for digit in range(10))
    max_batch_size = 16
    default_settings: ClassVar[Settings] = {
        "conf": 0.0,
        "delay": 0.0,
        "fail_at": -1,
        "exit_at": -1,
        "hang_at": -1,
    }

    def predict(self, images: list[Pixels], settings: Settings) -> list[Arrays]:
        """Read the numbers.

        Parameters
        ----------
        images : list of (H, W, 3) uint8 ndarray
            RGB.
        settings : mapping
            See the class.

        Returns
        -------
        list of dict
            ``boxes``, ``scores`` and ``class_ids`` for each picture.
        """
        return [_answer(read_number(image), settings) for image in images]


def _answer(number: int | None, settings: Settings) -> Arrays:
    """Return the arrays for one picture, or misbehave as told."""
    delay = float(str(settings["delay"]))
    if delay > 0:
        time.sleep(delay)
    if number is None:
        return {"boxes": np.zeros((0, 4)), "scores": np.zeros(0), "class_ids": np.zeros(0, int)}
    _misbehave(number, settings)
    return {
        "boxes": np.array([number_box(number)], np.float32),
        "scores": np.array([number_score(number)], np.float32),
        "class_ids": np.array([number % 10]),
    }


def _misbehave(number: int, settings: Settings) -> None:
    """Fail in the way that is set for this number."""
    if number == settings["fail_at"]:
        raise ValueError(f"told to fail at {number}")
    if number == settings["exit_at"]:
        import os

        os._exit(70)
    while number == settings["hang_at"]:
        time.sleep(0.1)


def _check(number: int) -> int:
    """Return check bits that differ for numbers that differ in a bit."""
    return (number * 2654435761 + 12345 >> 9) & ((1 << _CHECK_BITS) - 1)
