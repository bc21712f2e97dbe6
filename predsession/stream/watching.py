"""A folder's images, and those that come later."""

from __future__ import annotations

import fnmatch
import logging
import os
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from predsession.clock import Clock, SystemClock
from predsession.errors import SourceError
from predsession.inputs.folders import images_of, in_order
from predsession.inputs.formats import BadImage, read_header
from predsession.inputs.items import FileContent, printable
from predsession.inputs.opening import octets_of
from predsession.stream.samples import DeadLetter, Sample
from predsession.stream.schema import ID
from predsession.stream.source import Taken

log = logging.getLogger("predsession.stream")
_SHARE = 5
"""A listing that takes long is made less often: this many times its own time apart, at least."""


@dataclass(frozen=True, slots=True)
class _State:
    """How large a file was, when it was changed, and since when it has been so."""

    size: int
    changed: int
    since: float


class FolderSource:
    """Images of a folder, in natural order, and those that come later, as they come.

    The folder is listed every `poll` seconds. Which files are images is told by their names, as elsewhere in
    the package; dotfiles are left out, so a file may be written under one and renamed. A file is taken once,
    when it has stood still for `settle` seconds. One whose header or end is damaged is a dead letter, and is
    taken again if it changes. A file that is gone before its turn is passed over. A name that is not UTF-8
    is a dead letter: no text in a store can be it.

    A sample has ``object_id``, the path in the folder with ``/`` between its parts, and ``image`` and
    ``path``, the absolute path; its position is ``folder:`` and the object id.

    Parameters
    ----------
    path : str or PathLike
        The folder.
    pattern : str or None
        Only names that match: ``"cam1-*.jpg"``; with a slash in it, paths in the folder.
    recursive : bool
        Whether its folders are looked into.
    follow : bool
        Whether to wait for images to come; else it ends after those that are there.
    poll : float
        Seconds between two looks.
    settle : float
        Seconds for which a file must stand still.
    clock : Clock or None
        What time it is.

    Raises
    ------
    SourceError
        If there is no such folder, or a time is none.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        pattern: str | None = None,
        recursive: bool = True,
        follow: bool = True,
        poll: float = 1.0,
        settle: float = 0.5,
        clock: Clock | None = None,
    ) -> None:
        self._folder = Path(path).absolute()
        if not self._folder.is_dir():
            raise SourceError(f"{printable(str(self._folder))!r} is no folder")
        if not poll > 0 or not settle >= 0:
            raise SourceError(f"poll is {poll!r} and settle {settle!r}; wanted seconds")
        self._pattern = pattern
        self._recursive = recursive
        self._follow = follow
        self._poll = poll
        self._settle = settle
        self._clock = clock or SystemClock()
        self._closing = threading.Event()
        self._seen: set[str] = set()
        self._damaged: dict[str, tuple[int, int]] = {}
        self._pending: dict[str, _State] = {}
        self._ready: deque[str] = deque()
        self._due = self._clock.now()
        self._listed = False

    def take(self, most: int, seconds: float) -> list[Taken] | None:
        """Return what is there, waiting so long for the first; None once nothing more will come."""
        ends = self._clock.now() + seconds
        while not self._closing.is_set():
            self._look()
            if found := self._pop(most):
                return found
            if self._listed and not (self._follow or self._pending or self._ready):
                return None
            left = ends - self._clock.now()
            if left <= 0:
                return []
            pause = min(self._settle, self._due - self._clock.now()) if self._pending else self._poll
            self._clock.wait(self._closing, min(left, max(pause, 0.01)))
        return None

    def _look(self) -> None:
        """List the folder, if it is time, and see which files stand still."""
        now = self._clock.now()
        if now >= self._due:
            self._list(now)
            self._due = self._clock.now() + max(self._poll, _SHARE * (self._clock.now() - now))
        settled = [name for name, state in list(self._pending.items()) if self._is_settled(name, state)]
        for name in in_order(settled):
            self._pending.pop(name)
            self._ready.append(name)

    def _list(self, now: float) -> None:
        """Take down names that are new, and forget those that are gone."""
        try:
            names = {n for n in images_of(str(self._folder), recursive=self._recursive) if self._fits(n)}
        except SourceError as error:
            # A folder that goes while it is looked at, a share that is gone for a while: it may come again.
            if not self._follow:
                raise
            log.warning("%s; looking again", error)
            return
        self._listed = True
        self._seen &= names
        self._pending = {name: state for name, state in self._pending.items() if name in names}
        self._damaged = {name: state for name, state in self._damaged.items() if name in names}
        for name, before in list(self._damaged.items()):
            state = self._state(name, now)
            if state is not None and (state.size, state.changed) != before:
                del self._damaged[name]
                self._seen.discard(name)
        for name in names - self._seen:
            state = self._state(name, now)
            if state is not None:
                self._seen.add(name)
                self._pending[name] = state

    def _fits(self, name: str) -> bool:
        """Whether a name is wanted."""
        if self._pattern is None:
            return True
        return fnmatch.fnmatchcase(name if "/" in self._pattern else name.rpartition("/")[2], self._pattern)

    def _state(self, name: str, now: float) -> _State | None:
        """Look at a file; None where it is gone. A link that leads nowhere has no size."""
        try:
            status = (self._folder / name).stat()
        except FileNotFoundError:
            return _State(0, 0, now) if (self._folder / name).is_symlink() else None
        except OSError:
            return _State(0, 0, now)  # reading it says what is the matter
        return _State(status.st_size, status.st_mtime_ns, now)

    def _is_settled(self, name: str, before: _State) -> bool:
        """Whether a file has stood still for long enough; if it has changed, the time begins anew."""
        now = self._clock.now()
        if now - before.since < self._settle:
            return False
        state = self._state(name, now)
        if state is None:
            del self._pending[name]
            self._seen.discard(name)
            return False
        if (state.size, state.changed) != (before.size, before.changed):
            self._pending[name] = state
            return self._settle == 0
        return True

    def _pop(self, most: int) -> list[Taken]:
        """Return what is ready."""
        found: list[Taken] = []
        while self._ready and len(found) < most:
            name = self._ready.popleft()
            made = self._made(name)
            if made is not None:
                found.append(made)
        return found

    def _made(self, name: str) -> Taken | None:
        """Return the sample of a file, or what is wrong with it; None where it is gone."""
        path = self._folder / name
        state = self._state(name, 0.0)
        if state is None:
            self._seen.discard(name)
            return None
        reason = _fault(path)
        if reason is None:
            return Sample({ID: name, "image": str(path), "path": str(path)}, f"folder:{name}")
        self._damaged[name] = state.size, state.changed
        shown = os.fsencode(name).decode(errors="backslashreplace")
        return DeadLetter(f"folder:{shown}", reason, os.fsencode(path), shown)

    def done(self, positions: Sequence[str]) -> None:
        """Do nothing: the files stay where they are."""

    def dead(self, letters: Sequence[DeadLetter]) -> None:
        """Do nothing: the table of dead letters is enough."""

    def behind(self) -> int:
        """Return how many images were seen and not yet taken."""
        return len(self._ready) + len(self._pending)

    def close(self) -> None:
        """Look no more; whoever waits for an image waits no longer."""
        self._closing.set()


def _fault(path: Path) -> str | None:
    """Say what is wrong with an image, as far as its header and its end tell."""
    try:
        str(path).encode()
        with octets_of(FileContent(str(path))) as octets:
            read_header(octets)
    except UnicodeEncodeError:
        return "the file's name is not UTF-8: rename it"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except BadImage as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - damaged headers make readers raise anything
        return f"cannot be read: {type(error).__name__}: {error}"
    return None
