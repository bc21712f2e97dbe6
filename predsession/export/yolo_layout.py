"""Where everything is in a YOLO folder, and what we write beside the labels: facts of each picture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from pathlib import Path

from predsession.errors import PredSessionError, SourceError
from predsession.wire.fields import Fields
from predsession.wire.jsontext import loads
from predsession.wire.jsontypes import JSONObject

DATA = "data.yaml"
FACTS = "predsession.jsonl"
KEPT = "predsession.kept.jsonl"
"""Lines of FACTS that a run which writes over the folder has put aside; it is gone when the run ends."""
NAMES = "classes.txt"
"""The classes of a folder without a description, as labelImg writes them: a line each."""
YAML = (".yaml", ".yml")
IMAGES = "images"
LABELS = "labels"
OUTLINES = "outlines"
"""What the facts of a picture say of the lines of its label, one by one: `Outlined`."""


class Outlined(Enum):
    """What a line's outline is, which it does not say itself."""

    BOX = "box"
    MASK = "mask"
    POLYGON = "polygon"
    PIXELS = "pixels"
    """A polygon whose vertices name pixels: its box ends a pixel beyond the last."""


def read_facts(path: Path) -> Iterator[JSONObject]:
    """Read what was written beside the labels.

    Parameters
    ----------
    path : Path
        The file, if there is one.

    Yields
    ------
    JSON object
        One a picture. The last line may be cut short, by a run that was killed: its label is not there yet.

    Raises
    ------
    SourceError
        If a line is damaged; names file and line.
    """
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                facts = Fields(loads(line), "it").item
            except (ValueError, RecursionError, PredSessionError) as error:
                raise SourceError(
                    f"{path}, line {number}: {error}; take the file away to read the folder as others do"
                ) from None
            yield facts


def read_all_facts(folder: Path) -> Iterator[JSONObject]:
    """Read what was written beside the labels, and what a run that was killed has put aside.

    Parameters
    ----------
    folder : Path
        The whole folder.

    Yields
    ------
    JSON object
        One a label: the first.

    Raises
    ------
    SourceError
        If a line is damaged; names file and line.
    """
    seen: set[int] = set()
    for name in (FACTS, KEPT):
        for facts in read_facts(folder / name):
            mark = hash(str(facts.get("label")))
            if mark not in seen:
                seen.add(mark)
                yield facts


def find_description(folder: Path) -> Path | None:
    """Find the file that names the classes.

    Parameters
    ----------
    folder : Path
        A data set.

    Returns
    -------
    Path or None
        ``data.yaml``; or the one that is called otherwise, such as ``coco8.yaml``. None where there is none,
        or several.
    """
    if (folder / DATA).is_file():
        return folder / DATA
    found = [each for each in sorted(folder.glob("*.y*ml")) if each.suffix in YAML and _has_names(each)]
    return found[0] if len(found) == 1 else None


def _has_names(path: Path) -> bool:
    """Whether a file says names of classes."""
    with suppress(OSError):
        return path.is_file() and b"\nnames:" in b"\n" + path.read_bytes()
    return False
