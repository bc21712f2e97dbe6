"""Copies of frames that lie beside their annotations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from predsession.prediction import Prediction
from predsession.prediction.pictures import read_picture


@dataclass(frozen=True, slots=True)
class PictureFile:
    """Loads a picture file.

    Parameters
    ----------
    path : str
        Of the file.
    """

    path: str

    def __call__(self) -> npt.NDArray[np.uint8]:
        """Return the picture.

        Returns
        -------
        (H, W, 3) uint8 ndarray
            RGB, upright.

        Raises
        ------
        SourceError
            If it is not there, or no picture.
        """
        return read_picture(self.path)


def with_copy(prediction: Prediction, beside: Path) -> Prediction:
    """Have a frame's picture read from its copy: it stays a frame of its clip, and gets the same name again.

    Parameters
    ----------
    prediction : Prediction
        As it was read.
    beside : Path
        Where the copy is, if there is one.

    Returns
    -------
    Prediction
        The same, unless it is of a frame that has a copy.
    """
    if prediction.frame_index is None or not beside.is_file():
        return prediction
    return replace(prediction, loader=PictureFile(str(beside)))
