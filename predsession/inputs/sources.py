"""Which kind of source the caller handed in, and its items, one by one.

Invariant: a source keeps what it must to make its items again (for files: their paths), and makes them when
they are asked for. Opening one reads directories and looks at what is there; it decodes nothing.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeGuard
from urllib.parse import urlsplit

import numpy as np

from predsession.errors import SourceError
from predsession.inputs.arrays import check_array
from predsession.inputs.folders import IMAGE_SUFFIXES, VIDEO_SUFFIXES, list_folder, suffix_of
from predsession.inputs.formats import looks_like, sniff
from predsession.inputs.items import (
    ArrayContent,
    BytesContent,
    Content,
    FileContent,
    Item,
    PictureContent,
    UrlContent,
    item_at,
    printable,
    shown_url,
    with_bytes,
)

if TYPE_CHECKING:
    from PIL import Image

__all__ = [
    "ArrayContent",
    "BytesContent",
    "Content",
    "FileContent",
    "Item",
    "PictureContent",
    "Source",
    "UrlContent",
    "open_source",
    "with_bytes",
]

ACCEPTED = (
    "an array (H, W, 3) uint8, a PIL image, encoded bytes, a path, an http(s) URL, a folder, "
    "or a list of these"
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_NAMED = 3  # of many missing files, the message names so many
_SHOWN = 200  # characters of a path
_BINARY = bytes | bytearray | memoryview


class Source:
    """The items of what the caller handed in: sized, in order, iterable as often as needed.

    Parameters
    ----------
    entries : sequence of str or Content
        A path as a bare str (100,000 of them are cheaper than as many objects), anything else as its content.
    description : str
        A few words for a repr or a bar, never the whole list.
    """

    __slots__ = ("_entries", "description")

    def __init__(self, entries: Sequence[str | Content], description: str) -> None:
        self._entries = entries
        self.description: str = description

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Item]:
        return map(self.__getitem__, range(len(self._entries)))

    def __getitem__(self, index: int) -> Item:
        index = range(len(self._entries))[index]
        entry = self._entries[index]
        return item_at(index, FileContent(entry) if isinstance(entry, str) else entry)

    def __repr__(self) -> str:
        return f"<Source {self.description}>"


def open_source(input: object, *, recursive: bool = False) -> Source:  # noqa: A002 - the session's own word
    """Look at what the caller handed in, and list its items.

    Parameters
    ----------
    input : array, PIL image, bytes, str, PathLike, or a list or tuple of these
        Arrays are (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), uint8, RGB. A str is a path, or an http(s) URL
        of an image. A folder gives its images in natural order; a Supervisely project its datasets' images.
        A folder in a list stands for its images.
    recursive : bool
        Whether to look into the folders of a folder.

    Returns
    -------
    Source
        At least one item. Nothing has been decoded; a file that is no image shows when it is prepared.

    Raises
    ------
    SourceError
        There is no such file, no image in the folder, nothing in the list, or it is a kind of thing that
        cannot be sent; the message names it and says what to do.
    """
    listing = _Listing(recursive=recursive)
    if isinstance(input, list | tuple):
        if not input:
            raise SourceError("the list of inputs is empty: pass at least one image")
        for position, value in enumerate(input):
            listing.add(value, f"input[{position}]")
        description = f"list of {len(input)}"
    else:
        listing.add(input, "input")
        description = _describe(input)
    listing.refuse_missing()
    return Source(listing.entries, description)


def _is_picture(value: object) -> TypeGuard[Image.Image]:
    """Whether a value is a PIL image: whoever has one has imported Pillow, which takes its time."""
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(value, pillow.Image)


def _describe(value: object) -> str:
    """Return a few words on a single input."""
    if isinstance(value, np.ndarray):
        return f"array {value.shape}"
    if _is_picture(value):
        return f"PIL image {value.width}x{value.height}"
    if isinstance(value, _BINARY):
        return f"{memoryview(value).nbytes} bytes"
    text = os.fsdecode(value) if isinstance(value, str | os.PathLike) else type(value).__name__
    return shown_url(text) if _SCHEME.match(text) else printable(text)


@dataclass(slots=True)
class _Listing:
    """The entries so far, and the files that are not there."""

    recursive: bool
    entries: Sequence[str | Content] = ()
    missing: list[str] = field(default_factory=list)

    def add(self, value: object, where: str) -> None:
        """Append what this value stands for."""
        if isinstance(value, str | os.PathLike):
            self._add_text(os.fsdecode(value), where)
        elif isinstance(value, _BINARY):
            self._append(BytesContent(bytes(value)))
        elif isinstance(value, np.ndarray):
            self._append(ArrayContent(check_array(value, where)))
        elif _is_picture(value):
            if 0 in value.size:
                raise SourceError(f"{where}: a PIL image of size {value.size} has no pixels")
            self._append(PictureContent(value))
        else:
            raise SourceError(_unsupported(value, where))

    def _append(self, entry: str | Content) -> None:
        """Append one entry."""
        if not isinstance(self.entries, list):
            self.entries = list(self.entries)
        self.entries.append(entry)

    def _add_text(self, text: str, where: str) -> None:
        """Append a URL, a file, or the images of a folder."""
        if scheme := _SCHEME.match(text):
            self._append(_url_content(text, scheme[1].lower(), where))
            return
        path = text if not text.startswith("~") or os.path.lexists(text) else os.path.expanduser(text)
        mode = _mode(path, where)
        if mode is None:
            self.missing.append(path)
        elif stat.S_ISDIR(mode):
            listed = list_folder(path, recursive=self.recursive)
            self.entries = [*self.entries, *listed] if self.entries else listed
        else:
            _check_file(path, mode, where)
            self._append(path)

    def refuse_missing(self) -> None:
        """Raise for the files that are not there, all at once."""
        if not self.missing:
            return
        named = ", ".join(repr(_short(path)) for path in self.missing[:_NAMED])
        more = f" and {len(self.missing) - _NAMED} more" if len(self.missing) > _NAMED else ""
        hint = ""
        if any(char in path for path in self.missing for char in "*?["):
            hint = "; patterns are not expanded: pass the folder, or sorted(glob.glob(pattern))"
        elif not all(map(os.path.isabs, self.missing)):
            hint = f"; relative paths start from {printable(os.getcwd())!r}"
        raise SourceError(f"no such file or folder: {named}{more}{hint}")


def _short(path: str) -> str:
    """Return what a message shows of a path, which may be a whole file by mistake."""
    return printable(path if len(path) <= _SHOWN else f"{path[:_SHOWN]}...")


def _mode(path: str, where: str) -> int | None:
    """Return the kind of thing at a path, or None where nothing is."""
    if not path:
        raise SourceError(f"{where}: the path is empty")
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{where}: cannot use {_short(path)!r} as a path: {reason}") from error


def _check_file(path: str, mode: int, where: str) -> None:
    """Raise for a file that is named by the caller and is nothing that can be sent."""
    suffix = suffix_of(path)
    if not stat.S_ISREG(mode):
        raise SourceError(f"{where}: {printable(path)!r} is neither a file nor a folder")
    if suffix in VIDEO_SUFFIXES:
        raise SourceError(f"{where}: {printable(path)!r} is a video: pass it alone, or in a list of videos")
    if suffix in IMAGE_SUFFIXES:
        return
    # A photograph may have any name, so the first bytes tell; a text file is the caller's slip, said now.
    try:
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError as error:
        raise SourceError(f"{where}: cannot read {printable(path)!r}: {error.strerror or error}") from error
    if sniff(head) is None:
        raise SourceError(
            f"{where}: {printable(path)!r} is not an image ({looks_like(head)}); "
            f"images are {' '.join(IMAGE_SUFFIXES)}"
        )


def _url_content(url: str, scheme: str, where: str) -> UrlContent:
    """Return the content for the URL of an image; other schemes and videos are refused."""
    if scheme not in {"http", "https"}:
        remedy = "pass the path itself" if scheme == "file" else "download it and pass the path"
        raise SourceError(f"{where}: {shown_url(url)!r}: only http and https are fetched; {remedy}")
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    if not host:
        raise SourceError(f"{where}: {shown_url(url)!r} is not a valid URL: the host is missing or damaged")
    content = UrlContent(url)
    if suffix_of(item_at(0, content).name) in VIDEO_SUFFIXES:
        raise SourceError(f"{where}: {shown_url(url)!r} is a video: download it, and pass its path")
    return content


def _unsupported(value: object, where: str) -> str:
    """Say that a value of this type cannot be sent, and what can."""
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    remedy = f"pass {ACCEPTED}"
    if isinstance(value, list | tuple):
        remedy = "lists in lists are not taken: pass one flat list"
    elif hasattr(value, "read"):  # an open file is an iterator too
        remedy = "pass its path, or the bytes: file.read()"
    elif isinstance(value, Iterator):
        remedy = "generators and iterators are not supported yet: pass list(...) of it"
    elif hasattr(value, "__array__"):
        remedy = "pass a NumPy array: np.asarray(...), (H, W, 3), uint8, RGB"
    return f"{where}: {name} is not supported: {remedy}"
