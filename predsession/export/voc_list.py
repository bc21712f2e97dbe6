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
    SourceError
        If the list cannot be written to.
    """

    def __init__(self, target: Target) -> None:
        place = target.path / LIST
        adds = target.existing in (Existing.OVERWRITE, Existing.RESUME) and place.is_file()
        # Numbers instead of texts, or 100,000 names would be kept.
        self._known = {_mark(line) for line in _lines(place)} if adds else set()
        last = _unfinished(place) if adds else b""
        existing = Existing.APPEND if adds else target.existing
        self._file = GrowingFile(replace(target, path=place, existing=existing), _complete)
        # An editor may have left away the last line end; of a run that was killed there is no such file.
        if last and (target.path / ANNOTATIONS / f"{os.fsdecode(last)}.xml").is_file():
            self.add(os.fsdecode(last))

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
            self._file.write(line + b"\n")

    def finish(self) -> None:
        """Complete the list."""
        self._file.finish()

    def close(self) -> None:
        """Close it."""
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
