"""The list of a VOC folder's pictures, which names all that have an annotation there.

Invariant: a name that stands in the list stays while its annotation may be there; none stands there twice.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePath

from predsession.export.growing import GrowingFile
from predsession.export.target import Existing, Target

ANNOTATIONS = "Annotations"
LIST = PurePath("ImageSets", "Main", "trainval.txt")


class PictureList:
    """Adds names to the list.

    Parameters
    ----------
    target : Target
        The folder. What is replaced there is what has the same name: the others stay in the list.

    Raises
    ------
    OSError
        If the list that is there cannot be read.
    """

    def __init__(self, target: Target) -> None:
        place = target.path / LIST
        self._adds = target.existing in (Existing.OVERWRITE, Existing.RESUME) and place.is_file()
        existing = Existing.APPEND if self._adds else target.existing
        self._target = replace(target, path=place, existing=existing)
        self._file: GrowingFile | None = None
        # Numbers instead of texts, or 100,000 names would be kept.
        self._known = {_mark(line) for line in _lines(place)} if self._adds else set()

    def add(self, name: str) -> None:
        """Add a picture, if it is not in the list.

        Parameters
        ----------
        name : str
            Its place below the folder of pictures, without a suffix.

        Raises
        ------
        DiskError
            If it cannot be written.
        """
        line = os.fsencode(name)
        mark = _mark(line)
        if mark not in self._known:
            self._known.add(mark)
            self._opened().write(line + b"\n")

    def _opened(self) -> GrowingFile:
        """Return the file: opened late, so that a run without a picture leaves the folder empty."""
        if self._file is None:
            place = self._target.path
            last = _unfinished(place) if self._adds else b""
            self._file = GrowingFile(self._target, _complete)
            # An editor may have left away the last line end; of a run that was killed there is no such file.
            if last and (place.parents[2] / ANNOTATIONS / f"{os.fsdecode(last)}.xml").is_file():
                self.add(os.fsdecode(last))
        return self._file

    def finish(self) -> None:
        """Complete the list."""
        self._opened().finish()

    def close(self) -> None:
        """Close it."""
        if self._file is not None:
            self._file.close()


def _mark(line: bytes) -> int:
    """Return a number that stands for a name."""
    return int.from_bytes(hashlib.blake2b(line, digest_size=8).digest(), "big")


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the names of a list; some tools end lines as Windows does."""
    with path.open("rb") as file:
        yield from (line.rstrip(b"\r\n") for line in file if line.endswith(b"\n"))


def _complete(path: Path) -> int:
    """Return how many bytes of a list are whole lines."""
    return path.stat().st_size - len(_unfinished(path))


def _unfinished(path: Path) -> bytes:
    """Return a last line without an end."""
    last = b""
    with path.open("rb") as file:
        for line in file:
            last = line
    return b"" if last.endswith(b"\n") else last
