"""Sizes, masks and figures: wire JSON to arrays and back.

Invariant: every box is ``xyxy``, pixels, float32 and half-open (width = x2 - x1). The wire's whole-pixel
corners are inclusive, so x2 = right + 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Size(NamedTuple):
    """Width and height of a picture, in pixels."""

    width: int
    height: int


class MaskCrop(NamedTuple):
    """A mask cut to its own rectangle: ``mask[row, col]`` is the pixel ``(x + col, y + row)``."""

    x: int
    y: int
    mask: npt.NDArray[np.bool_]
