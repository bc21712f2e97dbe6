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
import re
from collections.abc import Iterator
from pathlib import PurePath

from predsession.export.facts import facts_of, without_score
from predsession.export.foldered import Foldered
from predsession.export.folders import readable, write_whole
from predsession.export.growingmeta import ids_of
from predsession.export.losses import losses_of_boxes
from predsession.export.target import Target
from predsession.export.voc_list import ANNOTATIONS, PictureList
from predsession.export.voc_reading import FACTS, PICTURES
from predsession.prediction import Prediction

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

    def _open(self, target: Target) -> None:
        """Look at the list that is there."""
        # Readers such as torchvision's find pictures by this list alone.
        self._list = PictureList(target)

    def _write(self, prediction: Prediction) -> None:
        """Write a prediction's files."""
        place = readable(self._places.place(prediction), ".xml")
        self.left_out += losses_of_boxes(prediction)
        self._put(prediction, PICTURES, place)
        lines = ["<annotation>", *self._head(prediction, place)]
        for row in range(len(prediction)):
            lines += self._object(prediction, row)
        text = "\n".join((*lines, "</annotation>", ""))
        write_whole(self._folder / ANNOTATIONS / place.with_suffix(".xml"), text.encode())
        self._list.add(place.with_suffix("").as_posix())

    def finish(self) -> None:
        """Cut the list to what was written; each file was complete as it was written."""
        super().finish()
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
        yield from (self._leaf(key, str(facts[key]), 4) for key in FACTS if key in facts)
        for title, number in ids_of(prediction).items():
            yield self._leaf("class", title, 4, f' id="{number}"')
        yield "  </predsession>"

    def _object(self, prediction: Prediction, row: int) -> Iterator[str]:
        """Describe one object."""
        x1, y1, x2, y2 = box = prediction.boxes[row].tolist()
        if any(side != int(side) for side in box):
            self.left_out["fractions of boxes"] += 1
        elif x1 == x2 or y1 == y2:
            self.left_out["boxes without an area"] += 1
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
