"""What the server's page is told: errors, rates, memory, and jobs whose lease a look does not renew."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from predsession.server.config import ServerConfig
from predsession.server.job import Job, JobFacts
from predsession.server.memory import resident
from predsession.server.overview import MOST_JOBS, Overview, Rates
from predsession.server.recent import KEPT, LONGEST, RecentErrors
from predsession.server.service import Service
from predsession.wire.stages import Stage

LOG = logging.getLogger("predsession.server")


@pytest.fixture
def errors() -> Iterator[RecentErrors]:
    """The recent errors of this thread."""
    kept = RecentErrors("s3cret")
    kept.open()
    yield kept
    kept.close()


def messages(errors: RecentErrors) -> list[object]:
    """Return what is kept."""
    return [entry["message"] for entry in errors.to_json()]


def job(uuid: str, total: int = 10) -> Job:
    """Return a job that has not begun."""
    facts = JobFacts(model="detect", sizes=(1,) * total, settings={}, batch_size=1, names=())
    return Job(uuid, facts, 0.0, 0.0)


def test_errors_are_the_latest_first_and_bounded(errors: RecentErrors) -> None:
    """The last fifty are kept, the latest first; what is only information is not."""
    for number in range(KEPT + 5):
        LOG.error("error %d", number)
    LOG.info("all is well")
    assert messages(errors) == [f"error {number}" for number in range(KEPT + 4, 4, -1)]


def test_an_error_in_a_row_is_counted(errors: RecentErrors) -> None:
    """The same message again and again is one entry with a count."""
    for text in ("disk full", "disk full", "disk full", "other", "disk full"):
        LOG.error(text)
    assert [(entry["message"], entry["count"]) for entry in errors.to_json()] == [
        ("disk full", 1), ("other", 1), ("disk full", 3),
    ]  # fmt: skip


def test_errors_are_one_line_without_secrets(errors: RecentErrors) -> None:
    """A traceback is cut to its last line, a message to its first, a long one short, and a token masked."""
    LOG.error("%s", "Traceback (most recent call last):\n  File x\nValueError: bad s3cret")
    LOG.error("first\nsecond")
    LOG.error("x" * 5000)
    long, first, trace = messages(errors)
    assert trace == "ValueError: bad ***"
    assert first == "first"
    assert len(str(long)) == LONGEST + 1


def test_errors_of_another_server_are_not_ours(errors: RecentErrors) -> None:
    """What another thread logs, where another server may run, is not shown; nor what comes after the end."""
    thread = threading.Thread(target=LOG.error, args=("theirs",))
    thread.start()
    thread.join()
    LOG.error("ours")
    errors.close()
    LOG.error("after")
    assert messages(errors) == ["ours"]


def test_rate_is_that_of_the_last_seconds() -> None:
    """A job's rate is that of the last ten seconds of looks; it has none at first and at the end."""
    rates, work = Rates(), job("a", 1000)
    rates.note([work], 100.0)
    assert rates.of(work) is None
    for second in range(1, 31):
        work.done += 2 if second <= 15 else 8
        rates.note([work], 100.0 + second)
    assert rates.of(work) == pytest.approx(8.0)
    work.go(Stage.INFERENCE)
    work.go(Stage.FINISHED)
    rates.note([work], 131.0)
    assert rates.of(work) is None


def test_looking_renews_no_lease(tmp_path: Path) -> None:
    """A tab that is left open does not keep jobs alive; more jobs than it shows are counted."""

    async def run() -> None:
        service = Service.build(ServerConfig((), tmp_path, ephemeral=True))
        overview = Overview(service)
        for number in range(MOST_JOBS + 3):
            ended = job(f"{number}")
            ended.go(Stage.FINISHED)
            service.jobs._keep(ended)
        before = [each.touched for each in service.jobs]
        shown = overview.to_json()
        assert [each.touched for each in service.jobs] == before
        jobs = shown["jobs"]
        assert isinstance(jobs, list)
        assert len(jobs) == MOST_JOBS
        assert jobs[0]["uuid"] == str(MOST_JOBS + 2)
        assert shown["job_count"] == MOST_JOBS + 3
        await asyncio.to_thread(service.store.close)

    asyncio.run(run())


def test_memory_of_this_process_and_of_none() -> None:
    """A process that is there has memory, one that is not has none, and neither raises."""
    ours = resident()
    assert ours is None or ours > 1 << 20
    assert resident(os.getpid()) is None or resident(os.getpid()) == pytest.approx(ours, rel=0.5)
    assert resident(1 << 30) is None
