"""`ResultDataset`: by position, by id, as a table; what it says where there is nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from predictions import found, zoo
from stream_kit import KINDS, double, drain, ids, named, numbered

from predsession.errors import SourceError, StoreError
from predsession.prediction import Prediction
from predsession.stream import ResultDataset, StreamSession, open_results

pytestmark = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def store(tmp_path: Path, kind: str) -> Path:
    """Where results go."""
    return tmp_path / f"results.{kind}"


@pytest.fixture
def twenty(store: Path) -> ResultDataset:
    """Twenty rows of three float32, in batches of six, by two runs."""
    for first in (0, 10):
        with StreamSession(double, numbered(10, first), store, batch_size=6) as session:
            drain(session)
    return open_results(store)


def firsts(items: Any) -> list[int]:
    """Return the first number of each row, halved: which sample it is of."""
    return [int(each[0]) // 2 for each in items]


def test_by_position(twenty: ResultDataset) -> None:
    """Whole numbers, negative ones, slices, lists, arrays of whole numbers and of truth values."""
    assert len(twenty) == 20
    assert np.asarray(twenty[7]).tolist() == [14, 14, 14]
    assert np.asarray(twenty[np.int64(-1)]).tolist() == [38, 38, 38]
    assert np.asarray(twenty[0]).dtype == np.float32
    assert firsts(twenty[3:6]) == [3, 4, 5]
    assert firsts(twenty[::-7]) == [19, 12, 5]
    assert twenty[30:] == []
    assert firsts(twenty[[5, -1, 5, 0]]) == [5, 19, 5, 0]
    assert firsts(twenty[np.array([18, 2], np.uint8)]) == [18, 2]
    assert firsts(twenty[np.arange(20) % 9 == 1]) == [1, 10, 19]
    assert twenty[[]] == []


@pytest.mark.parametrize("place", [20, -21, [0, 20], [True], np.ones(19, bool)])
def test_no_such_position(twenty: ResultDataset, place: Any) -> None:
    """A position that is not there is an IndexError."""
    with pytest.raises(IndexError):
        twenty[place]


@pytest.mark.parametrize("place", ["o1", 1.0, [0.5], [[1]], True, None, ["o1"]])
def test_no_position(twenty: ResultDataset, place: Any) -> None:
    """What is no position is a TypeError."""
    with pytest.raises(TypeError, match="by position"):
        twenty[place]


def test_by_id(twenty: ResultDataset) -> None:
    """Ids in order, rows by id; an unknown one is a KeyError."""
    assert twenty.ids() == named(20)
    assert np.asarray(twenty.get("o11")).tolist() == [22] * 3
    with pytest.raises(KeyError, match="nobody"):
        twenty.get("nobody")


def test_as_tables(twenty: ResultDataset, kind: str) -> None:
    """Arrow and pandas have all rows, with where they came from and who made them."""
    arrow = twenty.to_arrow()
    assert arrow.column_names == ["object_id", "position", "stored_at", "model", "model_version", "data"]
    assert arrow.num_rows == 20
    frame = twenty.to_pandas()
    assert frame["object_id"].tolist() == named(20)
    assert frame["data"][3].tolist() == [6, 6, 6]
    assert set(frame["model"]) == {"double"}
    assert frame["position"].is_unique
    assert frame["stored_at"].is_monotonic_increasing
    assert firsts(twenty) == list(range(20))
    assert [pair[0] for pair in twenty.items()] == named(20)
    assert repr(twenty).endswith(f"results.{kind}: 20 rows, data float32 [3]>")
    with pytest.raises(StoreError, match="holds arrays"):
        next(twenty.to_predictions())


def test_several_outputs(store: Path) -> None:
    """With several outputs a row is a dict; text and numbers side by side."""

    def model(batch: Any) -> Any:
        return {"mean": batch["x"].mean(1), "grid": batch["x"][:, None], "word": np.array(batch["object_id"])}

    with StreamSession(model, numbered(3), store) as session:
        drain(session)
    row = session.dataset.get("o2")
    assert isinstance(row, dict)
    assert (float(row["mean"]), row["grid"].shape, str(row["word"])) == (2.0, (1, 3), "o2")
    assert session.dataset.to_pandas()["word"].tolist() == named(3)


def test_predictions(store: Path) -> None:
    """Predictions come back equal to what was stored, with masks, oriented as they were."""
    given = [found(), zoo(), found(), Prediction.from_arrays(size=(4, 3), boxes=[], scores=[], classes=[])]
    with StreamSession(lambda _: given, store=store) as session:
        session.process({"object_id": list("abcd")})
    dataset = session.dataset
    assert list(dataset.to_predictions()) == given
    assert dataset.get("b") == given[1]
    for back, was in zip(dataset, given, strict=True):
        assert isinstance(back, Prediction)
        assert (back.masks is None) == (was.masks is None)
        if was.masks is not None and back.masks is not None:
            assert np.array_equal(np.asarray(back.masks), np.asarray(was.masks))
    table = dataset.to_arrow()
    assert table["boxes"][1].as_py() == given[1].boxes.ravel().tolist()
    assert table["classes"][1].as_py() == list(given[1].classes)
    assert dataset.to_pandas()["prediction"][1] == given[1]
    with pytest.raises(StoreError, match="holds predictions"):
        dataset.to_arrays()


def test_nothing(store: Path) -> None:
    """A stream without a batch gives an empty dataset, by hand and through with."""
    with StreamSession(double, numbered(0), store) as session:
        assert drain(session) == []
    for dataset in (session.dataset, session.close()):
        assert (len(dataset), dataset.ids(), list(dataset), dataset.kind) == (0, [], [], None)
        assert dataset.to_pandas().shape == (0, 0)
        assert dataset.to_arrow().num_rows == 0
        assert dataset.to_arrays() == {}
        assert list(dataset.to_predictions()) == []
        assert dataset[:] == []
        with pytest.raises(IndexError):
            dataset[0]
        with pytest.raises(KeyError):
            dataset.get("a")
    with pytest.raises(SourceError, match="there is no store"):
        open_results(store)


def test_reader_while_others_compact(store: Path) -> None:
    """A reader that is open while a writer puts pieces together keeps what it has, and reads it."""
    writers = []
    for first in range(0, 20, 2):
        writers.append(StreamSession(double, numbered(2, first), store, batch_size=1))
        drain(writers[-1])
    reader = open_results(store)
    rows = iter(reader)
    next(rows)
    for each in writers:
        each.close()
    with StreamSession(double, numbered(5, 20), store) as session:
        drain(session)
    assert len(reader) == 20
    assert firsts(rows) == list(range(1, 20))
    assert firsts(reader) == list(range(20))
    assert firsts(reader[[19, 0]]) == [19, 0]
    assert np.asarray(reader.get("o13")).tolist() == [26] * 3
    assert reader.ids() == named(20)
    assert ids(store) == named(25)


def test_writer_while_others_compact(store: Path) -> None:
    """A writer goes on while another puts pieces together and removes the small ones; nothing is doubled."""
    slow = StreamSession(double, store=store)
    slow.process({"object_id": ["s0"], "x": np.ones((1, 3), np.float32)})
    for first in range(0, 10, 2):
        with StreamSession(double, numbered(2, first), store, batch_size=1) as quick:
            drain(quick)
    again = slow.process({"object_id": ["o3", "s0", "s1"], "x": np.ones((3, 3), np.float32)})
    slow.close()
    assert len(again) == 2, "o3 was not known yet, and so computed; s1 is new"
    assert sorted(ids(store)) == sorted([*named(10), "s0", "s1"])


def test_damaged(store: Path, kind: str) -> None:
    """A store that is damaged is a StoreError, whatever is read; a folder of something else likewise."""
    with StreamSession(double, numbered(4), store) as session:
        drain(session)
    for path in store.rglob("*.lance" if kind == "lance" else "*.parquet"):
        path.write_bytes(path.read_bytes()[:40] + b"\0" * 100)
    with pytest.raises(StoreError, match="results"):
        open_results(store).ids()
    with pytest.raises(StoreError, match="results"):
        StreamSession(double, store=store)


def test_damaged_list(store: Path, kind: str) -> None:
    """A store whose list of pieces is damaged, or whose first file is gone, is a StoreError."""
    for first in range(2):
        with StreamSession(double, numbered(1, first), store, batch_size=1) as session:
            drain(session)
    if kind == "lance":
        for path in (store / "_versions").iterdir():
            path.write_bytes(b"nothing")
    else:
        (store / "rows-000000000-000000001.parquet").rename(store / "rows-000000001.parquet")
    with pytest.raises(StoreError, match="results"):
        open_results(store)


def test_no_store(tmp_path: Path, kind: str) -> None:
    """A file in the store's place, and a name that says no kind, are told at once."""
    (tmp_path / f"file.{kind}").write_text("x")
    with pytest.raises(SourceError, match="is a file"):
        StreamSession(double, store=tmp_path / f"file.{kind}")
    with pytest.raises(SourceError, match=r"ends in \.lance or \.parquet"):
        StreamSession(double, store=tmp_path / f"results.{kind}.zip")


def test_without_pandas(twenty: ResultDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pandas is missing, to_pandas() says what to install; an Arrow table needs none."""
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_pandas\(\) needs pandas: pip install pandas"):
        twenty.to_pandas()
    assert twenty.to_arrow().num_rows == 20
