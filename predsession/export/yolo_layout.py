"""Where everything is in a YOLO folder, and what we write beside the labels: facts of each picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from predsession.errors import PredSessionError, SourceError
from predsession.wire.fields import Fields
from predsession.wire.jsontext import loads
from predsession.wire.jsontypes import JSONObject

DATA = "data.yaml"
FACTS = "predsession.jsonl"
IMAGES = "images"
LABELS = "labels"


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
