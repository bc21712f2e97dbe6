"""Names of output files: unique, stable, folders kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePath

from predsession.errors import SourceError
from predsession.export.places import common_folder, shortened
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
        self._root = common_folder(sources)
        self._given: set[str] = set()
        if self._folder.exists() and not self._folder.is_dir():
            raise SourceError(f"{self._folder} is a file; name a folder for the pictures, or remove it")
        if self._root is not None and Path(self._root).resolve() == self._folder.resolve():
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
        place = self._place(prediction)
        if prediction.frame_index is not None:
            place = place.with_name(f"{place.stem}_{prediction.frame_index:06d}.png")
        suffix = place.suffix if place.suffix.lower() in KEPT_SUFFIXES else place.suffix + ".png"
        stem, count = str(place.parent / shortened(place.stem)), 1
        name = f"{stem}{suffix}"
        while name.casefold() in self._given or self._is_source(name, prediction):
            count += 1
            name = f"{stem}_{count}{suffix}"
        self._given.add(name.casefold())
        target = self._folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _is_source(self, name: str, prediction: Prediction) -> bool:
        """Whether a file is the very picture that was predicted, perhaps by way of a link."""
        target = self._folder / name
        return prediction.path is not None and target.exists() and target.samefile(prediction.path)

    def _place(self, prediction: Prediction) -> PurePath:
        """Return the relative place: what lies outside the root gets its bare name."""
        if prediction.path is not None and self._root is not None:
            relative = os.path.relpath(prediction.path, self._root)
            if not relative.startswith(os.pardir):
                return PurePath(relative)
        return PurePath(Path(prediction.name or f"image_{prediction.index:04d}").name)
