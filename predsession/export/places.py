"""Places of pictures relative to a folder: unique, stable, folders kept.

The same sources in the same order get the same places, whichever format they are written in.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path, PurePath

from predsession.prediction import Prediction

LONGEST_NAME = 200
"""Bytes; file systems take 255, and a number may be added."""


class Places:
    """Gives each prediction a relative place.

    Parameters
    ----------
    root : str or None
        The folder that places are relative to; what lies outside of it gets its bare name. Without it, paths
        below the current folder keep their folders.
    by_stem : bool
        Whether two places must differ in more than their suffix: for formats that put another one there.
    again : bool
        Whether an input that comes again gets the same place again.
    suffixes : set of str or None
        Suffixes that stay; behind any other one comes ``.png``.
    """

    def __init__(
        self,
        root: str | None,
        *,
        by_stem: bool = False,
        again: bool = False,
        suffixes: frozenset[str] | None = None,
    ) -> None:
        self._root = root or str(Path.cwd())
        self._by_stem = by_stem
        self._again = again
        self._suffixes = suffixes
        # What was given, and to whom: numbers instead of texts, or 100,000 names would be kept.
        self._given: dict[int, int | None] = {}
        self._counts: dict[tuple[int, int], int] = {}

    def place(self, prediction: Prediction) -> PurePath:
        """Return the place of a prediction's picture.

        Parameters
        ----------
        prediction : Prediction
            With a path, or at least a name. A frame gets a picture's name: ``clip_000012.png``; it has it
            already where the path is that of its picture.

        Returns
        -------
        PurePath
            Relative, never above the root; on a clash ``_2``, ``_3`` ... is added to the name.
        """
        whose = _whose(prediction)
        place = self._wanted(prediction)
        stem = shortened(place.stem)
        place = place.with_name(f"{stem}{place.suffix}")
        first = self._mark(place)
        if self._take(first, whose):
            return place
        count = self._counts.get((first, whose), 0) if self._again and whose is not None else 0
        if not count:
            # From that name's last number on, or thousands of one name would be counted through each time.
            count = self._counts.get((first, 0), 1) + 1
            while not self._take(self._mark(place.with_name(f"{stem}_{count}{place.suffix}")), whose):
                count += 1
            self._counts[first, 0] = count
            if self._again and whose is not None:
                self._counts[first, whose] = count
        return place.with_name(f"{stem}_{count}{place.suffix}")

    def _take(self, mark: int, whose: int | None) -> bool:
        """Take a place, if nobody else has it."""
        if mark not in self._given:
            self._given[mark] = whose
            return True
        return self._again and whose is not None and self._given[mark] == whose

    def _mark(self, place: PurePath) -> int:
        """Return a number that stands for a place."""
        name = str(place.with_suffix("") if self._by_stem else place).casefold()
        return int.from_bytes(hashlib.blake2b(os.fsencode(name), digest_size=8).digest(), "big")

    def _wanted(self, prediction: Prediction) -> PurePath:
        """Return where a picture would lie if it were the only one."""
        place = PurePath(Path(prediction.name or f"image_{prediction.index:04d}").name or "image")
        if prediction.path:
            relative = os.path.relpath(prediction.path, self._root)
            inside = relative.split(os.sep, 1)[0] != os.pardir
            place = PurePath(relative if inside else Path(prediction.path).name)
        # Names come from servers and files, too: no file can be called so, or is where it seems to be.
        place = PurePath(_writable(str(place)))
        if place.name in ("", ".."):
            place = place.with_name("image") if place.name else PurePath("image")
        if prediction.frame_index is not None and not _is_frame(place, prediction.frame_index):
            place = place.with_name(f"{place.stem}_{prediction.frame_index:06d}.png")
        if self._suffixes is not None and place.suffix.lower() not in self._suffixes:
            place = place.with_name(f"{place.name}.png")
        return place


def _whose(prediction: Prediction) -> int | None:
    """Return a number that stands for an input; None where nothing says which it is: a name does not."""
    source = (prediction.path, prediction.url, prediction.image_id, prediction.video_id)
    return None if all(each is None for each in source) else hash((*source, prediction.frame_index))


def _writable(name: str) -> str:
    """Return a name that a file can have, half characters included that no file system gives or takes."""
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        name = "".join(each if _is_encodable(each) else "_" for each in name)
    return name.replace("\0", "_")


def _is_encodable(character: str) -> bool:
    """Whether a file name can have a character."""
    try:
        os.fsencode(character)
    except UnicodeEncodeError:
        return False
    return True


def _is_frame(place: PurePath, index: int) -> bool:
    """Whether a place is that of a frame's picture, not its clip's."""
    return place.suffix.lower() == ".png" and place.stem.endswith(f"_{index:06d}")


def shortened(stem: str) -> str:
    """Return a stem that leaves room for a number within a file name's length.

    Parameters
    ----------
    stem : str
        Of a file's name.

    Returns
    -------
    str
        The stem, or its beginning and eight digits that tell it from others that begin so.
    """
    data = os.fsencode(stem)
    if len(data) <= LONGEST_NAME:
        return stem
    digest = hashlib.blake2b(data, digest_size=4).hexdigest()
    return f"{data[: LONGEST_NAME - 9].decode(errors='ignore')}_{digest}"


def common_folder(sources: Iterable[object]) -> str | None:
    """Return the folder that all sources lie in.

    Parameters
    ----------
    sources : iterable
        What was handed in: paths of folders and files; anything else lies nowhere.

    Returns
    -------
    str or None
        None where there is none.
    """
    common: str | None = None
    for source in sources:
        if not isinstance(source, str | os.PathLike) or str(source).startswith(("http://", "https://")):
            continue
        path = Path(os.fsdecode(source)).absolute()
        if common is None:
            common = str(_folder_of(path))
        elif not path.is_relative_to(common):
            common = os.path.commonpath([common, _folder_of(path)])
    return common


def _folder_of(path: Path) -> Path:
    """Return a folder itself, or the one a file lies in; what cannot be looked at is taken for a file."""
    try:
        return path if path.is_dir() else path.parent
    except OSError:
        return path.parent
