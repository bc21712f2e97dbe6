"""Tables that are read: once, whatever their cells hold, and a damaged one is told as what it is."""

from __future__ import annotations

import csv
import io
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predsession import Prediction, SourceError, read_predictions, save_predictions
from predsession.errors import UnfinishedFileWarning
from predsession.export.csv_reading import read_csv, records
from predsession.export.table import COLUMNS

HEAD = "class,width,height,x1,y1,x2,y2"
ROW = "a,9,9,1,2,3,4"


def boxes(index: int = 0, **more: object) -> Prediction:
    """Return a prediction of one box."""
    return Prediction.from_arrays(
        **{"size": (9, 9), "boxes": [[1, 2, 3, 4]], "scores": [1], "classes": ["a"], "index": index, **more}
    )


def table(folder: Path, text: str) -> Path:
    """Write a table."""
    (folder / "p.csv").write_bytes(text.encode())
    return folder / "p.csv"


@settings(deadline=None)
@given(st.text(st.sampled_from('a",\n \r'), max_size=30))
def test_rows_are_taken_apart_as_the_standard_library_does_it(text: str) -> None:
    """Wherever quotes stand, doubled or not; but for an end of a line that is only a return."""
    text = text.replace("\r", "\r\n")
    lines = io.StringIO(text, newline="\n").readlines()
    assert [each.cells for each in records(Path(), lines)] == [row for row in csv.reader(lines) if row]


@pytest.mark.parametrize("name", ["jsonl", "csv", "coco"])
def test_a_pipe_is_read(name: str, tmp_path: Path) -> None:
    """Once, from its beginning to its end."""
    some = [boxes(), boxes(1)]
    save_predictions(some, tmp_path / "p", name)
    os.mkfifo(tmp_path / "pipe")
    whole = (tmp_path / "p").read_bytes()
    writing = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(whole,))
    writing.start()
    back = list(read_predictions(tmp_path / "pipe", name))
    writing.join()
    assert back == some


def test_a_pipe_is_not_looked_into(tmp_path: Path) -> None:
    """What was looked at would be gone: its name says the format, or the caller does."""
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(SourceError, match=r"pipe\.json is no file, so its format must be named: coco or"):
        read_predictions(tmp_path / "pipe.json")


def test_a_cell_that_is_too_long_is_told(tmp_path: Path) -> None:
    """With what allows it; the process's limit is not ours to change."""
    limit = csv.field_size_limit()
    one = boxes(url=f'http://x/{"y" * limit}"\n,z')
    save_predictions([one], tmp_path / "p.csv")
    with pytest.raises(SourceError, match=r"p\.csv, line 2: not CSV .*csv.field_size_limit\(\) allows"):
        list(read_csv(tmp_path / "p.csv"))
    csv.field_size_limit(2 * limit)
    try:
        assert list(read_csv(tmp_path / "p.csv")) == [one]
    finally:
        csv.field_size_limit(limit)


def test_a_quote_within_a_cell_takes_nothing_away(tmp_path: Path) -> None:
    """It is a letter like any other; no row behind it is lost, and nothing is warned of."""
    save_predictions([boxes(index) for index in range(3)], tmp_path / "p.csv")
    path = tmp_path / "p.csv"
    path.write_text(path.read_text().replace("rectangle", '5" box', 1))
    assert [each.index for each in read_csv(path)] == [0, 1, 2]


def test_a_quote_that_is_never_closed_is_told(tmp_path: Path) -> None:
    """Where rows come behind it, they are not taken for one that was written by half."""
    save_predictions([boxes(index, classes=["bcd"]) for index in range(3)], tmp_path / "p.csv")
    path = tmp_path / "p.csv"
    whole = path.read_text()
    path.write_text(whole.replace("bcd", '"bcd', 1))
    with pytest.raises(SourceError, match=r"p\.csv, line 2: a cell begins with a quote, and none ends it"):
        list(read_csv(path))
    with pytest.raises(SourceError, match=r"p\.csv, line 3: a cell begins with a quote"):
        list(read_csv(table(tmp_path, f'{HEAD}\n{ROW}\n"{ROW}\n')))


def test_a_row_that_was_written_by_half_is_left_out(tmp_path: Path) -> None:
    """Wherever it ends: also within quotes, or behind a line end in them."""
    path = tmp_path / "p.csv"
    save_predictions([boxes()], path)
    good = path.stat().st_size
    save_predictions([boxes(1, name='x\n"y"', url="u\nv")], path, append=True)
    whole = path.read_bytes()
    for size in range(good + 1, len(whole)):
        path.write_bytes(whole[:size])
        with pytest.warns(UnfinishedFileWarning, match=r"p\.csv: the last row was written by half"):
            assert [each.index for each in read_csv(path)] == [0]


@pytest.mark.parametrize(
    ("column", "cell", "told"),
    [
        ("class_id", "1" * 30, "class_id has more than 63 bits"),
        ("track_id", "1" * 30, "track_id has more than 63 bits"),
        ("frame_index", str(1 << 63), "frame_index has more than 63 bits"),
        ("index", str(1 << 63), "index has more than 63 bits"),
        ("index", "-1", "index: -1 is no position"),
        ("width", "1" * 30, "no width and height in whole pixels"),
        ("timestamp", "nan", "timestamp: nan is no number of seconds"),
        ("timestamp", "inf", "timestamp: inf is no number of seconds"),
        ("score", "nan", "score"),
        ("x1", "-inf", "not finite|wanted finite"),
    ],
)
def test_a_number_that_is_none_is_told_with_its_line(
    column: str, cell: str, told: str, tmp_path: Path
) -> None:
    """When the table is read, not when somebody asks for the array."""
    save_predictions([boxes(), boxes(1)], tmp_path / "p.csv")
    path = tmp_path / "p.csv"
    rows = [line.split(",") for line in path.read_text().splitlines()]
    rows[2][COLUMNS.index(column)] = cell
    path.write_text("".join(f"{','.join(row)}\n" for row in rows))
    with pytest.raises(SourceError, match=rf"p\.csv, line 3: .*({told})"):
        list(read_csv(path))


def test_tables_of_others(tmp_path: Path) -> None:
    """With a mark of their encoding, returns before line ends, empty lines, and no end of the last one."""
    (one, two) = read_csv(table(tmp_path, f"\ufeff{HEAD},name\r\n{ROW},x\r\n\r\n{ROW},y"))
    assert [one.name, two.name, one.boxes.tolist()] == ["x", "y", [[1, 2, 3, 4]]]
    for text, told in (
        ("", "no column class, width"),
        (f"{HEAD}\n{ROW}\n{ROW[:-2]}\n", "line 3: .*fewer cells than columns"),
    ):
        with pytest.raises(SourceError, match=told):
            list(read_csv(table(tmp_path, text)))
    (tmp_path / "p.csv").write_bytes(f"{HEAD}\n".encode() + b"\xff\n")
    with pytest.raises(SourceError, match=r"line 2: not CSV in UTF-8"):
        list(read_csv(tmp_path / "p.csv"))
