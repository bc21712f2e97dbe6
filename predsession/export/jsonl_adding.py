"""JSON lines that are added to: which lines stay, and which file is none of ours."""

from __future__ import annotations

import warnings
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from predsession.errors import PredSessionError, SourceError, UnfinishedFileWarning
from predsession.export.target import on_disk
from predsession.wire.jsontext import loads
from predsession.wire.jsontypes import as_object

LOOKED_BACK = 1 << 16
"""Bytes that are read at a time, from the end, to find the last complete line."""
_OURS = frozenset(("annotation", "error"))


def complete_lines(path: Path) -> int:
    """Return how many bytes of a file are complete lines; a last one that only lacks its end is.

    Parameters
    ----------
    path : Path
        Of what is to be added to.

    Returns
    -------
    int
        All of them, unless the last line was written by half.

    Raises
    ------
    SourceError
        If its first line is none of ours, or nothing but half a line is there.

    Warns
    -----
    UnfinishedFileWarning
        If the last line was written by half.
    """
    with path.open("rb") as file:
        first = next((line for line in file if line.strip()), b"")
        begin, last = _last_line(file)
        size = file.seek(0, 2)
    keys = _keys(first)
    if first and not (keys and keys & _OURS):
        raise SourceError(
            f"{path} does not begin with a line of predictions, so it cannot be added to; choose a new name"
        )
    if not last.strip() or _keys(last) is not None:
        return size
    warn_unfinished(path, "its last line")
    return begin


def _last_line(file: BinaryIO) -> tuple[int, bytes]:
    """Return what is behind the last end of a line, and where it begins."""
    end = file.seek(0, 2)
    while end > 0:
        begin = max(0, end - LOOKED_BACK)
        file.seek(begin)
        found = file.read(end - begin).rfind(b"\n")
        if found >= 0:
            end = begin + found + 1
            break
        end = begin
    file.seek(end)
    return end, file.read()


def _keys(line: bytes) -> set[str] | None:
    """Return the keys of a JSON object; None where a line is none."""
    try:
        return set(as_object(loads(line)))
    except (ValueError, RecursionError, PredSessionError):
        return None


def ends_a_line(path: Path) -> bool:
    """Return whether a file ends with the end of a line, or is empty.

    Parameters
    ----------
    path : Path
        Which.

    Returns
    -------
    bool
        Whether a line can follow.

    Raises
    ------
    DiskError
        If it cannot be read any longer; names the file.
    """
    with on_disk(path), path.open("rb") as file:
        return file.seek(0, 2) == 0 or (file.seek(-1, 2) >= 0 and file.read() == b"\n")


def warn_unfinished(path: str | PathLike[str], which: str) -> None:
    """Tell that a line was written by half, and is left out.

    Parameters
    ----------
    path : str or PathLike
        The file.
    which : str
        The line, in words.
    """
    warnings.warn(
        f"{path}: {which} was written by half, and is left out", UnfinishedFileWarning, stacklevel=3
    )
