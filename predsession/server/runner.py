"""One model at work: its queue, its workers, and what becomes of their batches.

Invariant: what was in the hands of a worker that died is done by the next one. The batch it was computing is
tried again picture by picture, so that only the culprit is blamed; and a picture alone is tried once more,
for a worker may also be killed because memory is short.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Sequence

from predsession.server.batch import Batch, Outcome, read_outcomes
from predsession.server.config import Limits, ModelSpec
from predsession.server.job import Advance
from predsession.server.jobs import Jobs
from predsession.server.lane import Lane, Order
from predsession.server.metrics import Metrics
from predsession.server.models.card import ModelCard, ModelLoadError
from predsession.server.schedule import Piece, Schedule
from predsession.server.settings import complete_settings
from predsession.server.shots import Shot, ShotBatch, Shots
from predsession.server.sources import Sources
from predsession.server.stock import NameCache
from predsession.server.tally import Tally
from predsession.wire.jsontypes import JSONObject

_PATIENCE = 3  # starts that may fail before those who wait are told
_log = logging.getLogger("predsession.server")


class Runner:
    """A model and its workers.

    Parameters
    ----------
    spec : ModelSpec
        Which model.
    schedule : Schedule
        Its queue.
    jobs : Jobs
        Where answers go.
    sources : Sources
        Where the pictures are.
    limits : Limits
        How long things may take.
    metrics : Metrics
        Counts what happens.
    workers : int
        How many processes.
    cache : NameCache or None
        Names to files, on a server that imitates a stock one.
    edge : bool
        Whether pictures come one by one, too.
    """

    def __init__(
        self,
        spec: ModelSpec,
        schedule: Schedule,
        *,
        jobs: Jobs,
        sources: Sources,
        limits: Limits,
        metrics: Metrics,
        workers: int = 1,
        cache: NameCache | None = None,
        edge: bool = False,
    ) -> None:
        self.spec = spec
        self.schedule = schedule
        self.shots = Shots(schedule, most=limits.frames, most_bytes=limits.backlog)
        self.tally = Tally()
        self.problem = ""
        """Why there is no worker, where there is none."""
        self.singly = cache is None
        self._card: ModelCard | None = None
        self._jobs = jobs
        self._sources = sources
        self._metrics = metrics
        self._cache = cache
        self._ids = itertools.count(1)
        self._again: deque[Order] = deque()
        setup: JSONObject = {
            "name": spec.name,
            "target": spec.target,
            "stock": cache is not None,
            "max_pixels": limits.pixels,
            "edge": edge,
        }
        self._lanes = [Lane(self, spec.name, setup=setup, limits=limits) for _ in range(workers)]
        self._tasks: list[asyncio.Task[None]] = []
        schedule.freed = self.wake

    @property
    def card(self) -> ModelCard:
        """What the model says of itself."""
        assert self._card is not None, "start() comes first"
        return self._card

    @property
    def ready(self) -> bool:
        """Whether any worker waits for batches."""
        return any(lane.ready for lane in self._lanes)

    @property
    def size(self) -> int:
        """How many workers it has."""
        return len(self._lanes)

    @property
    def pids(self) -> list[int]:
        """The processes of the workers that are ready."""
        return [lane.pid for lane in self._lanes if lane.pid is not None]

    @property
    def busy(self) -> float:
        """Seconds that the model has taken so far, those of batches that are under way included."""
        return self.tally.busy + sum(lane.under_way for lane in self._lanes)

    async def start(self) -> None:
        """Start the workers, wait until their model is loaded, then begin to work.

        Raises
        ------
        ModelLoadError
            If the model cannot be loaded.
        """
        try:
            cards = await asyncio.gather(*(lane.launch() for lane in self._lanes))
        except BaseException:
            await asyncio.gather(*(lane.end() for lane in self._lanes))
            raise
        self._card = cards[0]
        self.shots.settings = complete_settings(None, cards[0], strict=True)
        self._tasks = [asyncio.create_task(lane.run()) for lane in self._lanes]
        self.wake()

    def wake(self) -> None:
        """Look at the queue again."""
        for lane in self._lanes:
            lane.wake()

    def release(self) -> None:
        """Hear that the server is about to end: no worker is started from now on."""
        for lane in self._lanes:
            lane.release()

    async def take_back(self) -> None:
        """Take back batches that no worker has begun and nobody needs, because their jobs were stopped."""
        if self._cache is None:
            await asyncio.gather(*(lane.take_back() for lane in self._lanes))

    async def close(self) -> None:
        """Let the batches that are under way finish, within the grace, and end the workers."""
        await asyncio.gather(*(lane.close() for lane in self._lanes))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(lane.end() for lane in self._lanes))

    def shoot(self, shot: Shot) -> None:
        """Queue a picture whose caller waits; raises `QueueFullError` if too many wait."""
        self.shots.add(shot)
        self.wake()

    async def next_batch(self) -> Order | None:
        """Return the next batch, those of a lost worker first; None while nothing waits."""
        while self._again:
            batch = self._again.popleft()
            if not (batch.unwanted and self._cache is None):
                return batch
            if isinstance(batch, Batch):
                # Shielded, because the one who asks is cancelled when its worker dies.
                await asyncio.shield(self._jobs.record(batch.dropped()))
        if self.shots.goes_first():
            return self.shots.take(self.card.batch_limit, next(self._ids))
        while pieces := self.schedule.take(self.card.batch_limit):
            for piece in pieces:
                self._begin(piece)
            try:
                pictures = tuple(one for piece in pieces for one in self._sources.pictures(piece))
            except KeyError as error:
                # Only on a server that imitates a stock one, and there a batch is of one job.
                self.schedule.discard(pieces[0].job)
                await asyncio.shield(self._jobs.record([_not_found(pieces[0], error)]))
                continue
            return Batch(next(self._ids), pieces, pictures)
        return None

    def _begin(self, piece: Piece) -> None:
        """Note that a piece's job is being worked on."""
        waited = self._jobs.begin(piece.job)
        if waited is not None:
            self._metrics.observe("queue_seconds", waited, model=self.spec.name)

    async def settle(self, batch: Order, header: JSONObject, body: bytes) -> None:
        """Take a worker's answer."""
        if header["op"] == "skipped":
            if isinstance(batch, Batch):
                await self._jobs.record(batch.dropped())
            return
        name, seconds = self.spec.name, float(str(header["model_s"]))
        self.tally.busy += seconds
        self._metrics.observe("batch_size", len(batch), model=name)
        self._metrics.observe("model_seconds", seconds, model=name)
        if isinstance(batch, ShotBatch):
            errors = batch.settle(header, body, self.tally)
            self._count([*errors, *[None] * (len(batch) - len(errors))])
            self._report(errors, len(batch))
            return
        self._metrics.observe("decode_seconds", float(str(header["decode_s"])), model=name)
        await self._record(batch, read_outcomes(header, body))

    async def _record(self, batch: Batch, outcomes: Sequence[Outcome]) -> None:
        """Share out the outcomes of a batch to its jobs, and remove their uploads."""
        self._count([outcome.error for outcome in outcomes])
        rest = iter(outcomes)
        news = [
            outcome
            for piece in batch.pieces
            for outcome in itertools.islice(rest, piece.count)
            if not piece.job.ended
        ]
        self._report([outcome.error for outcome in news if outcome.error is not None], len(news))
        live = {piece.job for piece in batch.pieces if not piece.job.ended}
        await self._jobs.record(batch.share(outcomes, self._sources.identity))
        ended = [job for job in live if job.ended]
        for job in ended:
            self._metrics.count("jobs_total", model=self.spec.name, stage=job.stage.value)
        if any(job.exception is not None for job in ended):
            await self.take_back()

    def _count(self, errors: Sequence[JSONObject | None]) -> None:
        """Count pictures, each with its error or None."""
        self.tally.count(len(errors), sum(error is not None for error in errors))
        for error in errors:
            result = "ok" if error is None else str(error["type"])
            self._metrics.count("items_total", model=self.spec.name, outcome=result)

    def _report(self, errors: Sequence[JSONObject], of: int) -> None:
        """Log that pictures failed, one line a batch."""
        if errors:
            name = self.spec.name
            message = str(errors[0]["message"]).removeprefix(f"model {name}: ")
            first = f"{errors[0]['type']}: {message}".splitlines()[0]
            _log.error("model %s: %d of %d pictures failed, the first with %s", name, len(errors), of, first)

    async def lost(self, batches: Sequence[Order], reason: str, *, hung: bool) -> None:
        """Take back the batches of a worker that is gone; the first is the one it was computing."""
        self._metrics.count("worker_restarts_total", model=self.spec.name)
        _log.error("model %s: %s; it is started again", self.spec.name, reason)
        if not batches:
            return
        culprit, rest = batches[0], batches[1:]
        again: list[Order] = []
        if not hung and not culprit.died and (len(culprit) == 1 or self._cache is not None):
            again = [culprit.once_more(next(self._ids))]
        elif len(culprit) > 1 and self._cache is None:
            again = [*culprit.singles(self._ids)]
        self._again.extendleft(reversed([*again, *rest]))
        if not again:
            error = self._crash(reason)
            if isinstance(culprit, ShotBatch):
                self._count([error] * len(culprit))
                culprit.fail(error)
            else:
                await self._record(culprit, [Outcome(b"", error)] * len(culprit))
        self.wake()

    def left(self, batches: Sequence[Order], reason: str) -> None:
        """Answer those whose worker is gone while the server ends; jobs are left to its next life."""
        error = self._crash(reason)
        waiting = [] if self.ready else self._again
        for batch in [*batches, *waiting]:
            if isinstance(batch, ShotBatch):
                batch.fail(error)
        if not self.ready:
            self.shots.fail(error)

    def _crash(self, reason: str) -> JSONObject:
        """Return the error of pictures whose worker is gone."""
        return {"type": "ModelCrashError", "message": f"model {self.spec.name}: {reason}", "traceback": ""}

    def available(self) -> None:
        """Hear that a worker is there again."""
        self.problem = ""

    async def unavailable(self, error: ModelLoadError, tries: int) -> None:
        """Hear that no new worker can be started; after some tries end the jobs that wait."""
        self.problem = str(error)
        _log.error("%s; trying again", error)
        if tries < _PATIENCE or self.ready:
            return
        for batch in self._again:
            if isinstance(batch, ShotBatch):
                batch.fail({"type": "ModelLoadError", "message": str(error), "traceback": ""})
        self._again.clear()
        failure: JSONObject = {"type": "ModelLoadError", "message": str(error), "traceback": ""}
        self.shots.fail(failure)
        for job in self._jobs:
            if job.facts.model == self.spec.name:
                await self._jobs.fail(job, failure)


def _not_found(piece: Piece, error: KeyError) -> Advance:
    """Return what ends a job whose next pictures are not there, after those that are still being computed."""
    trace = f"Traceback (most recent call last):\nKeyError: {error}"
    failure: JSONObject = {"type": "KeyError", "message": str(error), "traceback": trace}
    return Advance(piece.job, piece.first, [], piece.count, failure)
