"""A file that grows block by block, each complete before the next begins, whatever was there before.

Invariant: what is good is never taken away for a moment. A file that may be overwritten is replaced when the
first block comes, not before. One that is resumed is gone over: blocks that are the same stay, the first that
differs, such as one that was written by half, goes, and all after it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from predsession.export.held import HeldFile
from predsession.export.target import Existing, Target, on_disk, told_at_once


class GrowingFile:
    """A file that is written, added to, or gone on with.

    Parameters
    ----------
    target : Target
        The file; its folder is made. A pipe or a device is only ever added to.
    complete : callable
        How many bytes of a file that is added to are complete; what comes behind goes. It raises
        `SourceError` where the file is none that can be added to: then it stays as it is.

    Raises
    ------
    SourceError
        If it is there and may not be touched, or cannot be written to.
    """

    def __init__(self, target: Target, complete: Callable[[Path], int]) -> None:
        self.path = target.path
        # Opened now, so that a place that cannot be written to is told before anything is computed.
        self._held = HeldFile(target)
        self._file = self._held.file
        self._there: BinaryIO | None = None
        self._good = 0
        try:
            with told_at_once(self.path):
                kept = target.existing if self.path.is_file() else Existing.REFUSE
                if kept is Existing.RESUME:
                    self._there = self.path.open("rb")
                if kept is Existing.APPEND:
                    self._file.truncate(complete(self.path))
                self._fresh = kept is not Existing.APPEND
                self.is_added_to = kept is Existing.APPEND and self.path.stat().st_size > 0
                """Whether there is something that stays as it is."""
        except BaseException:
            self.close()
            raise

    def write(self, block: bytes) -> None:
        """Write a block, and hand it to the operating system.

        Parameters
        ----------
        block : bytes
            Not empty.

        Raises
        ------
        DiskError
            If it cannot be written; names the file.
        """
        with on_disk(self.path):
            if not self._has(block):
                self._file.write(block)
                self._file.flush()

    def _has(self, block: bytes) -> bool:
        """Whether the file has this block where it belongs; if not, what is there is cut off."""
        if self._there is not None and self._there.read(len(block)) == block:
            self._good += len(block)
            self._fresh = False
            return True
        self._cut()
        return False

    def _cut(self) -> None:
        """Cut off what an earlier run left behind the good blocks; a pipe or a device has nothing there."""
        if self._fresh or self._there is not None:
            if self.path.is_file():
                self._file.truncate(self._good)
            self._fresh = False
            self._forget()

    def _forget(self) -> None:
        """Look at what was there no longer."""
        if self._there is not None:
            self._there.close()
            self._there = None

    def finish(self) -> None:
        """Cut off what is left of an earlier file, which a run with fewer outcomes does not reach.

        Raises
        ------
        DiskError
            If it cannot be written, or is there no longer; names the file.
        """
        with on_disk(self.path):
            self._cut()
        self._held.keep()

    def close(self) -> None:
        """Close the file."""
        self._forget()
        self._held.close()
