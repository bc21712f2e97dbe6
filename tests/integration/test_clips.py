"""Clips through both kinds of server: exactly the frames asked for, each its own, whatever goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

import av
import numpy as np
import pytest

from predsession import ClipShorterWarning, PredictionSession, Size, SourceError
from predsession.inputs.video import ClipWriter, count_frames, probe
from predsession.testing import Fault, FaultyServer, box_number, number_picture

SIZE = Size(128, 96)
POP, SUBMIT = "pop_inference_results", "inference_video_async"


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clip of 40 frames, ten a second; each holds its own number."""
    path = tmp_path_factory.mktemp("clips") / "numbers.mp4"
    with ClipWriter(path, SIZE, rate=10) as writer:
        for number in range(40):
            writer.write(number_picture(number, SIZE), number / 10)
    return path


def frames(session: PredictionSession) -> list[int]:
    """Run a session; check that each prediction is that of its own frame; return the frames."""
    with session:
        predictions = list(session)
    numbers = [box_number(one.boxes[0]) for one in predictions if one]
    assert numbers == [one.frame_index for one in predictions if one]
    assert [one.index for one in predictions] == list(range(len(predictions)))
    return numbers


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, range(40)),
        ({"start_frame": 5}, range(5, 40)),
        ({"num_frames": 5, "stride": 3}, [0, 3]),
        ({"start_frame": 38, "num_frames": 50}, [38, 39]),
        ({"end_frame": 4}, range(4)),
        ({"duration": 0.5}, range(5)),
        ({"stride": 7}, range(0, 40, 7)),
        ({"direction": "backward", "num_frames": 4}, [39, 38, 37, 36]),
        ({"direction": "backward", "start_frame": 9, "stride": 3}, [9, 6, 3, 0]),
        ({"frames_count": 3, "start_frame_index": 2, "batch_size": 2}, [2, 3, 4]),
    ],
)
def test_exactly_the_frames_asked_for(
    either: str, clip: Path, options: dict[str, object], expected: list[int]
) -> None:
    """Also on a stock server; the length is known from the start."""
    session = PredictionSession(either, clip, **options)
    assert len(session) == len(list(expected))
    assert frames(session) == list(expected)


def test_each_frame_knows_its_own(either: str, clip: Path) -> None:
    """Its name, its time, and its picture."""
    with PredictionSession(either, clip, start_frame=12, num_frames=2) as session:
        first, second = session
    assert (first.path, first.name, first.frame_index) == (str(clip), "numbers.mp4", 12)
    assert second.timestamp == pytest.approx(1.3, abs=0.01)
    assert np.abs(second.load_image().astype(int) - number_picture(13, SIZE)).mean() < 8
    assert first.size == SIZE


def test_a_list_of_clips(either: str, clip: Path) -> None:
    """One after the other; indexes go on, frames start anew."""
    with PredictionSession(either, [clip, clip], num_frames=3) as session:
        assert len(session) == 6
        predictions = list(session)
    assert [one.frame_index for one in predictions] == [0, 1, 2, 0, 1, 2]
    assert [one.index for one in predictions] == list(range(6))


@pytest.mark.parametrize(
    "fault",
    [
        [Fault("drop_after", POP, nth=2)],
        [Fault("drop_after", POP, nth=n) for n in range(2, 60, 3)],
        [Fault("truncate", POP, nth=1)],
        [Fault("status", POP, nth=2, times=2, status=502)],
        [Fault("status", SUBMIT, status=503)],
        [Fault("drop_after", SUBMIT)],
        [Fault("reset", SUBMIT, after_bytes=900)],
    ],
    ids=[
        "pop lost",
        "every third pop lost",
        "pop cut",
        "pop 502",
        "submit 503",
        "submit lost",
        "upload reset",
    ],
)
def test_no_frame_is_lost_doubled_or_swapped(either: str, clip: Path, fault: list[Fault]) -> None:
    """A gap is seen by the frames' numbers, and run again."""
    with FaultyServer(either, fault) as faulty:
        assert frames(PredictionSession(faulty.url, clip, batch_size=2, delay=0.01)) == list(range(40))
        assert any(call.fault for call in faulty.seen)


def test_the_same_bytes_are_sent_again(either: str, clip: Path) -> None:
    """A 503 on the first submit: the clip travels again from its first byte."""
    with FaultyServer(either, [Fault("status", SUBMIT, status=503)]) as faulty:
        assert frames(PredictionSession(faulty.url, clip, num_frames=2)) == [0, 1]
        bodies = [call.body for call in faulty.calls(SUBMIT)]
    assert len(bodies) == 2
    assert all(clip.read_bytes() in body for body in bodies)


def test_leaving_early(either: str, clip: Path) -> None:
    """The job gets its stop and its clear."""
    with FaultyServer(either) as faulty:
        with PredictionSession(faulty.url, clip, delay=0.05) as session:
            next(session)
        assert len(faulty.calls("stop_inference")) == len(faulty.calls("clear_inference_request")) == 1


def test_a_clip_that_is_shorter_than_it_says(either: str, clip: Path, tmp_path: Path) -> None:
    """Its packets promise 40 frames, from the 26th on they are zeros: a warning, and what there is."""
    data = bytearray(clip.read_bytes())
    with av.open(str(clip)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
    begin, end = packets[25].pos, max(packet.pos + packet.size for packet in packets)
    data[begin:end] = bytes(end - begin)
    damaged = tmp_path / "damaged.mp4"
    damaged.write_bytes(data)
    count = count_frames(probe(damaged))
    assert 0 < count < len(probe(damaged)) == 40
    with pytest.warns(ClipShorterWarning, match=f"{count} frames, though it has packets for 40"):
        assert frames(PredictionSession(either, damaged)) == list(range(count))


def test_tracking(detector: str) -> None:
    """Ids row by row with the boxes; tracks after the end; ids start anew in each session."""
    source = Path(__file__).parents[1] / "samples" / "pedestrians.mp4"
    firsts = []
    for _ in range(2):
        with PredictionSession(detector, source, tracking=True, conf=0.15, num_frames=60) as session:
            predictions = list(session)
        assert all(len(one.track_ids) == len(one.boxes) for one in predictions)
        tracks = session.tracks
        assert tracks
        assert min(track.id for track in tracks) == 1
        longest = max(tracks, key=len)
        assert len(longest) > 40, "an isolated walker keeps one id"
        assert longest.class_name == "person"
        assert longest.boxes.shape == (len(longest), 4)
        firsts.append([(track.id, len(track)) for track in tracks])
    assert firsts[0] == firsts[1]
    assert session.final_result is not None


def test_a_lost_answer_in_a_tracked_clip(stock: str, clip: Path) -> None:
    """The whole clip is run again on a stock server, for ids start anew; what was handed over must fit."""
    some: list[bytes] = []

    def lose(body: bytes) -> bytes:
        """Lose the second answer that holds frames."""
        if json.loads(body)["pending_results"]:
            some.append(body)
        return b"lost" if len(some) == 2 and body is some[1] else body

    with FaultyServer(stock, [Fault("rewrite", POP, times=999, rewrite=lose)]) as faulty:
        with PredictionSession(faulty.url, clip, tracking=True, batch_size=2, delay=0.01) as session:
            assert [one.frame_index for one in session] == list(range(40))
        submits = faulty.calls(SUBMIT)
    assert len(submits) == 2
    assert all(b'"framesCount": 40' in call.body for call in submits)


def test_an_unknown_tracker_is_refused(ours: str, clip: Path) -> None:
    """By name, with those that there are."""
    with (
        PredictionSession(ours, clip, tracking_config={"tracker": "crystal ball"}) as session,
        pytest.raises(SourceError, match="crystal ball"),
    ):
        next(session)


def test_an_unknown_setting_of_a_tracker_is_refused(either: str, clip: Path) -> None:
    """By name, before the clip is sent."""
    with (
        FaultyServer(either) as faulty,
        PredictionSession(faulty.url, clip, tracking_config={"match_tresh": 0.5}) as session,
    ):
        with pytest.raises(SourceError, match="match_tresh"):
            next(session)
        assert not faulty.calls(SUBMIT)


def test_many_results_in_flat_memory(ours: str, clip: Path) -> None:
    """A slow caller holds the pipeline back; what waits is bounded."""
    with PredictionSession(ours, [clip] * 10) as session:
        assert len(session) == 400
        first = next(session)
        assert first.frame_index == 0
        assert session.progress().done <= 70
        assert len(list(session)) == 399


def test_the_same_clip_twice_with_tracking(detector: str) -> None:
    """Its tracks are not mixed up: each run of the clip has its own."""
    source = Path(__file__).parents[1] / "samples" / "pedestrians.mp4"
    with PredictionSession(detector, [source, source], tracking=True, num_frames=12) as session:
        assert len(list(session)) == 24
    assert session.tracks
    assert all(np.all(np.diff(track.frames) > 0) for track in session.tracks)


def test_a_part_of_which_nothing_can_be_decoded(ours: str, clip: Path, tmp_path: Path) -> None:
    """Is an error that names the clip, not an empty success."""
    data = bytearray(clip.read_bytes())
    with av.open(str(clip)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
    begin, end = packets[25].pos, max(packet.pos + packet.size for packet in packets)
    data[begin:end] = bytes(end - begin)
    (tmp_path / "damaged.mp4").write_bytes(data)
    with (
        PredictionSession(ours, tmp_path / "damaged.mp4", start_frame=35) as session,
        pytest.raises(SourceError, match=r"damaged\.mp4"),
    ):
        list(session)
