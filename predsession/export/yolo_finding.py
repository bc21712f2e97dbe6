"""Which labels and pictures belong together in a YOLO folder, as people and tools lay them out.

===============================  ==========================================================================
``images/x.jpg``                 its label is ``labels/x.txt``, for the last folder that is called so
``anything/x.jpg``               its label is ``anything/x.txt``, as labelImg puts it; without, it is none
``labels/x.txt``, ``x.jpg``      as Ultralytics leaves what a model found
===============================  ==========================================================================
"""

from __future__ import annotations

from pathlib import Path

from predsession.errors import SourceError
from predsession.export.folders import files_below, read_whole
from predsession.export.yolo_layout import IMAGES, LABELS, NAMES

PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")
_SUFFIXES = tuple(each for suffix in PICTURES for each in (suffix, suffix.upper()))


def labels_of(root: Path) -> set[str]:
    """Find all labels of a folder.

    Parameters
    ----------
    root : Path
        The folder.

    Returns
    -------
    set of str
        Their places in it; of a picture in ``images`` without one, where it would be.

    Raises
    ------
    SourceError
        If a folder cannot be read.
    """
    found = (_label_of(root, place.relative_to(root)) for place in files_below(root, ""))
    return {each.as_posix() for each in found if each is not None}


def _label_of(root: Path, place: Path) -> Path | None:
    """Return the label that a file is, or that a picture has; None for any other file."""
    folders = place.parts[:-1]
    if place.suffix.lower() in PICTURES:
        beside = place.with_suffix(".txt")
        swapped = _swapped(place, IMAGES, LABELS).with_suffix(".txt") if IMAGES in folders else None
        if swapped is not None and ((root / swapped).is_file() or not (root / beside).is_file()):
            return swapped
        return beside if (root / beside).is_file() else None
    is_label = LABELS in folders and place.suffix == ".txt" and place.name != NAMES
    return place if is_label else None


def _swapped(place: Path, old: str, new: str) -> Path:
    """Return a place with the last folder of one name called otherwise: as tools look for labels."""
    parts = list(place.parts)
    last = len(parts) - 2 - parts[:-1][::-1].index(old)
    return Path(*parts[:last], *([new] if new else []), *parts[last + 1 :])


class Pictures:
    """Finds the pictures of labels; each folder is looked at once, for a disk may be far away.

    Parameters
    ----------
    root : Path
        The folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: dict[Path, frozenset[str]] = {}

    def of(self, label: Path) -> Path | None:
        """Find the picture of a label.

        Parameters
        ----------
        label : Path
            Below the root.

        Returns
        -------
        Path or None
            None where there is none.

        Raises
        ------
        SourceError
            If a folder cannot be read.
        """
        for place in _places(label):
            stem = (self._root / place).with_suffix("")
            names = self._names_in(stem.parent)
            for suffix in _SUFFIXES:
                # A link may lead nowhere, and a folder may be called so.
                if (name := stem.name + suffix) in names and (found := stem.with_name(name)).is_file():
                    return found
        return None

    def _names_in(self, folder: Path) -> frozenset[str]:
        """Return the names of what may be pictures in a folder; of one that is not there, none."""
        if folder not in self._names:
            self._names[folder] = frozenset(_pictures_in(folder))
        return self._names[folder]


def _pictures_in(folder: Path) -> list[str]:
    """List a folder's pictures."""
    try:
        return [each.name for each in folder.iterdir() if each.name.endswith(_SUFFIXES)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SourceError(f"{folder} cannot be read ({error.strerror or error})") from None


def _places(label: Path) -> list[Path]:
    """Return where a label's picture may be, but for its suffix."""
    if LABELS not in label.parts[:-1]:
        return [label]
    return [_swapped(label, LABELS, IMAGES), label, _swapped(label, LABELS, "")]


def missing(root: Path, label: Path) -> str:
    """Say that a label's picture is not there, and what to do.

    Parameters
    ----------
    root : Path
        The folder.
    label : Path
        Below it.

    Returns
    -------
    str
        For an error.
    """
    stem = (root / _places(label)[0]).with_suffix("")
    return (
        f"{root / label}: the size of its picture is wanted, and there is no {stem}{{{','.join(PICTURES)}}}; "
        "put it there (saving with images='copy' or 'link', --images, does)"
    )


def names_listed(root: Path) -> list[str] | None:
    """Return the classes of a folder without a description, as labelImg lists them.

    Parameters
    ----------
    root : Path
        The folder.

    Returns
    -------
    list of str or None
        In the order of their numbers; None where there is no list.

    Raises
    ------
    SourceError
        If the list is no text.
    """
    for file in (root / NAMES, root / LABELS / NAMES, root / IMAGES / NAMES):
        if file.is_file():
            try:
                lines = read_whole(file).decode("utf-8-sig").splitlines()
            except ValueError as error:
                raise SourceError(f"{file}: {error}") from None
            return [line.strip() for line in lines if line.strip()]
    return None
