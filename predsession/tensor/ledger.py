"""What sessions of this machine left on servers without a lease: the next session clears up after the dead.

Each session has a file, locked for as long as its process lives; the kernel lets go of the lock however that
ends. A file that is not locked is a dead session's: what it names is removed from the server, then the file.
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
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import IO

from predsession.errors import InvalidRequestError, NotFoundError, PredSessionError
from predsession.tensor.door import Door
from predsession.wire.jsontypes import JSONObject, as_list, as_object

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
        self.token = secrets.token_hex(6)
        """Part of every name that the session gives to things on the server."""
        self._server = server
        self._models: list[str] = []
        self._regions: list[str] = []
        self._file: IO[str] | None = None
        self._path: Path | None = None
        self._owner = os.getpid()
        self._numbers = itertools.count(1)

    def name_for(self, model: str) -> str:
        """Return a name for a model on the server: nobody else's, in characters that servers take."""
        plain = re.sub(r"[^A-Za-z0-9._-]", "_", model)[:80]
        return f"{plain if plain[:1].isalnum() else 'm' + plain}-{self.token}-{next(self._numbers)}"

    def add_model(self, name: str) -> None:
        """Take down a model that is about to be loaded."""
        self._models.append(name)
        self._write()

    def remove_model(self, name: str) -> None:
        """Cross out a model that is gone."""
        if name in self._models:
            self._models.remove(name)
            self._write()

    def add_region(self, name: str) -> None:
        """Take down a region that is about to be made."""
        self._regions.append(name)
        self._write()

    def remove_region(self, name: str) -> None:
        """Cross out a region that is gone."""
        if name in self._regions:
            self._regions.remove(name)
            self._write()

    def close(self) -> None:
        """Remove the file, if nothing is left; else leave it to the next session."""
        if self._file is None or self._path is None or os.getpid() != self._owner:
            return
        if not self._models and not self._regions:
            self._path.unlink(missing_ok=True)
        self._file.close()
        self._file = None

    def _write(self) -> None:
        """Write the file; where that cannot be done, a session works all the same."""
        if os.getpid() != self._owner:
            return
        with contextlib.suppress(OSError):
            if self._file is None:
                home = folder()
                home.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._path = home / f"{self.token}.json"
                self._file = self._path.open("w", encoding="utf-8")
                fcntl.flock(self._file, fcntl.LOCK_EX)
            content = {"server": self._server, "models": self._models, "regions": self._regions}
            self._file.seek(0)
            self._file.truncate()
            self._file.write(json.dumps(content))
            self._file.flush()


def clear_up(door: Door, seconds: float) -> list[str]:
    """Remove what dead sessions of this machine left on a server.

    Parameters
    ----------
    door : Door
        The server.
    seconds : float
        How long one removal may take.

    Returns
    -------
    list of str
        The names of models and regions that are gone.
    """
    gone: list[str] = []
    for path in sorted(folder().glob("*.json")):
        with _dead(path) as content:
            if content.get("server") == door.shown:
                gone += _remove_all(path, content, door, seconds)
    return gone


@contextlib.contextmanager
def _dead(path: Path) -> Iterator[JSONObject]:
    """Read a dead session's file, locked; what a living one has is empty."""
    try:
        file = path.open(encoding="utf-8")
    except OSError:  # its own session, or another that clears up, was quicker
        yield {}
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield as_object(json.load(file))
        except (OSError, ValueError):
            yield {}


def _remove_all(path: Path, content: JSONObject, door: Door, seconds: float) -> list[str]:
    """Remove what one dead session left; what cannot be removed now is left to the next session."""
    models = [str(name) for name in as_list(content.get("models"))]
    regions = [str(name) for name in as_list(content.get("regions"))]
    try:
        for name in regions:
            with _unless_gone():
                door.unregister(name)
            with contextlib.suppress(FileNotFoundError):
                memory = SharedMemory(name)
                memory.close()
                memory.unlink()
        for name in models:
            with _unless_gone():
                door.unload(name, seconds)
    except (PredSessionError, OSError):
        return []
    path.unlink(missing_ok=True)
    return [*models, *regions]


@contextlib.contextmanager
def _unless_gone() -> Iterator[None]:
    """Pass over what the server does not know any more."""
    with contextlib.suppress(NotFoundError, InvalidRequestError):
        yield
