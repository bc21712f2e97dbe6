"""One page to look at: thumbnails with what was found, filters, a histogram of scores, what failed.

Invariant: the page asks nobody for anything. Its policy forbids every address but its own folder, its script
and its style are known by their hashes, and what comes from outside is in it as data, never as markup.

Invariant: what was written by half can be opened. The page's head, style and script come first, then a line
for each outcome as it comes, so that memory stays flat and a run that was killed leaves a page that shows
what it had.

A picture takes at most 8 KB, its outlines and its tags at most 8 KB each, and each object about 40 bytes; of
more than 1,000 in a picture, the others about 12.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
import stat
from functools import cache
from pathlib import Path
from urllib.parse import quote

from predsession.errors import ItemError, PredSessionError, SourceError
from predsession.export.classes import ClassTable
from predsession.export.held import HeldFile
from predsession.export.sketches import Sketch, sketch_of
from predsession.export.table import losses_of_ids
from predsession.export.target import Existing, Target, on_disk
from predsession.export.thumbnails import KIND, packed, small_picture
from predsession.export.validjson import valid_json
from predsession.export.writing import Closing
from predsession.prediction import Prediction
from predsession.wire.colors import color_text
from predsession.wire.jsontypes import JSON, JSONObject

_FOLDER = Path(__file__).parent / "page"
_SCRIPTS = ("data", "drawing", "choosing", "grid", "labels", "detail", "failures", "main")
_BLOCK = 64
"""Outcomes in one block of data: a browser is spared one text of many megabytes."""
_OPEN, _SHUT = '<script type="application/json" class="data">\n', "</script>\n"
_SHOWN = frozenset((".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".avif"))
"""Files that browsers show."""
_LONGEST_REASON = 500
_ARGUMENTS = re.compile(r"; [^;]*\w=[^;]*$")
"""What a message says last to those who write Python."""


class HtmlWriter(Closing):
    """Writes outcomes into a page, each as it comes.

    A file that may be overwritten is replaced when the first outcome comes, not before.

    Parameters
    ----------
    target : Target, str or PathLike
        The page; its folder is made. A path alone must not be there yet. A page of a run that is resumed is
        written anew: it is made of what the run has kept.

    Raises
    ------
    SourceError
        If it is there and may not be touched, or cannot be written to.
    """

    def __init__(self, target: Target | str | os.PathLike[str]) -> None:
        super().__init__()
        target = target if isinstance(target, Target) else Target(path=Path(target))
        if target.existing is Existing.APPEND:
            raise SourceError(f"{target.path}: only JSON lines and CSV can be added to; choose another name")
        self._path, self._root = target.path, target.root
        self._classes = ClassTable()
        self._told: set[str] = set()
        self._count = -1
        # Opened now, so that a place that cannot be written to is told before anything is computed.
        self._held = HeldFile(target)
        self._file = self._held.file

    def write(self, outcome: Prediction | ItemError) -> None:
        """Write one outcome, and hand it to the operating system.

        Parameters
        ----------
        outcome : Prediction or ItemError
            What to write. A picture that cannot be had is counted in `left_out`, and its boxes are shown on
            gray. A prediction that is damaged is among what failed.

        Raises
        ------
        DiskError
            If it cannot be written; names the file.
        """
        lines = self._lines(outcome)
        with on_disk(self._path):
            self._begin()
            if self._count and self._count % _BLOCK == 0:
                self._put(_SHUT + _OPEN)
            self._put("".join(lines))
            self._count += 1
            self._file.flush()

    def finish(self) -> None:
        """Say in the page that it has all."""
        with on_disk(self._path):
            self._begin()
            self._put(_line({"end": True}) + _SHUT + "</body>\n</html>\n")
            self._file.flush()
        self._held.keep()

    def close(self) -> None:
        """Close the file; without `finish`, the page says that the run was broken off."""
        self._held.close()

    def _begin(self) -> None:
        """Write all that comes before the outcomes, once."""
        if self._count < 0:
            if self._path.is_file():
                self._file.truncate(0)
            self._put(_head(_title(self._path, self._root)) + _OPEN)
            self._count = 0

    def _put(self, text: str) -> None:
        """Write a text."""
        self._file.write(text.encode("utf-8", "replace"))

    def _lines(self, outcome: Prediction | ItemError) -> list[str]:
        """Return an outcome as lines, those of new classes first."""
        if isinstance(outcome, ItemError):
            return [_line({"item": _failure(outcome, outcome.reason)})]
        self._classes.learn(outcome)
        try:
            sketch = sketch_of(outcome, self._classes.number)
        except PredSessionError as error:
            self.left_out["damaged predictions"] += 1
            return [_line({"item": _failure(outcome, str(error))})]
        self.left_out.update(sketch.left_out + losses_of_ids(outcome))
        self.left_out["further data"] += bool(outcome.data)
        self.left_out = +self.left_out
        new = dict.fromkeys(title for title in outcome.classes if title not in self._told)
        self._told.update(new)
        return [
            *(_line({"class": self._class(title)}) for title in new),
            _line({"item": self._item(outcome, sketch)}),
        ]

    def _class(self, title: str) -> list[JSON]:
        """Return what the page must know of a class."""
        return [self._classes.number(title), title, color_text(self._classes.color(title))]

    def _item(self, prediction: Prediction, sketch: Sketch) -> dict[str, JSON]:
        """Return what the page must know of a picture."""
        item: dict[str, JSON] = {
            "index": prediction.index,
            "name": _name(prediction, self._root),
            "path": prediction.path or prediction.url,
            "frame": prediction.frame_index,
            "seconds": prediction.timestamp,
            "tags": sketch.tags or None,
            "size": list(prediction.size),
            "file": _address(prediction, self._path),
            "objects": sketch.objects,
            "further": sketch.further or None,
        }
        try:
            item["thumb"] = base64.b64encode(packed(small_picture(prediction))).decode("ascii")
            item["kind"] = KIND
        except Exception as error:  # noqa: BLE001 - a loader may be the caller's own; the boxes are good
            self.left_out["pictures that are gone"] += 1
            item["gone"] = _reason(_why(prediction, error))
            item["file"] = None
        return {key: value for key, value in item.items() if value is not None}


def _failure(outcome: Prediction | ItemError, reason: str) -> dict[str, JSON]:
    """Return what the page must know of an item without a prediction."""
    return {"index": outcome.index, "name": outcome.name, "path": outcome.path, "error": _reason(reason)}


def _why(prediction: Prediction, error: Exception) -> str:
    """Say why a picture could not be had, to somebody who has nothing but the page."""
    path = prediction.path
    if path is None and prediction.loader is None:
        return "it was not kept"
    if path is not None and prediction.frame_index is None and (problem := _file_problem(path)):
        return problem
    said = (error.reason if isinstance(error, ItemError) else str(error)) or type(error).__name__
    return _ARGUMENTS.sub("", said)


def _file_problem(path: str) -> str | None:
    """Say why a file cannot be had, as far as the file system says; None where it is there."""
    try:
        return None if stat.S_ISREG(Path(path).stat().st_mode) else "it is no file"
    except (FileNotFoundError, NotADirectoryError):
        return "its file is no longer there"
    except OSError as error:  # a folder that may not be looked into, a name that is too long, a disk
        return f"its file cannot be read: {(error.strerror or str(error)).lower()}"
    except ValueError:  # a name that no file can have
        return "its file is no longer there"


def _reason(text: str) -> str:
    """Return a reason that leaves room for others."""
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 1] + "…"


def _line(value: JSONObject) -> str:
    """Return a line of JSON that can stand in a script: in ASCII, and nothing in it looks like markup."""
    # A browser would refuse a line with what is not finite, and with it the picture.
    return valid_json(value)[0].replace("<", "\\u003c") + "\n"


def _name(prediction: Prediction, root: str | None) -> str:
    """Return a name that tells a/1.jpg from b/1.jpg: the place below the folder of all, or the bare name."""
    if prediction.path is not None and root is not None:
        place = os.path.relpath(prediction.path, root)
        if place.split(os.sep, 1)[0] not in (os.pardir, os.curdir):
            return place.replace(os.sep, "/")
    return prediction.name


def _address(prediction: Prediction, page: Path) -> str | None:
    """Return the picture's address as seen from the page; None where a browser cannot show the file."""
    path = prediction.path
    if path is None or prediction.frame_index is not None or Path(path).suffix.lower() not in _SHOWN:
        return None
    if _file_problem(path) is not None:
        return None
    # Relative, so that page and pictures can be moved together; every sign that means something is escaped.
    return quote(os.fsencode(os.path.relpath(os.path.realpath(path), os.path.realpath(page.parent))))


def _title(path: Path, root: str | None) -> str:
    """Return the page's title."""
    name = Path(root).name if root else ""
    return f"Predictions: {name or path.stem}"


@cache
def _parts() -> dict[str, str]:
    """Read style and script, and make the policy that lets these two in and nothing else."""
    style = (_FOLDER / "report.css").read_text(encoding="utf-8")
    script = "\n".join((_FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "img-src data: 'self' file:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    return {"style": style, "script": script, "policy": policy}


def _hash(text: str) -> str:
    """Return a text's hash as a policy has it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _head(title: str) -> str:
    """Return all of the page that comes before its data."""
    parts = {**_parts(), "title": html.escape(title)}
    template = (_FOLDER / "report.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)
