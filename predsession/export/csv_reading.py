"""Tables back into predictions: ours, or others that have the columns.

Read once and line by line, so that a pipe will do.
"""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from predsession.errors import SourceError, UnfinishedFileWarning
from predsession.export.table import COLUMNS, Placed, Row, predictions_of
from predsession.prediction import Prediction

_NEEDED = ("class", "width", "height", "x1", "y1", "x2", "y2")

_END = "the,end"
"""A line behind the last one: part of one cell where quotes do not end, else a row of two."""


def read_csv(path: Path) -> Iterator[Prediction]:
    """Read boxes from a table of ours, or another that has the columns it takes.

    Parameters
    ----------
    path : Path
        Of a file with the columns class, width, height, x1, y1, x2, y2, and any of the others; the rows of
        one picture follow each other. A pipe will do.

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
    yield from predictions_of(_rows(path))


@dataclass(frozen=True, slots=True)
class Record:
    """A row of a table.

    Parameters
    ----------
    cells : list of str
        As they are meant, without quotes.
    line : int
        The file's line that it ends in, from 1.
    is_closed : bool
        Whether no cell is in quotes that do not end.
    has_end : bool
        Whether there is a line end behind it.
    """

    cells: list[str]
    line: int
    is_closed: bool
    has_end: bool


def records(path: Path, lines: Iterable[str]) -> Iterator[Record]:
    """Take a table apart.

    Parameters
    ----------
    path : Path
        For messages.
    lines : iterable of str
        With their ends.

    Yields
    ------
    Record
        Each row that is not empty; a cell in quotes may go over several lines.

    Raises
    ------
    SourceError
        If it is no table; names file and line.
    """
    watched = _Watched(lines)
    table = csv.reader(watched)
    try:
        for cells in table:
            if not cells or (watched.over and cells == _END.split(",")):
                continue
            if watched.over:
                cells[-1] = cells[-1].removesuffix(_END)
            yield Record(
                cells, table.line_num - watched.over, not watched.over, has_end=watched.last.endswith("\n")
            )
    except csv.Error as error:
        more = "; csv.field_size_limit() allows longer cells" if "limit" in str(error) else ""
        raise SourceError(f"{path}, line {table.line_num}: not CSV ({error}{more})") from None


class _Watched:
    """Lines that remember the last one, with a line of ours behind them."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = lines
        self.last = ""
        self.over = False

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.last = line
            yield line
        self.over = True
        yield _END


def _rows(path: Path) -> Iterator[Placed]:
    """Read a table's rows."""
    table = records(path, _lines(path))
    head = next(table, None)
    names = [] if head is None else head.cells
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise SourceError(f"{path}: no column {', '.join(missing)}; wanted are {', '.join(COLUMNS)}")
    is_ours = head is not None and head.cells == list(COLUMNS) and head.has_end
    for number, record in enumerate(table):
        if is_half(path, record, is_ours=is_ours):
            warnings.warn(
                f"{path}: the last row was written by half, and is left out",
                UnfinishedFileWarning,
                stacklevel=2,
            )
            return
        where = f"{path}, line {record.line}"
        try:
            if len(record.cells) < len(names):
                raise ValueError("there are fewer cells than columns")
            row = _row(dict(zip(names, record.cells, strict=False)), number)
        except (ValueError, OverflowError) as error:
            raise SourceError(f"{where}: not a row of a table of predictions ({error})") from None
        yield Placed(row, where)


def is_half(path: Path, record: Record, *, is_ours: bool) -> bool:
    """Return whether a row, the last, was written by half.

    Parameters
    ----------
    path : Path
        Of the table, for the message.
    record : Record
        The row.
    is_ours : bool
        Whether the table begins with our columns.

    Returns
    -------
    bool
        False for a table of others, which may leave the last line end away.

    Raises
    ------
    SourceError
        If it goes on over others: then it has a quote too many.
    """
    # Others may leave the last line end away; where it is our own that is missing, so is more.
    if record.is_closed:
        return is_ours and not record.has_end
    lines = record.cells[-1].splitlines()[1:]
    if not is_ours or any(line.count(",") >= len(COLUMNS) - 1 for line in lines):
        begin = record.line - record.cells[-1].count("\n") + record.has_end
        raise SourceError(f"{path}, line {begin}: a cell begins with a quote, and none ends it")
    return True


def _lines(path: Path) -> Iterator[str]:
    """Read a table's lines; one from a spreadsheet may begin with a mark of its encoding."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise SourceError(f"{path}, line {number}: not CSV in UTF-8 ({error})") from None


def _row(cells: Mapping[str, str], number: int) -> Row:
    """Read one row; raises ValueError where a cell is no number."""
    return Row(
        index=_whole(cells, "index") or 0,
        name=cells.get("name") or "",
        path=cells.get("path") or None,
        url=cells.get("url") or None,
        frame_index=_whole(cells, "frame_index"),
        timestamp=_seconds(cells.get("timestamp")),
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


def _whole(cells: Mapping[str, str], name: str) -> int | None:
    """Read a whole number that may be missing; pandas writes 3.0 where some are."""
    text = cells.get(name) or None
    if text is None:
        return None
    number = int(text.removesuffix(".0"))
    if abs(number) >= 1 << 63:
        raise ValueError(f"{name} has more than 63 bits")
    return number


def _seconds(text: str | None) -> float | None:
    """Read a time that may be missing."""
    if not text:
        return None
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"timestamp: {text} is no number of seconds")
    return number


def _default(number: int | None, otherwise: int) -> int:
    """Return a number, or another one where it is missing."""
    return otherwise if number is None else number
