"""CSV and Parquet: a row an object, read back, added to, gone on with; what does not fit is counted."""

from __future__ import annotations

import json
import subprocess
import sys
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import predictions
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import predsession
from predsession import DiskError, ItemError, MissingExtraError, Prediction, SourceError
from predsession.errors import UnfinishedFileWarning
from predsession.export import parquet
from predsession.export.csv_reading import read_csv
from predsession.export.csvfile import CsvWriter
from predsession.export.parquet import ParquetWriter, read_parquet
from predsession.export.reading import read_predictions
from predsession.export.saving import save_predictions
from predsession.export.table import COLUMNS
from predsession.export.target import Existing, Target
from predsession.prediction.table import DTYPES

ODD_NAMES = ['a,"b"\r\n', "=1+1", "-", "😀/x", " x ", "ünï"]


def boxes(count: int = 2, **more: object) -> Prediction:
    """Return a prediction of some boxes."""
    arrays = {
        "size": (640, 480),
        "boxes": [[number + 0.1, 2, number + 30, 40.7] for number in range(count)],
        "scores": np.linspace(0.1, 0.9, count),
        "classes": [ODD_NAMES[number % len(ODD_NAMES)] for number in range(count)],
        "path": "photos/1.jpg",
        **more,
    }
    return Prediction.from_arrays(**arrays)


def same_arrays(one: Prediction, other: Prediction) -> bool:
    """Return whether two predictions say the same of boxes, scores, classes, tracks and source."""
    tracks = [
        [-1] * len(each) if each.track_ids is None else each.track_ids.tolist() for each in (one, other)
    ]
    sources = [(each.index, each.name, each.path, each.url, each.frame_index) for each in (one, other)]
    return (
        np.array_equal(one.boxes, other.boxes)
        and np.array_equal(one.scores, other.scores)
        and one.classes.tolist() == other.classes.tolist()
        and one.class_ids.tolist() == other.class_ids.tolist()
        and one.size == other.size
        and tracks[0] == tracks[1]
        and sources[0] == sources[1]
    )


numbers = st.floats(-1000, 1000, width=32)


@st.composite
def found(draw: st.DrawFn) -> Prediction:
    """Make a prediction of boxes with anything in its texts that UTF-8 can hold."""
    rows = draw(st.integers(1, 4))
    corners = draw(st.lists(st.tuples(numbers, numbers, numbers, numbers), min_size=rows, max_size=rows))
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    return Prediction.from_arrays(
        size=(draw(st.integers(1, 9999)), 7),
        boxes=[[min(a, c), min(b, d), max(a, c), max(b, d)] for a, b, c, d in corners],
        scores=draw(st.lists(st.floats(0, 1, width=32), min_size=rows, max_size=rows)),
        classes=draw(st.lists(text, min_size=rows, max_size=rows)),
        track_ids=draw(st.none() | st.lists(st.integers(0, 1 << 40), min_size=rows, max_size=rows)),
        index=draw(st.integers(0, 1 << 40)),
        name=draw(text),
        path=draw(st.none() | text.filter(bool)),
        frame_index=draw(st.none() | st.integers(0, 1 << 40)),
    )


@settings(deadline=None, max_examples=40)
@given(st.lists(found(), max_size=4, unique_by=lambda each: each.index))
def test_boxes_survive_csv(tmp_path_factory: pytest.TempPathFactory, many: list[Prediction]) -> None:
    """Floats are the same float32, texts the same text, whatever stands in them."""
    path = tmp_path_factory.mktemp("csv") / "p.csv"
    save_predictions(many, path)
    back = list(read_csv(path))
    assert len(back) == len(many)
    assert all(map(same_arrays, back, many))


@settings(deadline=None, max_examples=40)
@given(st.lists(found(), max_size=4, unique_by=lambda each: each.index))
def test_boxes_survive_parquet(tmp_path_factory: pytest.TempPathFactory, many: list[Prediction]) -> None:
    """They are equal, not only in their arrays."""
    path = tmp_path_factory.mktemp("parquet") / "p.parquet"
    save_predictions(many, path)
    assert list(read_parquet(path)) == many


def test_every_geometry_survives_parquet(tmp_path: Path) -> None:
    """Masks, polygons, keypoints, tags of objects: each object is there as the wire has it."""
    many = [predictions.zoo(), replace(predictions.zoo(), index=5, path=None, timestamp=1.5)]
    saved = save_predictions(many, tmp_path / "p.parquet")
    assert not saved.left_out
    assert list(read_predictions(tmp_path / "p.parquet")) == many


def test_the_columns_are_those_of_to_pandas(tmp_path: Path) -> None:
    """The same names and the same values; and the url."""
    assert {*COLUMNS} - {"url"} == {*DTYPES}
    pd = pytest.importorskip("pandas")
    many = [boxes(3), boxes(2, index=1, track_ids=[4, -1], frame_index=3)]
    table = predsession.to_pandas(many)
    for name in ("p.csv", "p.parquet"):
        save_predictions(many, tmp_path / name, overwrite=True)
    for read in (pd.read_csv(tmp_path / "p.csv"), pd.read_parquet(tmp_path / "p.parquet")):
        assert [column for column in read.columns if column != "json"] == list(COLUMNS)
        for column, kind in DTYPES.items():
            assert read[column].astype(kind).equals(table[column].astype(kind)), column


def test_types_and_classes_are_in_the_parquet_file(tmp_path: Path) -> None:
    """Whole numbers that can be missing stay whole; the model's classes are told, also those not found."""
    one = boxes(1, classes=["b"], class_names=None)
    meta = predsession.ModelMeta.from_names(["a", "b"])
    save_predictions([replace(one, meta=meta)], tmp_path / "p.parquet")
    schema = pq.read_schema(tmp_path / "p.parquet")
    assert str(schema.field("track_id").type) == "int64"
    assert str(schema.field("x1").type) == "float"
    assert str(schema.field("class").type) == "string"
    about = json.loads(schema.metadata[b"predsession"])
    assert about["version"] == 1
    assert [(each["class_id"], each["title"]) for each in about["classes"]] == [(0, "a"), (1, "b")]
    assert next(read_parquet(tmp_path / "p.parquet")).class_ids.tolist() == [1]
    assert pq.read_metadata(tmp_path / "p.parquet").row_group(0).column(0).compression == "ZSTD"


def test_floats_are_their_shortest_decimals(tmp_path: Path) -> None:
    """0.1 stays 0.1, and 30 has no fraction."""
    save_predictions([boxes(1, boxes=[[0.1, 2, 30, 1e6]], classes=["a"], track_ids=[7])], tmp_path / "p.csv")
    head, row = (tmp_path / "p.csv").read_text().splitlines()
    assert head == ",".join(COLUMNS)
    assert row == "0,1.jpg,photos/1.jpg,,,,640,480,0,0,a,0.1,0.1,2,30,1000000,rectangle,7"


def test_what_a_table_does_not_hold_is_counted(tmp_path: Path) -> None:
    """In the user's words; CSV loses more than Parquet."""
    many: list[Prediction | ItemError] = [
        predictions.zoo(),
        boxes(0, index=1, tags=["sunny"], data={"more": 1}),
        boxes(1, index=2, path="photos/\udcff.jpg"),
        ItemError("x", index=3),
    ]
    both = {
        "item errors": 1,
        "pictures without objects": 1,
        "tags": 1,
        "further data": 1,
        "paths that are not UTF-8": 1,
    }
    boxes_only = {
        "masks": 2, "polygons": 1, "keypoints": 2, "lines": 1, "oriented boxes": 1, "cuboids": 1,
    }  # fmt: skip
    assert save_predictions(many, tmp_path / "p.parquet").left_out == both
    assert save_predictions(many, tmp_path / "p.csv").left_out == {**both, **boxes_only}
    for name in ("p.csv", "p.parquet"):
        assert [each.path for each in read_predictions(tmp_path / name)] == [
            "photos/zoo.jpg",
            r"photos/\udcff.jpg",
        ]


def test_no_prediction_at_all(tmp_path: Path) -> None:
    """A table without rows has its columns."""
    for name in ("p.csv", "p.parquet"):
        save_predictions([], tmp_path / name)
        assert list(read_predictions(tmp_path / name)) == []
    assert (tmp_path / "p.csv").read_text().splitlines() == [",".join(COLUMNS)]


@pytest.mark.parametrize("cut", [1, 2, 20])
def test_csv_is_added_to_behind_its_last_complete_row(tmp_path: Path, cut: int) -> None:
    """The columns are there once; a row that was written by half goes, also one with a line end in quotes."""
    path = tmp_path / "p.csv"
    save_predictions([boxes(1, classes=["a\nb"]), boxes(1, index=1, classes=["c\nd"])], path)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.warns(UserWarning, match="its last row has no end"):
        save_predictions([boxes(3, index=2)], path, append=True)
    assert [each.index for each in read_csv(path)] == [0, 2]
    assert path.read_text().count("class_id") == 1


def test_csv_with_other_columns_is_not_added_to(tmp_path: Path) -> None:
    """It is told before anything is written."""
    path = tmp_path / "p.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(SourceError, match="other columns"):
        save_predictions([boxes()], path, append=True)
    assert path.read_text() == "a,b\n1,2\n"


def test_an_old_csv_is_there_until_the_first_outcome(tmp_path: Path) -> None:
    """Overwriting begins when there is something to write; a run that ends early leaves what it had."""
    path = tmp_path / "p.csv"
    save_predictions([boxes(3)], path)
    before = path.read_bytes()
    CsvWriter(Target(path=path, existing=Existing.OVERWRITE)).close()
    assert path.read_bytes() == before
    with CsvWriter(Target(path=path, existing=Existing.OVERWRITE)) as writer:
        writer.write(boxes(1, index=7))
    assert [each.index for each in read_csv(path)] == [7]


def test_a_csv_is_gone_on_with(tmp_path: Path) -> None:
    """A run that is resumed gives the file of one that was not broken off."""
    path, whole = tmp_path / "p.csv", tmp_path / "whole.csv"
    many = [boxes(2, index=index) for index in range(5)]
    save_predictions(many, whole)
    path.write_bytes(whole.read_bytes()[: len(whole.read_bytes()) // 2])
    with CsvWriter(Target(path=path, existing=Existing.RESUME)) as writer:
        for each in many:
            writer.write(each)
        writer.finish()
    assert path.read_bytes() == whole.read_bytes()


def test_a_row_written_by_half_is_left_out(tmp_path: Path) -> None:
    """As a run that was killed leaves it: a cut number would be another number."""
    path = tmp_path / "p.csv"
    save_predictions([boxes(1, track_ids=[1]), boxes(1, index=1, track_ids=[12])], path)
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.warns(UnfinishedFileWarning, match=r"p\.csv"):
        assert [each.index for each in read_csv(path)] == [0]


def test_a_table_of_somebody_else_is_read(tmp_path: Path) -> None:
    """Columns in any order, a mark of the encoding, no line end at the end, whole numbers with a point."""
    path = tmp_path / "p.csv"
    rows = ("cat,1,2,3.5,4,64,48,a.jpg,3.0", "dog,1,2,3,4,64,48,b.jpg,")
    text = "\r\n".join(("class,x1,y1,x2,y2,width,height,path,track_id", *rows))
    path.write_text(text, encoding="utf-8-sig", newline="")
    first, second = read_csv(path)
    assert first.boxes.tolist() == [[1, 2, 3.5, 4]]
    assert (first.path, first.classes.tolist()) == ("a.jpg", ["cat"])
    assert first.track_ids is not None
    assert first.track_ids.tolist() == [3]
    assert second.classes.tolist() == ["dog"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a,b\n1,2\n", "no column class"),
        ("class,x1,y1,x2,y2,width,height\ncat,one,2,3,4,64,48\n", "line 2"),
        ("class,x1,y1,x2,y2,width,height\ncat,1,2,3,4,64,48\ncat,1,2\n", "line 3"),
        ("class,x1,y1,x2,y2,width,height\ncat,9,2,3,4,64,48\n", "line 2"),
        ("class,x1,y1,x2,y2,width,height\ncat,1,2,nan,4,64,48\n", "line 2"),
        ("class,x1,y1,x2,y2,width,height\ncat,1,2,3,4,0,48\n", "line 2"),
    ],
)
def test_a_damaged_table_names_its_place(tmp_path: Path, text: str, place: str) -> None:
    """Its file and line, whatever is wrong with it."""
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(SourceError, match=place) as caught:
        list(read_csv(path))
    assert str(path) in str(caught.value)


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    """Also one that has no end, or another's columns."""
    path = tmp_path / "p.parquet"
    save_predictions([boxes()], path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(SourceError, match=r"p\.parquet"):
        list(read_parquet(path))
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(SourceError, match="no column index"):
        list(read_parquet(path))


@pytest.mark.parametrize("change", [{"class": None}, {"json": "{"}, {"json": "[]"}, {"width": 0}])
def test_a_damaged_row_is_named(tmp_path: Path, change: dict[str, object]) -> None:
    """A cell that is missing, an object that is none: the rows before it come."""
    path = tmp_path / "p.parquet"
    save_predictions([boxes(2), boxes(2, index=1)], path)
    rows = pq.read_table(path).to_pylist()
    rows[3] |= change
    schema = pa.schema([field.with_nullable(True) for field in pq.read_schema(path)])
    pq.write_table(pa.Table.from_pylist(rows, schema), path)
    read = read_parquet(path)
    assert next(read) == boxes(2)
    with pytest.raises(SourceError, match=r"row [23]"):
        [each.boxes for each in read]


def test_a_killed_run_leaves_json_lines(tmp_path: Path) -> None:
    """Parquet cannot be read without its end, so there is none before."""
    path = tmp_path / "p.parquet"
    with ParquetWriter(Target(path=path)) as writer:
        writer.write(boxes())
    assert not path.exists()
    assert list(read_predictions(tmp_path / "p.parquet.partial.jsonl")) == [boxes()]


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named before anything is computed or written."""
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"predsession\[parquet\]"):
        save_predictions(iter([]), tmp_path / "p.parquet")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "p.parquet").touch()
    with pytest.raises(MissingExtraError):
        next(read_parquet(tmp_path / "p.parquet"))


class _Counted:
    """Predictions that are made when they are asked for; counts how many are alive at once."""

    def __init__(self) -> None:
        self.most = 0

    def make(self, count: int) -> Iterator[Prediction]:
        alive: weakref.WeakSet[Prediction] = weakref.WeakSet()
        model = boxes(1)
        for index in range(count):
            one = replace(model, index=index)
            alive.add(one)
            self.most = max(self.most, len(alive))
            yield one


def test_memory_is_flat_over_20000_predictions(tmp_path: Path) -> None:
    """No prediction outlives the next but one, on the way into a table, nor a row on the way back."""
    counted = _Counted()
    save_predictions(counted.make(20_000), tmp_path / "p.csv")
    assert counted.most <= 3
    back = read_csv(tmp_path / "p.csv")
    alive: weakref.WeakSet[Prediction] = weakref.WeakSet()
    for _ in range(500):
        alive.add(next(back))
        assert len(alive) <= 3
    back.close()


@pytest.mark.parametrize("name", ["parquet", "voc", "labelme", "supervisely"])
def test_memory_is_flat_in_every_format(tmp_path: Path, name: str) -> None:
    """The same, with fewer: each prediction is a file, or a line until the end."""
    counted = _Counted()
    save_predictions(counted.make(300), tmp_path / "out", name, root="photos")
    assert counted.most <= 3
    alive: weakref.WeakSet[Prediction] = weakref.WeakSet()
    for each in read_predictions(tmp_path / "out", name):
        alive.add(each)
        assert len(alive) <= 3


def test_parquet_is_written_group_by_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group is written when it has its bytes; a prediction may lie in two."""
    monkeypatch.setattr(parquet, "GROUP_BYTES", 2_000)
    many = [boxes(7, index=index) for index in range(30)]
    save_predictions(many, tmp_path / "p.parquet")
    about = pq.read_metadata(tmp_path / "p.parquet")
    sizes = [about.row_group(number).num_rows for number in range(about.num_row_groups)]
    assert max(sizes) <= 10
    assert sum(sizes) == 210
    assert list(read_parquet(tmp_path / "p.parquet")) == many


FULL = """
import resource, signal, sys
sys.path[:0] = sys.argv[4:]
import predictions
from predsession import DiskError
from predsession.export.saving import save_predictions
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
many = [predictions.zoo()] * 200
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
try:
    save_predictions(many, sys.argv[1], sys.argv[2])
except DiskError as error:
    print("told:", error)
"""


@pytest.mark.parametrize("name", ["csv", "parquet", "voc", "labelme", "supervisely"])
def test_a_full_disk_names_the_file(tmp_path: Path, name: str) -> None:
    """It is our own error, and nothing is left that is no whole file."""
    roots = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
    command = [sys.executable, "-c", FULL, str(tmp_path / "out"), name, "1000", *roots]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.startswith("told: "), done.stderr
    assert str(tmp_path / "out") in done.stdout
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".draft")]


@pytest.mark.parametrize("name", ["csv", "parquet", "voc", "labelme", "supervisely"])
def test_a_place_that_cannot_be_written_to(tmp_path: Path, name: str) -> None:
    """It is told before anything is computed."""
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match="file"):
        save_predictions(iter([]), tmp_path / "file" / "out", name)


def test_a_disk_that_is_full_while_a_document_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was kept stays, and can be converted later."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet, "_table", full)
    with pytest.raises(DiskError, match=r"p\.parquet"):
        save_predictions([boxes()], tmp_path / "p.parquet")
    assert list(read_predictions(tmp_path / "p.parquet.partial.jsonl")) == [boxes()]


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
@pytest.mark.parametrize("by", ["score", "class"])
def test_a_table_that_was_sorted_is_refused(tmp_path: Path, name: str, by: str) -> None:
    """Its rows would become several predictions of one picture; sorted as it was, it is read again."""
    pd = pytest.importorskip("pandas")
    path = tmp_path / name
    save_predictions([boxes(3, index=index, path=f"{index}.jpg") for index in range(3)], path)
    kind = "csv" if name.endswith("csv") else "parquet"
    table = getattr(pd, f"read_{kind}")(path)
    getattr(table.sort_values(by, kind="stable"), f"to_{kind}")(path, index=False)
    with pytest.raises(SourceError, match=r"of 0\.jpg do not follow each other; sort the table by index"):
        list(read_predictions(path))
    table = getattr(pd, f"read_{kind}")(path).sort_values(["index", "path", "object"])
    getattr(table, f"to_{kind}")(path, index=False)
    assert [each.path for each in read_predictions(path)] == ["0.jpg", "1.jpg", "2.jpg"]


def test_a_picture_that_was_predicted_again_is_no_sorted_table(tmp_path: Path) -> None:
    """A second run may be added to the first: all of the picture comes again."""
    path = tmp_path / "p.csv"
    many = [boxes(3, index=index) for index in range(2)]
    save_predictions(many, path)
    save_predictions(many, path, append=True)
    assert [(each.index, len(each)) for each in read_csv(path)] == [(0, 3), (1, 3)] * 2


def test_classes_that_are_not_utf8_are_counted(tmp_path: Path) -> None:
    """CSV spells them out, and says so; in Parquet the objects have them as they were."""
    one = boxes(3, classes=["\ud800sur", "a", "\udcff"])
    saved = save_predictions([one], tmp_path / "p.csv")
    assert saved.left_out == {"classes that are not UTF-8": 2}
    assert next(read_csv(tmp_path / "p.csv")).classes.tolist() == [r"\ud800sur", "a", r"\udcff"]
    assert not save_predictions([one], tmp_path / "p.parquet").left_out
    (back,) = read_parquet(tmp_path / "p.parquet")
    assert back == one
    assert back.class_ids.tolist() == one.class_ids.tolist()


def test_what_has_no_column_is_counted(tmp_path: Path) -> None:
    """The ids of a server's library, and a URL that is not UTF-8."""
    many = [predictions.zoo(image_id=7), boxes(url="http://host/\udcff", index=1)]
    saved = save_predictions(many, tmp_path / "p.parquet")
    assert saved.left_out == {"ids of a library": 1, "paths that are not UTF-8": 1}
