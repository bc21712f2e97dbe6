"""Clips on a real server: every frame its own, tracked in order, through stops, crashes and restarts."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from number_clips import frames_of, write_numbers
from server_kit import Caller, Server, until

from predsession.wire.jsontypes import JSON

CLIP = Path(__file__).parents[1] / "samples" / "pedestrians.mp4"
VIDEO = "inference_video_async"


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Forty frames, each with its number, a keyframe every ten."""
    return write_numbers(tmp_path_factory.mktemp("clips") / "n.mp4").read_bytes()


@pytest.fixture
def ours_call(ours: str) -> Iterator[Caller]:
    """A caller of our own kind of server."""
    with Caller(ours) as caller:
        yield caller


@pytest.fixture
def stock_call(stock: str) -> Iterator[Caller]:
    """A caller of one that imitates a stock server."""
    with Caller(stock) as caller:
        yield caller


def run(
    caller: Caller, clip: bytes, name: str = "n.mp4", **state: Any
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Run a clip to its end; return the items and the last answer."""
    return caller.drain(caller.submit([(name, clip)], endpoint=VIDEO, **state))


def refused(caller: Caller, clip: bytes, **state: Any) -> tuple[int, str]:
    """Submit what is refused; return status and body."""
    reply = caller.upload([("n.mp4", clip)], endpoint=VIDEO, **state)
    return reply.status_code, reply.text


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({}, range(40)),
        ({"startFrameIndex": 5, "framesCount": 5}, range(5, 10)),
        ({"framesCount": 5, "stride": 3}, [0, 3]),
        ({"framesCount": 5, "step": 3}, [0, 3]),
        ({"startFrameIndex": 38, "framesCount": 50}, [38, 39]),
        ({"startFrameIndex": 30}, range(30, 40)),
        ({"endFrameIndex": 4}, range(5)),
        ({"startFrameIndex": 8, "endFrameIndex": 12, "stride": 2}, [8, 10, 12]),
        ({"duration": 0.5}, range(5)),
        ({"direction": "backward"}, range(39, -1, -1)),
        ({"direction": "backward", "framesCount": 4}, [39, 38, 37, 36]),
        ({"direction": "backward", "startFrameIndex": 12, "endFrameIndex": 0, "stride": 5}, [12, 7, 2]),
        ({"start_frame": 3, "num_frames": 4}, range(3, 7)),
        ({"start_frame_index": 3, "frames_count": 4, "batch_size": 3}, range(3, 7)),
        ({"start_frame": 36, "end_frame": 39}, [36, 37, 38]),
        ({"startFrameIndex": None, "framesCount": None, "direction": None}, range(40)),
    ],
)
def test_exactly_the_frames_asked_for(
    ours_call: Caller, clip: bytes, state: dict[str, Any], expected: list[int]
) -> None:
    """Clamped to the clip, under either kind of names; each result has its frame's own number."""
    items, last = run(ours_call, clip, **state)
    assert frames_of(items) == list(expected)
    assert (last["stage"], last["progress"]["total"], last["has_result"]) == ("Finished", len(items), True)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"startFrameIndex": 40}, "start_frame=40 lies beyond"),
        ({"stride": 0}, "stride must be a whole number of at least 1"),
        ({"startFrameIndex": -1}, "start_frame must be a whole number of at least 0"),
        ({"framesCount": 2, "endFrameIndex": 3}, "both say where to end"),
        ({"startFrameIndex": 9, "endFrameIndex": 3}, "no frame of 'n.mp4' is left"),
        ({"direction": "sideways"}, "direction must be"),
        ({"duration": "long"}, "duration must be a number"),
        ({"tracker": "sort"}, "There is no tracker 'sort'"),
        ({"tracker": "bytetrack", "tracker_settings": {"a": 1}}, "has no setting 'a'"),
        ({"batch_size": 0}, "batch_size is 0"),
    ],
)
def test_what_makes_no_sense_is_refused(
    ours_call: Caller, clip: bytes, state: dict[str, Any], message: str
) -> None:
    """Before anything is computed, in words that say what."""
    status, text = refused(ours_call, clip, **state)
    assert status == 400
    assert message in text


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("n.mkv", "libx264"),
        ("n.webm", "libvpx"),
        ("n.avi", "libx264"),
        ("n.avi", "mpeg4"),
        ("n.MOV", "libx264"),
    ],
)
def test_containers_without_a_count(ours_call: Caller, tmp_path: Path, name: str, codec: str) -> None:
    """Forward and backward, also where the header knows no number of frames, or no times."""
    data = write_numbers(tmp_path / name, 25, codec=codec).read_bytes()
    for state, expected in (({}, range(25)), ({"direction": "backward", "step": 2}, range(24, -1, -2))):
        assert frames_of(run(ours_call, data, name, **state)[0]) == list(expected)


def test_a_variable_rate_and_a_turned_clip(ours_call: Caller, tmp_path: Path) -> None:
    """Frames are counted, not computed from times; the size is that of the upright picture."""
    times = [0.0, 0.1, 0.5, 0.55, 2.0, 2.04, 2.9, 3.0]
    data = write_numbers(tmp_path / "vfr.mkv", 8, times=times).read_bytes()
    assert frames_of(run(ours_call, data, "vfr.mkv")[0]) == list(range(8))
    assert frames_of(run(ours_call, data, "vfr.mkv", startFrameIndex=1, duration=1.0)[0]) == [1, 2, 3]
    turned = write_numbers(tmp_path / "turned.mp4", 3, rotation=90).read_bytes()
    items, _ = run(ours_call, turned)
    assert [item["annotation"]["size"] for item in items] == [{"height": 128, "width": 96}] * 3


def test_a_clip_that_is_cut(ours_call: Caller, tmp_path: Path) -> None:
    """What is there is answered, each frame its own; one that cannot be decoded is an error that names it."""
    whole = write_numbers(tmp_path / "cut.mkv", 40).read_bytes()
    uuid = ours_call.submit([("cut.mkv", whole[: len(whole) * 6 // 10])], endpoint=VIDEO, item_errors=True)
    items, last = ours_call.read(uuid)
    good = [item for item in items if "error" not in item]
    assert 0 < len(good) < 40
    assert frames_of(good) == list(range(len(good)))
    for item in items[len(good) :]:
        assert item["error"]["message"] == f"frame {item['frame_index']} cannot be decoded"
    assert last["stage"] == "Finished"


@pytest.mark.parametrize("data", [b"", b"no clip", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n"])
def test_what_is_no_clip_is_refused(ours_call: Caller, data: bytes) -> None:
    """Under the name it came with, never that of the server's own file; a playlist is none."""
    status, text = refused(ours_call, data)
    assert status == 500
    assert "BadVideoError" in text
    assert "'n.mp4'" in text
    assert "/uploads/" not in text


def test_two_files_and_a_huge_picture(clip: bytes, ours_call: Caller) -> None:
    """One clip at a time; a picture over the limit is refused before it is decoded."""
    reply = ours_call.upload([("a.mp4", clip), ("b.mp4", clip)], endpoint=VIDEO)
    assert (reply.status_code, "Only one file" in reply.text) == (400, True)
    with Server("pixels", "--limit-pixels", "10000") as server, Caller(server.url) as caller:
        status, text = refused(caller, clip)
        assert (status, "128 x 96 pixels" in text) == (500, True)


def test_a_stop_reaches_a_clip(either: str, clip: bytes) -> None:
    """Between batches, on a stock server too; what was computed stays."""
    with Caller(either) as caller:
        uuid = caller.submit([("n.mp4", clip)], endpoint=VIDEO, settings={"delay": 0.05}, batch_size=2)
        until(lambda: caller.progress(uuid)["pending_results"], "a result")
        caller.stop(uuid)
        items, last = caller.drain(uuid)
        assert last["stage"] == "Cancelled"
        assert frames_of(items) == list(range(len(items)))
        assert 0 < len(items) < 40
        final = caller.ask("get_inference_result", inference_request_uuid=uuid)
        assert final == {"ann": [], "video_ann": None}


@pytest.mark.parametrize(
    ("state", "expected", "missing"),
    [
        ({}, range(40), None),
        ({"start_frame": 9, "num_frames": 2}, range(40), None),
        ({"startFrameIndex": 10, "framesCount": 5, "stride": 3}, [10, 13], None),
        ({"startFrameIndex": 6, "endFrameIndex": 8}, [6, 7, 8], None),
        ({"duration": 0.5}, range(5), None),
        ({"startFrameIndex": 30, "batch_size": 4}, range(30, 38), 40),
        ({"framesCount": 60, "batch_size": 16}, range(32), 40),
        ({"direction": "backward"}, [], -1),
    ],
)
def test_a_stock_server_s_own_arithmetic(
    stock_call: Caller, clip: bytes, state: dict[str, Any], expected: list[int], missing: int | None
) -> None:
    """It ignores snake_case names, does not clamp, and loses the batch that reaches beyond the clip."""
    items, last = run(stock_call, clip, **state)
    assert frames_of(items) == list(expected)
    if missing is None:
        assert (last["stage"], last["exception"]) == ("Finished", None)
    else:
        assert (last["stage"], last["exception"]["type"]) == ("Error", "KeyError")
        assert last["exception"]["message"].startswith(f"'Frame {missing} not found in video")


def test_several_clips_and_pictures_at_once(ours_call: Caller, clip: bytes, tmp_path: Path) -> None:
    """Jobs that share batches get their own frames, forward and backward at the same time."""
    other = write_numbers(tmp_path / "other.mkv", 30, gop=7).read_bytes()
    wanted = [
        (clip, {}, list(range(40))),
        (clip, {"direction": "backward"}, list(range(39, -1, -1))),
        (other, {"stride": 2}, list(range(0, 30, 2))),
        (other, {"direction": "backward", "framesCount": 9}, list(range(29, 20, -1))),
    ]
    jobs = [
        ours_call.submit([("n.mp4", data)], endpoint=VIDEO, settings={"delay": 0.001}, **state)
        for data, state, _ in wanted
    ]
    for uuid, (_, _, expected) in zip(jobs, wanted, strict=True):
        assert frames_of(ours_call.drain(uuid)[0]) == expected


def test_the_keys_of_an_untracked_clip(either: str, clip: bytes) -> None:
    """A final result without tracks, no ids; the keys of the item are those of a stock server."""
    with Caller(either) as caller:
        uuid = caller.submit([("n.mp4", clip)], endpoint=VIDEO, framesCount=1)
        (item,), last = caller.drain(uuid)
        assert item["annotation"]["customBigData"] == {}
        assert {key for key, value in item.items() if value is not None} == {
            "annotation", "frame_index", "slides_data", "data",
        }  # fmt: skip
        assert [last[key] for key in ("final_result", "has_result", "result")] == [True] * 3
        assert caller.ask("get_inference_result", inference_request_uuid=uuid) == {
            "ann": [],
            "video_ann": None,
        }


def tracked_ids(items: list[dict[str, Any]]) -> list[list[int]]:
    """Return the ids of each frame."""
    ids = [item["annotation"]["customBigData"] for item in items]
    for item, row in zip(items, ids, strict=True):
        assert len(row) == len(item["annotation"]["objects"])
    return ids


@pytest.fixture(scope="module")
def whole(detector: str) -> list[list[int]]:
    """The ids of the whole sample clip."""
    with Caller(detector) as caller:
        return tracked_ids(run(caller, CLIP.read_bytes(), tracker="bytetrack")[0])


def test_tracks_and_the_final_result(detector: str, whole: list[list[int]]) -> None:
    """One id for each object, -1 for none, from 1; the final result has the same, as it was recorded."""
    with Caller(detector) as caller:
        uuid = caller.submit(
            [("p.mp4", CLIP.read_bytes())],
            endpoint=VIDEO,
            tracker="botsort",
            tracker_settings={"with_reid": False},
        )
        items, _ = caller.drain(uuid)
        status = caller.ask("get_inference_status", inference_request_uuid=uuid)
        final = caller.ask("get_inference_result", inference_request_uuid=uuid)
    assert status["tracker"]["asked"] == "botsort"
    if status["tracker"]["runs"] == "bytetrack":
        assert tracked_ids(items) == whole
    numbers = sorted({number for row in tracked_ids(items) for number in row} - {-1})
    assert numbers == list(range(1, len(numbers) + 1))
    assert any(-1 in row for row in tracked_ids(items))
    _check_final(final, items)


def _check_final(final: JSON, items: list[dict[str, Any]]) -> None:
    """Hold a final result against the items, and against the one that was recorded."""
    sample = json.loads((Path(__file__).parents[1] / "samples" / "stock_video_result.json").read_text())
    assert isinstance(final, dict)
    video, known = final["video_ann"], sample["video_ann"]
    assert (final["ann"], list(final), list(video)) == ([], list(sample), list(known))
    assert (video["framesCount"], [frame["index"] for frame in video["frames"]]) == (120, list(range(120)))
    objects = {one["key"]: one["classTitle"] for one in video["objects"]}
    assert set(video["objects"][0]) == set(known["objects"][0])
    for frame, item in zip(video["frames"], items, strict=True):
        annotation = item["annotation"]
        expected = [
            (str(number), one["classTitle"], one["points"])
            for number, one in zip(annotation["customBigData"], annotation["objects"], strict=True)
            if number >= 0
        ]
        found = [
            (one["trackId"], objects[one["objectKey"]], one["geometry"]["points"]) for one in frame["figures"]
        ]
        assert found == expected
        assert all(set(one) == set(known["frames"][0]["figures"][0]) for one in frame["figures"])


def test_a_stock_server_leaves_out_what_has_no_track() -> None:
    """There every object has an id; and no status says which tracker ran."""
    with Server("detect", "--stock") as server, Caller(server.url) as caller:
        uuid = caller.submit(
            [("p.mp4", CLIP.read_bytes())], endpoint=VIDEO, tracker="botsort", framesCount=20
        )
        items, last = caller.drain(uuid)
        assert last["stage"] == "Finished"
        assert min(number for row in tracked_ids(items) for number in row) == 1
        assert "tracker" not in caller.ask("get_inference_status", inference_request_uuid=uuid)
        assert caller.ask("get_tracking_settings").keys() == {"botsort"}


def test_ids_begin_anew_in_each_job(detector: str, whole: list[list[int]]) -> None:
    """Also where two clips are tracked at the same time."""
    with Caller(detector) as caller:
        jobs = [
            caller.submit(
                [("p.mp4", CLIP.read_bytes())], endpoint=VIDEO, tracker="bytetrack", batch_size=size
            )
            for size in (1, 5)
        ]
        for uuid in jobs:
            assert tracked_ids(caller.drain(uuid)[0]) == whole


def test_conf_holds_for_a_tracked_clip(detector: str) -> None:
    """Weaker detections keep tracks alive, and are not answered."""
    with Caller(detector) as caller:
        items, _ = run(
            caller,
            CLIP.read_bytes(),
            tracker="bytetrack",
            settings={"conf": 0.6, "classes": ["person"]},
            framesCount=40,
        )
    scores = [tag["value"] for item in items for one in item["annotation"]["objects"] for tag in one["tags"]]
    assert min(scores) >= 0.6
    assert {one["classTitle"] for item in items for one in item["annotation"]["objects"]} == {"person"}


def test_ids_go_on_through_the_death_of_a_worker(whole: list[list[int]]) -> None:
    """Again and again, in the middle of a clip."""
    with Server("detect") as server, Caller(server.url) as caller:
        uuid = caller.submit(
            [("p.mp4", CLIP.read_bytes())], endpoint=VIDEO, tracker="bytetrack", item_errors=True
        )
        for goal in (8, 40, 80):
            until(lambda goal=goal: caller.progress(uuid)["pending_results"] >= goal, "progress")
            for pid in server.workers():
                os.kill(pid, signal.SIGKILL)
        items, last = caller.drain(uuid)
    assert last["stage"] == "Finished"
    assert tracked_ids(items) == whole


def test_ids_go_on_through_the_death_of_the_server(tmp_path: Path, whole: list[list[int]]) -> None:
    """SIGKILL, twice, in the middle of a clip whose results are read and acked meanwhile: every frame has the
    ids that it would have had, and the final result has all of them.
    """
    arguments = ("detect", "--data", str(tmp_path), "--quiet")
    uuid, items = "", list[dict[str, Any]]()
    for goal in (20, 70, 120):
        with Server(*arguments) as server, Caller(server.url) as caller:
            if not uuid:
                uuid = caller.submit(
                    [("p.mp4", CLIP.read_bytes())], endpoint=VIDEO, tracker="bytetrack", session="s"
                )

            def read(uuid: str = uuid, caller: Caller = caller, goal: int = goal) -> bool:
                items.extend(caller.pop(uuid, ack=len(items), wait=10, limit=7)["pending_results"])
                return len(items) >= goal

            until(read, "results")
            if goal < 120:
                server.kill()
            else:
                until(lambda uuid=uuid: caller.progress(uuid)["finished"], "the end")
                final = caller.ask("get_inference_result", inference_request_uuid=uuid)
    assert [item["number"] for item in items] == list(range(1, 121))
    assert tracked_ids(items) == whole
    _check_final(final, items)


def test_a_server_that_dies_at_the_very_end(tmp_path: Path, whole: list[list[int]]) -> None:
    """Between the last result and the final one: the next life writes it, and the job ends."""
    arguments = ("detect", "--data", str(tmp_path), "--quiet")
    with Server(*arguments) as server, Caller(server.url) as caller:
        uuid = caller.submit([("p.mp4", CLIP.read_bytes())], endpoint=VIDEO, tracker="bytetrack", session="s")
        until(lambda: caller.progress(uuid)["finished"], "the end")
        server.kill()
    import sqlite3

    with sqlite3.connect(tmp_path / "jobs.sqlite") as database:
        (text,) = database.execute("SELECT state FROM jobs").fetchone()
        state = {**json.loads(text), "stage": "Postprocess..."}
        database.execute("UPDATE jobs SET state = ?, keeps = 1", (json.dumps(state),))
    database.close()
    (tmp_path / "finals" / uuid).unlink()
    with Server(*arguments) as server, Caller(server.url) as caller:
        until(lambda: caller.progress(uuid)["finished"], "the end")
        items, last = caller.read(uuid)
        assert (last["stage"], last["has_result"]) == ("Finished", True)
        assert tracked_ids(items) == whole
        _check_final(caller.ask("get_inference_result", inference_request_uuid=uuid), items)
        caller.clear(uuid)


def test_nothing_is_left_of_a_job(tmp_path: Path) -> None:
    """Upload, results, detections and final result are gone once it is."""
    arguments = ("detect", "--data", str(tmp_path), "--limit-cleared", "0.1", "--limit-sweep", "0.1")
    with Server(*arguments) as server, Caller(server.url) as caller:
        uuid = caller.submit(
            [("p.mp4", CLIP.read_bytes())], endpoint=VIDEO, tracker="bytetrack", framesCount=20
        )
        until(lambda: caller.progress(uuid)["finished"], "the end")
        assert [path.name for path in (tmp_path / "finals").iterdir()] == [uuid]
        assert not list((tmp_path / "uploads").iterdir()), "a clip that is done is not needed any more"
        caller.clear(uuid)
        until(lambda: not list((tmp_path / "finals").iterdir()), "the end of its files")
        assert server.terminate() == 0
    import sqlite3

    with sqlite3.connect(tmp_path / "jobs.sqlite") as database:
        for table in ("jobs", "results", "detections"):
            assert database.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (0,)
    database.close()


def test_a_long_clip_takes_no_memory(tmp_path: Path) -> None:
    """A thousand large frames, forward and backward: the worker holds a few of them, not all."""
    data = write_numbers(tmp_path / "long.mp4", 1000, size=(640, 480), gop=50).read_bytes()
    with Server("pixels") as server, Caller(server.url) as caller:
        caller.drain(caller.submit([("n.mp4", data)], endpoint=VIDEO, framesCount=20))
        before = _resident(server)
        for direction in ("forward", "backward"):
            items, _ = run(caller, data, direction=direction)
            assert len(items) == 1000
        grown = _resident(server) - before
    assert grown < 350 << 20, "a thousand frames are 920 MB"


def _resident(server: Server) -> int:
    """Return the memory of a server and its workers, at its highest, in bytes."""
    total = 0
    for pid in (server.process.pid, *server.workers()):
        text = Path(f"/proc/{pid}/status").read_text()
        total += int(text.split("VmHWM:")[1].split()[0]) << 10
    return total


def test_a_clip_is_sent_again_with_its_key(ours_call: Caller, clip: bytes) -> None:
    """The same key is the same job, from many threads at once."""
    found: list[str] = []

    def send() -> None:
        with Caller(ours_call.url) as caller:
            headers = {"Idempotency-Key": "one clip"}
            found.append(caller.submit([("n.mp4", clip)], endpoint=VIDEO, headers=headers))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert frames_of(ours_call.read(found[0])[0]) == list(range(40))
