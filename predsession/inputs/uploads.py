"""Items to uploads: parts whose bodies stream from the first byte, as often as they are asked to.

Invariant: at most one file of an upload is open at any moment; a file is opened when its first byte is
wanted and closed with its last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

from predsession.errors import PredSessionError


class PartChangedError(PredSessionError):
    """A file became shorter while it was being sent; internal, the upload is made again without it."""

    def __init__(self, filename: str) -> None:
        super().__init__(f"{filename} became shorter, or vanished, while it was being sent")
        self.filename = filename


@dataclass(frozen=True, slots=True)
class Part:
    """One file of an upload.

    Parameters
    ----------
    filename : str
        The name on the wire: ASCII, unique, no slash.
    content_type : str
        MIME type.
    nbytes : int
        Exact length of the body.
    open : callable
        Returns a new binary stream from the first byte.
    """

    filename: str
    content_type: str
    nbytes: int
    open: Callable[[], BinaryIO] = field(repr=False)


class PartReader:
    """A part's body for a multipart encoder: ``len`` bytes are left, ``read`` gives them.

    Parameters
    ----------
    part : Part
        What to read.
    on_bytes : callable, optional
        Called with the number of bytes of each read. What it raises ends the upload.
    """

    def __init__(self, part: Part, on_bytes: Callable[[int], None] | None = None) -> None:
        self._part = part
        self._left = part.nbytes
        self._on_bytes = on_bytes
        self._stream: BinaryIO | None = None

    @property
    def len(self) -> int:
        """Bytes not yet read."""
        return self._left

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes.

        Parameters
        ----------
        size : int
            At most so many bytes; all that are left for -1.

        Returns
        -------
        bytes
            Empty only at the end.

        Raises
        ------
        PartChangedError
            If the stream ends before its announced length: the encoder would wait for the rest for ever.
        """
        wanted = self._left if size < 0 else min(size, self._left)
        if wanted == 0:
            return b""
        try:
            if self._stream is None:
                self._stream = self._part.open()
            data = self._stream.read(wanted)
        except OSError:
            data = b""
        if not data:
            self.close()
            raise PartChangedError(self._part.filename)
        self._left -= len(data)
        if self._left == 0:
            self.close()
        if self._on_bytes is not None:
            self._on_bytes(len(data))
        return data

    def close(self) -> None:
        """Close the stream, if it is open."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
