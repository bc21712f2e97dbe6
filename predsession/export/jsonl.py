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
    leaves it as it was.

    Parameters
    ----------
    path : str or PathLike
        The file; its folder is made.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Opened now, so that a place that cannot be written to is told before anything is computed.
        self._file = self._path.open("a", encoding="utf-8", newline="\n")
        self._fresh = True

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
            if self._fresh:
                self._file.truncate(0)
                self._fresh = False
            self._file.write(to_line(outcome) + "\n")
            self._file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
