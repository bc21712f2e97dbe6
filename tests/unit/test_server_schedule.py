"""The queue's rule, with plain values: least served first, batches filled, bounds kept."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from predsession.server.job import Job, JobFacts
from predsession.server.schedule import Schedule

_NAMES = itertools.count()


def a_job(total: int, *, batch_size: int = 16, want: int = 0) -> Job:
    """Return a job with so many items."""
    facts = JobFacts("m", (0,) * total, {"want": want}, batch_size, ())
    return Job(f"job{next(_NAMES)}", facts, 0.0, 0.0)


def numbers(schedule: Schedule, most: int) -> list[tuple[str, int]]:
    """Take a batch, as job and number of each item."""
    return [
        (piece.job.uuid, piece.first + offset)
        for piece in schedule.take(most)
        for offset in range(piece.count)
    ]


def test_new_job_goes_next() -> None:
    """A job that comes late waits for no more than the batch of one that was served less."""
    schedule = Schedule()
    large, small = a_job(1000), a_job(3)
    schedule.add(large)
    for _ in range(20):
        schedule.take(8)
    schedule.add(small)
    batches = [schedule.take(8) for _ in range(2)]
    assert small in {piece.job for batch in batches for piece in batch}


def test_late_job_has_no_credit() -> None:
    """A late job is not served until it has caught up with those before it; they take turns at once."""
    schedule = Schedule()
    old, new = a_job(1000, want=1), a_job(1000, want=2)
    schedule.add(old)
    for _ in range(20):
        schedule.take(8)
    schedule.add(new)
    firsts = [schedule.take(8)[0].job for _ in range(10)]
    assert 4 <= firsts.count(old) <= 6


def test_batch_is_filled_with_jobs_of_the_same_settings() -> None:
    """What is left of a batch goes to other jobs, in turn, if they want the same settings."""
    schedule = Schedule()
    one, other, two = a_job(3), a_job(5, want=1), a_job(9)
    for job in (one, other, two):
        schedule.add(job)
    batch = schedule.take(8)
    assert [(piece.job, piece.count) for piece in batch] == [(one, 3), (two, 5)]
    assert [(piece.job, piece.count) for piece in schedule.take(8)] == [(other, 5)]
    assert [(piece.job, piece.first) for piece in schedule.take(8)] == [(two, 6)]


def test_one_at_a_time() -> None:
    """As on a stock server the next job starts only when the one before is dropped from the queue."""
    schedule = Schedule(one_at_a_time=True)
    one, two = a_job(3), a_job(3)
    schedule.add(one)
    schedule.add(two)
    freed: list[bool] = []
    schedule.freed = lambda: freed.append(True)
    assert numbers(schedule, 8) == [(one.uuid, 1), (one.uuid, 2), (one.uuid, 3)]
    assert schedule.take(8) == []
    schedule.discard(one)
    schedule.discard(one)
    assert freed == [True], "whoever feeds the worker is told, once"
    assert len(numbers(schedule, 8)) == 3


@given(
    jobs=st.lists(
        st.tuples(st.integers(1, 30), st.integers(1, 20), st.integers(0, 2)), min_size=1, max_size=8
    ),
    most=st.integers(1, 16),
)
def test_every_item_once_within_all_bounds(jobs: list[tuple[int, int, int]], most: int) -> None:
    """Whatever the jobs: every item is taken exactly once and in order, no batch is larger than the model's
    or any of its jobs' size, and none mixes settings.
    """
    schedule = Schedule()
    queued = [a_job(total, batch_size=size, want=want) for total, size, want in jobs]
    for job in queued:
        schedule.add(job)
    taken: dict[str, list[int]] = {job.uuid: [] for job in queued}
    while batch := schedule.take(most):
        size = sum(piece.count for piece in batch)
        assert 0 < size <= most
        assert all(size <= piece.job.facts.batch_size for piece in batch)
        assert len({piece.job.settings_key for piece in batch}) == 1
        for piece in batch:
            taken[piece.job.uuid].extend(range(piece.first, piece.first + piece.count))
    assert schedule.waiting() == 0
    for job in queued:
        assert taken[job.uuid] == list(range(1, job.facts.total + 1))
