"""JSON lines: one outcome a line, written as they come, so that memory stays flat."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from predsession.errors import ItemError
from predsession.prediction import Prediction


def to_line(outcome: Prediction | ItemError, *, ascii_only: bool = False) -> str:
    """Return one outcome as one line of JSON, without its line end.

    Parameters
    ----------
    outcome : Prediction or ItemError
        What to write.
    ascii_only : bool
        Whether other characters are escaped.

    Returns
    -------
    str
        An item error has the key ``error``, a prediction the key ``annotation``.
    """
    line = json.dumps(outcome.to_json(), ensure_ascii=False, separators=(",", ":"))
    if ascii_only or not _is_text(line):
        # A file name that is not UTF-8 comes from the system as lone surrogates: escaped, they are read back.
        line = json.dumps(outcome.to_json(), separators=(",", ":"))
    return line


def _is_text(line: str) -> bool:
    """Whether a line can be written as UTF-8."""
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


class JsonlWriter:
    """Writes outcomes into a file, a line each, each line complete before the next begins.

    A file that is there is replaced when the first outcome comes, not before: a run that never gets as far
    leaves it as it was. With `resume` it is gone over: lines that are the same stay, the first that differs,
    such as one that was written by half, goes, and all after it. So what is good is never taken away for a
    moment.

    Parameters
    ----------
    path : str or PathLike
        The file; its folder is made.
    resume : bool
        Whether the file is that of a run which is gone on with, and whose outcomes come again.
    """

    def __init__(self, path: str | PathLike[str], *, resume: bool = False) -> None:
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Opened now, so that a place that cannot be written to is told before anything is computed.
        self._file = self._path.open("ab")
        self._fresh = True
        self._there = self._path.open("rb") if resume and self._path.is_file() else None
        self._good = 0

    def write(self, outcome: Prediction | ItemError) -> None:
        """Write one outcome, and hand it to the operating system.

        Parameters
        ----------
        outcome : Prediction or ItemError
            What to write.

        Raises
        ------
        OSError
            If it cannot be written; names the file.
        """
        try:
            line = (to_line(outcome) + "\n").encode()
            if not self._has(line):
                self._file.write(line)
                self._file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from None

    def _has(self, line: bytes) -> bool:
        """Whether the file has this line where it belongs; if not, what is there is cut off."""
        if self._there is not None and self._there.readline(len(line)) == line:
            self._good += len(line)
            self._fresh = False
            return True
        if self._fresh or self._there is not None:
            self._cut()
            self._fresh = False
            self._forget()
        return False

    def _cut(self) -> None:
        """Cut off what is behind the good lines; a pipe or a device has nothing there."""
        if self._path.is_file():
            self._file.truncate(self._good)

    def _forget(self) -> None:
        """Look at what was there no longer."""
        if self._there is not None:
            self._there.close()
            self._there = None

    def finish(self) -> None:
        """Cut off what is left of a longer run; for the end of a run that was not broken off."""
        if self._there is not None:
            self._cut()
            self._forget()

    def close(self) -> None:
        """Close the file."""
        self._forget()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
