"""Folders of many small files: each written whole or not at all, and read back in the order of names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from predsession.errors import SourceError
from predsession.export.target import on_disk


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, which gets its name when it is whole; its folder is made.

    Parameters
    ----------
    path : Path
        What is there of that name is replaced.
    content : bytes
        All of it.

    Raises
    ------
    DiskError
        If it cannot be written; names the file.
    """
    # The draft's name does not grow with the file's, which may be as long as a file system allows.
    draft = path.with_name(f".predsession-{os.getpid()}.draft")
    with on_disk(path):
        try:
            if not path.parent.is_dir():
                path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(content)
            draft.replace(path)
        finally:
            with suppress(OSError):
                draft.unlink()


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


def picture_path(said: str, beside: Path) -> str | None:
    """Return where a picture is: as its annotation says, or beside it, where it was put.

    Parameters
    ----------
    said : str
        The path as it was when the annotation was written; empty for none.
    beside : Path
        Where the format has pictures.

    Returns
    -------
    str or None
        What is said, unless there is a picture beside and none there.
    """
    if beside.is_file() and not (said and Path(said).is_file()):
        return str(beside)
    return said or None
