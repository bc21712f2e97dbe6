"""What sessions of this machine left on servers without a lease: the next session clears up after the dead.

Each session has a file, locked for as long as its process lives; the kernel lets go of the lock however that
ends. A file that is not locked is a dead session's: what it names is removed from the server, then the file.
A server has several addresses: one that knows a name which only that session can have given is the one.
No secret is in it: the address as it may be shown, names of models and regions.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import re
import secrets
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

from predsession.errors import (
    InvalidRequestError,
    NotFoundError,
    PredSessionError,
    SessionClosedError,
)
from predsession.tensor.door import Door
from predsession.wire.jsontypes import as_list, as_object

FOLDER_VARIABLE = "PREDSESSION_LEDGER"
"""Where the files are, if not in the user's own folder for such things."""


def folder() -> Path:
    """Return where the files are.

    Returns
    -------
    Path
        ``$PREDSESSION_LEDGER``, else ``$XDG_STATE_HOME/predsession/tensor``, else the same below
        ``~/.local/state``; a folder of this user in the temporary one, where there is no home.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME")
    with contextlib.suppress(RuntimeError):
        return (Path(state) if state else Path.home() / ".local" / "state") / "predsession" / "tensor"
    return Path(tempfile.gettempdir()) / f"predsession-{os.getuid()}" / "tensor"


class Record:
    """What one session has on a server.

    Parameters
    ----------
    server : str
        The address, as it may be shown.
    """

    def __init__(self, server: str) -> None:
        self.token: str = secrets.token_hex(6)
        """Part of every name that the session gives to things on the server."""
        self._server = server
        self._models: list[str] = []
        self._regions: list[str] = []
        self._file: FileIO | None = None
        self._path: Path | None = None
        self._owner = os.getpid()
        self._numbers = itertools.count(1)
        # The sessions of a handle share it, and one that is forgotten may end in the midst of another's line.
        self._lock = threading.RLock()
        self._closed = self._writing = self._changed = False
        self._length = 0

    def name_for(self, model: str) -> str:
        """Return a name for a model on the server: nobody else's, in characters that servers take."""
        plain = re.sub(r"[^A-Za-z0-9._-]", "_", model)[:80]
        return f"{plain if plain[:1].isalnum() else 'm' + plain}-{self.token}-{next(self._numbers)}"

    def add_model(self, name: str) -> None:
        """Take down a model that is about to be loaded; raises `SessionClosedError` after the end."""
        self._add(self._models, name)

    def remove_model(self, name: str) -> None:
        """Cross out a model that is gone."""
        self._remove(self._models, name)

    def add_region(self, name: str) -> None:
        """Take down a region that is about to be made; raises `SessionClosedError` after the end."""
        self._add(self._regions, name)

    def remove_region(self, name: str) -> None:
        """Cross out a region that is gone."""
        self._remove(self._regions, name)

    def close(self) -> None:
        """Remove the file, if nothing is left; else leave it to the next session."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closed = True
            self._unlink_if_empty()
            if self._file is not None:
                self._file.close()

    def _add(self, names: list[str], name: str) -> None:
        """Take something down."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            if self._closed:
                raise SessionClosedError("the session was closed while a call was under way")
            names.append(name)
            self._write()

    def _remove(self, names: list[str], name: str) -> None:
        """Cross something out, after the end too."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            if name not in names:
                return
            names.remove(name)
            if self._closed:
                self._unlink_if_empty()
            else:
                self._write()

    def _unlink_if_empty(self) -> None:
        """Remove the file of a session that has ended, once it names nothing."""
        if self._path is not None and not self._models and not self._regions:
            self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        """Write the file; where that cannot be done, a session works all the same."""
        self._changed = True
        if self._writing:  # by this very thread, in whose midst a forgotten session ends
            return
        self._writing = True
        try:
            while self._changed:
                self._changed = False
                with contextlib.suppress(OSError):
                    self._write_once()
        finally:
            self._writing = False

    def _write_once(self) -> None:
        """Write the file, in one piece: who is killed meanwhile leaves no half of it."""
        if self._file is None:
            home = folder()
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path = home / f"{self.token}.json"
            self._file = self._path.open("wb", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX)
        content = {"server": self._server, "models": self._models, "regions": self._regions}
        text = json.dumps(content).encode().ljust(self._length)
        os.pwrite(self._file.fileno(), text, 0)
        self._length = len(text)


def clear_up(door: Door, seconds: float) -> list[str]:
    """Remove what dead sessions of this machine left on a server, under whatever address they knew it.

    Parameters
    ----------
    door : Door
        The server; it is asked nothing if there is no dead session's file.
    seconds : float
        How long one removal may take.

    Returns
    -------
    list of str
        The names of models and regions that are gone.
    """
    gone: list[str] = []
    models: frozenset[str] | None = None
    for path in sorted(folder().glob("*.json")):
        with _dead(path) as left:
            if left is None:
                continue
            if left.server != door.shown:
                # Another server, or this one by another name.
                models = _models(door) if models is None else models
                if not left.known(door, models, path.stem):
                    continue
            gone += left.remove(path, door, seconds)
    return gone


@dataclass(frozen=True, slots=True)
class _Left:
    """What a dead session left on one server."""

    server: str
    models: tuple[str, ...]
    regions: tuple[str, ...]

    def known(self, door: Door, models: frozenset[str], token: str) -> bool:
        """Whether a server knows some of it; not by names of a repository's models, for others have such."""
        if any(name in models for name in self.models if token in name):
            return True
        with contextlib.suppress(PredSessionError):
            return any(door.knows(name) for name in self.regions)
        return False

    def remove(self, path: Path, door: Door, seconds: float) -> list[str]:
        """Remove all of it, and the file; what cannot be removed now is left to the next session."""
        try:
            for name in self.regions:
                with _unless_gone():
                    door.unregister(name)
                with contextlib.suppress(FileNotFoundError):
                    memory = SharedMemory(name)
                    memory.close()
                    memory.unlink()
            for name in self.models:
                with _unless_gone():
                    door.unload(name, seconds)
        except (PredSessionError, OSError):
            return []
        path.unlink(missing_ok=True)
        return [*self.models, *self.regions]


def _models(door: Door) -> frozenset[str]:
    """Return the models that a server has."""
    try:
        return frozenset(each.name for each in door.index() if each.state != "UNAVAILABLE")
    except PredSessionError:
        return frozenset()


@contextlib.contextmanager
def _dead(path: Path) -> Iterator[_Left | None]:
    """Read a dead session's file, locked; None for that of a living one."""
    try:
        file = path.open(encoding="utf-8")
    except OSError:  # its own session, or another that clears up, was quicker
        yield None
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            content = as_object(json.load(file))
        except (OSError, ValueError):
            content = {}
        names = [tuple(str(name) for name in as_list(content.get(kind))) for kind in ("models", "regions")]
        yield _Left(str(content["server"]), *names) if "server" in content else None


@contextlib.contextmanager
def _unless_gone() -> Iterator[None]:
    """Pass over what the server does not know any more."""
    with contextlib.suppress(NotFoundError, InvalidRequestError):
        yield
