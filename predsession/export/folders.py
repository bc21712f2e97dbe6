"""Folders of many small files: each written whole or not at all, and read back in the order of names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

from predsession.errors import SourceError
from predsession.export.target import on_disk

_DRAFT = ".predsession.draft"
"""Hidden, with no suffix of a picture or an annotation, so that no tool takes one for either."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, which gets its name when it is whole; its folder is made.

    Parameters
    ----------
    path : Path
        What is there of that name is replaced. Its folder is nobody else's as long.
    content : bytes
        All of it.

    Raises
    ------
    DiskError
        If it cannot be written; names the file.
    """
    with drafted(path) as draft, draft.open("xb") as file:
        file.write(content)


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """Have a file made under another name, until it is whole; its folder is made.

    Parameters
    ----------
    path : Path
        What is there of that name is replaced. Its folder is nobody else's as long.

    Yields
    ------
    Path
        Where it is to be made: there is nothing.

    Raises
    ------
    DiskError
        If it cannot be written; names the file.
    """
    # One name for all, which does not grow with the file's: that may be as long as a file system allows.
    draft = path.with_name(_DRAFT)
    with on_disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # A killed run may have left one, as a second name of somebody's picture: never write into it.
            draft.unlink(missing_ok=True)
            yield draft
            draft.replace(path)
        finally:
            with suppress(OSError):
                draft.unlink()


def sweep(folder: Path) -> None:
    """Take away the drafts that killed runs have left.

    Parameters
    ----------
    folder : Path
        And all below it: nobody else's as long.

    Raises
    ------
    OSError
        If one cannot be taken away.
    """
    for place, _, names in os.walk(folder):
        if _DRAFT in names:
            Path(place, _DRAFT).unlink()


def files_below(folder: Path, suffix: str) -> Iterator[Path]:
    """List files of a kind below a folder, one folder after the other: no more than one is held.

    Parameters
    ----------
    folder : Path
        Where to begin; a file is itself.
    suffix : str
        In lower case, with its dot.

    Yields
    ------
    Path
        In the order of names, a folder's own files before those of its folders; hidden ones are passed over.

    Raises
    ------
    SourceError
        If a folder cannot be read.
    """
    if folder.is_file():
        yield folder
        return
    for place, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(suffix) and not name.startswith("."):
                yield Path(place, name)


def _refuse(error: OSError) -> None:
    """Say which folder cannot be read."""
    raise SourceError(f"{error.filename} cannot be read ({error.strerror or error})") from None


def readable(place: PurePath, suffix: str) -> PurePath:
    """Return a place where an annotation is found again: not hidden, and no folder called as a file may be.

    Readers pass over hidden files and folders, since other programs keep theirs in them.

    Parameters
    ----------
    place : PurePath
        Of a picture, relative.
    suffix : str
        Of annotations, in lower case, with its dot.

    Returns
    -------
    PurePath
        ``.cache/.a.jpg`` becomes ``_.cache/_.a.jpg``. A name that begins with ``_`` for that reason already
        gets another: no two places that differ in more than their suffix become one. So it is with folders
        that end in `suffix`, and a ``_`` behind them.
    """
    folders = [_shown(part) + "_" * part.rstrip("_").lower().endswith(suffix) for part in place.parts[:-1]]
    if _shown(place.stem) == place.stem:
        return PurePath(*folders, place.name)
    # Of ".jpg" that is all: without a suffix behind it, what is the stem would be taken for one.
    return PurePath(*folders, f"{_shown(place.stem)}{place.suffix or place.stem}")


def _shown(name: str) -> str:
    """Return a name that is not hidden."""
    return f"_{name}" if name.lstrip("_").startswith(".") else name


def read_whole(path: Path) -> bytes:
    """Read a file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    bytes
        All of it.

    Raises
    ------
    SourceError
        If it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path} cannot be read ({error.strerror or error})") from None


def picture_path(said: str, beside: Path, *, of_frame: bool = False) -> str | None:
    """Return where a picture is: as its annotation says, or beside it, where it was put.

    Parameters
    ----------
    said : str
        The path as it was when the annotation was written; empty for none.
    beside : Path
        Where the format has pictures.
    of_frame : bool
        Whether it is a frame of a clip, whose path is the clip's, be it there or not: what lies beside is one
        picture of it (`predsession.export.beside.with_copy`).

    Returns
    -------
    str or None
        What is said, unless there is a picture beside and none there.
    """
    if not of_frame and beside.is_file() and not (said and Path(said).is_file()):
        return str(beside)
    return said or None
