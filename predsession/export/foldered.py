"""Formats that are folders: each prediction has files of its own, complete as soon as it was written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path, PurePath

from predsession.errors import ItemError
from predsession.export.folders import sweep
from predsession.export.held import HeldFolder
from predsession.export.places import Places
from predsession.export.putting import put_picture
from predsession.export.target import Images, Target, told_at_once
from predsession.export.writing import Closing
from predsession.prediction import Prediction


class Foldered(Closing, ABC):
    """Writes predictions into a folder, one after the other.

    Parameters
    ----------
    target : Target
        The folder; it is made.
    by_stem : bool
        Whether two pictures must differ in more than their suffix.
    images : {"copy", "link"} or None
        What becomes of pictures where the target does not say.

    Raises
    ------
    SourceError
        If it is a file, holds something and may not be touched, or cannot be written to.
    """

    def __init__(self, target: Target, *, by_stem: bool = True, images: Images | None = None) -> None:
        super().__init__()
        self._folder: Path = target.path
        self._places = Places(target.root, by_stem=by_stem)
        self._images: Images | None = target.images or images
        self._held = HeldFolder(target)
        try:
            with told_at_once(target.path):
                sweep(target.path)
            self._open(target)
        except BaseException:
            self._held.close()
            raise

    def _open(self, target: Target) -> None:
        """Look at what is there, now that nobody else writes to it; what is raised here lets go of it."""

    def write(self, outcome: Prediction | ItemError) -> None:
        """Write one outcome.

        Parameters
        ----------
        outcome : Prediction or ItemError
            A prediction without objects has a file, too; an item error is counted, and leaves nothing.

        Raises
        ------
        DiskError
            If it cannot be written; names the file.
        """
        if isinstance(outcome, ItemError):
            self.left_out["item errors"] += 1
        else:
            self._write(outcome)

    @abstractmethod
    def _write(self, prediction: Prediction) -> None:
        """Write a prediction's files."""

    def _put(self, prediction: Prediction, inner: str | PurePath, place: PurePath) -> bool:
        """Put its picture below a folder of ours, if pictures are wanted; return whether it is there."""
        if self._images is None:
            return False
        put = put_picture(prediction, self._folder / inner, place, how=self._images)
        if not put:
            self.left_out["pictures that are gone"] += 1
        return put

    def close(self) -> None:
        """Let others write to the folder."""
        self._held.close()

    def finish(self) -> None:
        """Let the folder stay, whether or not it has anything: each file was complete as it was written.

        Raises
        ------
        DiskError
            If it is there no longer.
        """
        self._held.keep()
