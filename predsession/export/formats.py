"""The formats that predictions are written in, each a file of this room.

To add one: write a file with a writer and, where it holds what a prediction needs, a reader, and a line here.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from predsession.errors import ItemError, SourceError
from predsession.export.target import Target
from predsession.export.writing import Writer
from predsession.prediction import Prediction

Outcomes = Iterator[Prediction | ItemError]


@dataclass(frozen=True, slots=True)
class Format:
    """One format.

    Parameters
    ----------
    name : str
        As the user says it.
    title : str
        What it is, in a few words.
    suffixes : tuple of str
        Of its files, the usual one first; none for a folder.
    write : callable
        What opens a writer.
    read : callable or None
        What reads a path; None where the format does not hold what a prediction needs.
    takes_images : bool
        Whether pictures can be put beside it.
    index : str or None
        The file's name where the path is that of a folder: without its suffix, such a file would not be
        opened as what it is. None where any name will do.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    write: Callable[[Target], Writer]
    read: Callable[[Path], Outcomes] | None
    takes_images: bool = False
    index: str | None = None

    def place(self, path: Path) -> Path:
        """Return the file or folder that is written where the user names a path.

        Parameters
        ----------
        path : Path
            As it was named.

        Returns
        -------
        Path
            For a format with an `index`, and a path without its suffix: that file in the folder. A pipe or a
            device is no folder.
        """
        if self.index is None or path.suffix.lower() in self.suffixes or _is_special(path):
            return path
        return path / self.index


def _is_special(path: Path) -> bool:
    """Whether there is something that is neither file nor folder."""
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError):  # there is nothing, or its writer tells what is wrong
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def _write_jsonl(target: Target) -> Writer:
    from predsession.export.jsonl import JsonlWriter

    return JsonlWriter(target)


def _read_jsonl(path: Path) -> Outcomes:
    from predsession.export.jsonl import read_lines

    return read_lines(path)


def _write_html(target: Target) -> Writer:
    from predsession.export.html import HtmlWriter

    return HtmlWriter(target)


def _write_csv(target: Target) -> Writer:
    from predsession.export.csvfile import CsvWriter

    return CsvWriter(target)


def _read_csv(path: Path) -> Outcomes:
    from predsession.export.csv_reading import read_csv

    return read_csv(path)


def _write_parquet(target: Target) -> Writer:
    from predsession.export.parquet import ParquetWriter

    return ParquetWriter(target)


def _read_parquet(path: Path) -> Outcomes:
    from predsession.export.parquet import read_parquet

    return read_parquet(path)


def _write_coco(target: Target) -> Writer:
    from predsession.export.coco import CocoWriter

    return CocoWriter(target)


def _read_coco(path: Path) -> Outcomes:
    from predsession.export.coco_reading import read_coco

    return read_coco(path)


def _write_voc(target: Target) -> Writer:
    from predsession.export.voc import VocWriter

    return VocWriter(target)


def _read_voc(path: Path) -> Outcomes:
    from predsession.export.voc_reading import read_voc

    return read_voc(path)


def _write_labelme(target: Target) -> Writer:
    from predsession.export.labelme import LabelMeWriter

    return LabelMeWriter(target)


def _read_labelme(path: Path) -> Outcomes:
    from predsession.export.labelme_reading import read_labelme

    return read_labelme(path)


def _write_supervisely(target: Target) -> Writer:
    from predsession.export.supervisely import SuperviselyWriter

    return SuperviselyWriter(target)


def _read_supervisely(path: Path) -> Outcomes:
    from predsession.export.supervisely import read_supervisely

    return read_supervisely(path)


def _write_yolo(task: str) -> Callable[[Target], Writer]:
    def write(target: Target) -> Writer:
        from predsession.export.yolo import Task, YoloWriter

        return YoloWriter(target, Task(task))

    return write


def _read_yolo(path: Path) -> Outcomes:
    from predsession.export.yolo_reading import read_yolo

    return read_yolo(path)


def _write_video(target: Target) -> Writer:
    from predsession.export.video import VideoExport

    return VideoExport(target)


FORMATS = {
    each.name: each
    for each in (
        Format("jsonl", "JSON lines, one a prediction", (".jsonl", ".ndjson"), _write_jsonl, _read_jsonl),
        Format("html", "one page to look at", (".html", ".htm"), _write_html, None, index="index.html"),
        Format("csv", "a table of boxes, a row an object", (".csv",), _write_csv, _read_csv),
        Format(
            "parquet",
            "a typed table, a row an object",
            (".parquet", ".pq"),
            _write_parquet,
            _read_parquet,
        ),
        Format("coco", "COCO: boxes, masks and keypoints in one JSON", (".json",), _write_coco, _read_coco),
        Format("voc", "Pascal VOC, an XML file a picture", (), _write_voc, _read_voc, takes_images=True),
        Format(
            "labelme",
            "LabelMe, a JSON file a picture",
            (),
            _write_labelme,
            _read_labelme,
            takes_images=True,
        ),
        Format(
            "supervisely",
            "a project folder for Supervisely, pictures included",
            (),
            _write_supervisely,
            _read_supervisely,
            takes_images=True,
        ),
        Format("yolo", "YOLO for detection: boxes", (), _write_yolo("yolo"), _read_yolo, takes_images=True),
        Format(
            "yolo-segment",
            "YOLO for segmentation: outlines",
            (),
            _write_yolo("yolo-segment"),
            _read_yolo,
            takes_images=True,
        ),
        Format(
            "yolo-pose",
            "YOLO for poses: boxes and keypoints",
            (),
            _write_yolo("yolo-pose"),
            _read_yolo,
            takes_images=True,
        ),
        Format(
            "video",
            "a clip with what was found, and tracks",
            (".mp4", ".m4v", ".mov", ".mkv"),
            _write_video,
            None,
        ),
    )
}
"""By name."""


def find_format(name: str | None, path: Path) -> Format:
    """Return a format by its name, or by that of a file that is to be written.

    Parameters
    ----------
    name : str or None
        As the user says it.
    path : Path
        Where it is written; its suffix says the format where there is no name.

    Returns
    -------
    Format
        The one.

    Raises
    ------
    SourceError
        If there is none of that name or suffix.
    """
    if name is not None:
        if name not in FORMATS:
            raise SourceError(f"there is no format {name!r}; wanted one of {', '.join(FORMATS)}")
        return FORMATS[name]
    suffix = path.suffix.lower()
    for each in FORMATS.values():
        if suffix in each.suffixes:
            return each
    raise SourceError(f"{path}: the name does not say which format is wanted; name one: {', '.join(FORMATS)}")
