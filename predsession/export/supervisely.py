"""Supervisely's project folder: ``meta.json``, and in each dataset pictures and annotations.

The annotation is the wire's own, so every geometry survives. Where predictions come from is under the key
``predsession``, which their SDK passes over. The folders of the pictures become datasets, nested as they are
(``a/datasets/b/img/1.jpg``); pictures without a folder go into the dataset ``ds0``. A picture without a file
keeps its annotation, which is read back, but their SDK does not list it.

References
----------
https://docs.supervisely.com/data-organization/00_ann_format_navi
Supervisely 6.74.51, `supervisely.project.project`: which names of folders are passed over, and which pictures
are listed.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePath

from predsession.errors import PredSessionError, SourceError
from predsession.export.beside import with_copy
from predsession.export.facts import OURS, facts_of
from predsession.export.foldered import Foldered
from predsession.export.folders import picture_path, read_whole, write_whole
from predsession.export.growingmeta import GrowingMeta, KnownMeta, ids_from, ids_of
from predsession.export.projectmeta import ProjectMeta, numbers_of
from predsession.export.sdkobjects import SdkObjects
from predsession.export.target import Target, on_disk
from predsession.export.validjson import NOT_FINITE, valid_json
from predsession.prediction import Prediction
from predsession.wire.jsontext import loads
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object
from predsession.wire.meta import ModelMeta

META, PICTURES, ANNOTATIONS, NESTED = "meta.json", "img", "ann", "datasets"
LOOSE = "ds0"
"""The dataset of pictures without a folder."""
_PASSED_OVER = ("ann", "blob", "datasets", "img", "img_info", "meta", "seg")
"""Their SDK opens no folder whose name ends so: "Hermann" as little as "ann"."""
_SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"))
"""Of pictures that their SDK lists and that anything can write; others become PNG."""


class SuperviselyWriter(Foldered):
    """Writes each prediction into a file of its own as it comes, and its picture beside.

    Parameters
    ----------
    target : Target
        The folder. Pictures are copied, or linked if that is wanted: without them it is no project.

    Raises
    ------
    SourceError
        If it holds something and may not be touched, cannot be written to, or its ``meta.json`` is damaged.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target, by_stem=False, images="copy")
        try:
            self._meta = ProjectMeta(_known(target.path))
        except BaseException:
            self.close()
            raise
        self._objects = SdkObjects(self._meta, self.left_out)

    def _write(self, prediction: Prediction) -> None:
        """Write a prediction's files."""
        shown = _with_picture(prediction)
        place = self._places.place(shown)
        dataset, name = dataset_of(place.parent), place.name
        annotation = self._objects.annotation_of(prediction)
        facts = {key: value for key, value in facts_of(prediction).items() if key != "tags"}
        annotation[OURS] = {**facts, "class_ids": {**ids_of(prediction)}}
        if self._meta.has_grown:
            # Before what needs it: whoever opens the folder at any time can read all that is in it.
            self._write_meta()
        self._make_folders(dataset)
        # Escaped, since a file name that is not UTF-8 can be written in no other way.
        content, lost = valid_json(annotation)
        if lost:
            self.left_out[NOT_FINITE] += lost
        write_whole(self._folder / dataset / ANNOTATIONS / f"{name}.json", content.encode())
        # The picture last: their SDK passes over an annotation without one, but opens no dataset that has a
        # picture without an annotation.
        self._put(shown, dataset / PICTURES, PurePath(name))

    def finish(self) -> None:
        """Complete the folder: a project without any prediction has a ``meta.json``, too."""
        super().finish()
        if self._meta.has_grown or not (self._folder / META).exists():
            self._write_meta()

    def _write_meta(self) -> None:
        """Write what is known of classes and tags."""
        write_whole(self._folder / META, json.dumps(self._meta.to_json(), indent=1).encode())

    def _make_folders(self, dataset: PurePath) -> None:
        """Make a dataset, and those that it lies in: each has both folders, or their SDK warns."""
        for each in (dataset, *dataset.parents):
            place = self._folder / each
            if each.name in ("", NESTED) or (place / ANNOTATIONS).is_dir():
                continue
            with on_disk(place):
                for inner in (PICTURES, ANNOTATIONS):
                    (place / inner).mkdir(parents=True, exist_ok=True)


def _known(folder: Path) -> JSONObject:
    """Return what a project that is there says of its classes: annotations that stay need them."""
    return _meta(folder)[0] if (folder / META).is_file() else {}


def _meta(folder: Path) -> tuple[JSONObject, ModelMeta]:
    """Read what a project says of its classes."""
    document = _document(folder / META)
    try:
        return document, ModelMeta.from_json(document)
    except PredSessionError as error:
        raise SourceError(f"{folder / META}: {error}") from None


def _document(file: Path) -> JSONObject:
    """Read a JSON object."""
    text = read_whole(file)
    try:
        value = loads(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{file}: not JSON ({error})") from None
    if not isinstance(value, dict):
        raise SourceError(f"{file}: not a JSON object")
    return value


def _with_picture(prediction: Prediction) -> Prediction:
    """Have a picture of a kind that their SDK does not list written as one that it does."""
    name = prediction.path or prediction.name
    if prediction.frame_index is not None or PurePath(name).suffix.lower() in _SUFFIXES:
        return prediction
    path = None if prediction.path is None else f"{prediction.path}.png"
    return replace(prediction, path=path, name=f"{prediction.name}.png", loader=prediction.load_image)


def dataset_of(folder: PurePath) -> PurePath:
    """Return the dataset for the pictures of a folder.

    Parameters
    ----------
    folder : PurePath
        Relative.

    Returns
    -------
    PurePath
        ``a/b`` becomes ``a/datasets/b``. A name that their SDK would pass over gets a ``_``, and so does one
        that ends in ``_`` for that reason already: no two folders become one.
    """
    names = [f"{part}_" if _is_taken(part) else part for part in folder.parts] or [LOOSE]
    return PurePath(f"/{NESTED}/".join(names))


def _is_taken(name: str) -> bool:
    """Whether a folder's name means something else in a project."""
    bare = name.rstrip("_")
    return bare.endswith(_PASSED_OVER) or bare.casefold() in (LOOSE, META)


def read_supervisely(path: Path) -> Iterator[Prediction]:
    """Read the annotations of a project folder, or of one of its datasets.

    Parameters
    ----------
    path : Path
        With ``meta.json`` and datasets; or a dataset, with ``ann``, whose project lies above it. Without a
        project, classes are numbered as they come.

    Yields
    ------
    Prediction
        Dataset by dataset, a parent before what is nested in it, in the order of names.

    Raises
    ------
    SourceError
        If a file is damaged, or it is a project of videos or anything else but pictures; names it.
    """
    is_dataset = not (path / META).is_file() and (path / ANNOTATIONS).is_dir()
    project = _project_above(path) if is_dataset else path
    known = _known_of_pictures(project) if project else GrowingMeta()
    for number, file in enumerate(_of_dataset(path) if is_dataset else _annotations(path)):
        try:
            yield _prediction(file, number, known)
        except SourceError:
            raise
        except PredSessionError as error:
            raise SourceError(f"{file}: not an annotation of Supervisely ({error})") from None


def _project_above(dataset: Path) -> Path | None:
    """Return the project that a dataset lies in, perhaps nested in other datasets; None without one."""
    above = dataset.absolute().parent
    while above.name == NESTED:
        above = above.parent.parent
    return above if (above / META).is_file() else None


def _known_of_pictures(project: Path) -> KnownMeta:
    """Read what a project says of its classes; refuse one whose annotations are of another kind."""
    document, meta = _meta(project)
    kind = document.get("projectType") or "images"
    if kind != "images":
        raise SourceError(f"{project}: a project of Supervisely of {kind}; only those of images can be read")
    places = {title: number for number, title in enumerate(meta.names)}
    return KnownMeta(meta, numbers_of(document) or places)


def _annotations(folder: Path) -> Iterator[Path]:
    """List the annotations of the datasets in a folder."""
    try:
        datasets = sorted(each for each in folder.iterdir() if each.is_dir())
        for dataset in datasets:
            yield from _of_dataset(dataset)
    except OSError as error:
        raise SourceError(f"{folder} cannot be read ({error.strerror or error})") from None


def _of_dataset(dataset: Path) -> Iterator[Path]:
    """List the annotations of one dataset, and of those that are nested in it."""
    if (dataset / ANNOTATIONS).is_dir():
        yield from sorted((dataset / ANNOTATIONS).glob("*.json"))
    if (dataset / NESTED).is_dir():
        yield from _annotations(dataset / NESTED)


def _picture(folder: Path, name: str) -> Path:
    """Return an annotation's picture; in old projects, an annotation's name is without its suffix."""
    if (folder / name).is_file():
        return folder / name
    return next(iter(sorted(folder.glob(f"{glob.escape(name)}.*"))), folder / name)


def _prediction(file: Path, number: int, known: KnownMeta | GrowingMeta) -> Prediction:
    """Read one annotation."""
    annotation = dict(_document(file))
    if "frames" in annotation:
        raise SourceError(f"{file}: an annotation of a video; only those of images can be read")
    facts = as_object(annotation.pop(OURS, None))
    name = file.name.removesuffix(".json")
    beside = _picture(file.parent.parent / PICTURES, name)
    said, is_frame = facts.get("path"), facts.get("frame_index") is not None
    path = picture_path(said if isinstance(said, str) else "", beside, of_frame=is_frame)
    item: dict[str, JSON] = {key: value for key, value in facts.items() if key not in ("tags", "class_ids")}
    index = facts.get("index")
    ids: Mapping[str, int] | None = None
    if isinstance(known, KnownMeta) or "class_ids" in facts:
        meta, ids = known.with_numbers(ids_from(facts.get("class_ids")))
    else:
        titles = [as_object(each).get("classTitle") for each in as_list(annotation.get("objects"))]
        meta = known.with_titles(title for title in titles if isinstance(title, str))
    made = Prediction.from_wire(
        {**item, "path": path, "annotation": annotation},
        meta=meta,
        index=index if isinstance(index, int) else number,
        name="" if "name" in facts else beside.name,
        path=None,
        url=None,
    )
    return with_copy(replace(made, ids=ids), beside)
