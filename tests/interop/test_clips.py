"""Our client, their server: frames of clips, chosen in every way there is, tracked or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from interop.pictures import write_clip
from interop.their_server import TheirServer, assert_all_equal

from predsession import PredictionSession

COUNT = 40
NO_REID = {"with_reid": False}
"""Their tracker would fetch weights from elsewhere for it."""

FRAMES = {
    "all": ({}, range(40)),
    "stride": ({"stride": 3}, range(0, 40, 3)),
    "step": ({"step": 7}, range(0, 40, 7)),
    "start": ({"start_frame": 10}, range(10, 40)),
    "start, the ancestor's other name": ({"start_frame_index": 33}, range(33, 40)),
    "count": ({"num_frames": 5}, range(5)),
    "count, the ancestor's other name": ({"frames_count": 21}, range(21)),
    "count before the stride": ({"num_frames": 5, "stride": 3}, (0, 3)),
    "start, count and stride": ({"start_frame": 10, "num_frames": 7, "stride": 3}, (10, 13, 16)),
    "end": ({"end_frame": 7}, range(7)),
    "start and end": ({"start_frame": 20, "end_frame": 38, "stride": 2}, range(20, 38, 2)),
    "duration": ({"duration": 0.5}, range(10)),
    "start and duration": ({"start_frame": 30, "duration": 0.2}, range(30, 34)),
    "backward": ({"direction": "backward"}, range(39, -1, -1)),
    "backward from a start": (
        {"direction": "backward", "start_frame": 20, "num_frames": 5},
        range(20, 15, -1),
    ),
    "backward with a stride": ({"direction": "backward", "stride": 4}, range(39, -1, -4)),
    "a count beyond the end": ({"start_frame": 35, "num_frames": 100}, range(35, 40)),
    "an end beyond the end": ({"start_frame": 35, "end_frame": 100}, range(35, 40)),
    "a duration beyond the end": ({"start_frame": 35, "duration": 60.0}, range(35, 40)),
    "the last": ({"start_frame": 39}, (39,)),
    "one": ({"start_frame": 12, "num_frames": 1}, (12,)),
    "more to a batch": ({"batch_size": 64}, range(40)),
    "fewer to a batch": ({"batch_size": 3, "stride": 2}, range(0, 40, 2)),
}


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clip of 40 frames at 20 a second."""
    return write_clip(tmp_path_factory.mktemp("clips") / "clip.mp4", COUNT)


@pytest.mark.parametrize("name", FRAMES)
def test_the_frames_that_are_wanted(theirs: TheirServer, clip: Path, name: str) -> None:
    """Exactly these, in this order, each with what the model finds in that frame."""
    keywords, frames = FRAMES[name]
    with PredictionSession(theirs.url, clip, **keywords) as session:
        assert len(session) == len(frames)
        predictions = list(session)
    assert [one.frame_index for one in predictions] == list(frames)
    assert_all_equal(predictions, theirs.direct_frames(clip, frames))
    assert theirs.live() == []


def test_settings_for_clips(theirs: TheirServer, clip: Path) -> None:
    """They reach the model with a clip as with pictures."""
    with PredictionSession(theirs.url, clip, max_objects=1, classes=["wide"]) as session:
        predictions = list(session)
    assert_all_equal(predictions, theirs.direct_frames(clip, range(COUNT), max_objects=1, classes=["wide"]))


def test_clips_of_one_name(theirs: TheirServer, tmp_path: Path) -> None:
    """A list of clips that are all called the same: each frame its own."""
    counts = {"a": 12, "b": 25}
    for folder in counts:
        (tmp_path / folder).mkdir()
    clips = [write_clip(tmp_path / folder / "clip.mp4", count) for folder, count in counts.items()]
    with PredictionSession(theirs.url, clips) as session:
        predictions = list(session)
    truths = [
        theirs.direct_frames(clip, range(count)) for clip, count in zip(clips, counts.values(), strict=True)
    ]
    assert_all_equal(predictions, [truth for each in truths for truth in each])
    assert [one.path for one in predictions] == [str(clips[0])] * 12 + [str(clips[1])] * 25


@pytest.mark.parametrize("keywords", [{}, {"stride": 2, "start_frame": 6}, {"direction": "backward"}])
def test_tracking(theirs: TheirServer, clip: Path, keywords: dict[str, object]) -> None:
    """Each object has the track that their tracker gives it when it is called directly."""
    with PredictionSession(theirs.url, clip, tracking=True, tracking_config=NO_REID, **keywords) as session:
        predictions = list(session)
    frames = [int(str(one.frame_index)) for one in predictions]
    truths = theirs.direct_frames(clip, frames, tracker_settings=NO_REID)
    assert any(truth.track_ids for truth in truths)
    assert_all_equal(predictions, truths)
    assert theirs.live() == []


@pytest.mark.parametrize("keywords", [{}, {"stride": 2, "start_frame": 6}, {"direction": "backward"}])
def test_tracks(theirs: TheirServer, clip: Path, keywords: dict[str, object]) -> None:
    """They are those of their final result, which leaves out what was seen once and never again.

    It counts the frames that were tracked, not those of the clip.
    """
    config = {"tracker": "botsort", **NO_REID}
    with PredictionSession(theirs.url, clip, tracking_config=config, **keywords) as session:
        frames = [one.frame_index for one in session]
        final = session.final_result["video_ann"]
        tracks = session.tracks
    assert final["framesCount"] == len(frames)
    told: dict[int, list[int]] = {}
    for one in final["frames"]:
        for figure in one["figures"]:
            told.setdefault(int(figure["trackId"]), []).append(frames[one["index"]])
    assert len(told) >= 3
    assert {track.id: track.frames.tolist() for track in tracks} == {
        number: sorted(seen) for number, seen in told.items()
    }
