"""Which frames of a clip: the caller's options, checked, as one `range`. Pure arithmetic.

The rules are a stock server's (docs/protocol.md, "Frames"), with what it gets wrong left out: ``num_frames``
counts frames of the clip before the stride is taken, so 5 frames with stride 3 from 0 are frames 0 and 3;
what reaches past the clip is clamped to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from predsession.errors import SourceError

Direction = Literal["forward", "backward"]

ALIASES = {"start_frame_index": "start_frame", "frames_count": "num_frames", "step": "stride"}
"""The ancestor's other names."""

NAMES = ("start_frame", "num_frames", "end_frame", "duration", "stride", "direction", *ALIASES)
"""Every keyword that chooses frames."""


@dataclass(frozen=True, slots=True)
class FrameOptions:
    """The frames that are wanted.

    Parameters
    ----------
    start_frame : int or None
        The first; the clip's first by default, its last if `direction` is backward.
    num_frames : int or None
        So many frames of the clip, before the stride is taken.
    end_frame : int or None
        The first that is no longer wanted.
    duration : float or None
        Seconds of the clip, from the first frame on.
    stride : int
        Every so many frames one.
    direction : {"forward", "backward"}
        Which way.
    """

    start_frame: int | None = None
    num_frames: int | None = None
    end_frame: int | None = None
    duration: float | None = None
    stride: int = 1
    direction: Direction = "forward"

    @property
    def whole(self) -> bool:
        """Whether every frame of the clip is wanted, in order, but for the stride."""
        return self == FrameOptions(stride=self.stride)


def read_options(given: Mapping[str, object]) -> FrameOptions:
    """Check the caller's keywords.

    Parameters
    ----------
    given : mapping
        Keywords out of `NAMES`; None values count as not given.

    Returns
    -------
    FrameOptions
        Free of contradictions, though not yet held against a clip.

    Raises
    ------
    SourceError
        If two names say the same thing differently, two options contradict each other, or a value makes no
        sense.
    """
    named: dict[str, object] = {}
    for name, value in given.items():
        if value is None:
            continue
        proper = ALIASES.get(name, name)
        value = value.item() if isinstance(value, np.generic) else value
        if proper in named and named[proper] != value:
            raise SourceError(f"{name}={value!r} contradicts {proper}={named[proper]!r}: pass one of them")
        named[proper] = value
    direction = named.pop("direction", "forward")
    if direction not in ("forward", "backward"):
        raise SourceError(f"direction must be 'forward' or 'backward', not {direction!r}")
    lengths = [name for name in ("num_frames", "end_frame", "duration") if name in named]
    if len(lengths) > 1:
        raise SourceError(f"{' and '.join(lengths)} both say where to end: pass one of them")
    _check_numbers(named)
    return FrameOptions(**cast("dict[str, int]", named), direction=direction)


def _check_numbers(named: Mapping[str, object]) -> None:
    """Check each value by itself."""
    least = {"start_frame": 0, "num_frames": 1, "end_frame": 0, "stride": 1}
    for name, value in named.items():
        if name == "duration":
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
                raise SourceError(f"duration must be a number of seconds above 0, not {value!r}")
        elif isinstance(value, bool) or not isinstance(value, int) or value < least[name]:
            raise SourceError(f"{name} must be a whole number of at least {least[name]}, not {value!r}")


def choose_frames(options: FrameOptions, times: Sequence[float], *, clip: str) -> range:
    """Hold the options against a clip.

    Parameters
    ----------
    options : FrameOptions
        What is wanted.
    times : sequence of float
        The timestamp of each frame of the clip, in seconds, ascending.
    clip : str
        The clip's name, for messages.

    Returns
    -------
    range
        Frame indexes, in the order in which they are to be predicted; at least one.

    Raises
    ------
    SourceError
        If the start lies beyond the clip, or nothing is left.
    """
    count, backward = len(times), options.direction == "backward"
    default = count - 1 if backward else 0
    start = default if options.start_frame is None else options.start_frame
    if start >= count:
        raise SourceError(
            f"start_frame={start} lies beyond {clip}, which has {count} frames (0 to {count - 1})"
        )
    stop = _stop(options, times, start)
    frames = (
        range(start, max(stop, -1), -options.stride)
        if backward
        else range(start, min(stop, count), options.stride)
    )
    if not frames:
        raise SourceError(
            f"no frame of {clip} is left from start_frame={start} to end_frame={options.end_frame}, "
            f"{options.direction}"
        )
    return frames


def _stop(options: FrameOptions, times: Sequence[float], start: int) -> int:
    """Return the first frame that is no longer wanted, perhaps beyond the clip."""
    sign = -1 if options.direction == "backward" else 1
    if options.end_frame is not None:
        return options.end_frame
    if options.num_frames is not None:
        return start + sign * options.num_frames
    if options.duration is None:
        return -1 if sign < 0 else len(times)
    at = start
    # A frame belongs to the stretch if it begins in it; with a variable rate only the clip's own times say.
    while 0 <= at < len(times) and abs(times[at] - times[start]) < options.duration:
        at += sign
    return at
