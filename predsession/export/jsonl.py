"""JSON lines: one outcome a line, written as they come, so that memory stays flat."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from predsession.errors import ItemError
from predsession.prediction import Prediction


def to_line(outcome: Prediction | ItemError) -> str:
    """Return one outcome as one line of JSON, without its line end.

    Parameters
    ----------
    outcome : Prediction or ItemError
        What to write.

    Returns
    -------
    str
        An item error has the key ``error``, a prediction the key ``annotation``.
    """
    return json.dumps(outcome.to_json(), ensure_ascii=False, separators=(",", ":"))


class JsonlWriter:
    """Writes outcomes into a file, a line each, each line complete before the next begins.

    Parameters
    ----------
    path : str or PathLike
        The file; its folder is made, a present file is replaced.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._file = target.open("w", encoding="utf-8", newline="\n")

    def write(self, outcome: Prediction | ItemError) -> None:
        """Write one outcome, and hand it to the operating system."""
        self._file.write(to_line(outcome) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
