"""Predictions back from files and folders, of each format that holds what a prediction needs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal, overload

from predsession.errors import ItemError, SourceError
from predsession.export.folders import files_below
from predsession.export.formats import FORMATS, Format, Outcomes
from predsession.export.held import is_held
from predsession.export.readers import reading
from predsession.export.yolo_finding import labels_of
from predsession.export.yolo_layout import DATA, LABELS, YAML, find_description
from predsession.inputs.folders import is_clip
from predsession.inputs.video.reading import FrameLoader
from predsession.prediction import Prediction

LOOKED_AT = 1 << 16
"""Bytes of a JSON document that are read to find out which format it is."""
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]')
_LABELME = frozenset((b"shapes", b"imageData", b"imagePath"))
_COCO = frozenset((b"images", b"annotations", b"categories"))


@overload
def read_predictions(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    on_error: Literal["skip", "raise"] = "skip",
) -> Iterator[Prediction]: ...
@overload
def read_predictions(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    on_error: Literal["yield"],
) -> Iterator[Prediction | ItemError]: ...
def read_predictions(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 - the user's word
    *,
    on_error: Literal["skip", "raise", "yield"] = "skip",
) -> Iterator[Prediction] | Iterator[Prediction | ItemError]:
    """Read predictions from a file or a folder.

    Parameters
    ----------
    path : str or PathLike
        What `save_predictions`, `PredictionSession.save`, or somebody else's tool wrote.
    format : str or None
        ``"jsonl"``, ``"csv"``, ``"coco"``, ...: docs/exports.md has all. Without it, what the path looks
        like.
    on_error : {"skip", "raise", "yield"}
        What becomes of the errors of items, which JSON lines keep.

    Returns
    -------
    iterator of Prediction, and of ItemError with ``on_error="yield"``
        In the file's order, read as they are asked for.

    Raises
    ------
    SourceError
        If there is no such file, it is of no format that can be read, or it is damaged; names the place.
    ItemError
        With ``on_error="raise"``, in its place.
    MissingExtraError
        If the format needs an extra.
    ValueError
        If `on_error` is another word.
    """
    if on_error not in ("skip", "raise", "yield"):
        raise ValueError(f"on_error must be 'skip', 'raise' or 'yield', not {on_error!r}")
    place = Path(path)
    found = format_of(format, place)
    assert found.read is not None, "format_of looks at it"
    return _passed(place, found.read(place), on_error)


def _passed(path: Path, outcomes: Outcomes, on_error: str) -> Iterator[Prediction | ItemError]:
    """Pass outcomes on, without errors or up to the first."""
    if is_held(path):
        raise SourceError(
            f"{path} is being written by this program, which would find it cut off: write into another "
            "place, or read all of it first (list)"
        )
    with reading(path), _told(path):
        for outcome in outcomes:
            if not isinstance(outcome, ItemError):
                yield _with_frame(outcome)
            elif on_error == "raise":
                raise outcome
            elif on_error == "yield":
                yield outcome


def _with_frame(prediction: Prediction) -> Prediction:
    """Have a frame decoded from its clip, where nothing else is known of its picture."""
    index = prediction.frame_index
    if prediction.loader is not None or index is None or not is_clip(prediction.path):
        return prediction
    assert prediction.path is not None, "it is a clip's"
    return replace(prediction, loader=FrameLoader(prediction.path, index))


def format_of(name: str | None, path: Path) -> Format:
    """Find out which format a file or folder is of.

    Parameters
    ----------
    name : str or None
        As the user says it.
    path : Path
        What is to be read.

    Returns
    -------
    Format
        One that can be read.

    Raises
    ------
    SourceError
        If there is no such file or format, or it cannot be read.
    """
    with _told(path):
        try:
            path.stat()
        except ValueError:
            raise SourceError(f"{path}: there is no such file or folder") from None
        name = name or _looks_like(path)
    readable = [each.name for each in FORMATS.values() if each.read is not None]
    if name not in readable:
        said = f"{name} cannot be read back" if name in FORMATS else f"{path} looks like no format of ours"
        raise SourceError(f"{said}; formats that can be read: {', '.join(readable)}")
    return FORMATS[name]


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what a file system says to a look at a file or folder into `SourceError`, which names it."""
    try:
        yield
    except SourceError:
        raise
    except OSError as error:
        place = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else path
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise SourceError(f"{place}: there is no such file or folder") from None
        raise SourceError(f"{place} cannot be read ({error.strerror or error})") from None


def _looks_like(path: Path) -> str | None:
    """Return the format that a path looks like."""
    if path.is_dir():
        return _folder_looks_like(path)
    suffix = path.suffix.lower()
    if suffix == ".json":
        if not path.is_file():
            # What is looked at in a pipe is gone for the reader.
            raise SourceError(f"{path} is no file, so its format must be named: coco or labelme")
        keys = _keys(path)
        return "labelme" if keys & _LABELME and not keys & _COCO else "coco"
    known = {known: each.name for each in FORMATS.values() for known in each.suffixes}
    # One file of a folder says which format it is of; so does what describes a data set.
    return {**known, ".xml": "voc", **dict.fromkeys(YAML, "yolo")}.get(suffix)


def _keys(path: Path) -> set[bytes]:
    """Return the keys of a JSON object, as far as its beginning has them."""
    with path.open("rb") as file:
        head = file.read(LOOKED_AT)
    depth, keys = 0, set[bytes]()
    for token in _TOKEN.finditer(head):
        if token[1] is None:
            depth += 1 if token[0] in b"{[" else -1
        elif token[2] and depth == 1:
            keys.add(token[1])
    return keys


def _folder_looks_like(path: Path) -> str | None:
    """Return the format that a folder looks like."""
    if (path / DATA).is_file():
        return "yolo"
    if (path / "meta.json").is_file() or ((path / "ann").is_dir() and (path / "img").is_dir()):
        return "supervisely"
    labels = (each for each in files_below(path, ".txt") if LABELS in each.relative_to(path).parts[:-1])
    if find_description(path) is not None or next(labels, None) is not None:
        return "yolo"
    for suffix, name in ((".xml", "voc"), (".json", "labelme")):
        if (found := next(files_below(path, suffix), None)) is not None:
            if name == "labelme" and _keys(found) & _COCO:
                raise SourceError(f"{found} looks like a COCO document; name it instead of its folder")
            return name
    return "yolo" if labels_of(path) else None
