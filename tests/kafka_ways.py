"""A stream over a broker that ends in one of several ways, and what is then stored, committed, sent again."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from kafka_kit import PATIENCE, QUICK, Broker, Onlooker, eventually

from predsession.stream import Batch, KafkaSource, StreamSession, open_results
from predsession.stream.writer import letters_path

FLUSH = 0.2
_numbers = itertools.count()

WORKER = """
import json, os, signal, sys, threading, time
import numpy as np
from predsession.stream import KafkaSource, StreamSession

given = json.loads(sys.argv[1])

def model(batch):
    time.sleep(given["pace"])
    return np.array(batch["number"], np.float32)

source = KafkaSource(given["address"], given["topic"], given["group"], consumer_options=given["options"])
with StreamSession(model, source, given["store"], batch_size=given["batch"], flush_after=0.2) as session:
    signal.signal(signal.SIGTERM, lambda *_: session.stop())
    print("open", flush=True)
    for number, (batch, results) in enumerate(session):
        print(len(results), flush=True)
        if number == given["last"]:
            threading.Timer(given["later"], os.kill, (os.getpid(), signal.SIGKILL)).start()
"""


def twice(batch: Batch) -> object:
    """Be a model: a number each."""
    return np.array(batch["number"], np.float32) * 2


@dataclass
class Stage:
    """A topic, a group and a store that no other test has."""

    broker: Broker
    folder: Path
    partitions: int = 1
    batch: int = 10
    options: dict[str, object] = field(default_factory=lambda: dict(QUICK))

    def __post_init__(self) -> None:
        """Make the topic."""
        name = f"{os.getpid()}-{next(_numbers)}"
        self.topic, self.group = f"topic-{name}", f"group-{name}"
        self.store = self.folder / "results.lance"
        self.broker.create(self.topic, self.partitions)
        self.onlooker = Onlooker(self.broker)

    def send(self, numbers: Iterable[int], also: Iterable[object] = ()) -> None:
        """Write a message for each number, and others."""
        messages: list[object] = [{"object_id": f"id-{each}", "number": each} for each in numbers]
        self.onlooker.send(self.topic, [*messages, *also], partitions=self.partitions)

    def source(self, **keywords: object) -> KafkaSource:
        """Open the topic as a source."""
        given = {"consumer_options": self.options, "connect_timeout": PATIENCE} | keywords
        return KafkaSource(self.broker.address, self.topic, self.group, **given)

    def open(
        self, model: Callable[[Batch], object] = twice, source: KafkaSource | None = None, **keywords: object
    ) -> StreamSession:
        """Open a session over it."""
        given = {"batch_size": self.batch, "flush_after": FLUSH} | keywords
        return StreamSession(model, source or self.source(), self.store, **given)

    def finish(self, count: int, **keywords: object) -> StreamSession:
        """Run until so many objects are stored; return the session, closed."""
        with self.open(**keywords) as session:
            ends = threading.Timer(PATIENCE, session.stop)
            ends.start()
            seen = len(session.dataset)
            for batch, _ in session if seen < count else ():
                seen += len(batch["object_id"])
                if seen >= count:
                    break
            ends.cancel()
        return session

    def committed(self) -> int:
        """Return how many messages are committed, over all partitions."""
        return sum(self.onlooker.committed(self.group, self.topic, self.partitions))

    def ids(self) -> list[str]:
        """Return what is stored, in order."""
        return list(open_results(self.store).ids()) if self.store.exists() else []

    def letters(self) -> list[dict[str, object]]:
        """Return the dead letters, in order."""
        import lance

        path = letters_path(self.store)
        return lance.dataset(str(path)).to_table().to_pylist() if path.exists() else []

    def start(self, pace: float = 0.0, *, last: int = -1, later: float = 0.0) -> subprocess.Popen[str]:
        """Run a session in a process of its own, which tells each batch, and may kill itself after one."""
        import json

        given = {
            "address": self.broker.address, "topic": self.topic, "group": self.group, "options": self.options,
            "store": str(self.store), "batch": self.batch, "pace": pace, "last": last, "later": later,
        }  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-c", WORKER, json.dumps(given)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


class Boom(Exception):
    """What goes wrong in a test."""


def normal(stage: Stage, count: int) -> None:
    """End once everything is stored."""
    stage.finish(count)


def leave(stage: Stage, count: int) -> None:
    """Break in the third batch."""
    with stage.open() as session:
        for number, _ in enumerate(session):
            if number == 2:
                break


def body_raises(stage: Stage, count: int) -> None:
    """Raise in the loop's body, in the third batch."""
    try:
        with stage.open() as session:
            for number, _ in enumerate(session):
                if number == 2:
                    raise Boom
    except Boom:
        return
    raise AssertionError("it is raised")


def model_raises(stage: Stage, count: int) -> None:
    """Raise in the model, at the fourth batch."""
    calls = itertools.count()

    def model(batch: Batch) -> object:
        if next(calls) == 3:
            raise Boom
        return twice(batch)

    try:
        with stage.open(model) as session:
            for _ in session:
                pass
    except Boom:
        return
    raise AssertionError("it is raised")


def stopped(stage: Stage, count: int) -> None:
    """Call stop() from another thread, within the third batch."""
    calls = itertools.count()

    def model(batch: Batch) -> object:
        if next(calls) == 2:
            thread = threading.Thread(target=session.stop)
            thread.start()
            thread.join()
        return twice(batch)

    with stage.open(model) as session:
        for _ in session:
            pass


def _signalled(stage: Stage, number: int) -> None:
    """Send a signal to a process after its third batch."""
    child = stage.start(pace=0.05)
    assert child.stdout is not None
    for _ in range(4):  # "open", and three batches
        child.stdout.readline()
    child.send_signal(number)
    _, errors = child.communicate(timeout=PATIENCE)
    assert child.returncode in {0, -signal.SIGKILL}, errors


def terminated(stage: Stage, count: int) -> None:
    """SIGTERM, whose handler calls stop()."""
    _signalled(stage, signal.SIGTERM)


def killed(stage: Stage, count: int) -> None:
    """Kill -9."""
    _signalled(stage, signal.SIGKILL)


WAYS: dict[str, Callable[[Stage, int], None]] = {
    "normal end": normal,
    "break": leave,
    "exception in the loop": body_raises,
    "exception in the model": model_raises,
    "stop()": stopped,
    "SIGTERM with stop()": terminated,
    "kill -9": killed,
}


@dataclass(frozen=True)
class Left:
    """What a way out has left, and what the next run found."""

    sent: int
    stored: int
    committed: int
    again: int
    """Messages that the next run was given."""
    passed_over: int
    """Those of them that were stored already."""
    finally_stored: int
    doubled: int
    finally_committed: int


def observe(stage: Stage, way: str, count: int = 60) -> Left:
    """Send messages, end in some way, look, run again, look."""
    stage.send(range(count))
    WAYS[way](stage, count)
    stored = stage.ids()
    committed = stage.committed()
    counts = stage.finish(count).counts if len(stored) < count else None
    ids = stage.ids()
    assert eventually(lambda: stage.committed() == count, 5)
    return Left(
        sent=count,
        stored=len(stored),
        committed=committed,
        again=0 if counts is None else counts.stored + counts.skipped,
        passed_over=0 if counts is None else counts.skipped,
        finally_stored=len(set(ids)),
        doubled=len(ids) - len(set(ids)),
        finally_committed=stage.committed(),
    )
