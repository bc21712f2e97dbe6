"""Pascal VOC's files, ours and others', back to predictions: boxes of pixels that are numbered from 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers import expat

from predsession.errors import PredSessionError, SourceError
from predsession.export.beside import with_copy
from predsession.export.facts import Found, prediction_from
from predsession.export.folders import files_below, picture_path, read_whole
from predsession.export.growingmeta import GrowingMeta, ids_from
from predsession.export.heads import upright_size
from predsession.export.voc_list import ANNOTATIONS
from predsession.prediction import Prediction
from predsession.wire.fields import MAX_COORDINATE
from predsession.wire.geometry import Box, Size
from predsession.wire.jsontypes import JSON

PICTURES = "JPEGImages"
_IDS = ("frame_index", "project_id", "dataset_id", "image_id", "video_id")
FACTS = {"index": int, "name": str, "url": str, "timestamp": float, **dict.fromkeys(_IDS, int)}
"""What is kept of where a prediction comes from, beside its path; readers pass over what they do not know."""


def read_voc(path: Path) -> Iterator[Prediction]:
    """Read a folder of Pascal VOC annotations, or one file of it.

    Parameters
    ----------
    path : Path
        With a folder ``Annotations``, or itself full of XML files.

    Yields
    ------
    Prediction
        Boxes, in the order of the files' names; classes are numbered as they come.

    Raises
    ------
    SourceError
        If a file is damaged; names it, and the object.
    """
    within = path / ANNOTATIONS
    folder = within if within.is_dir() else path
    meta = GrowingMeta()
    for number, file in enumerate(files_below(folder, ".xml")):
        try:
            yield _prediction(file, number, meta)
        except (expat.ExpatError, ParseError, ValueError, OverflowError, PredSessionError) as error:
            said = str(error)
            raise SourceError(said if said.startswith(str(file)) else f"{file}: {said}") from None


def _prediction(file: Path, number: int, growing: GrowingMeta) -> Prediction:
    """Read one file."""
    root = parse(read_whole(file))
    if root.tag != "annotation":
        raise ValueError(f"<{root.tag}> is no annotation of Pascal VOC")
    ours = root.find("predsession")
    # Others may have set a name on a line of its own; in ours, blanks are meant.
    found = [_found(each, row, plain=ours is None) for row, each in enumerate(root.iterfind("object"))]
    name, said = root.findtext("filename") or file.stem, root.findtext("path") or ""
    facts = {} if ours is None else _facts(ours)
    meta, ids = (
        growing.with_numbers(_ids(ours))
        if ours is not None
        else (growing.with_titles(each.title for each in found), None)
    )
    beside = _beside(file, name)
    if facts and said == facts.get("url"):
        said = ""
    path = picture_path(said, beside, of_frame="frame_index" in facts)
    made = prediction_from(
        {**facts, "path": path},
        _size(root, beside if "frame_index" in facts or path is None else Path(path)),
        found,
        meta=meta,
        ids=ids,
        index=number,
        name=name,
        path=None,
    )
    return with_copy(made, beside)


def _size(root: Element, picture: Path) -> Size:
    """Read the picture's size; where it is missing, or 0 as some tools leave it, look at the picture."""
    said = [float(root.findtext(f"size/{side}") or 0) for side in ("width", "height")]
    if all(said):
        return Size(*(_whole(side) for side in said))
    if not picture.is_file():
        raise ValueError(f"there is no <size> of its picture, and no picture {picture} to look at")
    return upright_size(picture)


def _whole(number: float) -> int:
    """Return a whole number; raises ValueError for another."""
    if not number.is_integer():
        raise ValueError(f"{number} is no side of a picture")
    return int(number)


def _facts(ours: Element) -> Mapping[str, JSON]:
    """Read where the prediction comes from."""
    return {each.tag: FACTS[each.tag](each.text or "") for each in ours if each.tag in FACTS}


def _ids(ours: Element) -> dict[str, int]:
    """Read the numbers of the classes that were found."""
    return ids_from({each.text or "": int(each.get("id", "-1")) for each in ours.iterfind("class")})


def _beside(file: Path, name: str) -> Path:
    """Return where the picture lies, if it was put beside the annotations."""
    for above in file.parents:
        if above.name == ANNOTATIONS:
            return above.parent / PICTURES / file.parent.relative_to(above) / name
    return file.with_name(name)


def _found(item: Element, row: int, *, plain: bool) -> Found:
    """Read one object."""
    try:
        score, track = item.findtext("score"), item.findtext("track_id")
        return Found(
            title=_text(item, "name", plain=plain),
            box=_box(item),
            score=None if score is None else float(score),
            track=None if track is None else int(track),
        )
    except ValueError as error:
        raise ValueError(f"object {row}: {error}") from None


def _box(item: Element) -> Box:
    """Read a box; corners may come in either order, and numbers with fractions."""
    x1, y1, x2, y2 = (float(_text(item, f"bndbox/{side}")) for side in ("xmin", "ymin", "xmax", "ymax"))
    (x1, x2), (y1, y2) = sorted((x1, x2)), sorted((y1, y2))
    if not all(abs(side) <= MAX_COORDINATE for side in (x1, y1, x2, y2)):
        raise ValueError(f"a box of {x1}, {y1}, {x2}, {y2} is nowhere in a picture")
    return x1 - 1, y1 - 1, x2, y2


def _text(item: Element, place: str, *, plain: bool = True) -> str:
    """Return the text of an element inside; raises ValueError where there is none."""
    text = item.findtext(place)
    if text is None:
        raise ValueError(f"there is no <{place.replace('/', '><')}>")
    return text.strip() if plain else text


def parse(data: bytes) -> Element:
    """Parse XML that need not be trusted: without definitions of its own, so nothing grows by being read.

    Parameters
    ----------
    data : bytes
        A document.

    Returns
    -------
    Element
        Its root.

    Raises
    ------
    ValueError
        If it has a document type, whose entities could stand for any amount of text, or for another file.
    ExpatError
        If it is no XML.
    """
    tree, parser = TreeBuilder(), expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = tree.start
    parser.EndElementHandler = tree.end
    parser.CharacterDataHandler = tree.data
    parser.StartDoctypeDeclHandler = _refuse
    parser.Parse(data, True)
    return tree.close()


def _refuse(*_: object) -> None:
    """Refuse a document type."""
    raise ValueError("it has a document type (<!DOCTYPE ...>), which is not read")
