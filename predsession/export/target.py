"""Where predictions go: a file or a folder, and what becomes of what is there already.

Invariant: what is wrong with a place is told before anything is written to it, and names place and remedy.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from os import PathLike, fsdecode
from pathlib import Path
from typing import Literal

from predsession.errors import DiskError, SourceError
from predsession.inputs.folders import IMAGE_SUFFIXES, VIDEO_SUFFIXES

Images = Literal["copy", "link"]
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


class Existing(Enum):
    """What becomes of a file that is there already."""

    REFUSE = "refuse"
    OVERWRITE = "overwrite"
    APPEND = "append"
    RESUME = "resume"


def existing_of(*, overwrite: bool, append: bool = False, resume: bool = False) -> Existing:
    """Return what becomes of a file that is there, from the user's words.

    Parameters
    ----------
    overwrite, append, resume : bool
        At most one of the first two.

    Returns
    -------
    Existing
        Refused, unless they say something else.

    Raises
    ------
    SourceError
        If it is to be overwritten and added to.
    """
    if overwrite and append:
        raise SourceError("a file is either overwritten or added to: pass one of overwrite= and append=")
    if append:
        return Existing.APPEND
    if resume:
        return Existing.RESUME
    return Existing.OVERWRITE if overwrite else Existing.REFUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where predictions go, and how.

    Parameters
    ----------
    path : Path
        A file, or a folder for formats of many files.
    existing : Existing
        What becomes of what is there.
    root : str or None
        The folder that the pictures' places are relative to; see `predsession.export.places`.
    images : {"copy", "link"} or None
        Whether folders get the pictures as well, and how.
    scores : bool
        Whether scores are written where a format's readers do not expect them.
    rescue : bool
        Whether documents that can only be written whole keep what comes beside them until then, so that it
        survives a kill; what is only converted is there anyway.
    """

    path: Path
    existing: Existing = Existing.REFUSE
    root: str | None = None
    images: Images | None = None
    scores: bool = False
    rescue: bool = True


def prepare_file(target: Target) -> None:
    """See to it that a file can be written: its folder is made, what is there is not lost.

    An empty file holds nothing that could be lost, and a pipe or a device is no file: both are taken.

    Parameters
    ----------
    target : Target
        Of a format that is one file.

    Raises
    ------
    SourceError
        If there is a folder of that name, a file that may not be touched, or the place cannot be written to.
    """
    path = target.path
    with told_at_once(path):
        if path.is_dir():
            raise SourceError(f"{path} is a folder; name a file")
        if target.existing is Existing.REFUSE and path.is_file() and path.stat().st_size:
            raise SourceError(
                f"{path} is there already; overwrite it (overwrite=True, --overwrite), or choose another name"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            try_out(path.parent)


def refuse_input(path: str | PathLike[str], inputs: Iterable[object]) -> None:
    """Refuse to write over what is to be read: one of the inputs, or a picture or clip in a folder of them.

    Parameters
    ----------
    path : str or PathLike
        What is to be written.
    inputs : iterable
        What was handed in: paths of folders and files; anything else is passed over.

    Raises
    ------
    SourceError
        If it is among them.
    """
    written = Path(path)
    with told_at_once(path):
        if not written.is_file():
            return
        real, is_taken = written.resolve(), written.suffix.lower() in (*IMAGE_SUFFIXES, *VIDEO_SUFFIXES)
        for each in inputs:
            if not isinstance(each, str | PathLike) or not (given := Path(fsdecode(each))).exists():
                continue
            if given.samefile(real) or (is_taken and real.is_relative_to(given.resolve())):
                raise SourceError(f"{path} is among the inputs, which would be gone; choose another name")


def prepare_folder(target: Target) -> None:
    """See to it that a folder can be filled: it is made, and what it holds is not lost.

    Parameters
    ----------
    target : Target
        Of a format that is a folder.

    Raises
    ------
    SourceError
        If it is a file, holds something and may not be touched, or cannot be written to.
    """
    path = target.path
    if target.existing is Existing.APPEND:
        raise SourceError(f"{path}: only JSON lines and CSV can be added to; choose another folder")
    with told_at_once(path):
        if path.exists() and not path.is_dir():
            raise SourceError(f"{path} is a file; name a folder")
        if target.existing is Existing.REFUSE and path.is_dir() and any(path.iterdir()):
            raise SourceError(
                f"{path} is not empty; choose another folder, or write over what has the same names "
                "(overwrite=True, --overwrite)"
            )
        path.mkdir(parents=True, exist_ok=True)
        try_out(path)


def try_out(folder: Path) -> None:
    """Make a file in a folder, and take it away.

    Parameters
    ----------
    folder : Path
        Which.

    Raises
    ------
    OSError
        If it cannot be done.
    """
    with tempfile.TemporaryFile(dir=folder):
        pass


@contextmanager
def told_at_once(path: str | PathLike[str]) -> Iterator[None]:
    """Turn what a file system says to a place into `SourceError`: nothing has been done yet.

    Parameters
    ----------
    path : str or PathLike
        The place, for the message.

    Yields
    ------
    None
        Once.

    Raises
    ------
    SourceError
        In place of an `OSError`, or of the `ValueError` for a name that no file can have.
    """
    try:
        yield
    except SourceError:
        raise
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else None
        raise SourceError(f"{path} cannot be written ({said or error}); choose another place") from None


@contextmanager
def on_disk(path: str | PathLike[str]) -> Iterator[None]:
    """Turn what a file system says to a write into `DiskError`, which names the file.

    Parameters
    ----------
    path : str or PathLike
        The file, for the message.

    Yields
    ------
    None
        Once.

    Raises
    ------
    DiskError
        In place of an `OSError`.
    """
    try:
        yield
    except DiskError:
        raise
    except OSError as error:
        remedy = "make room there, or choose" if error.errno in _FULL else "choose"
        raise DiskError(
            f"{path} cannot be written ({error.strerror or error}); {remedy} another place"
        ) from None
