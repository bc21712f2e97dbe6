"""Frames of clips, read in a worker beside the model: one thread, a clip or two open, decoded once each.

Frames are asked for in the order of the job, so that going forward costs one decoding a frame. Backward, a
decoder has to begin at the keyframe before: a stretch of frames is read forward there and handed over in
reverse, as long a stretch as memory allows.
"""

from __future__ import annotations

import queue
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

from predsession.errors import PredSessionError
from predsession.inputs.video import ClipKey, ClipReader, Picture, clip_key, probe
from predsession.server.budget import PixelBudget
from predsession.server.decode import BadImageError

OPEN_CLIPS = 2
STRETCH_PIXELS = 16_000_000
"""Pixels of the longest stretch that is read at once where a clip goes backward."""
_IDLE_S = 2.0


class Frame(NamedTuple):
    """A frame of a clip, counted from 0, and the pixels it is expected to have."""

    path: str
    at: int
    pixels: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Frames that are read together.

    Parameters
    ----------
    path : str
        The clip.
    frames : sequence of (int, Future)
        The indexes, ascending, and where each picture goes.
    pixels : int
        Of each picture, as expected.
    turn : int
        When room is taken for all of them.
    """

    path: str
    frames: Sequence[tuple[int, Future[Picture]]]
    pixels: int
    turn: int


def stretches(wanted: Sequence[tuple[Frame, Future[Picture]]], turns: Iterator[int]) -> Iterator[Stretch]:
    """Cut frames into stretches.

    Parameters
    ----------
    wanted : sequence of (Frame, Future)
        In the order in which the pictures are needed.
    turns : iterator of int
        Gives each stretch its turn.

    Yields
    ------
    Stretch
        In that order; of one frame each where the clip goes forward.
    """
    for place in _ends(wanted):
        part = wanted[place]
        frame = part[0][0]
        ordered = sorted(((one.at, future) for one, future in part), key=lambda pair: pair[0])
        yield Stretch(frame.path, ordered, frame.pixels, next(turns))


def _ends(wanted: Sequence[tuple[Frame, Future[Picture]]]) -> Iterator[slice]:
    """Yield the place of each stretch."""
    begin = 0
    for end in range(1, len(wanted) + 1):
        frame = wanted[begin][0]
        most = max(1, STRETCH_PIXELS // max(1, frame.pixels))
        goes_on = (
            end < len(wanted)
            and end - begin < most
            and wanted[end][0].path == frame.path
            and wanted[end][0].at < wanted[end - 1][0].at
        )
        if not goes_on:
            yield slice(begin, end)
            begin = end


class FrameThread(threading.Thread):
    """Reads stretches, one after the other.

    Parameters
    ----------
    budget : PixelBudget
        Gives room.
    """

    def __init__(self, budget: PixelBudget) -> None:
        super().__init__(daemon=True, name="frames")
        self._budget = budget
        self._queue: queue.Queue[Stretch] = queue.Queue()
        self._readers: OrderedDict[ClipKey, ClipReader] = OrderedDict()

    def put(self, stretch: Stretch) -> None:
        """Have a stretch read; its turn must come after those put before."""
        self._queue.put(stretch)

    def run(self) -> None:
        """Read until the process ends."""
        while True:
            try:
                stretch = self._queue.get(timeout=_IDLE_S)
            except queue.Empty:
                # An open file keeps its place on the disk, though its name is gone.
                self._close(key for key in list(self._readers) if clip_key(key[0]) != key)
                continue
            self._read_all(stretch)

    def _read_all(self, stretch: Stretch) -> None:
        """Read one stretch, once there is room for it."""
        self._budget.take(stretch.turn, stretch.pixels * len(stretch.frames))
        for index, future in stretch.frames:
            try:
                picture = self._read(stretch.path, index)
            except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to this one frame
                self._budget.give_back(stretch.pixels)
                future.set_exception(_as_bad(error, index))
            else:
                # A clip may change its size on the way; what is given back later is what the picture has.
                self._budget.give_back(stretch.pixels - picture.shape[0] * picture.shape[1])
                future.set_result(picture)

    def _read(self, path: str, index: int) -> Picture:
        """Read one frame."""
        key = clip_key(path)
        reader = self._readers.pop(key, None) or ClipReader(probe(path))
        self._readers[key] = reader
        self._close(list(self._readers)[:-OPEN_CLIPS])
        return reader.read(index)

    def _close(self, keys: Iterable[ClipKey]) -> None:
        """Close clips."""
        for key in list(keys):
            self._readers.pop(key).close()


def _as_bad(error: Exception, index: int) -> BadImageError:
    """Say what is wrong with a frame, without the file's path."""
    if isinstance(error, PredSessionError):
        return BadImageError(f"frame {index} cannot be decoded")
    return BadImageError(f"frame {index} cannot be decoded: {type(error).__name__}")
