"""What goes into a store, under which names, and what is refused before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from predictions import found
from stream_kit import KINDS

from predsession.errors import SourceError, StoreError
from predsession.stream import StreamSession, open_results

pytestmark = pytest.mark.parametrize("kind", KINDS)

GOOD = ["?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "e", "f", "d", ">i4", ">f8", "U", "<U7"]
BAD = ["g", "F", "D", "G", "S3", "O", "M8[s]", "m8[s]", "V4", ml_dtypes.bfloat16, np.dtype([("a", "f4")])]


@pytest.fixture
def store(tmp_path: Path, kind: str) -> Path:
    """Where results go."""
    return tmp_path / f"results.{kind}"


def put(store: Path, results: Any, names: list[str] | None = None) -> None:
    """Store results of some objects."""
    count = len(names) if names else 2
    with StreamSession(lambda _: results, store=store) as session:
        session.process({"object_id": names or ["a", "b"], "x": list(range(count))})


@pytest.mark.parametrize("dtype", GOOD)
def test_dtypes(store: Path, dtype: str) -> None:
    """Every dtype of whole and real numbers, truth values and texts comes back as it was, bit by bit."""
    values = np.array([0, 1], np.dtype(dtype))
    shaped = values if values.dtype.kind == "U" else np.stack([values, values[::-1], values], axis=1)
    put(store, shaped)
    dataset = open_results(store)
    back = dataset.to_arrays()["data"]
    assert back.tolist() == shaped.tolist()
    assert back.dtype.kind == shaped.dtype.kind
    if back.dtype.kind != "U":
        assert back.dtype == shaped.dtype.newbyteorder("=")
        assert np.asarray(dataset[0]).shape == (3,)


@pytest.mark.parametrize("dtype", BAD)
def test_dtypes_that_are_refused(store: Path, dtype: Any) -> None:
    """Others are refused in words, and nothing is written."""
    with pytest.raises(StoreError, match="a store holds whole and real numbers"):
        put(store, np.zeros(2, dtype))
    with pytest.raises(SourceError, match="no store"):
        open_results(store)


@pytest.mark.parametrize(
    ("results", "words"),
    [
        (np.float32(3), r"shape \[\]; wanted 2 rows"),
        (np.zeros((3, 2)), "wanted 2 rows"),
        (np.zeros((2, 0)), "nothing in them"),
        (np.array([["a"], ["b"]]), "one text a row"),
        ({}, "there are none"),
        ({1: np.zeros(2)}, "outputs need names"),
        ({"": np.zeros(2)}, "outputs need names"),
        ({"object_id": np.zeros(2)}, "none of object_id, position"),
        ({"model_version": np.zeros(2)}, "none of object_id, position"),
        ({"a": [1, 2]}, "wanted an array"),
        ([1.0, 2.0], "a list of float"),
        ([], "0 predictions for 2 objects"),
        ([found()], "1 predictions for 2 objects"),
        (np.ma.masked_array(np.zeros(2), [0, 1]), "masked"),
        (np.array(["a", "\ud800"]), "cannot be stored"),
    ],
)
def test_results_that_are_refused(store: Path, results: Any, words: str) -> None:
    """What is no row for each object is refused in words."""
    with pytest.raises(StoreError, match=words):
        put(store, results)


@pytest.mark.parametrize("results", [None, "ab", b"ab", 7])
def test_no_results(store: Path, results: Any) -> None:
    """A model that returns something else altogether is told what is wanted."""
    with pytest.raises(SourceError, match="wanted an array, a dict of arrays"):
        put(store, results)


def test_special_numbers(store: Path) -> None:
    """NaN, infinity and the largest whole numbers come back."""
    put(store, {"f": np.array([np.nan, -np.inf]), "u": np.array([2**64 - 1, 0], np.uint64)})
    back = open_results(store).to_arrays()
    assert np.isnan(back["f"][0])
    assert back["f"][1] == -np.inf
    assert back["u"].tolist() == [2**64 - 1, 0]


NAMES = [
    "output.1", 'q"x', "sp ace", "é漢", "%2E", "_rowid", "_rowaddr", "_rowoffset", "a`b", "DATA", "OBJECT_ID",
    "/model/out", "select", "a\nb", "b\\c", "x[0]", "masks", "predsession.kind", "file", "data",
    "__fragment_index", "__batch_index", "__last_in_fragment", "__filename", "__",
]  # fmt: skip


def test_names_of_outputs(store: Path) -> None:
    """Any name goes: what Lance takes for a path or its own word is escaped, in the column's name only."""
    rows = {name: np.array([place, place + 0.5]) for place, name in enumerate(NAMES)}
    put(store, rows)
    put(store, rows, ["c", "d"])
    dataset = open_results(store)
    assert [each.name for each in dataset.outputs] == NAMES
    item = dataset.get("d")
    assert isinstance(item, dict)
    assert {name: float(value) for name, value in item.items()} == {n: i + 0.5 for i, n in enumerate(NAMES)}
    assert set(NAMES) < set(dataset.to_pandas().columns)


ODD_IDS = [
    "a'b",
    "''",
    'd"q',
    "x\ny",
    "n\0ul",
    "back\\slash",
    "é漢😀",
    "L" * 100_000,
    "--c",
    "%",
    " ",
    "`",
    "1",
]


def test_object_ids(store: Path) -> None:
    """An object id is any text: it is found again, and known again by the next run."""
    rows = np.arange(len(ODD_IDS))
    put(store, rows, ODD_IDS)
    with StreamSession(lambda batch: batch["x"], store=store) as session:
        again = session.process({"object_id": [*ODD_IDS, "new"], "x": np.arange(len(ODD_IDS) + 1)})
    assert np.asarray(again).tolist() == [len(ODD_IDS)]
    dataset = session.dataset
    assert dataset.ids() == [*ODD_IDS, "new"]
    assert [int(np.asarray(dataset.get(each))) for each in ODD_IDS] == rows.tolist()


@pytest.mark.parametrize("bad", ["", None, 1.5, True, "\ud800", b"x", ["a"]])
def test_no_object_ids(store: Path, bad: Any) -> None:
    """What is no text is refused; whole numbers become one."""
    with (
        StreamSession(lambda batch: np.zeros(len(batch["object_id"])), store=store) as session,
        pytest.raises(SourceError, match="object_id"),
    ):
        session.process({"object_id": [bad]})
    put(store, np.zeros(2), [7, np.int64(8)])
    assert open_results(store).ids() == ["7", "8"]


CHANGES: list[tuple[str, Callable[[], Any]]] = [
    ("float32 \\[3\\] a row; the results are float64", lambda: np.zeros((2, 3))),
    ("float32 \\[3\\] a row; the results are float32 \\[4\\]", lambda: np.zeros((2, 4), np.float32)),
    ("the results are float32 \\[\\]", lambda: np.zeros(2, np.float32)),
    ("holds the outputs data; the results are other", lambda: {"other": np.zeros((2, 3), np.float32)}),
    ("holds the outputs data; the results are data, more",
     lambda: {"data": np.zeros((2, 3), np.float32), "more": np.zeros(2)}),
    ("the results are predictions", lambda: [found(), found()]),
    ("the results are str", lambda: np.array(["a", "b"])),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(CHANGES)))
@pytest.mark.parametrize("again", [False, True])
def test_changes(store: Path, place: int, again: bool) -> None:
    """Other results in the middle of a run, or in the next, are an error before anything is written."""
    words, other = CHANGES[place]
    first = np.ones((2, 3), np.float32)
    answers = iter([first, other()])
    session = StreamSession(lambda _: next(answers), store=store)
    session.process({"object_id": ["a", "b"]})
    if again:
        session.close()
        session = StreamSession(lambda _: next(answers), store=store)
    with session, pytest.raises(StoreError, match=words):
        session.process({"object_id": ["c", "d"]})
    assert session.dataset.ids() == ["a", "b"]


def test_predictions_then_arrays(store: Path) -> None:
    """A store of predictions takes no arrays."""
    answers = iter([[found(), found()], np.zeros(2)])
    with StreamSession(lambda _: next(answers), store=store) as session:
        session.process({"object_id": ["a", "b"]})
        with pytest.raises(StoreError, match="holds predictions; the results are ndarray"):
            session.process({"object_id": ["c", "d"]})
    assert session.dataset.ids() == ["a", "b"]
