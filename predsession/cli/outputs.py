"""The files that a command writes predictions into: their options, and each outcome into all of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from predsession.cli.codes import say

if TYPE_CHECKING:
    from predsession.errors import ItemError
    from predsession.export.drawings import Drawings
    from predsession.export.saving import Saving
    from predsession.export.target import Existing
    from predsession.prediction import Prediction

FORMATS = (
    "jsonl", "csv", "parquet", "coco", "yolo", "yolo-segment", "yolo-pose", "voc", "supervisely", "labelme",
    "html", "video",
)  # fmt: skip
"""Their names, so that the parser need not import them; a test compares."""
DRAWN = "drawn"
"""In place of a format: a folder of pictures with what was found drawn on them."""


def add_to(group: argparse._ActionsContainer) -> None:
    """Add the options that say how files are written."""
    add = group.add_argument
    add(
        "--images",
        choices=("copy", "link"),
        help="put the pictures beside their annotations, in folder formats",
    )
    add("--scores", action="store_true", help="end YOLO's lines with the score, which not every reader takes")
    add("--overwrite", action="store_true", help="replace a file that is there; else it is refused")


class Outputs:
    """Writes each outcome into several files.

    Parameters
    ----------
    args : Namespace
        With what `add_to` added.
    root : str or None
        The folder that the pictures' places are relative to.
    rescue : bool
        Whether documents keep what comes beside them, for a run that is killed.
    """

    def __init__(self, args: argparse.Namespace, *, root: str | None, rescue: bool = True) -> None:
        self._args = args
        self._root = root
        self._rescue = rescue
        self._all: list[Saving | Drawings] = []

    def open(
        self, path: str, format_name: str | None = None, *, existing: Existing, images: bool = False
    ) -> None:
        """Open one more file or folder, with pictures if they are asked for; refuse an unusable place."""
        from predsession.export.saving import Saving
        from predsession.export.target import Target

        target = Target(
            path=Path(path),
            existing=existing,
            root=self._root,
            images=self._args.images if images else None,
            scores=self._args.scores,
            rescue=self._rescue,
        )
        self._all.append(Saving(target, format_name))

    def draw(self, folder: str, sources: Sequence[str], *, existing: Existing) -> None:
        """Open one more folder, for drawn pictures; refuse an unusable place."""
        from predsession.export.drawings import Drawings
        from predsession.export.target import Target

        self._all.append(Drawings(Target(path=Path(folder), existing=existing), sources))

    def write(self, outcome: Prediction | ItemError) -> None:
        """Write an outcome into each."""
        for each in self._all:
            each.write(outcome)

    def finish(self, *, all_told: bool = False) -> None:
        """Complete all of them, and say what they could not hold, or what they are in any case.

        One that cannot be completed does not keep the others from it: the first such error is raised then.
        """
        failed: list[Exception] = []
        for each in self._all:
            try:
                saved = each.finish()
            except Exception as error:  # noqa: BLE001 - it is raised once the others are done
                failed.append(error)
                continue
            if saved is not None and (saved.left_out or all_told):
                say(str(saved))
        _raise_first(failed)

    def close(self) -> None:
        """Let go of all files, whether or not one can be let go of."""
        failed: list[Exception] = []
        for each in self._all:
            try:
                each.close()
            except Exception as error:  # noqa: BLE001 - it is raised once the others are done
                failed.append(error)
        _raise_first(failed)


def _raise_first(errors: Sequence[Exception]) -> None:
    """Say what went wrong after the first error, and raise that."""
    for error in errors[1:]:
        say(str(error))
    if errors:
        raise errors[0]


def sources_root(sources: Sequence[str]) -> str | None:
    """Return the folder that all sources lie in."""
    from predsession.export.places import common_folder

    return common_folder(sources)
