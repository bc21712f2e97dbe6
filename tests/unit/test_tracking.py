"""Trackers: ids stay on objects, begin at 1, and what can be set is checked."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predsession.inputs.video import ClipReader, probe
from predsession.server.bytetrack import ByteTrack, ByteTrackOptions
from predsession.server.detections import Detections
from predsession.server.models.loading import load_model
from predsession.server.refusal import Refusal
from predsession.server.tracking import make_tracker, read_tracking, tracker_names, tracker_settings

CLIP = Path(__file__).parents[1] / "samples" / "pedestrians.mp4"
HAS_EXTRA = importlib.util.find_spec("trackers") is not None


def seen(
    *boxes: tuple[float, ...], scores: list[float] | None = None, classes: list[int] | None = None
) -> Detections:
    """Return the detections of a frame."""
    count = len(boxes)
    return Detections(
        np.array(boxes, np.float32).reshape(-1, 4),
        np.array(scores or [0.9] * count, np.float32),
        np.array(classes or [0] * count, np.int64),
        np.ones(count, np.bool_),
    )


def box(x: float, y: float = 0.0, side: float = 20.0) -> tuple[float, ...]:
    """Return a square."""
    return x, y, x + side, y + side


def tracker(rate: float = 10.0, **options: float) -> ByteTrack:
    """Return a new tracker."""
    return ByteTrack(ByteTrackOptions(**options), rate=rate)


def test_ids_stay_on_what_moves() -> None:
    """Two objects that pass each other at a distance keep their ids, in whatever order they are listed."""
    following = tracker()
    for frame in range(30):
        one, other = box(5.0 * frame), box(150 - 5.0 * frame, 60)
        ids = following.update(seen(one, other) if frame % 2 else seen(other, one))
        assert ids.tolist() == ([2, 1] if frame % 2 else [1, 2])


def test_an_id_needs_two_sightings_but_in_the_first_frame() -> None:
    """A flash in one frame gets no id, and takes none away: the next object has the next number."""
    following = tracker()
    assert following.update(seen(box(0))).tolist() == [1]
    assert following.update(seen(box(0), box(100))).tolist() == [1, -1]
    assert following.update(seen(box(0))).tolist() == [1]
    assert following.update(seen(box(0), box(200))).tolist() == [1, -1]
    assert following.update(seen(box(0), box(200))).tolist() == [1, 2]


def test_a_weak_detection_keeps_a_track_and_begins_none() -> None:
    """An object that is half hidden for a while keeps its id; a weak one alone never gets one."""
    following = tracker(lost_seconds=0.2)
    scores = [0.9, 0.9, *[0.2] * 10, 0.9]
    assert [following.update(seen(box(n), scores=[score])).tolist() for n, score in enumerate(scores)] == [
        [1]
    ] * len(scores)
    alone = tracker()
    assert {alone.update(seen(box(0), scores=[0.2])).item() for _ in range(5)} == {-1}


@pytest.mark.parametrize(("gap", "same"), [(15, True), (25, False)])
def test_a_lost_object_is_remembered_for_its_time(gap: int, same: bool) -> None:
    """Two seconds, at ten frames a second; where it would be by then, not where it was."""
    following = tracker()
    for frame in range(10):
        following.update(seen(box(4.0 * frame)))
    for _ in range(gap):
        assert following.update(seen()).tolist() == []
    ids = [following.update(seen(box(4.0 * (10 + gap + n)))).item() for n in range(2)]
    assert ids[1] == (1 if same else 2)


def test_the_memory_is_of_seconds_not_frames() -> None:
    """At five times the rate a track outlives five times the frames."""
    slow, quick = tracker(rate=10), tracker(rate=50)
    for following in (slow, quick):
        for _ in range(5):
            following.update(seen(box(0)))
        for _ in range(60):
            following.update(seen())
    assert slow.update(seen(box(0))).tolist() == [-1]
    assert quick.update(seen(box(0))).tolist() == [1]


def test_classes_do_not_mix() -> None:
    """Two objects of different classes in one place have two ids, and keep them."""
    following = tracker()
    for _ in range(5):
        ids = following.update(seen(box(0), box(1), classes=[3, 8]))
        assert ids.tolist() == [1, 2]
    assert following.update(seen(box(0), classes=[8])).tolist() == [2]


@settings(max_examples=60, deadline=None)
@given(
    frames=st.lists(
        st.lists(
            st.tuples(
                st.floats(0, 300), st.floats(0, 300), st.floats(0, 80), st.floats(0, 1), st.integers(0, 2)
            ),
            max_size=8,
        ),
        max_size=12,
    )
)
def test_every_detection_has_one_id_or_none(
    frames: list[list[tuple[float, float, float, float, int]]],
) -> None:
    """One id for each row, none twice in a frame, of one class each; and the same the next time."""
    first, second = tracker(), tracker()
    of_class: dict[int, int] = {}
    for frame in frames:
        detections = seen(
            *[box(x, y, side) for x, y, side, _, _ in frame],
            scores=[score for *_, score, _ in frame],
            classes=[number for *_, number in frame],
        )
        ids = first.update(detections)
        assert ids.shape == (len(frame),)
        given_out = [number for number in ids.tolist() if number != -1]
        assert len(set(given_out)) == len(given_out)
        assert all(number >= 1 for number in given_out)
        for number, (*_, kind) in zip(ids.tolist(), frame, strict=True):
            assert number == -1 or of_class.setdefault(number, kind) == kind
        assert second.update(detections).tolist() == ids.tolist()


@pytest.fixture(scope="module")
def pedestrians() -> list[Detections]:
    """What the bundled detector finds in the sample clip, weak detections too."""
    clip = probe(CLIP)
    reader = ClipReader(clip)
    model, card = load_model("detect")
    found = []
    for index in range(len(clip)):
        (arrays,) = model.predict([reader.read(index)], {**card.settings, "conf": 0.15})
        assert isinstance(arrays, dict)
        boxes, scores, classes = (np.asarray(arrays[name]) for name in ("boxes", "scores", "class_ids"))
        found.append(Detections(boxes.astype(np.float32), scores.astype(np.float32), classes, scores >= 0.35))
    reader.close()
    return found


@pytest.mark.parametrize("name", tracker_names())
def test_walkers_keep_their_ids(pedestrians: list[Detections], name: str) -> None:
    """A dozen people, three parked cars: few ids, hardly a switch, and none for who walks alone."""
    tracking = read_tracking(name, None)
    assert tracking is not None
    following = make_tracker(tracking.runs, tracking.settings, rate=10)
    ids = [following.update(detections) for detections in pedestrians]
    assert 12 <= len({number for frame in ids for number in frame.tolist()} - {-1}) <= 20
    assert _switches(pedestrians, ids) <= 4
    alone = [_nearest(pedestrians[at], ids[at], where) for at, where in ((60, (427, 203)), (110, (447, 110)))]
    assert alone[0] == alone[1] > 0, "the man in the gray jacket"


def _switches(frames: list[Detections], ids: list[npt.NDArray[np.int64]]) -> int:
    """Count neighbours in time, clearly the same object by their overlap, that have two ids."""
    count = 0
    for at in range(1, len(frames)):
        before, after = frames[at - 1], frames[at]
        for row, number in enumerate(ids[at - 1]):
            overlaps = [_overlap(before.boxes[row], other) for other in after.boxes]
            best = int(np.argmax(overlaps)) if overlaps else 0
            if number > 0 and overlaps and overlaps[best] > 0.6 and ids[at][best] > 0:
                same = before.class_ids[row] == after.class_ids[best]
                count += bool(same and ids[at][best] != number)
    return count


def _overlap(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> float:
    """Return the intersection over union."""
    common = np.clip(np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2]), 0, None).prod()
    return float(common / ((one[2:] - one[:2]).prod() + (other[2:] - other[:2]).prod() - common))


def _nearest(frame: Detections, ids: npt.NDArray[np.int64], where: tuple[float, float]) -> int:
    """Return the id of the person nearest to a point."""
    people = np.flatnonzero(frame.class_ids == 0)
    centres = (frame.boxes[people, :2] + frame.boxes[people, 2:]) / 2
    return int(ids[people[np.argmin(np.linalg.norm(centres - where, axis=1))]])


def test_names_and_settings_are_published() -> None:
    """The default comes first, the name that Supervisely's client asks for last; each has its settings."""
    names = tracker_names()
    assert (names[0], names[-1]) == ("bytetrack", "botsort")
    assert list(tracker_settings()) == names
    for name, values in tracker_settings().items():
        assert read_tracking(name, values) is not None


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("sort", None, "There is no tracker 'sort'"),
        (3, None, "There is no tracker 3"),
        ("bytetrack", [1], "must be an object"),
        ("bytetrack", {"track_hihg_thresh": 0.5}, "did you mean 'track_high_thresh'"),
        ("bytetrack", {"with_reid": False}, "no setting 'with_reid'"),
        ("botsort", {"colour": "red"}, "The tracker botsort has no setting 'colour'"),
        ("bytetrack", {"match_iou": 1.5}, "'match_iou' is 1.5; it must be from 0 to 1"),
        ("bytetrack", {"match_iou": "much"}, "must be a number"),
        ("bytetrack", {"lost_seconds": float("nan")}, "from 0"),
        ("bytetrack", {"lost_seconds": float("inf")}, "from 0"),
        ("bytetrack", {"confirm_hits": 0}, "a whole number of at least 1"),
        ("bytetrack", {"confirm_hits": True}, "must be a number"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(name: str, given: object, message: str) -> None:
    """Before anything is computed."""
    with pytest.raises(Refusal) as refused:
        read_tracking(name, given)
    assert refused.value.status == 400
    assert message in str(refused.value.body)


def test_a_supervisely_client_s_wishes_are_accepted() -> None:
    """Its tracker by name, in any case, with settings that mean something only there; and which one runs."""
    wishes = {"with_reid": False, "track_high_thresh": 0.6, "cmc_method": "sparseOptFlow", "fp16": False}
    tracking = read_tracking("BoTSORT", wishes)
    assert tracking is not None
    assert (tracking.asked, tracking.runs) == ("botsort", "botsort" if HAS_EXTRA else "bytetrack")
    assert tracking.settings["track_high_thresh"] == 0.6
    assert "with_reid" not in tracking.settings


def test_no_tracker_is_no_tracking() -> None:
    """None and an empty name."""
    assert read_tracking(None, {"a": 1}) is None
    assert read_tracking("", None) is None
