"""Which frames a submit asks for, held against the clip itself.

References
----------
docs/protocol.md, "Frames".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from predsession.errors import SourceError
from predsession.inputs.frames import FrameOptions, choose_frames, read_options
from predsession.inputs.video import Clip
from predsession.server.refusal import Fault, Refusal, explained
from predsession.server.work import ClipWork
from predsession.wire.jsontypes import JSON, JSONObject

_CAMEL = {
    "start_frame": ("startFrameIndex", "startFrame"),
    "num_frames": ("framesCount", "numFrames"),
    "end_frame": ("endFrame",),
    "duration": ("duration",),
    "stride": ("stride", "step"),
    "direction": ("direction",),
}
_SNAKE = {"start_frame": ("start_frame_index",), "num_frames": ("frames_count",)}
_INCLUSIVE = ("endFrameIndex", "end_frame_index")


def frames_of(state: JSONObject, clip: Clip, *, name: str) -> range:
    """Return the frames that a submit asks for.

    Parameters
    ----------
    state : JSONObject
        The submit's; camelCase names and snake_case ones both count.
    clip : Clip
        The clip.
    name : str
        What the caller calls it.

    Returns
    -------
    range
        Clamped to the clip; at least one.

    Raises
    ------
    Refusal
        If the options contradict each other, make no sense, or leave nothing.
    """
    given: dict[str, object] = {}
    for option, names in _CAMEL.items():
        keys = (*names, option, *_SNAKE.get(option, ()))
        given[option] = next((state[key] for key in keys if state.get(key) is not None), None)
    try:
        inclusive = next((state[key] for key in _INCLUSIVE if state.get(key) is not None), None)
        if inclusive is not None:
            given["end_frame"] = inclusive
        options = read_options(given)
        if inclusive is not None:
            options = _beyond(options)
        return choose_frames(options, clip.times.tolist(), clip=repr(name))
    except SourceError as error:
        raise Refusal(400, explained(str(error))) from None


def _beyond(options: FrameOptions) -> FrameOptions:
    """Turn an end that is wanted into the first frame that is not."""
    assert options.end_frame is not None
    step = -1 if options.direction == "backward" else 1
    return FrameOptions(
        start_frame=options.start_frame,
        end_frame=options.end_frame + step,
        stride=options.stride,
        direction=options.direction,
    )


def stock_frames_of(state: JSONObject, clip: Clip) -> range:
    """Return the frames that a stock server would look for, also where the clip has none of them.

    Parameters
    ----------
    state : JSONObject
        The submit's; only camelCase names count.
    clip : Clip
        The clip.

    Returns
    -------
    range
        Not clamped: without a count it asks for as many as the clip has, from wherever it starts.

    Raises
    ------
    Fault
        If a value is no number.
    """
    try:
        start = _whole(state, ("startFrameIndex",), 0)
        end, duration = state.get("endFrameIndex"), state.get("duration")
        sign = -1 if state.get("direction", "forward") == "backward" else 1
        count = len(clip)
        if end is not None:
            count = abs(int(str(end)) - start) + 1
        elif duration is not None:
            count = int(float(str(duration)) * clip.rate)
        count = _whole(state, ("framesCount",), count)
        step = _whole(state, ("stride", "step"), 1)
        return range(start, start + sign * count, sign * step)
    except (ValueError, OverflowError) as error:
        raise Fault(f"{type(error).__name__}({str(error)!r})") from None


def _whole(state: Mapping[str, JSON], names: Sequence[str], default: int) -> int:
    """Return the first of these keys as a whole number."""
    value = next((state[name] for name in names if state.get(name) is not None), default)
    return int(str(value))


def clip_work(
    frames: range,
    clip: Clip,
    *,
    name: str,
    path: str | None = None,
    ids: Mapping[str, int] | None = None,
) -> ClipWork:
    """Put together what a job works on.

    Parameters
    ----------
    frames : range
        Which frames.
    clip : Clip
        Of which clip.
    name : str
        What the caller calls it.
    path : str or None
        The file; None where it is the job's upload.
    ids : mapping of str to int, or None
        ``video_id``, ``dataset_id`` and ``project_id``, in a library.

    Returns
    -------
    ClipWork
        Complete.
    """
    return ClipWork(
        start=frames.start,
        step=frames.step,
        count=len(frames),
        length=len(clip),
        width=clip.size.width,
        height=clip.size.height,
        rate=clip.rate,
        name=name,
        path=path,
        **(ids or {}),
    )
