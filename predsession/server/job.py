"""One job in the server's memory: what it was asked, and where it stands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from predsession.server import work
from predsession.server.work import ClipWork, TrackWork, WriteWork
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object
from predsession.wire.stages import Stage, parse_stage, step

PAUSE_AT = 500
"""Unread results from which a stock server calls a job paused."""


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What a submit fixed.

    Parameters
    ----------
    model : str
        The model's name.
    sizes : tuple of int
        Bytes of each uploaded file; they lie one after the other in the upload.
    settings : JSONObject
        The model's settings, complete.
    batch_size : int
        The largest batch the caller wants.
    names : tuple of str
        What the caller called the items.
    client : str
        The caller's address.
    extension : bool
        Whether the submit used the extension, so that the lease holds.
    item_errors : bool
        Whether a bad item is an item of its own kind instead of the job's end.
    session : str or None
        The session the job belongs to.
    first_index : int or None
        The position of the first item in the caller's source.
    indexes : tuple of int or None
        The position of each, where they do not follow one another.
    clip : ClipWork or None
        The frames that are the items, where they are not the uploaded files.
    records : tuple of int or None
        The ids of the library's pictures that are the items, likewise.
    tracking : TrackWork or None
        How a clip is tracked.
    writing : WriteWork or None
        How predictions are written back.
    """

    model: str
    sizes: tuple[int, ...]
    settings: JSONObject
    batch_size: int
    names: tuple[str, ...]
    client: str = ""
    extension: bool = False
    item_errors: bool = False
    session: str | None = None
    first_index: int | None = None
    indexes: tuple[int, ...] | None = None
    clip: ClipWork | None = None
    records: tuple[int, ...] | None = None
    tracking: TrackWork | None = None
    writing: WriteWork | None = None

    @property
    def total(self) -> int:
        """How many items."""
        if self.clip is not None:
            return self.clip.count
        return len(self.sizes if self.records is None else self.records)

    @property
    def low(self) -> float | None:
        """The lowest score that is looked at, where that is lower than what is answered."""
        return None if self.tracking is None else self.tracking.low

    @property
    def size(self) -> int:
        """Bytes that were uploaded."""
        return sum(self.sizes)

    def to_json(self) -> JSONObject:
        """Return the fields as a JSON object."""
        facts: dict[str, JSON] = {name: getattr(self, name) for name in self.__slots__}
        facts.update(names=list(self.names), sizes=list(self.sizes))
        for name in ("records", "indexes"):
            numbers: tuple[int, ...] | None = getattr(self, name)
            facts[name] = None if numbers is None else list(numbers)
        facts.update({name: work.to_json(getattr(self, name)) for name in ("clip", "tracking", "writing")})
        return facts

    @classmethod
    def from_json(cls, data: JSONObject) -> JobFacts:
        """Return what `to_json` wrote."""
        session, first = data["session"], data["first_index"]
        return cls(
            model=str(data["model"]),
            sizes=tuple(int(str(size)) for size in as_list(data["sizes"])),
            settings=as_object(data["settings"]),
            batch_size=int(str(data["batch_size"])),
            names=tuple(str(name) for name in as_list(data["names"])),
            client=str(data["client"]),
            extension=bool(data["extension"]),
            item_errors=bool(data["item_errors"]),
            session=session if isinstance(session, str) else None,
            first_index=first if isinstance(first, int) else None,
            indexes=_whole_numbers(data.get("indexes")),
            clip=work.from_json(ClipWork, data["clip"]),
            records=_whole_numbers(data["records"]),
            tracking=work.from_json(TrackWork, data["tracking"]),
            writing=work.from_json(WriteWork, data["writing"]),
        )


def _whole_numbers(data: JSON) -> tuple[int, ...] | None:
    """Return a list of whole numbers, None for null."""
    return None if data is None else tuple(int(str(number)) for number in as_list(data))


@dataclass(frozen=True, slots=True)
class Advance:
    """What a batch brought for one job.

    Parameters
    ----------
    job : Job
        The job.
    first : int
        The number of the first of these items.
    items : sequence of bytes
        New results, in order, the wire's JSON.
    settled : int
        How many of the job's items are no longer in a worker's hands.
    failure : JSONObject or None
        What ends the job, after these items.
    rows : sequence of bytes
        Of a tracked job: each item's detections, for the tracker.
    """

    job: Job
    first: int
    items: Sequence[bytes]
    settled: int
    failure: JSONObject | None = None
    rows: Sequence[bytes] = ()


@dataclass(slots=True, eq=False)
class Job:
    """A job; only the server's loop touches it.

    Parameters
    ----------
    uuid : str
        Its name.
    facts : JobFacts
        What was asked.
    created : float
        Seconds on the server's own clock.
    created_epoch : float
        Seconds since 1970.
    submit_key : str or None
        The ``Idempotency-Key`` of the submit.
    """

    uuid: str
    facts: JobFacts
    created: float
    created_epoch: float
    submit_key: str | None = None
    stage: Stage = Stage.PREPARING
    done: int = 0
    """Results that are, or were, stored."""
    taken: int = 0
    """Items that a worker has, or had."""
    in_flight: int = 0
    """Items in a worker's hands."""
    pending: int = 0
    """Stored results that nobody has taken away."""
    acked: int = 0
    held: int = 0
    """Bytes of uploads on the disk."""
    served: float = 0.0
    early: dict[int, Advance] = field(default_factory=dict)
    """Results that came before their turn, by the number of the first."""
    exception: JSONObject | None = None
    stopped: bool = False
    paused: bool = False
    cleared_at: float | None = None
    updated: float = 0.0
    touched: float = 0.0
    settings_key: str = field(init=False)
    _waiters: list[asyncio.Future[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the key once by which settings are compared for each batch."""
        self.settings_key = json.dumps([self.facts.settings, self.facts.low], sort_keys=True)
        self.updated = self.touched = self.created
        self.held = self.facts.size

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.stage.terminal

    @property
    def has_final(self) -> bool:
        """Whether there is a final result: that of a clip, once it is done or, untracked, was stopped."""
        if self.facts.clip is None:
            return False
        stopped = self.stage is Stage.CANCELLED and self.facts.tracking is None
        return stopped or self.stage is Stage.FINISHED

    @property
    def waiting(self) -> int:
        """How many items no worker has taken yet."""
        return 0 if self.ended else self.facts.total - self.taken

    def go(self, stage: Stage, exception: JSONObject | None = None) -> None:
        """Take a legal step to a stage."""
        self.stage = step(self.stage, stage)
        self.exception = exception if exception is not None else self.exception

    def state(self, stage: Stage | None = None, failure: JSONObject | None = None) -> JSONObject:
        """Return what is stored beside the count: as it is, or as it will be after a step."""
        cleared = self.cleared_at is not None
        state: dict[str, JSON] = {
            "stage": (stage or self.stage).value,
            "stopped": self.stopped,
            "cleared": cleared,
        }
        exception = failure if failure is not None else self.exception
        if exception is not None:
            state["exception"] = exception
        return state

    def restore(self, done: int, state: JSONObject, pending: int, *, now: float) -> None:
        """Take over what was stored; an unfinished job waits again for what is not done."""
        stage = parse_stage(state.get("stage"))
        self.stage = stage if stage.terminal else Stage.PREPARING
        self.stopped = state.get("stopped") is True
        self.cleared_at = now if state.get("cleared") is True else None
        exception = state.get("exception")
        self.exception = as_object(exception) if exception is not None else None
        self.done = self.taken = done
        self.pending = pending
        self.acked = done - pending
        self.updated = self.touched = now

    def notify(self) -> None:
        """Wake everybody who waits for news."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def news(self, seconds: float) -> bool:
        """Wait until something changes; return whether it did."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except TimeoutError:
            return False
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        return True
