"""CSV: a row an object, for spreadsheets and everything else that reads tables. Boxes only.

Written as RFC 4180 has it, but for the line ends, which are those of Unix; in UTF-8. Texts are what they are:
one that begins like a formula (``=``, ``+``, ``-``, ``@``) is not changed, since a table whose names are not
the names can be joined with nothing. Who opens a table of strangers' file names in a spreadsheet should
import these columns as text.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from predsession.errors import ItemError, SourceError, UnfinishedFileWarning
from predsession.export.growing import GrowingFile
from predsession.export.losses import losses_of_boxes
from predsession.export.table import (
    COLUMNS,
    Placed,
    Row,
    losses_of_ids,
    losses_of_texts,
    predictions_of,
    rows_of,
)
from predsession.export.target import Target, told_at_once
from predsession.export.writing import Closing
from predsession.prediction import Prediction

_NEEDED = ("class", "width", "height", "x1", "y1", "x2", "y2")
_FLOATS = slice(COLUMNS.index("score"), COLUMNS.index("y2") + 1)


class CsvWriter(Closing):
    """Writes the objects of each prediction as it comes.

    What is there already is treated as `predsession.export.growing` says. A file that is added to must have
    the same columns, and loses its last row, if that was written by half.

    Parameters
    ----------
    target : Target
        The file; its folder is made.

    Raises
    ------
    SourceError
        If it is there and may not be touched, has other columns, or cannot be written to.
    """

    def __init__(self, target: Target) -> None:
        super().__init__()
        with told_at_once(target.path):
            size = target.path.stat().st_size if target.path.is_file() else 0
        self._file = GrowingFile(target, _complete)
        self._headed = self._file.is_added_to
        if self._headed and target.path.stat().st_size < size:
            text = f"{target.path}: its last row has no end, was perhaps written by half, and is left out"
            try:
                warnings.warn(text, UnfinishedFileWarning, stacklevel=2)
            except UnfinishedFileWarning:  # where warnings are errors
                self._file.close()
                raise
        if self._headed:
            with target.path.open("rb") as file:
                head = file.readline()
            if head.rstrip(b"\r\n") != _HEADER.rstrip(b"\n"):
                self._file.close()
                raise SourceError(
                    f"{target.path} has other columns, so it cannot be added to; choose a new name"
                )

    def write(self, outcome: Prediction | ItemError) -> None:
        """Write the rows of one outcome, and hand them to the operating system.

        Parameters
        ----------
        outcome : Prediction or ItemError
            One without objects has no row.

        Raises
        ------
        DiskError
            If they cannot be written; names the file.
        """
        self._head()
        if isinstance(outcome, ItemError):
            self.left_out["item errors"] += 1
            return
        self.left_out += losses_of_boxes(outcome) + losses_of_ids(outcome)
        if not len(outcome):
            self.left_out["pictures without objects"] += 1
            return
        self.left_out += losses_of_texts(outcome, classes=True)
        self._file.write(_encoded(map(_cells, rows_of(outcome))))

    def _head(self) -> None:
        """Write the columns' names, once."""
        if not self._headed:
            self._file.write(_HEADER)
            self._headed = True

    def finish(self) -> None:
        """Complete the file: one without any object has the columns' names."""
        self._head()
        self._file.finish()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _cells(row: Row) -> list[object]:
    """Return a row's cells; floats are the shortest decimals that say the same float32."""
    cells: list[object] = ["" if value is None else value for value in row.values()]
    cells[_FLOATS] = map(_shortest, cells[_FLOATS])
    return cells


def _shortest(value: object) -> str:
    """Return a float32 in decimals."""
    return np.format_float_positional(np.float32(str(value)), trim="-")


def _encoded(rows: Iterable[Iterable[object]]) -> bytes:
    """Return rows as bytes."""
    parts = []
    for row in rows:
        text = io.StringIO(newline="")
        # With this line end, the writer quotes both of its letters wherever they are in a text.
        csv.writer(text, lineterminator="\r\n").writerow(row)
        parts.append(text.getvalue()[:-2])
    return ("\n".join(parts) + "\n").encode()


_HEADER = _encoded([COLUMNS])


def _complete(path: Path) -> int:
    """Return how many bytes of a file are complete rows: a line end in quotes ends no row."""
    complete = place = quotes = 0
    with path.open("rb") as file:
        for line in file:
            place += len(line)
            quotes += line.count(b'"')
            if line.endswith(b"\n") and quotes % 2 == 0:
                complete = place
    return complete


def read_csv(path: Path) -> Iterator[Prediction]:
    """Read boxes from a table of ours, or another that has the columns it takes.

    Parameters
    ----------
    path : Path
        Of a file with the columns class, width, height, x1, y1, x2, y2, and any of the others; the rows of
        one picture follow each other.

    Yields
    ------
    Prediction
        Boxes, in the file's order. A picture without objects has no row, and is not there.

    Raises
    ------
    SourceError
        If columns are missing, a cell is not what its column says, or the rows of a picture do not follow
        each other; names file and line.

    Warns
    -----
    UnfinishedFileWarning
        If the last row was written by half, as a run that was killed leaves it; it is left out.
    """
    lines = _lines(path)
    yield from predictions_of(_rows(path, csv.DictReader(lines)))


def _lines(path: Path) -> Iterator[str]:
    """Yield a table's lines, without a last row that was written by half."""
    end = _complete(path)
    with path.open("rb") as file:
        place = 0
        ours = False
        for line in file:
            place += len(line)
            ours = ours or (place == len(_HEADER) and line == _HEADER)
            # Others may leave the last line end away; where it is our own that is missing, so is more.
            if ours and place > end:
                warnings.warn(
                    f"{path}: the last row was written by half, and is left out",
                    UnfinishedFileWarning,
                    stacklevel=2,
                )
                return
            # A table from a spreadsheet may begin with a mark of its encoding.
            yield line.decode("utf-8-sig" if place == len(line) else "utf-8")


def _rows(path: Path, table: csv.DictReader[str]) -> Iterator[Placed]:
    """Read a table's rows."""
    try:
        missing = [name for name in _NEEDED if name not in (table.fieldnames or ())]
        if missing:
            raise SourceError(f"{path}: no column {', '.join(missing)}; wanted are {', '.join(COLUMNS)}")
        for number, cells in enumerate(table):
            where = f"{path}, line {table.line_num}"
            try:
                yield Placed(_row(cells, number), where)
            except (ValueError, OverflowError) as error:
                raise SourceError(f"{where}: not a row of a table of predictions ({error})") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise SourceError(f"{path}, line {table.line_num}: not CSV in UTF-8 ({error})") from None


def _row(cells: dict[str, str], number: int) -> Row:
    """Read one row; raises ValueError where a cell is missing, or no number."""
    if None in cells.values():
        raise ValueError("there are fewer cells than columns")
    time = cells.get("timestamp")
    return Row(
        index=_whole(cells, "index") or 0,
        name=cells.get("name") or "",
        path=cells.get("path") or None,
        url=cells.get("url") or None,
        frame_index=_whole(cells, "frame_index"),
        timestamp=float(time) if time else None,
        width=int(cells["width"]),
        height=int(cells["height"]),
        object_=_default(_whole(cells, "object"), number),
        class_id=_default(_whole(cells, "class_id"), -1),
        class_=cells["class"],
        score=float(cells.get("score") or 1),
        x1=float(cells["x1"]),
        y1=float(cells["y1"]),
        x2=float(cells["x2"]),
        y2=float(cells["y2"]),
        shape=cells.get("shape") or "rectangle",
        track_id=_whole(cells, "track_id"),
    )


def _whole(cells: dict[str, str], name: str) -> int | None:
    """Read a whole number that may be missing; pandas writes 3.0 where some are."""
    text = cells.get(name) or None
    return None if text is None else int(text.removesuffix(".0"))


def _default(number: int | None, otherwise: int) -> int:
    """Return a number, or another one where it is missing."""
    return otherwise if number is None else number
