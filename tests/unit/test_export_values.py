"""Values that no file can hold: refused where they are handed in, told where they are read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import predsession
from predsession import ItemError, Prediction, SourceError, read_predictions, save_predictions
from predsession.export.formats import FORMATS
from predsession.export.places import Places

FORMATS_OF_OURS = [name for name in FORMATS if name != "video"]
READABLE = [name for name in FORMATS_OF_OURS if FORMATS[name].read is not None]


def box(**more: object) -> Prediction:
    """Return a prediction of one box."""
    return Prediction.from_arrays(
        **{"size": (64, 48), "boxes": [[1, 2, 3, 4]], "scores": [0.5], "classes": ["a"], **more}
    )


def write(some: list[Prediction | ItemError], folder: Path, name: str) -> Path:
    """Write a format into a folder."""
    suffixes = FORMATS[name].suffixes
    where = folder / f"out{suffixes[0] if suffixes else ''}"
    save_predictions(some, where, name, images="copy" if FORMATS[name].takes_images else None)
    return where


@pytest.mark.parametrize("name", FORMATS_OF_OURS)
@pytest.mark.parametrize(
    "source",
    [
        {"path": "/no/\ud800.jpg"},
        {"path": "\udbff/\ud801.mp4", "frame_index": 3},
        {"name": "\ud800\udcff.jpg"},
        {"url": "http://x/\ud800"},
    ],
)
def test_half_characters_are_written(name: str, source: dict[str, object], tmp_path: Path) -> None:
    """Also those that no file system gives, in names that came from a server, or from JSON."""
    where = write([box(**source), box(**source, index=1)], tmp_path, name)
    if name in READABLE:
        assert [each.boxes.tolist() for each in read_predictions(where, name)] == [[[1, 2, 3, 4]]] * 2


@pytest.mark.parametrize("name", READABLE)
def test_numbers_of_numpy_are_plain_ones(name: str, tmp_path: Path) -> None:
    """An index, a frame's number, tags and data, scalars and arrays, however deep."""
    one = box(
        index=np.int64(3),
        frame_index=np.uint8(2),
        data={"a": np.float32(0.5), "b": [np.int8(1), {"c": np.arange(2)}], "d": np.bool_(True)},
        tags={"n": np.float64(1.5), "t": np.str_("x")},
    )
    assert one.data == {"a": 0.5, "b": [1, {"c": [0, 1]}], "d": True}
    assert {type(value) for value in (one.index, one.frame_index, *(tag.value for tag in one.tags))} <= {
        int, float, str,
    }  # fmt: skip
    (back,) = read_predictions(write([one], tmp_path, name), name)
    assert back.boxes.tolist() == one.boxes.tolist()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"index": 1 << 63}, r"index is 9223372036854775808; wanted a whole number, from 0 to 2 \*\* 63 - 1"),
        ({"index": -1}, "index is -1; wanted"),
        ({"index": True}, "index is True; wanted"),
        ({"index": 1.0}, "index is 1.0; wanted"),
        ({"index": 10**5000}, "index is a int too long to show; wanted"),
        ({"frame_index": -1}, "frame_index is -1; wanted"),
        ({"frame_index": np.uint64(1 << 63)}, "frame_index is .*; wanted"),
        ({"data": {"a": {"b": [0, float("nan")]}}}, r"data\['a'\]\['b'\]\[1\] is nan; wanted what JSON has"),
        ({"data": {"a": np.inf}}, r"data\['a'\] is inf"),
        ({"data": {"a": 1 << 70}}, r"data\['a'\] is 1180591620717411303424"),
        ({"data": {"a": {1, 2}}}, r"data\['a'\] is \{1, 2\}"),
        ({"data": {1: 2}}, r"data is \{1: 2\}"),
        ({"data": [1]}, r"data is \[1\]; wanted a mapping"),
        ({"data": {"a": np.array([1j])}}, r"data\['a'\]\[0\] is 1j"),
        ({"tags": {"a": float("nan")}}, "tags is nan; wanted"),
        ({"tags": {"a": 1 << 70}}, "tags is 1180591620717411303424"),
        ({"tags": {"a": [1]}}, r"tags: \('a', \[1\]\); wanted"),
        ({"track_ids": np.array([1 << 63], np.uint64)}, "track_ids: row 0 is 9223372036854775808; wanted"),
        ({"name": 3}, "name is 3; wanted a text"),
        ({"path": b"a.jpg"}, "path is b'a.jpg'; wanted a text"),
        ({"url": 3}, "url is 3; wanted a text"),
    ],
)
def test_what_no_file_could_hold_is_refused(more: dict[str, object], told: str) -> None:
    """By the name of the argument, before it is in the middle of a file."""
    with pytest.raises(ValueError, match=told):
        box(**more)


def test_data_that_hold_themselves_are_refused() -> None:
    """As those that are nested too deep."""
    data: dict[str, object] = {}
    data["me"] = data
    with pytest.raises(ValueError, match="data is nested too deep"):
        box(data=data)


@pytest.mark.parametrize(
    "index", ["18446744073709551615", "9223372036854775808", "-1", "true", '"x"', "1e30"]
)
def test_an_index_that_is_none_is_told_with_its_line(index: str, tmp_path: Path) -> None:
    """When it is read, not when a file of another format is put together at the end."""
    line = json.dumps({**box().to_json(), "index": 77}).replace('"index": 77', f'"index": {index}')
    (tmp_path / "p.jsonl").write_text(line + "\n")
    with pytest.raises(SourceError, match=r"p\.jsonl, line 1: .*index: .* is no position in a source"):
        list(read_predictions(tmp_path / "p.jsonl"))


@pytest.mark.parametrize("name", ["coco", "labelme", "supervisely", "voc"])
def test_a_class_number_beyond_63_bits_is_none(name: str, tmp_path: Path) -> None:
    """Reading it raises nothing foreign, neither at once nor when the ids are asked for."""
    where = write([box(class_names=["b", "a"])], tmp_path, name)
    for file in [where] if where.is_file() else [each for each in where.rglob("*") if each.is_file()]:
        text = file.read_text()
        for old in ('"class_ids": {"a": 1}', '"class_ids":{"a":1}', '"class_id":1', '<class id="1">'):
            text = text.replace(old, old.replace("1", str(1 << 63)))
        text = text.replace('"a": 1\n', f'"a": {1 << 63}\n')
        file.write_text(text)
    assert str(1 << 63) in "".join(each.read_text() for each in tmp_path.rglob("*") if each.is_file())
    (back,) = read_predictions(where, name)
    assert back.class_ids.tolist() in ([-1], [1])


@pytest.mark.parametrize("given", ["preds.jsonl", Path("preds.jsonl"), b"preds.jsonl"])
@pytest.mark.parametrize("take", ["save_predictions", "to_pandas", "grid"])
def test_a_name_is_not_what_is_in_the_file(given: object, take: str, tmp_path: Path) -> None:
    """The remedy is named, and nothing is written."""
    more = {"path": tmp_path / "p.jsonl"} if take == "save_predictions" else {}
    with pytest.raises(
        TypeError, match=r"is a name; read what is in that file or folder: read_predictions\("
    ):
        getattr(predsession, take)(given, **more)
    assert not list(tmp_path.iterdir())


def test_what_is_no_outcome_is_refused(tmp_path: Path) -> None:
    """In a list before anything is written, from an iterator in its place."""
    told = "int is no Prediction and no ItemError; make predictions of it first"
    with pytest.raises(TypeError, match=told):
        save_predictions([box(), 1], tmp_path / "p.jsonl")
    assert not list(tmp_path.iterdir())
    with pytest.raises(TypeError, match=told):
        save_predictions(iter([box(), 1]), tmp_path / "p.jsonl")
    assert list(read_predictions(tmp_path / "p.jsonl")) == [box()]
    with pytest.raises(TypeError, match="predictions are wanted, not int"):
        save_predictions(1, tmp_path / "q.jsonl")


@pytest.mark.parametrize("name", ["", "x.jpg"])
@pytest.mark.parametrize("indexes", [(0, 1, 2), (0, 0, 0)])
def test_pictures_without_a_source_are_not_one(name: str, indexes: tuple[int, ...], tmp_path: Path) -> None:
    """A COCO document gives each a file name of its own; one that is known keeps its, each time it comes."""
    some = [box(name=name, index=index) for index in indexes]
    known = [box(path="x/y.jpg", index=5), box(path="x/y.jpg", index=6)]
    document = json.loads(write([*some, *known], tmp_path, "coco").read_bytes())
    names = [each["file_name"] for each in document["images"]]
    assert len({*names[:3]}) == 3
    assert names[3:] == ["y.jpg", "y.jpg"]


def test_frames_of_two_videos_of_one_name_are_not_one() -> None:
    """They differ in the video's id alone."""
    places = Places(".", again=True)
    frames = [
        Prediction.from_json({**box(name="clip.mp4", frame_index=3).to_json(), "video_id": video})
        for video in (1, 2, 1)
    ]
    given = [places.place(each).as_posix() for each in frames]
    assert given == ["clip_000003.png", "clip_000003_2.png", "clip_000003.png"]


@pytest.mark.parametrize("name", FORMATS_OF_OURS)
def test_a_number_of_a_servers_that_is_none_leaves_valid_json(name: str, tmp_path: Path) -> None:
    """NaN and infinity in its data become null, and are counted where data are kept at all."""
    told = {**box(path="a.jpg").to_json(), "data": {"a": [float("nan"), {"b": float("-inf")}], "c": "\ud800"}}
    some = [Prediction.from_json(told)] * 2
    suffixes = FORMATS[name].suffixes
    where = tmp_path / f"out{suffixes[0] if suffixes else ''}"
    saved = save_predictions(some, where, name)
    if name == "html":
        return
    assert "numbers that are not finite" in saved.left_out or "further data" in saved.left_out
    for file in [where] if where.is_file() else [each for each in where.rglob("*") if each.is_file()]:
        text = file.read_bytes()
        assert b"NaN" not in text
        assert b"Infinity" not in text
    if name == "jsonl":
        assert saved.left_out == {"numbers that are not finite": 4}
    if name in ("jsonl", "coco", "labelme", "supervisely"):
        back = next(iter(read_predictions(where, name)))
        assert back.data == {"a": [None, {"b": None}], "c": "\ud800"}


PARQUET = {
    "width": 9,
    "height": 9,
    "object": 0,
    "class_id": 0,
    "class": "a",
    "score": 0.5,
    "x1": 1.0,
    "y1": 2.0,
}
PARQUET |= {"index": 0, "name": "n", "path": None, "url": None, "frame_index": None, "timestamp": None}
PARQUET |= {"x2": 3.0, "y2": 4.0, "shape": "rectangle", "track_id": None}


@pytest.mark.parametrize(
    ("column", "cell", "told"),
    [
        ("class_id", "3", "class_id is '3'"),
        ("index", -1, "index: -1 is no position"),
        ("index", None, "index is missing"),
        ("track_id", 1.5, "track_id is 1.5"),
        ("track_id", np.uint64(1 << 63), f"track_id is {1 << 63}"),
        ("timestamp", float("inf"), "timestamp is inf"),
        ("class", 3, "class is 3"),
        ("score", float("nan"), "score is missing"),
        ("width", True, "width is True"),
    ],
)
def test_a_parquet_file_of_others_with_other_types(
    column: str, cell: object, told: str, tmp_path: Path
) -> None:
    """Is told with its row, when it is read."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist([{**PARQUET, column: cell}]), tmp_path / "p.parquet")
    with pytest.raises(SourceError, match=rf"p\.parquet, row 0: .*{told}"):
        list(read_predictions(tmp_path / "p.parquet"))


def test_a_parquet_file_of_pandas(tmp_path: Path) -> None:
    """Whole numbers of which some are missing are floats there, and NaN."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{**PARQUET, "track_id": 7.0, "timestamp": float("nan")}, {**PARQUET, "track_id": float("nan")}]
    rows[1]["object"] = 1
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet")
    (back,) = read_predictions(tmp_path / "p.parquet")
    assert back.track_ids is not None
    assert (back.track_ids.tolist(), back.timestamp) == ([7, -1], None)


@pytest.mark.parametrize("name", [name for name in READABLE if name not in ("jsonl", "csv", "coco")])
def test_a_pipe_that_cannot_be_read_is_told_in_our_words(name: str, tmp_path: Path) -> None:
    """Formats that need a file or a folder say so, with its name."""
    os.mkfifo(tmp_path / "pipe")
    held = os.open(tmp_path / "pipe", os.O_RDWR)
    with pytest.raises(SourceError, match=r"pipe\S* (is no file, which|cannot be read|is no)") as told:
        list(read_predictions(tmp_path / "pipe", name))
    os.close(held)
    assert "Errno" not in str(told.value)
    assert "JSON" not in str(told.value)
