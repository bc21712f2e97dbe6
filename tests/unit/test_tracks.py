"""Tracks, gathered from predictions and held against what a server says at the end."""

from __future__ import annotations

import pytest

from predsession import Prediction
from predsession.tracks import TrackBook, gather
from predsession.wire.jsontypes import JSON


def seen(frame: int, *tracks: int) -> Prediction:
    """Return a prediction of a frame in which these tracks are seen."""
    boxes = [[number, 0, number + 4, 8] for number in tracks]
    return Prediction.from_arrays(
        size=(64, 48), boxes=boxes, track_ids=list(tracks), path="clip.mp4", frame_index=frame
    )


def final(*frames: tuple[int, tuple[int, ...]]) -> JSON:
    """Return a final result that tells these tracks for frames under these numbers."""
    told: list[JSON] = [
        {"index": index, "figures": [{"trackId": str(number)} for number in tracks]}
        for index, tracks in frames
    ]
    return {"ann": [], "video_ann": {"frames": told}}


@pytest.mark.parametrize("numbers", [(6, 8, 10), (0, 1, 2)], ids=["of the clip", "counted from 0"])
def test_a_final_result_names_frames_in_either_way(numbers: tuple[int, ...]) -> None:
    """By their number in the clip, or counted as they were tracked, as a stock server does."""
    book = TrackBook()
    for prediction in (seen(6, 1, 2), seen(8, 1), seen(10, 1, 3)):
        book.add(prediction)
    first, second, third = numbers
    tracks = book.tracks([final((first, (1, 2)), (second, (1,)), (third, (1,)))])
    assert {track.id: track.frames.tolist() for track in tracks} == {1: [6, 8, 10], 2: [6]}


def test_frames_that_were_run_backward() -> None:
    """Counted from 0, the first is the clip's last."""
    book = TrackBook()
    for prediction in (seen(2, 1), seen(1, 1, 2), seen(0, 2)):
        book.add(prediction)
    tracks = book.tracks([final((0, (1,)), (1, (1, 2)), (2, (2,)))])
    assert {track.id: track.frames.tolist() for track in tracks} == {1: [1, 2], 2: [0, 1]}


def test_without_a_final_result_all_that_was_seen_counts() -> None:
    """A track of one frame, too."""
    tracks = gather([seen(0, 1), seen(1, 1, 2)])
    assert {track.id: track.frames.tolist() for track in tracks} == {1: [0, 1], 2: [1]}
    assert tracks[0].boxes.tolist() == [[1, 0, 5, 8], [1, 0, 5, 8]]
