"""Folders and Supervisely projects, as sorted lists of paths.

Invariant: the order depends on the names alone, never on the file system. Whatever is no image by its suffix,
and whatever an operating system leaves lying about, is left out.

Links: a link to a file is a name of its own and is kept, dangling or not (so that nothing vanishes silently).
A link to a folder is followed when the search is recursive, each real folder once, the real path going before
the linked one, and never upwards out of the folder that was asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from predsession.errors import SourceError
from predsession.inputs.items import printable

# What a stock server takes (PROTOCOL.md, section 7) without .nrrd, and .gif, which is converted here.
IMAGE_SUFFIXES = (
    ".jpg", ".jpeg", ".jfif", ".mpo", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif",
)  # fmt: skip
VIDEO_SUFFIXES = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".wmv", ".3gp")

_DIGITS = re.compile(r"[0-9]+")
# Made by macOS archives, Synology and Windows beside the photographs, with copies or thumbnails in them.
_LEFT_OUT_FOLDERS = frozenset({"__macosx", "@eadir", "$recycle.bin", "system volume information"})
_LEFT_OUT_FILES = frozenset({"thumbs.db", "desktop.ini"})


def natural_key(path: str) -> str:
    """Return the sort key of a relative path: numbers by value, letters without case, folder by folder.

    Parameters
    ----------
    path : str
        Relative path, parts separated by ``/``.

    Returns
    -------
    str
        One string, which takes a tenth of the memory of parts and numbers. Paths that differ only in case or
        in leading zeros have the same.
    """
    return _DIGITS.sub(_by_value, path.casefold().replace("/", "\0"))


def _by_value(digits: re.Match[str]) -> str:
    """Return digits so that longer numbers come after shorter ones: behind their length."""
    number = digits[0].lstrip("0")
    return f"\1{len(number):03}{number}"


def in_order(paths: Iterable[str]) -> list[str]:
    """Return relative paths in natural order; those with one key in that of their characters."""
    found = sorted(paths)
    found.sort(key=natural_key)
    return found


class Below(Sequence[str]):
    """Paths below a folder, put together when they are asked for: a hundred thousand take no room twice.

    Parameters
    ----------
    folder : str
        As the caller wrote it.
    places : list of str
        Relative to it.
    """

    __slots__ = ("_folder", "_places")

    def __init__(self, folder: str, places: list[str]) -> None:
        self._folder = folder
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Below: ...

    def __getitem__(self, index: int | slice) -> str | Below:
        if isinstance(index, slice):
            return Below(self._folder, self._places[index])
        return os.path.join(self._folder, self._places[index])


def suffix_of(name: str) -> str:
    """Return the suffix in lower case, with its dot; nothing for a dotfile."""
    return os.path.splitext(name)[1].lower()


def is_clip(entry: object) -> bool:
    """Whether an entry of a source is the path of a clip, by its suffix."""
    if not isinstance(entry, str | os.PathLike):
        return False
    path = os.fspath(entry)
    if not isinstance(path, str) or suffix_of(path) not in VIDEO_SUFFIXES:
        return False
    return not path.startswith(("http://", "https://")) and not os.path.isdir(path)


def names_clips(source: object) -> bool:
    """Whether a source is the path of a clip, or a list with one among its entries."""
    return any(map(is_clip, source)) if isinstance(source, list | tuple) else is_clip(source)


def list_folder(folder: str, *, recursive: bool = False) -> Sequence[str]:
    """List the images of a folder, or of a Supervisely project, in their order.

    Parameters
    ----------
    folder : str
        An existing folder.
    recursive : bool
        Whether to look into its folders too.

    Returns
    -------
    sequence of str
        `folder` joined with each image's place in it. A project gives its
        datasets' images, dataset by dataset.

    Raises
    ------
    SourceError
        A folder cannot be read, or there is no image.
    """
    found = images_of(folder, recursive=recursive)
    if not found:
        raise SourceError(_nothing_found(folder, recursive=recursive))
    return Below(folder, found)


def images_of(folder: str, *, recursive: bool = False) -> list[str]:
    """List the images of a folder or project as `list_folder` does; there may be none.

    Parameters
    ----------
    folder : str
        An existing folder.
    recursive : bool
        Whether to look into its folders too.

    Returns
    -------
    list of str
        Paths relative to it, in their order.

    Raises
    ------
    SourceError
        A folder cannot be read.
    """
    found = _list_project(folder)
    return in_order(_walk(folder) if recursive else _images_in(folder)) if found is None else found


def _images_in(folder: str) -> Iterator[str]:
    """Yield the names of the images directly in a folder, unsorted."""
    return (entry.name for entry in _entries(folder) if _is_image(entry))


def _walk(folder: str) -> Iterator[str]:
    """Yield the relative path of each image in the folder and below."""
    seen = _folders_above(folder)
    linked = [""]
    # Folders behind links wait until no real one is left: so a file has its real path wherever it has one.
    while linked:
        pending = in_order(linked)[:1]
        linked.remove(pending[0])
        while pending:
            place = pending.pop()
            here = os.path.join(folder, place)
            if _mark(here, seen):
                continue
            for entry in _entries(here):
                relative = f"{place}/{entry.name}" if place else entry.name
                if _is_image(entry):
                    yield relative
                elif _is_folder(entry):
                    (linked if entry.is_symlink() else pending).append(relative)


def _folders_above(folder: str) -> set[tuple[int, int]]:
    """Return the identities of all folders that contain this one."""
    above: set[tuple[int, int]] = set()
    place = os.path.realpath(folder)
    while place != os.path.dirname(place):
        place = os.path.dirname(place)
        _mark(place, above)
    return above


def _mark(folder: str, seen: set[tuple[int, int]]) -> bool:
    """Note that a folder was seen; return whether it had been before."""
    try:
        status = os.stat(folder)
    except OSError as error:
        raise _unreadable(folder, error) from error
    identity = (status.st_dev, status.st_ino)
    if identity in seen:
        return True
    seen.add(identity)
    return False


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield what is in a folder, without what operating systems leave there."""
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if not _is_left_out(entry.name))
    except OSError as error:
        raise _unreadable(folder, error) from error


def _is_left_out(name: str) -> bool:
    """Return whether this is a dotfile (``._x.jpg`` of macOS among them) or an operating system's own."""
    return name.startswith(".") or name.lower() in _LEFT_OUT_FILES


def _is_image(entry: os.DirEntry[str]) -> bool:
    """Return whether this is a file, or a link that leads nowhere, with the suffix of an image."""
    if suffix_of(entry.name) not in IMAGE_SUFFIXES:
        return False
    try:
        return entry.is_file() or (entry.is_symlink() and not entry.is_dir())
    except OSError:
        return True  # a link that leads to itself: its item says so when it is read


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether this is a folder that may hold photographs."""
    try:
        return entry.is_dir() and entry.name.lower() not in _LEFT_OUT_FOLDERS
    except OSError:
        return False


def _list_project(folder: str) -> list[str] | None:
    """Return a project's images in order, or None where the folder is no Supervisely project."""
    # The format: <project>/meta.json, <project>/<dataset>/img/<image>, and for nested datasets
    # <project>/<dataset>/datasets/<dataset>/img/<image>. No image lies beside meta.json.
    if not os.path.isfile(os.path.join(folder, "meta.json")):
        return None
    datasets = list(_datasets(folder, ""))
    if not datasets or any(_images_in(folder)):
        return None
    return [
        f"{dataset}/img/{name}"
        for dataset in datasets
        if os.path.isdir(os.path.join(folder, dataset, "img"))
        for name in in_order(_images_in(os.path.join(folder, dataset, "img")))
    ]


def _datasets(project: str, place: str) -> Iterator[str]:
    """Yield the relative paths of the datasets in a folder of the project, a parent before its children."""
    here = os.path.join(project, place)
    for name in in_order(entry.name for entry in _entries(here) if _is_folder(entry)):
        relative = f"{place}/{name}" if place else name
        nested = os.path.isdir(os.path.join(project, relative, "datasets"))
        if nested or os.path.isdir(os.path.join(project, relative, "img")):
            yield relative
        if nested:
            yield from _datasets(project, f"{relative}/datasets")


def _nothing_found(folder: str, *, recursive: bool) -> str:
    """Say what was looked for, and what is there instead."""
    message = f"no images in {printable(folder)!r}; looked for {' '.join(IMAGE_SUFFIXES)} (in any case)"
    if any(suffix_of(entry.name) in VIDEO_SUFFIXES for entry in _entries(folder)):
        return f"{message}; there are videos, which are not supported yet"
    if recursive:
        return f"{message}, in its folders too"
    try:
        below = next(_walk(folder), None)
    except SourceError:
        below = None
    if below is None:
        return message
    return (
        f"{message}; there are images in its folders ({printable(below)!r}): pass recursive=True to take them"
    )


def _unreadable(folder: str, error: OSError) -> SourceError:
    """Return the error for a folder that cannot be listed."""
    return SourceError(f"cannot read the folder {printable(folder)!r}: {error.strerror or error}")
