"""One model at work: its process, the batches in its hands, and what becomes of them.

Invariants:

* A worker answers its batches in order, and so each job gets its results in order.
* What was in the hands of a worker that died goes to the next one, in the same order. The batch it was
  computing is tried again picture by picture, so that only the culprit is blamed.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from predsession.server.config import Limits, ModelSpec
from predsession.server.jobs import Advance, Jobs
from predsession.server.models.card import ModelCard, ModelLoadError
from predsession.server.process import WorkerProcess
from predsession.server.schedule import Piece, Schedule
from predsession.server.stock import NameCache
from predsession.server.store import Store
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object

_AHEAD = 2  # one batch is computed while the next is decoded
_GRACE_S = 5.0
_log = logging.getLogger("predsession.server")


@dataclass(frozen=True, slots=True)
class _Batch:
    """Items in a worker's hands."""

    id: int
    pieces: Sequence[Piece]
    paths: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many items."""
        return len(self.paths)


class Runner:
    """Feeds a model's worker and records its answers.

    Parameters
    ----------
    spec : ModelSpec
        Which model.
    jobs : Jobs
        Where the answers go.
    schedule : Schedule
        Where the batches come from.
    store : Store
        Removes the uploads that are done with.
    limits : Limits
        How long a batch may take.
    cache : NameCache or None
        Names to files, on a server that imitates a stock one.
    """

    def __init__(
        self,
        spec: ModelSpec,
        *,
        jobs: Jobs,
        schedule: Schedule,
        store: Store,
        limits: Limits,
        cache: NameCache | None = None,
    ) -> None:
        self.spec = spec
        self.card: ModelCard | None = None
        self._jobs = jobs
        self._schedule = schedule
        self._store = store
        self._limits = limits
        self._cache = cache
        self._ids = itertools.count(1)
        self._in_flight: deque[_Batch] = deque()
        self._again: deque[_Batch] = deque()
        self._wake = asyncio.Event()
        self._worker: WorkerProcess | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._lost_because = ""

    async def start(self) -> None:
        """Start the worker, wait until its model is loaded, then begin to work.

        Raises
        ------
        ModelLoadError
            If the model cannot be loaded.
        """
        self._worker = await self._launch()
        self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        """Look at the queue again."""
        self._wake.set()

    async def take_back(self) -> None:
        """Take back batches that the worker has not begun and nobody needs any more."""
        for batch in list(self._in_flight)[1:]:
            if all(piece.job.stopped for piece in batch.pieces) and self._worker and self._cache is None:
                await self._worker.send({"op": "skip", "id": batch.id})

    async def close(self) -> None:
        """Let the batch that is under way finish, within a grace, and end the worker."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._worker is not None:
            await self._worker.end(_GRACE_S)

    async def _launch(self) -> WorkerProcess:
        """Start a worker and wait until it is ready."""
        setup: JSONObject = {
            "target": self.spec.target,
            "stock": self._cache is not None,
            "max_pixels": self._limits.pixels,
        }
        worker = await WorkerProcess.start(setup)
        try:
            async with asyncio.timeout(self._limits.load_s):
                header, _ = await worker.receive()
        except (EOFError, TimeoutError):
            worker.kill()
            await worker.wait()
            raise ModelLoadError(
                f"model {self.spec.name}: its process ended, or hung, while loading"
            ) from None
        if header["op"] == "failed":
            await worker.end(_GRACE_S)
            error = as_object(header["error"])
            raise ModelLoadError(f"model {self.spec.name}: {error['message']}")
        self.card = ModelCard.from_json(as_object(header["card"]))
        return worker

    async def _run(self) -> None:
        """Work, and start another worker whenever one is lost."""
        while True:
            assert self._worker is not None
            await self._work_with(self._worker)
            self._worker.kill()
            code = await self._worker.wait()
            await self._reclaim(self._lost_because or f"its process ended with code {code}")
            self._lost_because = ""
            self._worker = await self._launch()
            self._wake.set()

    async def _work_with(self, worker: WorkerProcess) -> None:
        """Feed one worker and take its answers until it is gone."""
        feeder = asyncio.create_task(self._feed(worker))
        try:
            while True:
                header, body = await worker.receive()
                await self._settle(header, body)
        except EOFError:
            return
        finally:
            self._watch_head()
            feeder.cancel()

    async def _feed(self, worker: WorkerProcess) -> None:
        """Keep the worker's hands full."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while len(self._in_flight) < _AHEAD and (batch := await self._next()) is not None:
                self._in_flight.append(batch)
                if len(self._in_flight) == 1:
                    self._watch_head()
                await worker.send(self._order(batch))

    def _order(self, batch: _Batch) -> JSONObject:
        """Return the frame that asks for a batch."""
        return {
            "op": "batch",
            "id": batch.id,
            "paths": list(batch.paths),
            "settings": batch.pieces[0].job.facts.settings,
            "singly": self._cache is None,
        }

    async def _next(self) -> _Batch | None:
        """Return the next batch, those of a lost worker first."""
        if self._again:
            return self._again.popleft()
        assert self.card is not None
        while pieces := self._schedule.take(self.card.max_batch_size or 16):
            for piece in pieces:
                self._jobs.begin(piece.job)
            try:
                return _Batch(
                    next(self._ids), pieces, tuple(p for piece in pieces for p in self._paths(piece))
                )
            except KeyError as error:
                # Only a stock server's cache raises it, and there a batch is of one job.
                failure: JSONObject = {"type": "KeyError", "message": str(error), "traceback": ""}
                await self._jobs.fail(pieces[0].job, failure)
        return None

    def _paths(self, piece: Piece) -> list[str]:
        """Return the files of a piece."""
        numbers = range(piece.first, piece.first + piece.count)
        if self._cache is not None:
            return [str(self._cache.get(piece.job.facts.names[number - 1])) for number in numbers]
        folder = self._jobs.folder(piece.job.uuid)
        return [str(folder / str(number)) for number in numbers]

    async def _settle(self, header: dict[str, JSON], body: bytes) -> None:
        """Record what a worker says about its oldest batch."""
        batch = self._in_flight.popleft()
        assert header["id"] == batch.id, "a worker answers in order"
        self._watch_head()
        self._wake.set()
        if header["op"] == "skipped":
            await self._jobs.record([Advance(piece.job, [], piece.count) for piece in batch.pieces])
            return
        sizes = [int(str(size)) for size in as_list(header["sizes"])]
        ends = list(itertools.accumulate(sizes))
        items = [body[end - size : end] for size, end in zip(sizes, ends, strict=True)]
        errors = [None if error is None else as_object(error) for error in as_list(header["errors"])]
        await self._record(batch, list(zip(items, errors, strict=True)))

    async def _record(self, batch: _Batch, outcomes: list[tuple[bytes, JSONObject | None]]) -> None:
        """Share out the outcomes of a batch to its jobs."""
        rest = iter(outcomes)
        parts = [_advance(piece, list(itertools.islice(rest, piece.count))) for piece in batch.pieces]
        await self._jobs.record(parts)
        self._wake.set()  # a job that has just ended may have held up the next one in the queue
        if self._cache is None:
            await self._store.discard([Path(path) for path in batch.paths])

    async def _reclaim(self, reason: str) -> None:
        """Deal with what was in the hands of a worker that is gone."""
        _log.error("model %s: %s; it is started again", self.spec.name, reason)
        lost, self._in_flight = self._in_flight, deque()
        if not lost:
            return
        culprit = lost.popleft()
        singles = self._singles(culprit)
        self._again = deque([*singles, *lost, *self._again])
        if not singles:
            error: JSONObject = {
                "type": "ModelCrashError",
                "message": f"model {self.spec.name}: {reason}",
                "traceback": "",
            }
            await self._record(culprit, [(b"", error)] * culprit.size)

    def _singles(self, batch: _Batch) -> list[_Batch]:
        """Cut a batch into batches of one."""
        if batch.size == 1 or self._cache is not None:
            return []
        pieces = [
            Piece(piece.job, number, 1)
            for piece in batch.pieces
            for number in range(piece.first, piece.first + piece.count)
        ]
        return [
            _Batch(next(self._ids), [piece], (path,)) for piece, path in zip(pieces, batch.paths, strict=True)
        ]

    def _watch_head(self) -> None:
        """Start the clock for the oldest batch."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if self._in_flight:
            loop = asyncio.get_running_loop()
            self._watch = loop.call_later(self._limits.batch_s, self._expire)

    def _expire(self) -> None:
        """End a worker that does not answer; its loss is noticed by the one who reads from it."""
        if self._worker is not None:
            self._lost_because = f"no answer for {self._limits.batch_s:g} s"
            self._worker.kill()


def _advance(piece: Piece, outcomes: list[tuple[bytes, JSONObject | None]]) -> Advance:
    """Turn outcomes into a job's new results, up to the one that ends it."""
    items: list[bytes] = []
    for item, error in outcomes:
        if error is not None and not piece.job.facts.item_errors:
            return Advance(piece.job, items, piece.count, error)
        items.append(item if error is None else _item_error(error))
    return Advance(piece.job, items, piece.count)


def _item_error(error: JSONObject) -> bytes:
    """Write the item that stands for a bad one."""
    brief = {"type": error["type"], "message": error["message"]}
    return json.dumps({"error": brief}, separators=(",", ":")).encode()
