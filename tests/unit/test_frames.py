"""Which frames: the options, held against a clip."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predsession import SourceError
from predsession.inputs.frames import choose_frames, read_options
from predsession.wire.submits import SubmitOptions, submit_video

TIMES = [number / 10 for number in range(120)]


def chosen(**options: object) -> list[int]:
    """Return the frames that the options choose of a clip of 120 frames, ten a second."""
    return list(choose_frames(read_options(options), TIMES, clip="clip.mp4"))


@pytest.mark.parametrize(
    ("options", "frames"),
    [
        ({}, range(120)),
        ({"num_frames": 5, "stride": 3}, [0, 3]),
        ({"frames_count": 5, "step": 3}, [0, 3]),
        ({"start_frame": 118, "num_frames": 50}, [118, 119]),
        ({"start_frame_index": 118}, [118, 119]),
        ({"end_frame": 3}, [0, 1, 2]),
        ({"start_frame": 110, "end_frame": 500}, range(110, 120)),
        ({"duration": 0.5}, range(5)),
        ({"start_frame": 119, "duration": 9}, [119]),
        ({"direction": "backward", "num_frames": 3}, [119, 118, 117]),
        ({"direction": "backward", "start_frame": 5}, [5, 4, 3, 2, 1, 0]),
        ({"direction": "backward", "start_frame": 5, "end_frame": 2}, [5, 4, 3]),
        ({"direction": "backward", "start_frame": 5, "stride": 2, "num_frames": 500}, [5, 3, 1]),
        ({"direction": "backward", "duration": 0.3}, [119, 118, 117]),
        ({"stride": 50}, [0, 50, 100]),
        ({"stride": 500}, [0]),
        ({"start_frame": 3, "start_frame_index": 3, "num_frames": 1}, [3]),
    ],
)
def test_frames_that_are_asked_for(options: dict[str, object], frames: list[int]) -> None:
    """By every option, under either name, clamped to the clip."""
    assert chosen(**options) == list(frames)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start_frame": 120}, r"start_frame=120 lies beyond clip\.mp4, which has 120 frames"),
        ({"end_frame": 9, "num_frames": 3}, "num_frames and end_frame"),
        ({"duration": 9, "num_frames": 3}, "num_frames and duration"),
        ({"stride": 0}, "stride must be a whole number of at least 1"),
        ({"stride": -1}, "stride"),
        ({"stride": 1.5}, "stride"),
        ({"stride": True}, "stride"),
        ({"stride": 2, "step": 3}, "step=3 contradicts stride=2"),
        ({"start_frame": -1}, "start_frame"),
        ({"num_frames": 0}, "num_frames"),
        ({"duration": 0}, "duration"),
        ({"duration": float("nan")}, "duration"),
        ({"duration": "1"}, "duration"),
        ({"direction": "up"}, "direction"),
        ({"start_frame": 9, "end_frame": 9}, "no frame"),
        ({"start_frame": 9, "end_frame": 12, "direction": "backward"}, "no frame"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, object], words: str) -> None:
    """In words that name the option."""
    with pytest.raises(SourceError, match=words):
        chosen(**options)


def test_a_duration_is_measured_on_the_clips_own_clock() -> None:
    """With a variable rate only the times say which frames lie within it."""
    times = [0.0, 0.1, 0.2, 2.0, 2.1, 9.0]
    assert list(choose_frames(read_options({"duration": 2.05}), times, clip="x")) == [0, 1, 2, 3]
    assert list(choose_frames(read_options({"start_frame": 3, "duration": 1.0}), times, clip="x")) == [3, 4]


@given(
    st.integers(1, 300),
    st.integers(0, 299),
    st.integers(1, 50),
    st.integers(1, 400),
    st.sampled_from(["forward", "backward"]),
)
def test_the_wire_says_the_same_frames(
    count: int, start: int, stride: int, number: int, direction: str
) -> None:
    """By a stock server's arithmetic the keys that are sent give exactly the frames that were chosen.

    ``range(start, start + dir * framesCount, dir * step)``, recorded from a server (docs/protocol.md).
    """
    times = [float(at) for at in range(count)]
    options = read_options(
        {"start_frame": start % count, "num_frames": number, "stride": stride, "direction": direction}
    )
    frames = choose_frames(options, times, clip="x")
    assert all(0 <= frame < count for frame in frames)
    state = submit_video(SubmitOptions("s", {}), frames, key="k", idempotent=False).state
    sign = 1 if state["direction"] == "forward" else -1
    first, total, step = (int(str(state[key])) for key in ("startFrameIndex", "framesCount", "stride"))
    assert list(range(first, first + sign * total, sign * step)) == list(frames)
