"""Documents that can only be written whole: what comes is kept as JSON lines beside them, until the end.

So memory stays flat, and a run that was killed leaves a file that can be read, converted, or gone on with.

Invariant: whoever writes a document holds its draft from the beginning, and with it the document's name. One
that a killed run has left is emptied by the next, and goes with it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from predsession.errors import ItemError, SourceError
from predsession.export.classes import ClassTable
from predsession.export.held import HeldFile
from predsession.export.jsonl import JsonlWriter, read_lines
from predsession.export.target import Existing, Target, on_disk, prepare_file, told_at_once, try_out
from predsession.export.writing import Closing
from predsession.prediction import Prediction

_NAME_BYTES = 255
"""What file systems take."""


class Compile(Protocol):
    """Writes the whole document."""

    def __call__(self, predictions: Iterator[Prediction], draft: Path) -> None:
        """Write the predictions into a new file, each read once."""


class Spooled(Closing):
    """Keeps outcomes as JSON lines, and makes the document of them at the end.

    Parameters
    ----------
    target : Target
        The document; its folder is made.
    compile : Compile
        What makes it.

    Raises
    ------
    SourceError
        If it, or what an earlier run left, is there and may not be touched, or it cannot be written.
    """

    def __init__(self, target: Target, compile: Compile) -> None:  # noqa: A002 - it is what it does
        super().__init__()
        if target.existing is Existing.APPEND:
            raise SourceError(f"{target.path}: only JSON lines and CSV can be added to; choose another name")
        prepare_file(target)
        if target.path.exists() and not target.path.is_file():
            raise SourceError(f"{target.path} is no file, which this format needs; jsonl and csv do not")
        self.classes = ClassTable()
        self._path, self._existing, self._rescue = target.path, target.existing, target.rescue
        self._real = _real(target.path)
        self._compile = compile
        kept = Existing.OVERWRITE if target.existing is Existing.REFUSE else target.existing
        with ExitStack() as stack:
            self._partial = partial_path(target.path if target.rescue else self._elsewhere(stack))
            self._lines = stack.enter_context(JsonlWriter(replace(target, path=self._partial, existing=kept)))
            self._draft = self._hold_draft(stack)
            self._look_again(target)
            self._open = stack.pop_all()

    def _elsewhere(self, stack: ExitStack) -> Path:
        """Return a place in a folder of our own, which goes with us."""
        with told_at_once("the folder for temporary files"):
            folder = Path(tempfile.mkdtemp(prefix="predsession-"))
        stack.callback(weakref.finalize(self, _take_away, folder, os.getpid()))
        return folder / self._path.name

    def _hold_draft(self, stack: ExitStack) -> Path:
        """Return where the document is written before it has its name: empty, and nobody else's."""
        draft = _beside(self._real, ".", ".draft")
        stack.enter_context(closing(HeldFile(Target(path=draft, existing=Existing.OVERWRITE)))).empty()
        _keep_mode(self._real, draft, at_least=stat.S_IRUSR | stat.S_IWUSR)
        return draft

    def _look_again(self, target: Target) -> None:
        """See what is there now that nobody else writes it: another run may have ended in between."""
        prepare_file(target)
        with told_at_once(self._partial):
            is_left = target.existing is Existing.REFUSE and self._partial.stat().st_size > 0
        if is_left:
            raise SourceError(
                f"{self._partial} is there: a run that was ended left it. It can be read, and converted "
                f"with `predsession convert {self._partial}`; to begin anew, overwrite it "
                "(overwrite=True, --overwrite)"
            )
        _keep_mode(self._real, self._partial, at_least=stat.S_IRUSR | stat.S_IWUSR)

    def write(self, outcome: Prediction | ItemError) -> None:
        """Take one outcome.

        Parameters
        ----------
        outcome : Prediction or ItemError
            The errors of items are kept, too, until the end.
        """
        if isinstance(outcome, ItemError):
            self.left_out["item errors"] += 1
        else:
            self.classes.learn(outcome)
        self._lines.write(outcome)

    def finish(self) -> None:
        """Write the document, put it in its place in one step, and take away what was kept beside it."""
        self._lines.finish()
        self.left_out += self._lines.left_out
        try:
            with on_disk(self._path):
                self._compile(self._predictions(), self._draft)
                _keep_mode(self._real, self._draft)
                self._put(self._draft)
        finally:
            with suppress(OSError):
                self._draft.unlink()
        self._partial.unlink()
        self.close()

    def _put(self, draft: Path) -> None:
        """Give the document its name; another run may have written one that may not be touched."""
        if self._existing is Existing.REFUSE:
            try:
                os.link(draft, self._real)
            except FileExistsError:
                if not self._real.is_file() or self._real.stat().st_size:
                    raise SourceError(self._taken()) from None
            except OSError:  # a file system without second names
                if self._real.exists() and self._real.stat().st_size:
                    raise SourceError(self._taken()) from None
            else:
                return
        draft.replace(self._real)

    def _taken(self) -> str:
        """Say that somebody else's document is there now, and where ours is."""
        said = f"{self._path} was written by another run meanwhile"
        if self._rescue:
            return f"{said}; what this one found is in {self._partial}, which can be read and converted"
        return f"{said}; overwrite it (overwrite=True, --overwrite), or choose another name"

    def _predictions(self) -> Iterator[Prediction]:
        """Read what was kept."""
        return (each for each in read_lines(self._partial) if isinstance(each, Prediction))

    def close(self) -> None:
        """Close the file beside the document; without `finish` it stays, if it has anything to be read."""
        self._open.close()


def partial_path(path: Path) -> Path:
    """Return where a document's outcomes are kept until it can be written.

    Parameters
    ----------
    path : Path
        Of the document.

    Returns
    -------
    Path
        ``ann.json`` has ``ann.json.partial.jsonl``; a name that leaves no room for that is shortened.
    """
    return _beside(path, "", ".partial.jsonl")


def _beside(path: Path, before: str, behind: str) -> Path:
    """Return a file beside another, of its name and something more: no longer than a name may be."""
    # Of a name that no file can have, too, since it is the file system that says so.
    name, room = path.name.encode(errors="replace"), _NAME_BYTES - len(before) - len(behind)
    if len(name) > room:
        digest = hashlib.blake2b(path.name.encode(errors="surrogatepass"), digest_size=4).hexdigest()
        short = f"{name[: room - 9].decode(errors='ignore')}_{digest}"
    else:
        short = path.name
    return path.parent / f"{before}{short}{behind}"


def _real(path: Path) -> Path:
    """Return the file that a name stands for, which a link may say; it must be possible to write it."""
    with told_at_once(path):
        try:
            return Path(os.path.realpath(path, strict=True))
        except FileNotFoundError:
            real = Path(os.path.realpath(path))
        if path.is_symlink():
            try_out(real.parent)
    return real


def _keep_mode(like: Path, path: Path, *, at_least: int = 0) -> None:
    """Let a file be read and written by those who may do it to the one that it replaces, if there is one."""
    with suppress(OSError):  # none there, or a file system without modes
        path.chmod(stat.S_IMODE(like.stat().st_mode) | at_least)


def _take_away(folder: Path, owner: int) -> None:
    """Remove a folder of ours; in a fork it is its parent's."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
