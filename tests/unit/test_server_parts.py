"""Small parts of the server, each alone: pixels, metrics, pixel budget, store, command words."""

from __future__ import annotations

import argparse
import asyncio
import io
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from server_kit import until

from predsession.server.answers import dump
from predsession.server.command import add_arguments
from predsession.server.config import Limits, ModelSpec
from predsession.server.decode import BadImageError, open_picture
from predsession.server.folders import CommandError, server_folder
from predsession.server.metrics import Metrics, Sample
from predsession.server.models.nms import keep_best
from predsession.server.models.pixels import NUMBERS, box_number, number_box, number_picture, read_number
from predsession.server.prefetch import PixelBudget, Prefetch
from predsession.server.slices import Slice
from predsession.server.specs import model_specs
from predsession.server.store import JobRow, Progress, Store, StoreVersionError


@given(number=st.integers(0, NUMBERS - 1), quality=st.integers(30, 95))
def test_numbers_survive_jpeg(number: int, quality: int) -> None:
    """A number can be read from its picture after JPEG, in a larger picture too, and from its box."""
    buffer = io.BytesIO()
    Image.fromarray(number_picture(number, (90, 70))).save(buffer, "JPEG", quality=quality)
    assert read_number(np.asarray(Image.open(buffer))) == number
    assert box_number(np.array(number_box(number))) == number


def test_pictures_without_a_number() -> None:
    """Noise, a blank and a small picture hold none; a number out of range is refused."""
    noise = np.random.default_rng(1).integers(0, 255, (64, 64, 3), np.uint8)
    assert read_number(noise) is None
    assert read_number(np.zeros((64, 64, 3), np.uint8)) is None
    assert read_number(np.zeros((8, 8, 3), np.uint8)) is None
    with pytest.raises(ValueError, match="cannot paint"):
        number_picture(NUMBERS)


def test_nms_keeps_the_best_of_each_class() -> None:
    """Of two boxes on one place the better stays, but a box of another class does not go for it."""
    boxes = np.array([[0, 0, 10, 10], [1, 0, 10, 10], [0, 0, 10, 10], [50, 50, 60, 60]], np.float32)
    scores = np.array([0.5, 0.9, 0.4, 0.3], np.float32)
    ids = np.array([0, 0, 1, 0])
    assert keep_best(boxes, scores, ids, iou=0.5, most=9).tolist() == [1, 2, 3]
    assert keep_best(boxes, scores, ids, iou=0.5, most=1).tolist() == [1]


def test_metrics_text() -> None:
    """Counters, gauges and histograms in the text format; labels are escaped."""
    metrics = Metrics()
    metrics.count("requests_total", call='a"b\n', status="200")
    metrics.observe("batch_size", 3, model="m")
    text = metrics.render({"jobs": [Sample(2, {"stage": "finished"})]})
    assert 'predsession_requests_total{call="a\\"b\\n",status="200"} 1\n' in text
    assert 'predsession_batch_size_bucket{model="m",le="2"} 0\n' in text
    assert 'predsession_batch_size_bucket{model="m",le="+Inf"} 1\n' in text
    assert 'predsession_batch_size_sum{model="m"} 3\n' in text
    assert 'predsession_jobs{stage="finished"} 2\n' in text
    assert "# TYPE predsession_batch_size histogram\n" in text


def test_pixel_budget_is_given_out_in_order() -> None:
    """A small picture does not overtake a large one that waits for room."""
    budget = PixelBudget(100)
    budget.take(0, 80)
    taken: list[int] = []

    def take(turn: int, pixels: int) -> None:
        budget.take(turn, pixels)
        taken.append(turn)

    threads = [threading.Thread(target=take, args=pair) for pair in ((2, 5), (1, 60))]
    for thread in threads:
        thread.start()
    until(lambda: budget.short, "one to wait")
    assert taken == []
    budget.give_back(80)
    for thread in threads:
        thread.join(10)
    assert sorted(taken) == [1, 2]


def test_prefetch_holds_no_more_than_its_room(tmp_path: Path) -> None:
    """Ten pictures in a room for three come in chunks of three at most, in order; one larger than the room
    comes alone, and a bad one takes none.
    """
    paths = []
    for number in range(10):
        paths.append(tmp_path / str(number))
        size = (40, 40) if number == 5 else (10, 10)
        Image.new("RGB", size, (number, 0, 0)).save(paths[-1], "PNG")
    paths[7].write_bytes(b"")
    parts = [Slice(str(path), 0, path.stat().st_size) for path in paths]
    prefetch = Prefetch(max_pixels=10_000, room=300, threads=2)
    chunks = list(prefetch.chunks(prefetch.start(parts)))
    found = [picture for chunk in chunks for picture in chunk]
    assert [None if isinstance(each, BadImageError) else int(each[0, 0, 0]) for each in found] == [
        0, 1, 2, 3, 4, 5, 6, None, 8, 9,
    ]  # fmt: skip
    for chunk in chunks:
        pixels = [each.shape[0] * each.shape[1] for each in chunk if not isinstance(each, BadImageError)]
        assert sum(pixels) <= 300 or len(pixels) == 1
    prefetch.drop(prefetch.start(parts[:3]))
    assert len(list(prefetch.chunks(prefetch.start(parts[:3])))) == 1, "what was dropped gave its room back"


def test_store_keeps_results_and_counts_together(tmp_path: Path) -> None:
    """What was appended is there for another process, with its count; ack and pop forget."""

    async def write() -> None:
        store = Store(tmp_path, ephemeral=False)
        for uuid, key in (("a", "k"), ("b", None)):
            assert await store.add(JobRow(uuid, key, 1.0, {"x": 1}, 0, {"stage": "s"})) == uuid
        assert await store.add(JobRow("c", "k", 2.0, {}, 0, {})) == "a", "the same key is the same job"
        await store.append([Progress("a", 1, [b"1", b"2"], {"n": 1}), Progress("b", 1, [b"x"], {"n": 2})])
        await store.append([Progress("a", 3, [b"3"], {"n": 3})])
        assert await store.read("a", ack=1, after=1, limit=1) == (1, [(2, b"2")])
        assert await store.pop("b") == [b"x"]
        store.close()

    asyncio.run(write())
    store = Store(tmp_path, ephemeral=False)
    rows = {row.uuid: row for row in store.load()}
    assert [(rows[uuid].done, rows[uuid].state) for uuid in ("a", "b")] == [(3, {"n": 3}), (1, {"n": 2})]
    assert (rows["a"].facts, rows["a"].submit_key) == ({"x": 1}, "k")
    assert store.unread() == {"a": 2}
    asyncio.run(store.remove("a"))
    assert [row.uuid for row in store.load()] == ["b"]
    store.close()


def test_store_of_another_version_is_refused(tmp_path: Path) -> None:
    """A folder of another version is not touched; the error says what to do."""
    import sqlite3

    with sqlite3.connect(tmp_path / "jobs.sqlite") as database:
        database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(StoreVersionError, match="--data"):
        Store(tmp_path, ephemeral=False)


@pytest.mark.parametrize(
    ("words", "specs"),
    [
        ([], [("detect", "detect")]),
        (["segment"], [("segment", "segment")]),
        (["a=detect", "b=x.py:M"], [("a", "detect"), ("b", "x.py:M")]),
        (["pkg.mod:Class"], [("Class", "pkg.mod:Class")]),
        (["/x/y=z/file.py:make"], [("make", "/x/y=z/file.py:make")]),
        (["dir/my yolo.toml"], [("my-yolo", "dir/my yolo.toml")]),
    ],
)
def test_models_on_the_command_line(words: list[str], specs: list[tuple[str, str]]) -> None:
    """Names are given, or taken from the target."""
    assert model_specs(words) == tuple(ModelSpec(*spec) for spec in specs)


def test_names_are_unique() -> None:
    """Two models of one name are refused."""
    with pytest.raises(CommandError, match="two models are called detect"):
        model_specs(["detect", "detect"])


def test_limits_on_the_command_line() -> None:
    """Sizes take units, times fractions, and the defaults are those of `Limits`."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    args = parser.parse_args(["--limit-body", "1.5M", "--limit-disk", "2g", "--limit-lease", "0.5"])
    assert (args.limit_body, args.limit_disk, args.limit_lease) == (3 << 19, 2 << 30, 0.5)
    assert args.limit_files == Limits().files
    assert "2G" in parser.format_help()


def test_dump_writes_whatever_there_is() -> None:
    """Half a character, as in the name of a file, is written as an escape; others as they are."""
    assert dump({"name": "\udcff"}) == b'{"name":"\\udcff"}'
    assert dump("é") == '"é"'.encode()


def test_paths_of_the_server_are_in_no_message(tmp_path: Path) -> None:
    """A picture whose file is gone is an error that does not say where it was."""
    with pytest.raises(BadImageError) as caught:
        open_picture(Slice(str(tmp_path / "gone"), 0, 9), max_pixels=100)
    assert str(caught.value) == "the file cannot be read: No such file or directory"


def test_a_folder_that_another_server_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is named by the port is at that port, for which another port helps; else a folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for data, words in (
        (None, "at port 8000.*--port, or .*--data"),
        (tmp_path / "mine", "another with --data"),
    ):
        with (
            server_folder(data, ephemeral=False, port=8000),
            pytest.raises(CommandError, match=f"is used by another server; .*{words}"),
            server_folder(data, ephemeral=False, port=8000),
        ):
            pass
