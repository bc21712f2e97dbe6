"""One worker process: the batches in its hands, its time limit, its end and its successor.

Invariant: a worker answers its batches in order, so the oldest one is the one it is computing, and the one to
blame if it dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from predsession.server.batch import Batch
from predsession.server.config import Limits
from predsession.server.models.card import ModelCard, ModelLoadError
from predsession.server.process import WorkerProcess
from predsession.server.shots import ShotBatch
from predsession.wire.jsontypes import JSONObject, as_object

Order = Batch | ShotBatch
"""What a worker may be asked for."""
_AHEAD = 2  # one batch is computed while the next is decoded
_LONGEST_PAUSE_S = 30.0
_LAST_WORDS_S = 1.0
"""A process that has closed its pipe is given so long to end, so that its exit code is its own."""
_log = logging.getLogger("predsession.server")


class Desk(Protocol):
    """Where a lane gets its work, and hands it in."""

    singly: bool
    """Whether a batch that fails is tried again picture by picture."""

    async def next_batch(self) -> Order | None:
        """Return the next batch, None while nothing waits."""

    async def settle(self, batch: Order, header: JSONObject, body: bytes) -> None:
        """Take a worker's answer."""

    async def lost(self, batches: Sequence[Order], reason: str, *, hung: bool) -> None:
        """Take back the batches of a worker that is gone; the first is the one it was computing."""

    def left(self, batches: Sequence[Order], reason: str) -> None:
        """Hear what a worker had in hand that is gone while the server ends; nobody computes it any more."""

    def available(self) -> None:
        """Hear that a new worker is there."""

    async def unavailable(self, error: ModelLoadError, tries: int) -> None:
        """Hear that no new worker can be started, again and again."""


class Lane:
    """A worker, and another one whenever it is lost.

    Parameters
    ----------
    desk : Desk
        Where work comes from.
    name : str
        The model's.
    setup : JSONObject
        What a worker is told to load.
    limits : Limits
        How long loading and a batch may take.
    """

    def __init__(self, desk: Desk, name: str, *, setup: JSONObject, limits: Limits) -> None:
        self._desk = desk
        self._name = name
        self._setup = setup
        self._limits = limits
        self._in_flight: deque[Order] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False
        self._ending = asyncio.Event()
        self._worker: WorkerProcess | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._hung = False
        self._begun: float | None = None
        self.ready = False
        """Whether a worker waits for batches."""

    @property
    def pid(self) -> int | None:
        """The worker's process, while it is ready."""
        return self._worker.pid if self.ready and self._worker is not None else None

    @property
    def under_way(self) -> float:
        """Seconds since the batch that is being computed was begun; 0 where there is none."""
        return 0.0 if self._begun is None else time.monotonic() - self._begun

    async def launch(self) -> ModelCard:
        """Start a worker and wait until its model is loaded.

        Returns
        -------
        ModelCard
            What the model says of itself.

        Raises
        ------
        ModelLoadError
            If it cannot be loaded.
        """
        worker = await WorkerProcess.start(self._setup)
        try:
            async with asyncio.timeout(self._limits.load):
                header, _ = await worker.receive()
        except EOFError:
            text = f"model {self._name}: its process ended while loading ({await worker.gone(_LAST_WORDS_S)})"
            raise ModelLoadError(text) from None
        except TimeoutError:
            await worker.gone(0)
            text = f"model {self._name}: not loaded within {self._limits.load:g} s; see --limit-load"
            raise ModelLoadError(text) from None
        except BaseException:
            worker.kill()
            raise
        if header["op"] == "failed":
            await worker.end(self._limits.grace)
            error = as_object(header["error"])
            raise ModelLoadError(f"model {self._name}: {error['message']}")
        self._worker = worker
        self.ready = True
        return ModelCard.from_json(as_object(header["card"]))

    def wake(self) -> None:
        """Look for work again."""
        self._wake.set()

    def release(self) -> None:
        """Hear that the server is about to end: a worker that is lost from now on has no successor."""
        self._ending.set()

    async def run(self) -> None:
        """Work, until cancelled, or until the worker is lost of a server that ends."""
        while True:
            assert self._worker is not None
            await self._work_with(self._worker)
            self.ready = False
            end = await self._worker.gone(_LAST_WORDS_S)
            hung, self._hung = self._hung, False
            reason = f"no answer for {self._limits.batch:g} s" if hung else f"its process ended ({end})"
            lost, self._in_flight = list(self._in_flight), deque()
            self._idle.set()
            if self._ending.is_set():
                return self._desk.left(lost, reason)
            await self._desk.lost(lost, reason, hung=hung)
            if not await self._relaunch():
                return self._desk.left([], reason)
            self._wake.set()

    async def _relaunch(self) -> bool:
        """Start the next worker, however long that takes; whether there is one, which an end prevents."""
        tries = 0
        while not self._ending.is_set():
            tries += 1
            try:
                await self.launch()
            except ModelLoadError as error:
                if self._ending.is_set():
                    break
                await self._desk.unavailable(error, tries)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(_LONGEST_PAUSE_S, 0.25 * 2.0**tries)):
                        await self._ending.wait()
            else:
                self._desk.available()
                return True
        return False

    async def _work_with(self, worker: WorkerProcess) -> None:
        """Feed one worker and take its answers until it is gone."""
        feeder = asyncio.create_task(self._feed(worker))
        try:
            while True:
                await self._settle(*await worker.receive())
        except EOFError:
            return
        except Exception:  # noqa: BLE001 - a lane without a worker would leave its jobs waiting for ever
            _log.exception("model %s: a batch could not be settled", self._name)
        finally:
            self._unwatch()
            feeder.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await feeder

    async def _settle(self, header: JSONObject, body: bytes) -> None:
        """Hand in the oldest batch; only then is it out of our hands."""
        batch = self._in_flight[0]
        assert header["id"] == batch.id, "a worker answers in order"
        self._unwatch()
        await self._desk.settle(batch, header, body)
        self._in_flight.popleft()
        self._watch_oldest()
        if not self._in_flight:
            self._idle.set()
        self._wake.set()

    async def _feed(self, worker: WorkerProcess) -> None:
        """Keep the worker's hands full."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while not self._closing and len(self._in_flight) < _AHEAD:
                batch = await self._desk.next_batch()
                if batch is None:
                    break
                self._in_flight.append(batch)
                self._idle.clear()
                if len(self._in_flight) == 1:
                    self._watch_oldest()
                await worker.send(batch.order(singly=self._desk.singly), batch.body)

    async def take_back(self, *, everything: bool = False) -> None:
        """Tell the worker which batches that it has not begun nobody wants any more."""
        for batch in list(self._in_flight)[1:]:
            if (everything or batch.unwanted) and self._worker is not None:
                await self._worker.send({"op": "skip", "id": batch.id})

    async def close(self) -> None:
        """Let the batch that is under way finish, within the grace, and end the worker."""
        self._closing = True
        self.release()
        self._unwatch()
        await self.take_back(everything=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.grace):
                await self._idle.wait()

    async def end(self) -> None:
        """End the worker; its task has been cancelled."""
        if self._worker is not None:
            await self._worker.end(1.0 if not self._in_flight else 0.0)

    def _watch_oldest(self) -> None:
        """Start the clock for the oldest batch."""
        self._unwatch()
        if self._in_flight and not self._closing:
            self._begun = time.monotonic()
            loop = asyncio.get_running_loop()
            self._watch = loop.call_later(self._limits.batch, self._expire)

    def _unwatch(self) -> None:
        """Stop the clock."""
        self._begun = None
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _expire(self) -> None:
        """End a worker that does not answer; its loss is noticed by the one who reads from it."""
        if self._worker is not None:
            self._hung = True
            self._worker.kill()
