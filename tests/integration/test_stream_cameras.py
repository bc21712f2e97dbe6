"""Frames of clips, and of a camera over a real socket: the newest, again after a break, closed at once."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from live_kit import Camera
from number_clips import write_numbers
from server_kit import until
from stream_kit import drain, ids, reasons

from predsession.errors import SourceError
from predsession.server.models.pixels import box_number
from predsession.stream import CameraSource, Sample, StreamSession, VideoSource, cameras
from predsession.stream.sources import open_source


def means(batch: Any) -> Any:
    """A model of pictures: how bright each is."""
    return np.array([float(np.mean(image)) for image in batch["image"]])


def test_clip(ours: str, tmp_path: Path) -> None:
    """Frame by frame through a server: each result belongs to its frame; again, none is run twice."""
    clip = write_numbers(tmp_path / "clip.mp4", 23)
    store = tmp_path / "r.lance"
    with StreamSession(ours, str(clip), store, batch_size=8) as session:
        drain(session)
    dataset = session.dataset
    assert dataset.ids() == [f"clip.mp4:{number:08}" for number in range(23)]
    assert [box_number(each.boxes[0]) for each in dataset.to_predictions()] == list(range(23))
    assert dataset.to_pandas()["position"].tolist() == dataset.ids()
    with StreamSession(means, VideoSource(clip), store) as session:
        drain(session)
    assert (session.counts.stored, session.counts.skipped) == (0, 23)


def test_clip_with_a_stride(tmp_path: Path) -> None:
    """Every third frame: its own index, its own time; how many are to come is known."""
    source = VideoSource(write_numbers(tmp_path / "clip.mp4", 20), stride=3)
    assert source.behind() == 7
    got = source.take(100, 60)
    assert got is not None
    fields = [each.fields for each in got if isinstance(each, Sample)]
    assert [each["frame_index"] for each in fields] == [0, 3, 6, 9, 12, 15, 18]
    assert np.allclose([float(str(each["time"])) for each in fields], np.arange(7) * 0.3)
    assert fields[0]["image"].shape == (96, 128, 3)
    assert source.take(1, 1) is None
    source.close()
    source.close()
    assert source.take(1, 1) is None


def test_clip_cut_short(tmp_path: Path) -> None:
    """Where a file ends too early, its frames are there, and one dead letter says how many are not."""
    clip = write_numbers(tmp_path / "clip.mkv", 40)
    whole = clip.read_bytes()
    import av

    with av.open(str(clip)) as container:
        places = [packet.pos for packet in container.demux(video=0) if packet.size]
    damaged = whole[: places[25]] + b"\0" * (len(whole) - places[25])
    clip.write_bytes(damaged)
    store = tmp_path / "r.parquet"
    with StreamSession(means, VideoSource(clip), store) as session:
        drain(session)
    count = len(ids(store))
    assert 0 < count <= 26
    assert ids(store) == [f"clip.mkv:{number:08}" for number in range(count)]
    assert len(reasons(store)) <= 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: VideoSource(folder / "none.mp4"), "none.mp4"),
        (lambda folder: VideoSource(folder / "text.mp4"), "cannot be read as a video"),
        (lambda folder: VideoSource(folder / "none.mp4", stride=0), "stride is 0"),
        (lambda _: CameraSource("tcp://h:1", fps=0), "fps is 0"),
        (lambda _: CameraSource("tcp://h:1", stale="keep"), "stale is 'keep'"),
        (lambda _: CameraSource("tcp://h:1", ahead=0), "ahead is 0"),
        (lambda _: CameraSource("tcp://h:1", patience=0), "patience is 0"),
    ],
)
def test_mistakes(tmp_path: Path, make: Any, words: str) -> None:
    """Mistakes are told at once."""
    (tmp_path / "text.mp4").write_text("no clip")
    with pytest.raises(SourceError, match=words):
        make(tmp_path)


def test_camera(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of a camera go into a store, with the time in their ids; stop() ends it."""
    store = tmp_path / "r.lance"
    seconds = itertools.count(1_700_000_000.0, 0.25)
    monkeypatch.setattr(cameras, "time", SimpleNamespace(time=seconds.__next__, monotonic=time.monotonic))
    with Camera() as camera, StreamSession(means, camera.url, store, batch_size=4, flush_after=1) as session:
        for batch, _ in session:
            assert batch["image"][0].shape == (48, 64, 3)
            assert [each - 1_700_000_000.0 for each in batch["time"]] == [
                each / 4 for each in batch["frame_index"]
            ]
            if session.counts.stored >= 12:
                session.stop()
    names = ids(store)
    assert len(set(names)) == len(names) >= 12
    assert names == sorted(names)
    assert names[0].startswith(camera.url.removeprefix("tcp://"))


def test_newest_frames_win() -> None:
    """Where nobody takes them, old frames are dropped and counted, and few are kept; fps asks for fewer."""
    with Camera(rate=200) as camera:
        source = CameraSource(camera.url, ahead=3)
        assert source.take(1, 10)
        until(lambda: source.dropped > 20, "frames to be dropped")
        got = source.take(10, 1)
        assert got is not None
        assert len(got) == 3
        indexes = [each.fields["frame_index"] for each in got if isinstance(each, Sample)]
        assert int(str(indexes[0])) > 20
        assert source.behind() <= 3
        source.close()
    with Camera(rate=100) as camera:
        began = time.monotonic()
        source = CameraSource(camera.url, fps=10, ahead=100)
        until(lambda: source.take(1, 1) and camera.sent > 100, "frames")
        source.close()
        assert source._count <= 10 * (time.monotonic() - began) + 1


def test_frames_that_wait() -> None:
    """With stale="wait" none is dropped: all frames of a stream that ends come, in order."""
    with Camera(frames=30, rate=1000) as camera:
        source = CameraSource(camera.url, stale="wait", ahead=2, reconnect=False)
        indexes: list[object] = []
        while (got := source.take(5, 10)) is not None:
            time.sleep(0.01)
            indexes += [each.fields["frame_index"] for each in got if isinstance(each, Sample)]
        source.close()
    assert indexes == list(range(len(indexes)))
    assert len(indexes) >= 25
    assert source.dropped == 0


def test_camera_that_breaks() -> None:
    """A connection that ends, or falls silent, is made again; ids go on, none is there twice."""
    for hang in (False, True):
        with Camera(frames=20, rate=200, hang=hang) as camera:
            source = CameraSource(camera.url, patience=0.5, ahead=100)
            names: list[str] = []

            def take(source: CameraSource = source, names: list[str] = names) -> bool:
                names += [str(each.position) for each in source.take(50, 1) or ()]
                return source.connections >= 2 and len(names) > 20

            until(take, "a second connection")
            source.close()
            assert len(set(names)) == len(names)


def test_camera_closed_while_it_is_silent() -> None:
    """close() from another thread ends a wait for a camera that says nothing, at once."""
    with Camera(frames=10, hang=True) as camera:
        source = CameraSource(camera.url, patience=1.5)
        until(lambda: source.take(10, 0.1) == [] and source.connections, "silence")
        ended = threading.Event()

        def wait() -> None:
            source.take(1, 60)
            ended.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        source.close()
        assert ended.wait(30)
        waiting.join()
        assert source.take(1, 60) is None
        assert source._thread is not None
        source._thread.join(10)


def test_no_camera() -> None:
    """A camera that is not there at first is an error of the first take; secrets of its URL are not told."""
    source = open_source("tcp://user:s3cret-word@127.0.0.1:9/?key=s3cret-word", decode=None, ahead=1)
    with pytest.raises(SourceError, match=r"127\.0\.0\.1:9") as caught:
        while source.take(1, 10) is not None:
            pass
    assert "s3cret" not in str(caught.value)
    assert source.take(1, 1) is None
    source.close()
