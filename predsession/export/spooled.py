"""Documents that can only be written whole: what comes is kept as JSON lines beside them, until the end.

So memory stays flat, and a run that was killed leaves a file that can be read, converted, or gone on with.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from predsession.errors import ItemError, SourceError
from predsession.export.classes import ClassTable
from predsession.export.jsonl import JsonlWriter, read_lines
from predsession.export.target import Existing, Target, on_disk, prepare_file
from predsession.export.writing import Closing
from predsession.prediction import Prediction


class Compile(Protocol):
    """Writes the whole document."""

    def __call__(self, predictions: Iterator[Prediction], draft: Path) -> None:
        """Write the predictions into a new file, each read once."""


class Spooled(Closing):
    """Keeps outcomes as JSON lines, and makes the document of them at the end.

    Parameters
    ----------
    target : Target
        The document; its folder is made.
    compile : Compile
        What makes it.

    Raises
    ------
    SourceError
        If it, or what an earlier run left, is there and may not be touched, or it cannot be written.
    """

    def __init__(self, target: Target, compile: Compile) -> None:  # noqa: A002 - it is what it does
        super().__init__()
        if target.existing is Existing.APPEND:
            raise SourceError(f"{target.path}: only JSON lines and CSV can be added to; choose another name")
        prepare_file(target)
        if target.path.exists() and not target.path.is_file():
            raise SourceError(f"{target.path} is no file, which this format needs; jsonl and csv do not")
        self.classes = ClassTable()
        self._path = target.path
        self._compile = compile
        self._elsewhere = None if target.rescue else TemporaryDirectory(prefix="predsession-")
        place = target.path if self._elsewhere is None else Path(self._elsewhere.name, target.path.name)
        self._partial = partial_path(place)
        kept = Existing.OVERWRITE if target.existing is Existing.REFUSE else target.existing
        self._lines = JsonlWriter(replace(target, path=self._partial, existing=kept))
        try:
            # Now that nobody else writes it: another run may have ended in between.
            prepare_file(target)
            if target.existing is Existing.REFUSE and self._partial.stat().st_size:
                raise SourceError(
                    f"{self._partial} is there: a run that was ended left it. It can be read, and converted "
                    f"with `predsession convert {self._partial}`; to begin anew, overwrite it "
                    "(overwrite=True, --overwrite)"
                )
        except BaseException:
            self.close()
            raise

    def write(self, outcome: Prediction | ItemError) -> None:
        """Take one outcome.

        Parameters
        ----------
        outcome : Prediction or ItemError
            The errors of items are kept, too, until the end.
        """
        if isinstance(outcome, ItemError):
            self.left_out["item errors"] += 1
        else:
            self.classes.learn(outcome)
        self._lines.write(outcome)

    def finish(self) -> None:
        """Write the document, put it in its place in one step, and take away what was kept beside it."""
        self._lines.finish()
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            with on_disk(self._path):
                self._compile(self._predictions(), draft)
                draft.replace(self._path)
        finally:
            with suppress(OSError):
                draft.unlink()
        self._partial.unlink()
        self.close()

    def _predictions(self) -> Iterator[Prediction]:
        """Read what was kept."""
        return (each for each in read_lines(self._partial) if isinstance(each, Prediction))

    def close(self) -> None:
        """Close the file beside the document; without `finish` it stays, if it has anything to be read."""
        self._lines.close()
        if self._elsewhere is not None:
            self._elsewhere.cleanup()


def partial_path(path: Path) -> Path:
    """Return where a document's outcomes are kept until it can be written.

    Parameters
    ----------
    path : Path
        Of the document.

    Returns
    -------
    Path
        ``ann.json`` has ``ann.json.partial.jsonl``.
    """
    return path.with_name(f"{path.name}.partial.jsonl")
