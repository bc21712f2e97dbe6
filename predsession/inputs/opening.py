"""Encoded images, opened: to look at a few places of one, or to send it from the first byte."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from predsession.inputs.formats import BadImage, BytesOctets, Octets
from predsession.inputs.items import BytesContent, FileContent


@dataclass(frozen=True, slots=True)
class FileStream:
    """Opens one file, as long as it has the length that was announced.

    Parameters
    ----------
    path : str
        The file.
    nbytes : int
        Its length when it was looked at.
    """

    path: str
    nbytes: int

    def __call__(self) -> BinaryIO:
        """Return a stream at the file's first byte."""
        stream = open(self.path, "rb")  # noqa: SIM115 - the caller closes it
        # Another length would break the upload that announces this one, and all items in it.
        if os.fstat(stream.fileno()).st_size != self.nbytes:
            stream.close()
            raise OSError(f"the file changed while it was being sent: {self.path!r}")
        return stream


@dataclass(frozen=True, slots=True)
class _FileOctets:
    """An open file, looked at without moving its position."""

    descriptor: int
    size: int

    def at(self, offset: int, count: int) -> bytes:
        """Return up to `count` bytes from `offset`."""
        return os.pread(self.descriptor, count, offset) if offset < self.size and count > 0 else b""


@contextmanager
def octets_of(content: FileContent | BytesContent) -> Iterator[Octets]:
    """Open what is to be looked at, and close it.

    Parameters
    ----------
    content : FileContent or BytesContent
        An encoded image.

    Yields
    ------
    Octets
        Its bytes, for the readers of `formats`.

    Raises
    ------
    BadImage
        The path leads to something that is no regular file. OSError where it cannot be opened.
    """
    if isinstance(content, BytesContent):
        yield BytesOctets(content.data)
        return
    # Without O_NONBLOCK a named pipe that took the place of the file would hang here.
    descriptor = os.open(content.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BadImage("not a regular file")
        yield _FileOctets(descriptor, status.st_size)
    finally:
        os.close(descriptor)
