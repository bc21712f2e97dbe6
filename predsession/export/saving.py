"""Predictions into a file or folder of any format: as they come from a session, or from anywhere else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from predsession.errors import ItemError, SourceError
from predsession.export.formats import find_format
from predsession.export.places import common_folder
from predsession.export.readers import is_read
from predsession.export.spooled import partial_path
from predsession.export.target import Images, Target, existing_of, refuse_input
from predsession.export.writing import Writer
from predsession.prediction import Prediction
from predsession.prediction.given import check_outcome, several


@dataclass(frozen=True, slots=True)
class Saved:
    """What was written.

    Parameters
    ----------
    path : str
        The file or folder.
    format : str
        Its format's name.
    predictions : int
        How many.
    errors : int
        Items without a prediction.
    left_out : mapping of str to int
        What the format could not carry, and how much of it: ``{"masks": 12, "scores": 40}``.
    """

    path: str
    format: str
    predictions: int
    errors: int
    left_out: Mapping[str, int]

    def __str__(self) -> str:
        """Return it as a sentence."""
        failed = f", {_counted(self.errors, 'item')} without one" if self.errors else ""
        lost = ", ".join(f"{what} {count}" for what, count in sorted(self.left_out.items()))
        return f"{self.path}: {_counted(self.predictions, 'prediction')}{failed}" + (
            f"; not in {self.format}: {lost}" if lost else ""
        )


def _counted(count: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


class Saving:
    """Writes outcomes, and counts them.

    Parameters
    ----------
    target : Target
        Where, and how.
    format : str or None
        The format's name; without it, what the file's suffix says.

    Raises
    ------
    SourceError
        If there is no such format, or the place cannot be used.
    ValueError
        If what is to become of the pictures is another word.
    """

    def __init__(self, target: Target, format: str | None = None) -> None:  # noqa: A002 - the user's word
        self._format = find_format(format, target.path)
        target = replace(target, path=self._format.place(target.path))
        self._target = target
        if target.images not in (None, "copy", "link"):
            raise ValueError(f"images must be 'copy', 'link' or None, not {target.images!r}")
        places = (target.path, partial_path(target.path))
        if any(map(is_read, places)):
            raise SourceError(
                f"{target.path} is being read by this program, or lies in what is, and not to its end: write "
                "into another place, or read all of it first (list)"
            )
        if target.images is not None and not self._format.takes_images:
            raise SourceError(f"images= is not for {self._format.name}: it has no place for pictures")
        self._writer: Writer = self._format.write(target)
        self._owner = os.getpid()
        self._predictions = self._errors = 0

    def write(self, outcome: Prediction | ItemError) -> None:
        """Write one outcome.

        Parameters
        ----------
        outcome : Prediction or ItemError
            In the order of the source.

        Raises
        ------
        SourceError
            If this process was forked from the one whose file it is.
        DiskError
            If it cannot be written; names the file.
        """
        self._check_owner()
        check_outcome(outcome)
        if isinstance(outcome, ItemError):
            self._errors += 1
        else:
            self._predictions += 1
        self._writer.write(outcome)

    def finish(self) -> Saved:
        """Complete what was written.

        Returns
        -------
        Saved
            What it is.

        Raises
        ------
        SourceError
            If this process was forked from the one whose file it is, or another run wrote it meanwhile.
        DiskError
            If it cannot be written, or is there no longer; names the file.
        """
        self._check_owner()
        self._writer.finish()
        left_out = dict(self._writer.left_out)
        return Saved(str(self._target.path), self._format.name, self._predictions, self._errors, left_out)

    def _check_owner(self) -> None:
        """Refuse what a fork would add: what is written stays its parent's."""
        if os.getpid() != self._owner:
            raise SourceError(
                f"{self._target.path} is written by the process that this one was forked from; write into a "
                "place of its own"
            )

    def close(self) -> None:
        """Let go of all files."""
        self._writer.close()


def save_predictions(
    predictions: Iterable[Prediction | ItemError],
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 - the user's word
    *,
    overwrite: bool = False,
    append: bool = False,
    root: str | os.PathLike[str] | None = None,
    images: Images | None = None,
    scores: bool = False,
) -> Saved:
    """Write predictions into a file or a folder.

    They are taken one by one, and not kept: memory stays flat. A run that is killed leaves what it had in
    the file itself or, for documents that can only be written whole, in ``<file>.partial.jsonl`` beside it.

    Parameters
    ----------
    predictions : iterable of Prediction or ItemError
        From a session, `read_predictions`, or anywhere else.
    path : str or PathLike
        The file, or the folder for formats of many files. A page whose name does not end in ``.html`` is
        ``index.html`` in that folder.
    format : str or None
        ``"jsonl"``, ``"csv"``, ``"coco"``, ...: docs/exports.md has all. Without it, what the suffix says.
    overwrite : bool
        Whether a file that is there is replaced. In a folder, what has the same name is, and nothing else.
    append : bool
        Whether it is added to: JSON lines and CSV only.
    root : str, PathLike or None
        The folder that the pictures' places are relative to. Without it, what the paths of a list have in
        common, or the current folder for an iterator, whose paths are not known beforehand.
    images : {"copy", "link"} or None
        Whether folders get the pictures as well.
    scores : bool
        Whether YOLO's lines end with a score, which not every reader of them takes.

    Returns
    -------
    Saved
        Where, how many, and what the format could not carry.

    Raises
    ------
    SourceError
        If there is no such format, or the place cannot be used.
    MissingExtraError
        If the format needs an extra.
    TypeError
        If something else than predictions and item errors is handed in, such as the name of a file of them.
    DiskError
        If the disk is full.
    """
    predictions = several(predictions)
    if isinstance(predictions, list | tuple):
        for each in predictions:
            check_outcome(each)
        refuse_input(path, (each.path for each in predictions))
        root = common_folder(each.path for each in predictions) if root is None else root
    target = Target(
        path=Path(path),
        existing=existing_of(overwrite=overwrite, append=append),
        root=None if root is None else os.fspath(root),
        images=images,
        scores=scores,
    )
    return pour(predictions, Saving(target, format))


def pour(outcomes: Iterable[Prediction | ItemError], saving: Saving) -> Saved:
    """Write all outcomes, and close.

    Parameters
    ----------
    outcomes : iterable of Prediction or ItemError
        In order.
    saving : Saving
        What takes them.

    Returns
    -------
    Saved
        What was written.
    """
    try:
        for outcome in outcomes:
            saving.write(outcome)
        return saving.finish()
    finally:
        saving.close()
