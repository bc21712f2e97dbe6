"""Iterating from an event loop: nothing lost, nothing doubled, whatever the tasks do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from predsession import JobTimeoutError, PredictionSession, SessionClosedError
from predsession.launch import EmbeddedServer
from predsession.server.models.pixels import box_number

Numbered = Callable[..., list[Path]]


def test_async_iteration(ours: str, numbered: Numbered) -> None:
    """`async for` and `async with`, and a cancelled step loses nothing."""

    async def run() -> list[int]:
        async with PredictionSession(ours, numbered(12), delay=0.05) as session:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(session), 0.01)
            return [box_number(prediction.boxes[0]) async for prediction in session]

    assert asyncio.run(run()) == list(range(12))


def test_a_cancel_that_meets_the_result(ours: str, numbered: Numbered) -> None:
    """Both come while the loop is busy: the result is left for the next step."""

    async def run() -> list[int]:
        async with PredictionSession(ours, numbered(6), delay=0.1) as session:
            asyncio.get_running_loop().call_later(0.05, time.sleep, 1.0)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await anext(session)
            return [box_number(prediction.boxes[0]) async for prediction in session]

    assert asyncio.run(run()) == list(range(6))


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
    server = EmbeddedServer(["--model", "pixels"])  # its model will hang, so nobody else can use it

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
    session = PredictionSession(ours, numbered(4), delay=0.05)

    async def first() -> int:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(session), 0.01)
        return box_number((await anext(session)).boxes[0])

    async def rest() -> list[int]:
        return [box_number(prediction.boxes[0]) async for prediction in session]

    assert [asyncio.run(first()), *asyncio.run(rest())] == [0, 1, 2, 3]
