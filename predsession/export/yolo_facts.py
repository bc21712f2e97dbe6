"""Our own file in a YOLO folder, written so that what stays in the folder stays readable.

A run that writes over a folder replaces some of its labels. The lines of the others are needed as before:
they are put aside before the first is written, in a file that readers look into as well, and come back at the
end.

Invariant: at any time, also after a kill, each label that is there has its line in one of the two files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from predsession.export.facts import json_bytes
from predsession.export.growing import GrowingFile
from predsession.export.target import Existing, Target, on_disk
from predsession.export.yolo_layout import FACTS, KEPT, read_all_facts, read_facts
from predsession.wire.jsontypes import JSON


class FactsFile:
    """Writes a line for each label.

    Parameters
    ----------
    target : Target
        The folder.
    """

    def __init__(self, target: Target) -> None:
        self._folder = target.path
        self._existing = Existing.RESUME if target.existing is Existing.RESUME else Existing.OVERWRITE
        self._file: GrowingFile | None = None
        # Numbers instead of texts, or 100,000 names would be kept.
        self._written: set[int] = set()

    def write(self, label: str, facts: Mapping[str, JSON]) -> None:
        """Write what is to be known of a label; to be called before it is there.

        Parameters
        ----------
        label : str
            Its place in the folder.
        facts : mapping of str to JSON
            What is to be known.

        Raises
        ------
        DiskError
            If it cannot be written; names the file.
        """
        self._open().write(json_bytes({"label": label, **facts}) + b"\n")
        self._written.add(hash(label))

    def _open(self) -> GrowingFile:
        """Return the file: opened late, so that a run without a picture leaves the folder empty."""
        if self._file is None:
            if any((self._folder / name).is_file() for name in (FACTS, KEPT)):
                self._put_aside()
            target = Target(path=self._folder / FACTS, existing=self._existing)
            self._file = GrowingFile(target, lambda path: path.stat().st_size)
        return self._file

    def _put_aside(self) -> None:
        """Keep all lines that are there, whole or not at all."""
        draft = self._folder / f".{KEPT}"
        with on_disk(self._folder / KEPT):
            try:
                with draft.open("wb") as file:
                    file.writelines(json_bytes(each) + b"\n" for each in read_all_facts(self._folder))
                draft.replace(self._folder / KEPT)
            finally:
                with suppress(OSError):
                    draft.unlink()

    def finish(self) -> None:
        """Bring back the lines of labels that have stayed as they were, and end the file there."""
        file = self._open()
        for facts in self._staying():
            file.write(json_bytes(facts) + b"\n")
        file.finish()
        with on_disk(self._folder / KEPT):
            (self._folder / KEPT).unlink(missing_ok=True)

    def _staying(self) -> Iterator[Mapping[str, JSON]]:
        """Return what was put aside of labels that are there and were not written."""
        for facts in read_facts(self._folder / KEPT):
            label = str(facts.get("label"))
            if hash(label) not in self._written and (self._folder / label).is_file():
                yield facts

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
