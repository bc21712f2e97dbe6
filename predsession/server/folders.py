"""The folder of a server: for itself alone, and gone at its end where nothing is to be kept."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from predsession.errors import PredSessionError

_PREFIX = "predsession-serve-"
USAGE, SERVER = 2, 3


class CommandError(PredSessionError):
    """The server cannot be started; the message says what to do.

    Parameters
    ----------
    message : str
        One line.
    code : int
        The exit code.
    """

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@contextlib.contextmanager
def server_folder(data: Path | None, *, ephemeral: bool, port: int) -> Iterator[Path]:
    """Give a server its folder.

    Parameters
    ----------
    data : Path or None
        What the user chose.
    ephemeral : bool
        Whether it is to be gone at the end.
    port : int
        Names the folder where the user chose none, so that a restart finds it again.

    Yields
    ------
    Path
        Locked for this process.

    Raises
    ------
    CommandError
        If it cannot be used, or is used by another server.
    """
    if ephemeral:
        with passing_folder() as folder:
            yield folder
        return
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    folder = data or state / "predsession" / f"port-{port}"
    remedy = "choose another with --data"
    if data is None:  # named by the port: the other server is at it, mostly
        remedy = f"is it at port {port}? Choose another port with --port, or another folder with --data"
    with _locked(folder, remedy):
        yield folder


@contextlib.contextmanager
def passing_folder() -> Iterator[Path]:
    """Give a server a folder that is gone at its end, and remove those of servers that were killed.

    Yields
    ------
    Path
        Locked for this process.
    """
    with contextlib.ExitStack() as stack:
        # Between the making of a folder and its lock another server would take it for one that was left.
        with _alone():
            _sweep()
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.enter_context(_locked(folder))
        yield folder


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other server makes or sweeps folders; the folder of all of them is the lock."""
    descriptor = os.open(tempfile.gettempdir(), os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _locked(folder: Path, remedy: str = "choose another with --data") -> Iterator[None]:
    """Hold a folder's lock; it goes with the process, however that ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (folder / "lock").open("w")
    except OSError as error:
        text = f"cannot use {folder}: {error.strerror}; choose another with --data"
        raise CommandError(text, USAGE) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            text = f"{folder} is used by another server; {remedy}"
            raise CommandError(text, SERVER) from error
        yield


def _sweep() -> None:
    """Remove the folders of ephemeral servers that were killed: those whose lock nobody holds."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), (folder / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
