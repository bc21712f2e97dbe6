"""Names of output files: unique, stable, folders kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePath

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
    """

    def __init__(self, folder: str | Path, sources: Sequence[str]) -> None:
        self._folder = Path(folder)
        self._root = _common_folder(sources)
        self._given: set[str] = set()

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
        suffix = place.suffix if place.suffix.lower() in KEPT_SUFFIXES else place.suffix + ".png"
        stem, count = place.with_suffix(""), 1
        name = f"{stem}{suffix}"
        while name.casefold() in self._given:
            count += 1
            name = f"{stem}_{count}{suffix}"
        self._given.add(name.casefold())
        target = self._folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _place(self, prediction: Prediction) -> PurePath:
        """Return the relative place: what lies outside the root gets its bare name."""
        if prediction.path is not None and self._root is not None:
            relative = os.path.relpath(prediction.path, self._root)
            if not relative.startswith(os.pardir):
                return PurePath(relative)
        return PurePath(Path(prediction.name or f"image_{prediction.index:04d}").name)


def _common_folder(sources: Sequence[str]) -> str | None:
    """Return the folder that all sources lie in, None where there is none."""
    folders = [
        source if Path(source).is_dir() else str(Path(source).parent)
        for source in sources
        if not source.startswith(("http://", "https://"))
    ]
    try:
        return os.path.commonpath([str(Path(folder).absolute()) for folder in folders])
    except ValueError:
        return None
