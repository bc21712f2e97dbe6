"""CSV: a row an object, for spreadsheets and everything else that reads tables. Boxes only.

Written as RFC 4180 has it, but for the line ends, which are those of Unix; in UTF-8. Texts are what they are:
one that begins like a formula (``=``, ``+``, ``-``, ``@``) is not changed, since a table whose names are not
the names can be joined with nothing. Who opens a table of strangers' file names in a spreadsheet should
import these columns as text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

import numpy as np

from predsession.errors import ItemError
from predsession.export.csv_adding import complete_rows
from predsession.export.growing import GrowingFile
from predsession.export.losses import losses_of_boxes
from predsession.export.table import (
    COLUMNS,
    Row,
    losses_of_ids,
    losses_of_texts,
    rows_of,
)
from predsession.export.target import Target
from predsession.export.writing import Closing
from predsession.prediction import Prediction

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
        self._file = GrowingFile(target, complete_rows)
        self._headed = self._file.is_added_to

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
