"""Pascal VOC: an XML file a picture, with boxes in whole pixels.

Pixels are numbered from 1 there, and a box names its first and its last: what is 0 to 10 here, half-open, is
1 to 10. That is what the devkit says and what most readers take, the supervision package among them; labelImg
and others write pixels from 0 under the same names, which no reader can tell apart. Numbers are whole, since
many readers refuse others.

References
----------
http://host.robots.ox.ac.uk/pascal/VOC/voc2012/devkit_doc.pdf, section 4: annotations.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers import expat

from predsession.errors import PredSessionError, SourceError
from predsession.export.facts import Found, facts_of, prediction_from, without_score
from predsession.export.foldered import Foldered
from predsession.export.folders import files_below, picture_path, read_whole, write_whole
from predsession.export.growing import GrowingFile
from predsession.export.growingmeta import GrowingMeta, ids_of
from predsession.export.losses import losses_of_boxes
from predsession.export.target import Target
from predsession.prediction import Prediction
from predsession.wire.fields import MAX_COORDINATE
from predsession.wire.geometry import Box, Size
from predsession.wire.jsontypes import JSON

ANNOTATIONS, PICTURES = "Annotations", "JPEGImages"
LIST = PurePath("ImageSets", "Main", "trainval.txt")
_FACTS = {"index": int, "name": str, "url": str, "frame_index": int, "timestamp": float}
"""What is kept of where a prediction comes from, beside its path; readers pass over what they do not know."""
# XML 1.0, section 2.2: what is no character there. A reference to one is no way around it.
_NO_CHARACTER = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})


class VocWriter(Foldered):
    """Writes each prediction into a file of its own as it comes, and its picture if that is wanted.

    Parameters
    ----------
    target : Target
        The folder; it gets ``Annotations``, ``ImageSets/Main/trainval.txt`` with the pictures' names, and, if
        that is wanted, ``JPEGImages``.

    Raises
    ------
    SourceError
        If it holds something and may not be touched, or cannot be written to.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        # Readers such as torchvision's find pictures by this list alone.
        self._list = GrowingFile(replace(target, path=target.path / LIST), lambda _: 0)

    def _write(self, prediction: Prediction) -> None:
        """Write a prediction's files."""
        place = self._places.place(prediction)
        self.left_out += losses_of_boxes(prediction)
        self._put(prediction, PICTURES, place)
        lines = ["<annotation>", *self._head(prediction, place)]
        for row in range(len(prediction)):
            lines += self._object(prediction, row)
        text = "\n".join((*lines, "</annotation>", ""))
        write_whole(self._folder / ANNOTATIONS / place.with_suffix(".xml"), text.encode())
        self._list.write(os.fsencode(f"{place.with_suffix('').as_posix()}\n"))

    def finish(self) -> None:
        """Cut the list to what was written; each file was complete as it was written."""
        self._list.finish()

    def close(self) -> None:
        """Close the list, and let others write to the folder."""
        self._list.close()
        super().close()

    def _head(self, prediction: Prediction, place: PurePath) -> Iterator[str]:
        """Say which picture it is."""
        facts = facts_of(prediction)
        yield self._leaf("folder", PurePath(PICTURES, place.parent).as_posix())
        yield self._leaf("filename", place.name)
        yield self._leaf("path", prediction.path or prediction.url or "")
        yield "  <source><database>Unknown</database></source>"
        width, height = prediction.size
        yield f"  <size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
        yield "  <segmented>0</segmented>"
        yield "  <predsession>"
        yield from (self._leaf(key, str(facts[key]), 4) for key in _FACTS if key in facts)
        for title, number in ids_of(prediction).items():
            yield self._leaf("class", title, 4, f' id="{number}"')
        yield "  </predsession>"

    def _object(self, prediction: Prediction, row: int) -> Iterator[str]:
        """Describe one object."""
        x1, y1, x2, y2 = box = prediction.boxes[row].tolist()
        self.left_out["fractions of boxes"] += any(side != int(side) for side in box)
        self.left_out = +self.left_out
        left, top = _nearest(x1) + 1, _nearest(y1) + 1
        corners = {"xmin": left, "ymin": top, "xmax": max(_nearest(x2), left), "ymax": max(_nearest(y2), top)}
        yield "  <object>"
        yield self._leaf("name", prediction.classes[row], 4)
        yield "    <pose>Unspecified</pose>"
        yield "    <truncated>0</truncated>"
        yield "    <difficult>0</difficult>"
        yield f"    <bndbox>{''.join(f'<{key}>{value}</{key}>' for key, value in corners.items())}</bndbox>"
        if without_score(prediction.object_tags[row])[1]:
            yield f"    <score>{prediction.scores[row]!s}</score>"
        if prediction.track_ids is not None and prediction.track_ids[row] >= 0:
            yield f"    <track_id>{prediction.track_ids[row]}</track_id>"
        yield "  </object>"

    def _leaf(self, name: str, text: str, indent: int = 2, attributes: str = "") -> str:
        """Return an element that holds a text."""
        clean, count = _NO_CHARACTER.subn("\ufffd", text)
        if count:
            self.left_out["characters that XML does not have"] += count
        return f"{' ' * indent}<{name}{attributes}>{clean.translate(_MARKUP)}</{name}>"


def _nearest(value: float) -> int:
    """Return the nearest whole number, halves upwards: neighbouring boxes stay neighbours."""
    return math.floor(value + 0.5)


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
    size = Size(*(int(_text(root, f"size/{side}")) for side in ("width", "height")))
    ours = root.find("predsession")
    # Others may have set a name on a line of its own; in ours, blanks are meant.
    found = [_found(each, row, plain=ours is None) for row, each in enumerate(root.iterfind("object"))]
    name, said = root.findtext("filename") or file.stem, root.findtext("path") or ""
    facts = {} if ours is None else _facts(ours)
    ids = None if ours is None else _ids(ours)
    beside = _beside(file, name)
    if facts and said == facts.get("url"):
        said = ""
    return prediction_from(
        {**facts, "path": picture_path(said, beside)},
        size,
        found,
        meta=growing.with_titles(each.title for each in found),
        ids=ids,
        index=number,
        name=name,
        path=None,
    )


def _facts(ours: Element) -> Mapping[str, JSON]:
    """Read where the prediction comes from."""
    return {each.tag: _FACTS[each.tag](each.text or "") for each in ours if each.tag in _FACTS}


def _ids(ours: Element) -> dict[str, int]:
    """Read the numbers of the classes that were found."""
    return {each.text or "": int(each.get("id", "-1")) for each in ours.iterfind("class")}


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
