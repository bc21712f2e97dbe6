"""Iterating from an event loop: nothing lost, nothing doubled, whatever the tasks do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_kit import Gate
from server_kit import until

from predsession import JobTimeoutError, PredictionSession, SessionClosedError
from predsession.launch import EmbeddedServer
from predsession.server.models.pixels import box_number
from predsession.testing import FaultyServer

Numbered = Callable[..., list[Path]]
POP = "pop_inference_results"


def test_async_iteration(ours: str, numbered: Numbered) -> None:
    """`async for` and `async with`, and a cancelled step loses nothing."""

    async def run(url: str) -> list[int]:
        async with PredictionSession(url, numbered(12)) as session:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(session), 0.01)
            gate.open()
            return [box_number(prediction.boxes[0]) async for prediction in session]

    gate = Gate(POP)
    with FaultyServer(ours, gate) as held:
        assert asyncio.run(run(held.url)) == list(range(12))


def test_a_cancel_that_meets_the_result(ours: str, numbered: Numbered) -> None:
    """Both come while the loop is busy: the result is left for the next step."""

    async def run(url: str) -> list[int]:
        async with PredictionSession(url, numbered(6)) as session:

            def be_busy() -> None:
                gate.open()
                until(lambda: session.progress().done, "the result")
                time.sleep(0.3)

            asyncio.get_running_loop().call_later(0.05, be_busy)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await anext(session)
            return [box_number(prediction.boxes[0]) async for prediction in session]

    gate = Gate(POP)
    with FaultyServer(ours, gate) as held:
        assert asyncio.run(run(held.url)) == list(range(6))


def test_two_tasks_share_a_session(ours: str, numbered: Numbered) -> None:
    """Each prediction goes to one of them."""

    async def run() -> list[int]:
        async with PredictionSession(ours, numbered(30), delay=0.01) as session:

            async def consume() -> list[int]:
                return [box_number(prediction.boxes[0]) async for prediction in session]

            parts = await asyncio.gather(consume(), consume(), consume())
        return sorted(number for part in parts for number in part)

    assert asyncio.run(run()) == list(range(30))


def test_the_jobs_own_deadline_is_seen(numbered: Numbered) -> None:
    """It is not taken for the expiry of a step; what is asked afterwards names it as its cause."""
    # Its model will hang, so nobody else can use it, and its end need not wait for that.
    server = EmbeddedServer(["--model", "pixels", "--limit-grace", "0.2"])

    async def run() -> None:
        async with PredictionSession(server.url, numbered(3), hang_at=1, idle_timeout=1.5) as session:
            with pytest.raises(JobTimeoutError, match="has stood at"):
                [one async for one in session]
            with pytest.raises(SessionClosedError) as caught:
                await anext(session)
            assert isinstance(caught.value.__cause__, JobTimeoutError)

    try:
        asyncio.run(run())
    finally:
        server.stop()


def test_two_loops_one_after_the_other(ours: str, numbered: Numbered) -> None:
    """A session that was begun in one loop goes on in another."""
    gate = Gate(POP)

    async def first() -> int:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(session), 0.01)
        gate.open()
        return box_number((await anext(session)).boxes[0])

    async def rest() -> list[int]:
        return [box_number(prediction.boxes[0]) async for prediction in session]

    with FaultyServer(ours, gate) as held:
        session = PredictionSession(held.url, numbered(4))
        assert [asyncio.run(first()), *asyncio.run(rest())] == [0, 1, 2, 3]
