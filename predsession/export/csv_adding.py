"""Tables that are added to: which rows stay, and which file is none of ours."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from predsession.errors import SourceError, UnfinishedFileWarning
from predsession.export.csv_reading import is_half, records
from predsession.export.table import COLUMNS


def complete_rows(path: Path) -> int:
    """Return how many bytes of a table are complete rows.

    Parameters
    ----------
    path : Path
        Of what is to be added to.

    Returns
    -------
    int
        All of them, unless the last row was written by half.

    Raises
    ------
    SourceError
        If it has other columns, or a quote too many.

    Warns
    -----
    UnfinishedFileWarning
        If the last row was written by half.
    """
    begin = end = 0
    last = None
    with path.open("rb") as file:
        lines = _Lines(file)
        for record in records(path, lines):
            if last is None and not _is_header(record.cells):
                raise SourceError(f"{path} has other columns, so it cannot be added to; choose a new name")
            begin, end, last = end, lines.read, record
    if last is None or not is_half(path, last, is_ours=True):
        return lines.read
    text = f"{path}: its last row has no end, was perhaps written by half, and is left out"
    warnings.warn(text, UnfinishedFileWarning, stacklevel=2)
    return begin


class _Lines:
    """A file's lines; quotes, commas and line ends are what they are in any encoding that continues ASCII."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.read = 0
        """How many bytes they were up to now."""

    def __iter__(self) -> Iterator[str]:
        for line in self._file:
            self.read += len(line)
            yield line.decode("latin-1")


def _is_header(cells: list[str]) -> bool:
    """Whether a row has our columns' names, perhaps behind a mark of the encoding, in Latin-1."""
    return [cells[0].removeprefix("\xef\xbb\xbf"), *cells[1:]] == list(COLUMNS)
