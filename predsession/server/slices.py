"""Parts of a file: the pictures of an upload lie in one file, one after the other.

One file instead of one for each picture, because to make a file can cost more than to decode a small picture.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_IN_MEMORY = 1 << 22


class Slice(NamedTuple):
    """Bytes of a file, from an offset on."""

    path: str
    offset: int
    size: int

    def open(self) -> BinaryIO:
        """Open it like a file of its own; small ones are read at once."""
        file = Path(self.path).open("rb")  # noqa: SIM115 - handed on, or closed below
        if self.size > _IN_MEMORY:
            return io.BufferedReader(_Window(file, self.offset, self.size))
        with file:
            return io.BytesIO(os.pread(file.fileno(), self.size, self.offset))


def slices(path: Path, sizes: Sequence[int]) -> list[Slice]:
    """Return the parts of a file that lie one after the other.

    Parameters
    ----------
    path : Path
        The file.
    sizes : sequence of int
        Bytes of each part.

    Returns
    -------
    list of Slice
        In order.
    """
    parts: list[Slice] = []
    offset = 0
    for size in sizes:
        parts.append(Slice(str(path), offset, size))
        offset += size
    return parts


class _Window(io.RawIOBase):
    """A part of an open file, as a file; closes it with itself."""

    def __init__(self, file: BinaryIO, offset: int, size: int) -> None:
        super().__init__()
        self._file = file
        self._offset = offset
        self._size = size
        self._place = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move, within the window or beyond its end; never before its beginning."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError("before the beginning")
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        """Return the place in the window."""
        return self._place

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read into a buffer, up to the window's end."""
        room = memoryview(buffer)
        count = min(len(room), max(0, self._size - self._place))
        data = os.pread(self._file.fileno(), count, self._offset + self._place)
        room[: len(data)] = data
        self._place += len(data)
        return len(data)

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()
