"""Names of output files: unique, stable, folders kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from predsession.errors import SourceError
from predsession.export.places import Places, common_folder
from predsession.prediction import Prediction

KEPT_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"})
"""Kinds that Pillow writes well; other pictures become PNG."""


class OutputNames:
    """Gives each prediction a place below an output folder.

    Parameters
    ----------
    folder : str or Path
        Where the files go.
    sources : sequence of str
        The folders and files that were handed in; places are kept relative to what they have in common.

    Raises
    ------
    SourceError
        If the folder is the sources' own, whose pictures would be overwritten, or is a file.
    """

    def __init__(self, folder: str | Path, sources: Sequence[str]) -> None:
        self._folder = Path(folder)
        root = common_folder(sources)
        self._places = Places(root, suffixes=KEPT_SUFFIXES)
        if self._folder.exists() and not self._folder.is_dir():
            raise SourceError(f"{self._folder} is a file; name a folder for the pictures, or remove it")
        if root is not None and Path(root).resolve() == self._folder.resolve():
            raise SourceError(f"{self._folder} is where the pictures themselves are; choose another folder")

    def path_for(self, prediction: Prediction) -> Path:
        """Return the file for a prediction's picture, and make its folder.

        Parameters
        ----------
        prediction : Prediction
            With a path, or at least a name.

        Returns
        -------
        Path
            Below the folder, never given before by this object: on a clash ``_2``, ``_3`` ... is added.
        """
        target = self._folder / self._places.place(prediction)
        while _is_source(target, prediction):
            target = self._folder / self._places.place(prediction)
        target.parent.mkdir(parents=True, exist_ok=True)
        return target


def _is_source(target: Path, prediction: Prediction) -> bool:
    """Whether a file is the very picture that was predicted, perhaps by way of a link."""
    return prediction.path is not None and target.exists() and target.samefile(prediction.path)
