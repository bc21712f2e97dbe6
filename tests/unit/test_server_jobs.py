"""Jobs in memory and on disk: order whichever worker is quicker, nothing lost when the disk refuses."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from predsession.server import jobs as jobs_module
from predsession.server.batch import Batch
from predsession.server.config import Limits
from predsession.server.disk import Disk, not_stored
from predsession.server.job import Advance, Job, JobFacts
from predsession.server.jobs import Jobs
from predsession.server.keeping import Keeping
from predsession.server.refusal import Refusal
from predsession.server.schedule import Piece, Schedule
from predsession.server.store import Progress, Store
from predsession.server.store_rows import JobRow
from predsession.wire.stages import Stage

_NUMBERS = itertools.count()


def facts(total: int, **more: Any) -> JobFacts:
    """Return what a submit fixed."""
    return JobFacts("m", (10,) * total, {}, 16, (), **more)


def made(folder: Path) -> tuple[Jobs, Store, Schedule]:
    """Return jobs on a new store."""
    store = Store(folder / str(next(_NUMBERS)), ephemeral=True)
    schedule = Schedule()
    return Jobs(store, {"m": schedule}, stock=False), store, schedule


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=8), seed=st.randoms(use_true_random=False))
def test_results_are_stored_in_order(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], seed: Any
) -> None:
    """In whatever order the batches of a job come back, its results are stored in the order of its items, and
    it finishes with the last.
    """

    async def run() -> None:
        jobs, store, schedule = made(tmp_path_factory.mktemp("jobs"))
        job = await jobs.add("j", facts(sum(sizes)))
        pieces = [schedule.take(size)[0] for size in sizes]
        seed.shuffle(pieces)
        for at, piece in enumerate(pieces):
            numbers = range(piece.first, piece.first + piece.count)
            await jobs.record([Advance(job, piece.first, [str(n).encode() for n in numbers], piece.count)])
            assert (job.stage is Stage.FINISHED) == (at == len(pieces) - 1)
        assert await jobs.pop(job) == [str(n + 1).encode() for n in range(sum(sizes))]
        assert job.in_flight == 0
        store.close()

    asyncio.run(run())


def test_failure_waits_for_its_turn(tmp_path: Path) -> None:
    """An error in a later batch ends the job after the results before it; what follows is dropped."""

    async def run() -> None:
        jobs, store, schedule = made(tmp_path)
        job = await jobs.add("j", facts(6))
        for _ in range(3):
            schedule.take(2)
        error = {"type": "E", "message": "no", "traceback": ""}
        await jobs.record([Advance(job, 3, [b"3"], 2, error)])
        await jobs.record([Advance(job, 5, [b"5", b"6"], 2)])
        assert (job.done, job.stage) == (0, Stage.PREPARING)
        await jobs.record([Advance(job, 1, [b"1", b"2"], 2)])
        assert (job.done, job.stage, job.exception) == (3, Stage.ERROR, error)
        assert await jobs.pop(job) == [b"1", b"2", b"3"]
        store.close()

    asyncio.run(run())


def test_disk_that_refuses_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While results cannot be stored nobody sees them and the server is not ready; then they are there."""
    monkeypatch.setattr(jobs_module, "_RETRY_S", 0.01)

    async def run() -> None:
        jobs, store, schedule = made(tmp_path)
        job = await jobs.add("j", facts(2))
        schedule.take(2)
        append, refusals = store.append, 3
        seen: list[tuple[int, bool]] = []

        async def refusing(parts: Iterable[Progress]) -> None:
            nonlocal refusals
            if refusals:
                refusals -= 1
                seen.append((job.done, jobs.failing))
                raise sqlite3.OperationalError("database or disk is full")
            await append(parts)

        monkeypatch.setattr(store, "append", refusing)
        await jobs.record([Advance(job, 1, [b"1", b"2"], 2)])
        assert seen == [(0, False), (0, True), (0, True)]
        assert (job.stage, jobs.failing) == (Stage.FINISHED, False)
        assert await jobs.pop(job) == [b"1", b"2"]
        store.close()

    asyncio.run(run())


def test_stopped_job_ends_when_no_worker_has_its_items(tmp_path: Path) -> None:
    """A stop waits for the batch under way, whose results are kept, and for no other."""

    async def run() -> None:
        jobs, store, schedule = made(tmp_path)
        job = await jobs.add("j", facts(6))
        schedule.take(2)
        await jobs.stop(job)
        assert not job.ended
        assert schedule.take(2) == []
        await jobs.record([Advance(job, 1, [b"1", b"2"], 2)])
        assert (job.stage, job.done) == (Stage.CANCELLED, 2)
        store.close()

    asyncio.run(run())


def test_too_many_kept_jobs(tmp_path: Path) -> None:
    """Beyond the limit the oldest finished jobs go; unfinished ones stay."""

    async def run() -> None:
        jobs, store, _ = made(tmp_path)
        made_jobs = [await jobs.add(f"j{n}", facts(1)) for n in range(5)]
        for job in made_jobs[1:]:
            job.in_flight = 1
            await jobs.record([Advance(job, 1, [b"1"], 1)])
        await Keeping(jobs, Limits(kept=3), stock=False).sweep()
        assert [job.uuid for job in jobs] == ["j0", "j3", "j4"]
        store.close()

    asyncio.run(run())


def test_disk_keeps_its_share(tmp_path: Path) -> None:
    """Room is what the share leaves, minus what has come; it comes back when the upload is over. What is
    announced must have room, and takes none.
    """
    disk = Disk(tmp_path, Limits(disk=1000, free=1), lambda: 300)
    with disk.reserve(400) as keep:
        assert disk.room() == 700
        keep(100)
        assert disk.room() == 600
        keep(600)
        assert disk.room() == 100
        with pytest.raises(Refusal) as caught:
            keep(801)
        assert (caught.value.status, caught.value.retry_after) == (507, 30)
        with pytest.raises(Refusal), disk.reserve(200):
            pass
    assert disk.room() == 700
    full = Disk(tmp_path, Limits(free=1 << 60), lambda: 0)
    with pytest.raises(Refusal), full.reserve(0):
        pass


def test_error_numbers_of_a_full_disk_are_errors_of_the_upload(tmp_path: Path) -> None:
    """A file that cannot be written is a 507, not a fault of the server."""
    from predsession.server.upload import Intake

    async def chunks() -> Any:
        yield b"--x\r\n"
        raise OSError(errno.ENOSPC, "no space left")

    async def run() -> None:
        intake = Intake(chunks(), Limits())
        await intake.form("multipart/form-data; boundary=x", tmp_path / "job", keep=lambda _: None)

    with pytest.raises(Refusal) as caught:
        asyncio.run(run())
    assert caught.value.status == 507


def test_waiters_hear_of_every_change(tmp_path: Path) -> None:
    """Whoever waits for news is woken by a result and by an end, and told when his time is up."""

    async def run() -> None:
        jobs, store, schedule = made(tmp_path)
        job: Job = await jobs.add("j", facts(2))
        assert not await job.news(0.01)
        schedule.take(1)
        waiting = asyncio.create_task(job.news(30))
        await asyncio.sleep(0)
        await jobs.record([Advance(job, 1, [b"1"], 1)])
        assert await waiting
        waiting = asyncio.create_task(job.news(30))
        await asyncio.sleep(0)
        await jobs.stop(job)
        assert await waiting
        store.close()

    asyncio.run(run())


def test_job_that_cannot_be_removed_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job whose removal the database refuses is known until a later try, and then its key is free."""

    async def run() -> None:
        jobs, store, _ = made(tmp_path)
        job = await jobs.add("j", facts(1), "key")
        remove = store.remove

        async def refusing(uuid: str) -> None:
            raise sqlite3.OperationalError("database is locked")

        monkeypatch.setattr(store, "remove", refusing)
        with pytest.raises(sqlite3.OperationalError):
            await jobs.remove(job)
        assert list(jobs) == [job]
        assert await jobs.add("other", facts(1), "key") is job
        monkeypatch.setattr(store, "remove", remove)
        await Keeping(jobs, Limits(cleared=-1), stock=False).sweep()
        assert list(jobs) == []
        assert (await jobs.add("new", facts(1), "key")).uuid == "new"
        store.close()

    asyncio.run(run())


def test_key_of_a_job_that_does_not_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that belongs to a job which is not known is an error after a while."""
    monkeypatch.setattr(jobs_module, "_LOOK_S", 0)

    async def run() -> None:
        jobs, store, _ = made(tmp_path)
        await store.add(JobRow("gone", "key", 0.0, {}, 0, {}))
        with pytest.raises(jobs_module.BusyKeyError):
            await jobs.add("new", facts(1), "key")
        store.close()

    asyncio.run(run())


def test_busy_and_full_databases(tmp_path: Path) -> None:
    """A database that is locked is a 503, anything else that it refuses a 507."""
    path = tmp_path / "db"
    with (
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as one,
        contextlib.closing(sqlite3.connect(path, timeout=0)) as other,
    ):
        one.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError) as caught:
            other.execute("CREATE TABLE t (x)")
        one.execute("ROLLBACK")
    refusal = not_stored(caught.value)
    assert (refusal.status, refusal.retry_after) == (503, 2)
    assert not_stored(sqlite3.OperationalError("database or disk is full")).status == 507


def test_batch_of_a_job_that_has_ended_is_unwanted() -> None:
    """A batch is wanted while any of its jobs is neither stopped nor ended."""
    one, two = (Job(name, facts(1), 0.0, 0.0) for name in "ab")
    batch = Batch(1, [Piece(one, 1, 1), Piece(two, 1, 1)], ())
    one.stopped = True
    assert not batch.unwanted
    two.go(Stage.ERROR)
    assert batch.unwanted
