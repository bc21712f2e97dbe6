"""One clip on its way: which of its frames were asked for, have come, and were handed over."""

from __future__ import annotations

from collections.abc import Callable

from predsession import errors
from predsession.inputs.clips import ClipItem
from predsession.jobs.job import JobReader
from predsession.jobs.spool import Spool

MOST_JOBS = 3
"""Gaps in a clip that are run as jobs of their own."""


class ClipRun:
    """One clip on its way.

    Parameters
    ----------
    item : ClipItem
        Which, and the frames that are wanted.
    """

    def __init__(self, item: ClipItem) -> None:
        self.item = item
        self.uuid: str | None = None
        """Its job; None where nothing had to be sent."""
        self.asked: range | None = item.frames
        """The frames that its present job is about; None for all."""
        self.due: frozenset[int] | None = None
        """Those of them that are missing, where others lie between."""
        self.sent: list[range] = []
        """What was asked for before."""
        self.reader: JobReader | None = None
        """Who reads that job."""
        self.key: str | None = None
        """What a journal knows it by."""
        self.kept: frozenset[int] = frozenset()
        """The frames whose results a journal had."""
        self.frames = item.frames
        """The frames, in order; None until the server has said how many there are."""
        self.at = 0
        """How many outcomes have been handed over."""
        self.runs = 1
        """How many jobs there were for it."""
        self.fruitless = 0
        """How many of them in a row brought nothing."""
        self.length: int | None = None
        """How many frames the clip really has, once that was looked into."""
        self.spool = Spool()
        """Results by frame."""
        self.digests: dict[int, bytes] = {}
        """By frame, of the results handed over, where the clip is tracked."""

    def learn_total(self, total: int | None) -> None:
        """Take the number of frames from the server, where it was not known; no frame is less than a byte."""
        if self.frames is None and total is not None:
            if total > self.item.nbytes:
                raise errors.ProtocolError(
                    f"{self.item.label}: the server speaks of {total} frames, in {self.item.nbytes} bytes"
                )
            self.frames = range(0, total * self.item.stride, self.item.stride)

    def check(self, frame: int) -> None:
        """Make sure that a frame was asked for."""
        if self.frames is None or frame not in self.frames:
            raise errors.ProtocolError(f"{self.item.label}: the server answered frame {frame}, not asked for")

    def handed(self, frame: int) -> bool:
        """Whether a frame's outcome was handed over."""
        return self.frames is not None and self.frames.index(frame) < self.at

    def has(self, frame: int) -> bool:
        """Whether a frame's result is at hand."""
        return frame in self.spool or frame in self.kept

    def missing(self) -> list[range]:
        """Return the frames without a result, in stretches."""
        stretches: list[range] = []
        begin: int | None = None
        frames = self.frames or range(0)
        for position in range(self.at, len(frames) + 1):
            here = position < len(frames) and not self.has(frames[position])
            if here and begin is None:
                begin = position
            elif not here and begin is not None:
                stretches.append(frames[begin:position])
                begin = None
        return stretches

    def ask(self, *, whole: bool = False) -> int:
        """Choose the frames for the next job, and return how many of them are asked for again.

        Parameters
        ----------
        whole : bool
            Whether all frames are to be run, whatever is at hand.

        Returns
        -------
        int
            Frames that were in a job before.
        """
        self.due = None
        stretches = self.missing()
        if whole or not self.frames:
            self.asked = self.frames
        elif len(stretches) <= MOST_JOBS:
            self.asked = stretches[0]
        else:
            # Each job brings the whole clip: what lies between many gaps is run again rather than sent again.
            first, last = self.frames.index(stretches[0][0]), self.frames.index(stretches[-1][-1])
            self.asked = self.frames[first : last + 1]
            self.due = frozenset(frame for stretch in stretches for frame in stretch)
        before = list(self.sent)
        self.sent += [] if self.asked is None else [self.asked]
        return sum(any(frame in job for job in before) for frame in self.asked or ())

    def handled(self, frame: int) -> Callable[[], None] | None:
        """Return what is to be called once the caller has dealt with a frame of the present job."""
        if self.reader is None or frame in self.kept or (self.asked is not None and frame not in self.asked):
            return None
        number = (self.asked or self.frames or range(0)).index(frame) + 1
        return self.reader.handled_by_caller(number)

    def cut(self, count: int) -> None:
        """Leave out the frames from number `count` on, which the clip does not have."""
        assert self.frames is not None
        start, stop, step = self.frames.start, self.frames.stop, self.frames.step
        if step > 0:
            self.frames = self.frames[: len(range(start, min(stop, count), step))]
        else:
            self.frames = self.frames[len(range(start, count - 1, step)) :]
