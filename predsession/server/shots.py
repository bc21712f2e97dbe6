"""Pictures that are sent one by one and whose callers wait: a queue beside that of the jobs, and its batches.

A shot is in memory only, and goes with its caller: there is nothing to store, to pop or to resume. It shares
the workers with the jobs. To the rule of `schedule` all shots of a model together are one more job, so that
neither starves the other; among themselves a higher priority goes first, then who came first.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from predsession.errors import PredSessionError
from predsession.server.schedule import Schedule
from predsession.server.tally import Tally
from predsession.server.texts import shortened
from predsession.wire.geometry import Size
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object

PRIORITIES = 8
"""0 to 7, 7 first."""
_BATCH_BYTES = 48 << 20  # a batch is held three times on its way to the model


class QueueFullError(PredSessionError):
    """As many pictures wait as may."""


class ShotAnswer(NamedTuple):
    """What became of a shot: a message for its caller, or an error; times in seconds.

    `queued` is the time until a worker took it, `taken` that from there to the answer, and `model` what the
    model took for the whole batch.
    """

    message: bytes
    error: JSONObject | None
    queued: float
    taken: float
    model: float


@dataclass(slots=True, eq=False)
class Shot:
    """One picture whose caller waits.

    Parameters
    ----------
    pixels : bytes
        (H, W, 3) uint8, RGB, in C order.
    size : Size
        Of the picture.
    form : JSONObject
        What the message is to hold; `predsession.server.edge.answer` reads it.
    priority : int
        0 to 7.
    """

    pixels: bytes
    size: Size
    form: JSONObject
    priority: int = 4
    arrived: float = field(default_factory=time.monotonic)
    begun: float | None = None
    """When a worker took it."""
    answer: asyncio.Future[ShotAnswer] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def settle(self, message: bytes, error: JSONObject | None, model: float) -> None:
        """Answer, if anybody still waits."""
        if not self.answer.done():
            now = time.monotonic()
            begun = now if self.begun is None else self.begun
            self.answer.set_result(ShotAnswer(message, error, begun - self.arrived, now - begun, model))


@dataclass(frozen=True, slots=True, eq=False)
class ShotBatch:
    """Shots in a worker's hands.

    Parameters
    ----------
    id : int
        What the worker calls it.
    shots : tuple of Shot
        In order.
    settings : JSONObject
        The model's, complete.
    died : bool
        Whether a worker died over it.
    """

    id: int
    shots: tuple[Shot, ...]
    settings: JSONObject
    died: bool = False

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.shots)

    @property
    def unwanted(self) -> bool:
        """Whether nobody waits for any of it."""
        return all(shot.answer.done() for shot in self.shots)

    @property
    def body(self) -> Sequence[bytes]:
        """What follows the header on its way to the worker."""
        return [shot.pixels for shot in self.shots]

    def order(self, *, singly: bool) -> JSONObject:
        """Return the frame's header; `predsession.server.shot_work` reads it."""
        return {
            "op": "shots",
            "id": self.id,
            "shots": [[shot.size.width, shot.size.height, shot.form] for shot in self.shots],
            "settings": self.settings,
            "singly": singly,
        }

    def singles(self, ids: itertools.count[int]) -> list[ShotBatch]:
        """Cut it into batches of one picture, of those that are still wanted."""
        wanted = [shot for shot in self.shots if not shot.answer.done()]
        return [ShotBatch(next(ids), (shot,), self.settings) for shot in wanted]

    def once_more(self, number: int) -> ShotBatch:
        """Return it as it is tried again, under another id, after a worker's death."""
        return replace(self, id=number, died=True)

    def settle(self, header: JSONObject, body: bytes, tally: Tally) -> list[JSONObject]:
        """Answer with what the worker says, and return the errors."""
        sizes = [int(str(size)) for size in as_list(header["sizes"])]
        ends = itertools.accumulate(sizes, initial=0)
        model = float(str(header["model_s"]))
        errors = [None if error is None else as_object(error) for error in as_list(header["errors"])]
        for shot, error, (begin, end) in zip(self.shots, errors, itertools.pairwise(ends), strict=True):
            if not shot.answer.done():
                tally.answered += 1
                tally.waited += time.monotonic() - shot.arrived
            shot.settle(body[begin:end], error, model)
        return [error for error in errors if error is not None]

    def fail(self, error: JSONObject) -> None:
        """Answer every shot with an error."""
        for shot in self.shots:
            shot.settle(b"", error, 0.0)


class Shots:
    """The shots that wait for one model.

    Parameters
    ----------
    schedule : Schedule
        Of the same model's jobs.
    most : int
        How many may wait.
    most_bytes : int
        How much they may hold.
    """

    def __init__(self, schedule: Schedule, *, most: int, most_bytes: int) -> None:
        self.settings: JSONObject = {}
        """The model's, complete; they hold for shots that are taken from now on."""
        self._schedule = schedule
        self._most, self._most_bytes = most, most_bytes
        self._waiting: list[deque[Shot]] = [deque() for _ in range(PRIORITIES)]
        self._bytes = 0
        self._served = 0.0

    def __len__(self) -> int:
        """Return how many wait."""
        return sum(map(len, self._waiting))

    def add(self, shot: Shot) -> None:
        """Queue a shot. It leaves the queue when its answer is cancelled.

        Parameters
        ----------
        shot : Shot
            New.

        Raises
        ------
        QueueFullError
            If too many wait, or hold too much.
        """
        if len(self) >= self._most or (self._bytes and self._bytes + len(shot.pixels) > self._most_bytes):
            raise QueueFullError(f"{len(self)} pictures with {self._bytes:,} bytes wait")
        if not len(self):
            self._served = max(self._served, self._schedule.clock)
        self._waiting[shot.priority].append(shot)
        self._bytes += len(shot.pixels)
        shot.answer.add_done_callback(lambda _: self._leave(shot))

    def _leave(self, shot: Shot) -> None:
        """Forget a shot that nobody waits for."""
        if shot.begun is None:
            self._waiting[shot.priority].remove(shot)
            self._bytes -= len(shot.pixels)
            shot.begun = shot.arrived

    def goes_first(self) -> bool:
        """Whether the next batch is one of shots."""
        least = self._schedule.least
        return len(self) > 0 and (least is None or self._served <= least)

    def take(self, most: int, number: int) -> ShotBatch:
        """Take the next batch out of the queue.

        Parameters
        ----------
        most : int
            The largest batch the model takes.
        number : int
            What the batch is called.

        Returns
        -------
        ShotBatch
            At least one shot.
        """
        batch: list[Shot] = []
        room = _BATCH_BYTES
        for queue in reversed(self._waiting):
            while queue and len(batch) < most and (not batch or len(queue[0].pixels) <= room):
                shot = queue.popleft()
                # What was cancelled a moment ago has yet to leave.
                room -= len(shot.pixels)
                self._bytes -= len(shot.pixels)
                shot.begun = time.monotonic()
                batch.append(shot)
        self._schedule.clock = max(self._schedule.clock, self._served)
        self._served += len(batch)
        return ShotBatch(number, tuple(batch), self.settings)

    def fail(self, error: JSONObject) -> None:
        """Answer every shot that waits with an error."""
        for queue in self._waiting:
            for shot in list(queue):
                shot.settle(b"", error, 0.0)


def error_text(error: JSONObject) -> str:
    """Return an error's message in one line that a message can hold; a model says what it likes."""
    text: JSON = error.get("message")
    return shortened(" ".join(str(text).split()))
