"""Places that are ours alone while they are written: two runs never write into one file or folder.

A lock of the system's own is on the file or folder itself, so that nothing is left beside it, and a run that
was killed holds nothing. A file system without locks is written without.

A fork inherits the open files, and with them the lock. What is held stays its parent's: the child takes
nothing away, `predsession.export.saving` refuses what it would write, and the parent gives the lock back
itself, however long the child lives.
"""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

from predsession.errors import DiskError, SourceError
from predsession.export.inuse import InUse, key_of, keys_around
from predsession.export.target import Target, on_disk, prepare_file, prepare_folder, told_at_once

_written = InUse()
"""What this process writes, and the folders that it lies in; reading the same would find it cut off."""
os.register_at_fork(after_in_child=_written.clear)


def is_held(path: Path) -> bool:
    """Return whether this process is writing a file or folder, or something in that folder.

    Parameters
    ----------
    path : Path
        Which.

    Returns
    -------
    bool
        False also where there is none.
    """
    key = key_of(path)
    return key is not None and _written.has((key,))


class _Hold:
    """The lock on an open file or folder."""

    def __init__(self, number: int, path: Path) -> None:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SourceError(
                f"{path} is being written by another run; wait for it, or choose another place"
            ) from None
        except OSError:
            pass  # a file system without locks
        self._number, self._path, self._owner = number, path, os.getpid()
        self._user = _written.add(keys_around(path))

    @property
    def is_ours(self) -> bool:
        """Whether it was taken by this process, and not by the one that it was forked from."""
        return self._owner == os.getpid()

    @property
    def is_there(self) -> bool:
        """Whether the name is still that of what is held."""
        try:
            return os.path.samestat(os.fstat(self._number), self._path.stat())
        except OSError:
            return False

    def check_end(self) -> None:
        """Say so where it was taken away: what was written is nowhere."""
        if not self.is_there:
            raise DiskError(f"{self._path} was removed, or replaced, while it was written; write it again")

    def let_go(self) -> None:
        """Give the lock back: closing the file does not, while a fork has it open, too."""
        if self.is_ours:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(self._number, fcntl.LOCK_UN)
            _written.remove(self._user)


class HeldFile:
    """A file that is open to be added to, and nobody else's as long.

    Parameters
    ----------
    target : Target
        The file; its folder is made. A pipe or a device is opened, and not held.

    Raises
    ------
    SourceError
        If it is there and may not be touched, another run writes it, or it cannot be written to.
    """

    def __init__(self, target: Target) -> None:
        prepare_file(target)
        self.path = target.path
        self._keeps = os.path.lexists(self.path)
        with told_at_once(self.path):
            self.file = self.path.open("ab")
        self._hold: _Hold | None = None
        self._owner = os.getpid()
        try:
            self._take(target)
        except BaseException:
            self.file.close()
            raise

    def _take(self, target: Target) -> None:
        """Hold the file, and look again: another run may have ended in between, and left or taken it."""
        number = self.file.fileno()
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return
        hold = _Hold(number, self.path)
        try:
            prepare_file(target)
            if not hold.is_there:
                raise SourceError(f"{self.path} was just written by another run; look at it, and try again")
        except BaseException:
            hold.let_go()
            raise
        self._hold = hold

    @property
    def is_ours(self) -> bool:
        """Whether this process opened it, and not the one that it was forked from."""
        return self._owner == os.getpid()

    def empty(self) -> None:
        """Take away what is there, and nobody needs: the file stays only if something is written now."""
        with told_at_once(self.path):
            self.file.truncate(0)
        self._keeps = False

    def keep(self) -> None:
        """Let the file stay even if nothing was written: it is complete as it is.

        Raises
        ------
        DiskError
            If it is there no longer.
        """
        if self._hold is not None:
            self._hold.check_end()
        self._keeps = True

    def close(self) -> None:
        """Close it; one that was made for a run that got nowhere goes. It may be done twice."""
        if self.file.closed:
            return
        if not self.is_ours:
            self.file.raw.close()  # what the parent has not written yet, it writes itself
            return
        with on_disk(self.path):
            try:
                self.file.flush()
                if self._hold is not None and not self._keeps and self._hold.is_there:
                    self._remove_empty()
            finally:
                if self._hold is not None:
                    self._hold.let_go()
                    self._hold = None
                with suppress(OSError):  # told already; closed it is all the same
                    self.file.close()

    def _remove_empty(self) -> None:
        """Take the file away, unless something was written."""
        if not os.fstat(self.file.fileno()).st_size:
            self.path.unlink(missing_ok=True)


class HeldFolder:
    """A folder that nobody else writes to as long.

    Parameters
    ----------
    target : Target
        The folder; it is made.

    Raises
    ------
    SourceError
        If it holds something that may not be touched, another run writes it, or it cannot be written to.
    """

    def __init__(self, target: Target) -> None:
        with told_at_once(target.path):
            is_new = not target.path.exists()
        prepare_folder(target)
        self._path = target.path
        self._is_new = is_new
        with told_at_once(self._path):
            self._number = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._hold = _Hold(self._number, self._path)
        except BaseException:
            os.close(self._number)
            raise
        try:
            prepare_folder(target)
        except BaseException:
            self.close()
            raise

    def keep(self) -> None:
        """Let the folder stay even if nothing was written: it is complete as it is.

        Raises
        ------
        DiskError
            If it is there no longer.
        """
        self._hold.check_end()
        self._is_new = False

    def close(self) -> None:
        """Let go of it; one that was made for a run that got nowhere goes. It may be done twice."""
        if self._number < 0:
            return
        if self._is_new and self._hold.is_ours and self._hold.is_there:
            with suppress(OSError):  # it is not empty, as it should be
                self._path.rmdir()
        self._hold.let_go()
        os.close(self._number)
        self._number = -1
