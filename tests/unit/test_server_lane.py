"""A worker that is lost: it has a successor while the server lives, and none once it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from predsession.server.config import Limits
from predsession.server.lane import Lane, Order
from predsession.server.models.card import ModelLoadError
from predsession.server.process import WorkerProcess
from predsession.wire.jsontypes import JSONObject

READY: JSONObject = {"op": "ready", "card": {}}


class Desk:
    """Has no work, and hears what happens."""

    singly = True

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.news = asyncio.Event()

    def _hear(self, what: str) -> None:
        self.heard.append(what)
        self.news.set()

    async def next_batch(self) -> Order | None:
        """Nothing waits."""
        return None

    async def settle(self, batch: Order, header: JSONObject, body: bytes) -> None:
        """Never comes."""

    async def lost(self, batches: Sequence[Order], reason: str, *, hung: bool) -> None:
        """Note it."""
        self._hear("lost")

    def left(self, batches: Sequence[Order], reason: str) -> None:
        """Note it."""
        self._hear("left")

    def available(self) -> None:
        """Note it."""
        self._hear("available")

    async def unavailable(self, error: ModelLoadError, tries: int) -> None:
        """Note it."""
        self._hear("unavailable")


class Process:
    """A worker that is ready at once, and gone when the test says so."""

    pid = 0

    def __init__(self, *, loads: bool = True) -> None:
        self.over = asyncio.Event()
        self._loads = loads

    async def receive(self) -> tuple[JSONObject, bytes]:
        """Say that the model is loaded, then nothing more."""
        if self._loads:
            self._loads = False
            return READY, b""
        await self.over.wait()
        raise EOFError

    async def gone(self, grace: float) -> str:
        """Say how it ended."""
        return "signal 15, SIGTERM"

    async def end(self, grace: float) -> None:
        """It is over."""

    def kill(self) -> None:
        """End."""
        self.over.set()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Process]:
    """The workers that are started, in order; the third and later ones never load, and end at once."""
    made: list[Process] = []

    async def start(_: JSONObject) -> Process:
        made.append(Process(loads=len(made) < 2))
        if len(made) > 2:
            made[-1].over.set()
        return made[-1]

    monkeypatch.setattr(WorkerProcess, "start", start)
    monkeypatch.setattr("predsession.server.lane.ModelCard.from_json", lambda _: None)
    return made


def lane(desk: Desk) -> Lane:
    """Return a lane."""
    return Lane(desk, "pixels", setup={}, limits=Limits())


async def hears(desk: Desk, what: str) -> None:
    """Wait until a desk hears something."""
    while what not in desk.heard:
        await asyncio.wait_for(desk.news.wait(), 60)
        desk.news.clear()


def test_a_worker_that_is_lost(started: list[Process]) -> None:
    """It has a successor; one that is lost after the server was told to end has none, and that is no loss."""

    async def live() -> list[str]:
        desk = Desk()
        one = lane(desk)
        await one.launch()
        running = asyncio.create_task(one.run())
        started[0].over.set()
        await hears(desk, "available")
        one.release()
        started[1].over.set()
        await asyncio.wait_for(running, 60)
        await one.close()
        await one.end()
        return desk.heard

    assert asyncio.run(live()) == ["lost", "available", "left"]
    assert len(started) == 2


def test_a_successor_that_does_not_load(started: list[Process]) -> None:
    """It is tried again and again, until the server is told to end."""

    async def live() -> None:
        desk = Desk()
        one = lane(desk)
        await one.launch()
        running = asyncio.create_task(one.run())
        started[0].over.set()
        await hears(desk, "available")
        started[1].over.set()
        await hears(desk, "unavailable")
        one.release()
        await asyncio.wait_for(running, 60)
        assert len(started) == 3
        assert desk.heard == ["lost", "available", "lost", "unavailable", "left"]

    asyncio.run(live())


def test_a_worker_that_is_lost_while_its_model_is_let_go(started: list[Process]) -> None:
    """A model that is closed alone, while the server lives, has no successor either."""

    async def live() -> list[str]:
        desk = Desk()
        one = lane(desk)
        await one.launch()
        running = asyncio.create_task(one.run())
        await one.close()
        started[0].over.set()
        await asyncio.wait_for(running, 60)
        return desk.heard

    assert asyncio.run(live()) == ["left"]
    assert len(started) == 1
