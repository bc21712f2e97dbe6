"""A stream as a member of a group: killed, joined, left, too slow, without a broker for a while."""

from __future__ import annotations

import gc
import itertools
import logging
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_kit import PATIENCE, QUICK, Broker, eventually, started
from kafka_ways import Stage, twice

from predsession.stream import Batch
from predsession.stream.source import Taken

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module", params=["mock", pytest.param("tansu", marks=pytest.mark.soak)])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker."""
    with started(request.param) as one:
        yield one


def in_thread(stage: Stage, **keywords: object) -> tuple[object, threading.Thread]:
    """Run a session in a thread of its own."""
    session = stage.open(**keywords)

    def run() -> None:
        for _ in session:
            pass

    thread = threading.Thread(target=run)
    thread.start()
    return session, thread


def seen(child: subprocess.Popen[str], batches: int) -> None:
    """Wait until a process has stored so many batches."""
    assert child.stdout is not None
    for _ in range(batches + 1):
        assert child.stdout.readline(), child.communicate()[1]


def test_killed_at_three_moments(broker: Broker, tmp_path: Path) -> None:
    """Kill -9 at three moments drawn at random: at the end each message is stored once, a dead letter too."""
    seed = random.randrange(1 << 30)
    draw = random.Random(seed)
    stage = Stage(broker, tmp_path, partitions=2)
    stage.onlooker.send(stage.topic, [b"bad"])
    stage.send(range(600))
    for _ in range(3):
        # By itself: a test that is late to kill it would find it ready.
        child = stage.start(pace=0.01, last=draw.randrange(5), later=draw.uniform(0, 0.05))
        _, words = child.communicate(timeout=PATIENCE * 2)
        assert child.returncode == -signal.SIGKILL, words
    assert len(stage.ids()) < 600
    stage.finish(600)
    ids = stage.ids()
    assert len(ids) == len(set(ids)) == 600, f"seed {seed}"
    assert stage.committed() == 601, f"seed {seed}"
    assert len(stage.letters()) == 1


def test_two_members_one_killed(broker: Broker, tmp_path: Path) -> None:
    """Two members share the partitions and a store; one is killed, and the other does its part as well."""
    stage = Stage(broker, tmp_path, partitions=4)
    stage.send(range(800))
    child = stage.start(pace=0.2)
    seen(child, 2)
    session, thread = in_thread(stage, model=lambda batch: time.sleep(0.02) or twice(batch))
    try:
        assert eventually(lambda: session.counts.stored > 30), "the second has its part"
        child.kill()
        child.communicate()
        assert eventually(lambda: len(stage.ids()) == 800), len(stage.ids())
        assert eventually(lambda: stage.committed() == 800)
    finally:
        session.stop()
        thread.join()
        session.close()
    assert len(set(stage.ids())) == 800


def test_partitions_that_go_are_dropped(broker: Broker, tmp_path: Path) -> None:
    """When a second member joins, the first holds nothing of what went to it, and commits nothing of it."""
    stage = Stage(broker, tmp_path, partitions=2, options={**QUICK, "session.timeout.ms": 4000})
    stage.send(range(200))
    first, second = stage.source(ahead=20), stage.source(ahead=20)
    try:
        before: list[Taken] = []
        assert eventually(lambda: before.extend(first.take(100 - len(before), 0.1)) or len(before) == 100)
        rest = list(second.take(1, PATIENCE) or ())
        [(_, theirs)] = second._reader.held.parts
        assert first._reader.held.parts == {(stage.topic, 1 - theirs)}
        assert all(each.partition() == 1 - theirs for each in first._reader.held._buffer)
        first.done([each.position for each in before])
        first.close()  # with its last commit
        assert stage.onlooker.committed(stage.group, stage.topic, 2)[theirs] == 0
        assert eventually(lambda: rest.extend(second.take(100 - len(rest), 0.1)) or len(rest) == 100)
        assert [each.position for each in rest] == [f"{stage.topic}:{theirs}:{place}" for place in range(100)]
    finally:
        first.close()
        second.close()


def test_model_slower_than_the_poll_interval(broker: Broker, tmp_path: Path) -> None:
    """A model that takes longer than max.poll.interval.ms costs no membership: nothing comes twice."""
    options = {**QUICK, "session.timeout.ms": 3000, "max.poll.interval.ms": 3000}
    stage = Stage(broker, tmp_path, options=options)
    stage.send(range(40))
    calls = itertools.count()

    def model(batch: Batch) -> object:
        if next(calls) == 0:
            time.sleep(4.0)
        return twice(batch)

    source = stage.source(ahead=10)
    session = stage.finish(40, model=model, source=source)
    assert (session.counts.stored, session.counts.skipped) == (40, 0)
    assert stage.committed() == 40


def outage(broker: Broker, folder: Path, seconds: float, caplog: pytest.LogCaptureFixture) -> None:
    """Take the broker away in the middle of a stream, and give it back."""
    stage = Stage(broker, folder, options={**QUICK, "socket.timeout.ms": 10_000})
    stage.send(range(300))
    with caplog.at_level(logging.WARNING, "predsession.stream.kafka"):
        session, thread = in_thread(stage, model=lambda batch: time.sleep(0.02) or twice(batch))
        try:
            assert eventually(lambda: session.counts.stored >= 100)
            broker.away()
            time.sleep(seconds)
            broker.back()
            stage.send(range(300, 400))
            assert eventually(lambda: session.counts.stored == 400, 60), session.counts
            assert eventually(lambda: stage.committed() == 400)
        finally:
            broker.back()
            session.stop()
            thread.join()
            session.close()
    assert len(stage.ids()) == len(set(stage.ids())) == 400
    told = [each.getMessage() for each in caplog.records]
    assert len(told) == len(set(told)) <= 6, told


def test_broker_goes_and_comes(broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A broker that is away for 3 s: the stream goes on by itself, and nothing is logged twice."""
    outage(broker, tmp_path, 3.0, caplog)


@pytest.mark.soak
def test_broker_is_away_for_long(broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The same for 30 s."""
    outage(broker, tmp_path, 30.0, caplog)


def test_close_while_the_broker_is_away(broker: Broker, tmp_path: Path) -> None:
    """Closing waits for a broker that is away for seconds, not for minutes."""
    stage = Stage(broker, tmp_path)
    stage.send(range(10))
    session = stage.finish(10)
    source = stage.source()
    assert eventually(lambda: stage.send(range(10, 11)) or bool(source.take(1, 0.5)))
    broker.away()
    try:
        began = time.monotonic()
        source.close()
        assert time.monotonic() - began < 10
    finally:
        broker.back()
    assert len(session.dataset) == 10


def test_close_while_another_thread_waits(broker: Broker, tmp_path: Path) -> None:
    """A thread that waits for messages is let go when another closes the source, which may be done twice."""
    stage = Stage(broker, tmp_path)
    source = stage.source()
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(source.take(1, PATIENCE * 4)))
    thread.start()
    assert eventually(lambda: source._reader.held._changed._waiters and source._reader.held.parts)
    source.close()
    thread.join(PATIENCE)
    source.close()
    assert found == [None]
    assert source.take(1, 0.1) is None


@pytest.fixture(scope="module")
def tansu() -> Iterator[Broker]:
    """The broker that tells how a group stands."""
    with started("tansu") as one:
        yield one


def test_close_with_the_iterator_suspended(tansu: Broker, tmp_path: Path) -> None:
    """close() commits, and leaves the group at once, though somebody still holds the iterator."""
    stage = Stage(tansu, tmp_path, options={**QUICK, "session.timeout.ms": 2500})
    stage.send(range(40))
    session = stage.open()
    iterator = iter(session)
    next(iterator)
    session.close()
    assert stage.committed() == 10
    assert stage.onlooker.state(stage.group) == "EMPTY"
    assert stage.finish(40).counts.stored == 30
    assert next(iterator, None) is None


def test_forgotten_source_leaves_the_group(tansu: Broker, tmp_path: Path) -> None:
    """A source that nobody has closed, and nobody holds any more, leaves the group."""
    stage = Stage(tansu, tmp_path, options={**QUICK, "session.timeout.ms": 2500})
    stage.send(range(10))

    def forget() -> None:
        source = stage.source()
        assert eventually(lambda: bool(source.take(1, 0.2)))

    forget()
    gc.collect()
    assert eventually(lambda: stage.onlooker.state(stage.group) == "EMPTY")
    assert stage.finish(10).counts.stored == 10
