"""The seam that all formats share: what writes predictions, and what was made of them."""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Protocol, Self

from predsession.errors import ItemError
from predsession.prediction import Prediction


class Writer(Protocol):
    """Writes outcomes as they come; memory stays flat."""

    left_out: Counter[str]
    """What the format could not carry, counted in the user's words: masks, tags, scores, ..."""

    def write(self, outcome: Prediction | ItemError) -> None:
        """Take one outcome; raise `DiskError` where it cannot be written."""

    def finish(self) -> None:
        """Complete what was written: for the end of a run that was not broken off."""

    def close(self) -> None:
        """Let go of all files. Without `finish` before, what is there can be read, or gone on with."""


class Closing:
    """What all writers have in common: the way out, and the account of what is left out."""

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()

    def close(self) -> None:
        """Let go of nothing: for formats whose files are each written in one go."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
