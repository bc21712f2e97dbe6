"""The queue: fair between jobs, batches filled across jobs, a stop that takes effect within one batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from server_kit import Caller, Server, numbers, png, until

LEDGER = '''
import os, time
import numpy as np
from predsession.server.models.pixels import PixelNumbers, read_number

class Ledger(PixelNumbers):
    """Writes down every batch it is given."""
    max_batch_size = 8
    default_settings = {**PixelNumbers.default_settings, "other": 0}
    def predict(self, images, settings):
        with open("LEDGER", "a") as file:
            file.write(" ".join(str(read_number(image)) for image in images) + "\\n")
        while settings["other"] == 9 and os.path.exists("LEDGER.hold"):
            time.sleep(0.01)
        return super().predict(images, settings)
'''


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Where the model writes its batches."""
    return tmp_path / "batches"


@pytest.fixture
def server(tmp_path: Path, ledger: Path) -> Iterator[Server]:
    """A server whose model writes its batches down."""
    (tmp_path / "ledger.py").write_text(LEDGER.replace("LEDGER", str(ledger)))
    with Server(f"{tmp_path}/ledger.py:Ledger") as running:
        yield running


@pytest.fixture
def caller(server: Server) -> Iterator[Caller]:
    """Calls it."""
    with Caller(server.url) as one:
        yield one


def batches(ledger: Path) -> list[list[int]]:
    """Return the numbers of each batch so far."""
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    return [[int(word) for word in line.split()] for line in lines]


@contextmanager
def occupied(caller: Caller, ledger: Path) -> Iterator[None]:
    """Give the model something to do, so that what is submitted meanwhile is queued together."""
    hold = ledger.with_name(f"{ledger.name}.hold")
    hold.touch()
    uuid = caller.submit([png(100_000 + n) for n in range(3)], settings={"other": 9}, batch_size=1)
    until(lambda: caller.progress(uuid)["is_inferring"], "the start")
    yield
    hold.unlink()
    caller.read(uuid)


def test_small_job_is_not_stuck_behind_a_large_one(caller: Caller, ledger: Path) -> None:
    """A job of 3 that comes when 600 wait is answered after at most one more batch of the large one, beside
    what the worker has already taken.
    """
    large = caller.submit([png(n) for n in range(600)], settings={"delay": 0.004})
    until(lambda: caller.progress(large)["is_inferring"], "the start")
    small = caller.submit([png(1000 + n) for n in range(3)], settings={"delay": 0.004})
    taken = len(batches(ledger))
    items, _ = caller.read(small)
    assert numbers(items) == [1000, 1001, 1002]
    place = next(at for at, batch in enumerate(batches(ledger)) if 1000 in batch)
    assert place <= taken + 4
    assert not caller.progress(large)["finished"]
    assert numbers(caller.read(large)[0]) == list(range(600))


def test_jobs_take_turns(caller: Caller, ledger: Path) -> None:
    """Two large jobs with different settings advance batch by batch, neither ahead by more than a batch."""
    with occupied(caller, ledger):
        one = caller.submit([png(n) for n in range(40)], settings={"other": 1})
        two = caller.submit([png(1000 + n) for n in range(40)], settings={"other": 2})
    for uuid in (one, two):
        caller.read(uuid)
    turns = [batch[0] >= 1000 for batch in batches(ledger) if batch[0] < 100_000]
    assert all(abs(turns[:n].count(True) - turns[:n].count(False)) <= 1 for n in range(len(turns)))


def test_batches_are_filled_across_jobs(caller: Caller, ledger: Path) -> None:
    """Six jobs of one picture with the same settings share a batch; one with other settings does not."""
    with occupied(caller, ledger):
        jobs = [caller.submit([png(n)]) for n in range(6)]
        odd = caller.submit([png(50)], settings={"other": 1})
    for number, uuid in enumerate(jobs):
        assert numbers(caller.read(uuid)[0]) == [number]
    assert numbers(caller.read(odd)[0]) == [50]
    assert [0, 1, 2, 3, 4, 5] in batches(ledger)
    assert [50] in batches(ledger)


def test_batch_sizes(caller: Caller, ledger: Path) -> None:
    """No batch is larger than the model's own size, nor than the job's; too large a wish is refused."""
    caller.read(caller.submit([png(n) for n in range(20)]))
    assert [len(batch) for batch in batches(ledger)] == [8, 8, 4]
    caller.read(caller.submit([png(n) for n in range(5)], batch_size=2))
    assert [len(batch) for batch in batches(ledger)[3:]] == [2, 2, 1]
    reply = caller.upload([png(1)], batch_size=9)
    assert (reply.status_code, reply.json()["success"]) == (400, False)
    assert reply.json()["message"] == "Batch size should be less than or equal to 8 for this model."
    for bad in (0, -1, "4", 1.5):
        assert caller.upload([png(1)], batch_size=bad).status_code == 400


def test_stop_takes_effect_within_one_batch(caller: Caller, ledger: Path) -> None:
    """After the stop of an image job at most the batch that was begun is finished; what was computed can be
    read, and the job is cancelled.
    """
    uuid = caller.submit([png(n) for n in range(64)], settings={"delay": 0.05}, batch_size=4)
    until(lambda: len(batches(ledger)) >= 2, "the second batch")
    caller.stop(uuid)
    begun = len(batches(ledger))
    items, last = caller.drain(uuid)
    assert last["stage"] == "Cancelled"
    assert numbers(items) == list(range(len(items)))
    assert len(batches(ledger)) <= begun + 1
    assert len(items) <= 4 * (begun + 1)
    assert caller.upload([png(7)], endpoint="inference_image").status_code == 200, "the model is free"


def test_stop_of_a_job_that_waits(caller: Caller, ledger: Path) -> None:
    """A job that no worker has touched is cancelled at once."""
    with occupied(caller, ledger):
        uuid = caller.submit([png(n) for n in range(64)], settings={"other": 3})
        caller.stop(uuid)
        until(lambda: caller.progress(uuid)["finished"], "the cancellation")
        answer = caller.pop(uuid)
        assert (answer["stage"], answer["pending_results"]) == ("Cancelled", [])
    assert all(batch[0] >= 100_000 for batch in batches(ledger))


def test_leaving_a_sync_call_stops_its_work(server: Server, ledger: Path) -> None:
    """A caller of a sync call who hangs up is computed for no longer."""
    import contextlib

    import requests

    files = [("files", (f"{n}.png", png(n))) for n in range(60)]
    data = {"state": '{"settings": {"delay": 0.05}, "batch_size": 2}'}
    with contextlib.suppress(requests.Timeout):
        requests.post(f"{server.url}/inference_batch", files=files, data=data, timeout=0.5)
    with Caller(server.url) as caller:
        until(lambda: not caller.ask("list_inference_requests")["requests"], "the end of its job")
        assert sum(len(batch) for batch in batches(ledger)) < 60


@pytest.mark.parametrize("workers", [2, 3])
def test_several_workers_keep_the_order(workers: int) -> None:
    """With several workers results come in order, also when pictures take different times, one kills its
    process and one fails.
    """
    with Server("pixels", "--workers", str(workers)) as server, Caller(server.url) as caller:
        assert len(server.workers()) == workers
        settings: dict[str, Any] = {"exit_at": 33, "fail_at": 50}
        uuid = caller.submit([png(n) for n in range(120)], settings=settings, item_errors=True, batch_size=5)
        other = caller.submit([png(200 + n) for n in range(30)], settings={"delay": 0.003}, batch_size=3)
        items, last = caller.read(uuid, limit=9)
        expected: list[int | str] = list(range(120))
        expected[33], expected[50] = "ModelCrashError", "ValueError"
        assert numbers(items) == expected
        assert last["stage"] == "Finished"
        assert numbers(caller.read(other)[0]) == list(range(200, 230))
        until(lambda: len(server.workers()) == workers, "the successor")
