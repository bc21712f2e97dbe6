"""Predictions written back to the library, as Supervisely's annotation files.

Invariant: an object's key is made of its job and place. So a batch that is written twice, because the server
died in between, is there once.
"""

from __future__ import annotations

import contextlib
import filecmp
import itertools
import json
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from predsession.server.annotations import (
    WritingError,
    merged,
    read_file,
    save_file,
    stored_object,
    with_classes,
)
from predsession.server.inference import describe_error
from predsession.server.job import Advance, Job
from predsession.server.library import Library, Record
from predsession.server.work import WriteWork
from predsession.wire.jsontypes import JSONObject, as_list, as_object

MODES = ("append", "replace", "create", "iou_merge")
_META = "meta.json"


class _Place(NamedTuple):
    """Where a prediction belongs."""

    project: Path
    annotation: Path


class Writing:
    """Writes the results of jobs back.

    Parameters
    ----------
    library : Library
        Where to.
    """

    def __init__(self, library: Library) -> None:
        self._library = library

    def apply(self, part: Advance) -> Advance:
        """Write the next results of a job; for a thread.

        Parameters
        ----------
        part : Advance
            The results, each of an image of the library, or an error.

        Returns
        -------
        Advance
            The same; if something cannot be written, with that as what ends the job.
        """
        written = 0
        try:
            for item in part.items:
                self._write(part.job, part.first + written, json.loads(item))
                written += 1
        except Exception as error:  # noqa: BLE001 - the job's results are not where they should be, whyever
            failure = describe_error(error)
            return Advance(part.job, part.first, part.items[:written], part.settled, failure)
        return part

    def _write(self, job: Job, number: int, item: JSONObject) -> None:
        """Write one result; an error leaves what is there as it is."""
        writing, records = job.facts.writing, job.facts.records
        assert writing is not None
        assert records is not None
        if "error" in item:
            return
        record = self._library.record("image", records[number - 1])
        if record is None:
            raise WritingError(f"image {records[number - 1]} is no longer in the library")
        place = self._place(record, writing)
        predicted = as_object(item["annotation"])
        fresh = [
            stored_object(as_object(one), job.uuid, number, row)
            for row, one in enumerate(as_list(predicted["objects"]))
        ]
        meta = read_file(place.project / _META)
        complete = with_classes(meta, fresh, suffix=writing.suffix)
        if complete is not meta:
            save_file(place.project / _META, complete)
        present = read_file(place.annotation)
        mode, threshold = writing.mode, writing.threshold
        save_file(place.annotation, merged(present, predicted, fresh, mode=mode, threshold=threshold))

    def _place(self, record: Record, writing: WriteWork) -> _Place:
        """Return where the annotation of an image belongs; bring the image there, if to another project."""
        root = self._library.root
        if writing.project is None or writing.project == record.project:
            return _Place(root / record.project, self._checked(self._library.annotation(record)))
        source = self._library.file("image", record.id)
        if source is None:
            raise WritingError(f"image {record.id} is no longer in the library")
        dataset = self._checked(root / writing.project / _dataset_name(record))
        image = self._checked(_free_place(dataset / record.name, source))
        if not image.exists():
            image.parent.mkdir(parents=True, exist_ok=True)
            _bring(source, image)
        return _Place(
            root / writing.project, self._checked(dataset / "ann" / f"{image.relative_to(dataset)}.json")
        )

    def _checked(self, path: Path) -> Path:
        """Return a path if it lies inside the library, whatever links there are."""
        if not path.resolve().is_relative_to(self._library.root):
            raise WritingError(f"{path.name} would be written outside the library")
        return path


def _dataset_name(record: Record) -> str:
    """Return the name of a dataset in another project; files without a dataset of their own get one."""
    name = record.dataset.rsplit("/", 1)[-1]
    return "files" if name == "." else name


def _free_place(wanted: Path, source: Path) -> Path:
    """Return where a picture goes: under its name, or a numbered one if another picture has that."""
    for number in itertools.count(2):
        if not wanted.exists() or wanted.samefile(source) or filecmp.cmp(wanted, source, shallow=False):
            return wanted
        wanted = wanted.with_name(f"{source.stem}_{number}{source.suffix}")
    raise AssertionError("unreachable: counting does not end")


def _bring(source: Path, target: Path) -> None:
    """Put a picture into another project: the same file under a second name, or a copy if need be."""
    with contextlib.suppress(FileExistsError):
        try:
            os.link(source, target)
        except FileExistsError:
            raise
        except OSError:
            shutil.copy2(source, target)
