"""What lies in a library's folder: every picture and video, in natural order, without following a link."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from predsession.inputs.folders import IMAGE_SUFFIXES, VIDEO_SUFFIXES, natural_key, suffix_of

_ENDS = 1 << 16
"""Bytes of a file's beginning, and of its end, that tell it from others."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file.

    Parameters
    ----------
    kind : {"image", "video"}
        By its suffix.
    path : str
        Below the library's folder, with slashes.
    size : int
        Bytes.
    changed : int
        When it was last written, nanoseconds.
    inode : int
        Its number on the disk.
    """

    kind: Literal["image", "video"]
    path: str
    size: int
    changed: int
    inode: int

    @property
    def project(self) -> str:
        """The folder of its project; ``.`` for the library's own."""
        parts = self.path.split("/")
        return parts[0] if len(parts) > 1 else "."

    @property
    def dataset(self) -> str:
        """The folder of its dataset; ends in ``.`` where that is not one of its own."""
        parts = self.path.split("/")
        if len(parts) == 1:
            return "."
        own = len(parts) > 2 and parts[1] not in {"img", "video"}
        return "/".join(parts[:2]) if own else f"{parts[0]}/."

    def fingerprint(self, root: Path) -> bytes:
        """Return what tells its content from that of others: the size, and a hash of both its ends."""
        digest = hashlib.blake2b(str(self.size).encode(), digest_size=16)
        try:
            with (root / self.path).open("rb") as file:
                digest.update(file.read(_ENDS))
                file.seek(max(0, self.size - _ENDS))
                digest.update(file.read(_ENDS))
        except OSError:
            digest.update(self.path.encode())  # it cannot be read, so nothing else tells it
        return digest.digest()


def walk(root: Path) -> Iterator[Found]:
    """Yield every picture and video below a folder.

    Parameters
    ----------
    root : Path
        The library's folder.

    Yields
    ------
    Found
        In natural order, a folder's own files first. What is hidden, a link, or in a folder ``ann`` is left
        out.
    """
    yield from _walk(str(root), "")


def _walk(root: str, below: str) -> Iterator[Found]:
    """Yield what lies below one folder."""
    try:
        with os.scandir(os.path.join(root, below)) as scan:  # noqa: PTH118 - there may be 100,000
            entries = [entry for entry in scan if not entry.name.startswith(".") and not entry.is_symlink()]
    except OSError:
        return
    entries.sort(key=lambda entry: (natural_key(entry.name), entry.name))
    folders: list[str] = []
    for entry in entries:
        place = f"{below}/{entry.name}" if below else entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                folders += [place] if entry.name != "ann" else []
            elif (kind := _kind(entry.name)) is not None and entry.is_file(follow_symlinks=False):
                stat = entry.stat(follow_symlinks=False)
                yield Found(kind, place, stat.st_size, stat.st_mtime_ns, stat.st_ino)
        except OSError:
            continue  # it went away while we looked
    for folder in folders:
        yield from _walk(root, folder)


def _kind(name: str) -> Literal["image", "video"] | None:
    """Return what a file is, by its suffix; None if neither."""
    suffix = suffix_of(name)
    if suffix in IMAGE_SUFFIXES:
        return "image"
    return "video" if suffix in VIDEO_SUFFIXES else None
