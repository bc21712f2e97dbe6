"""A stream over Kafka killed at fifty moments: each message is stored once, each dead letter once."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka_kit import Broker, eventually, started
from kafka_ways import WAYS, Stage, observe
from soak.faults import new_seed

KILLS = 50
COUNT = 5000
BAD = 10
PARTITIONS = 4
PACE = 0.03
"""Seconds for a batch of ten, so that fifty lives are too few for all of it."""
HEAD = (
    "| broker | seed | messages | of these bad | kills | before anything was stored "
    "| stored by what was killed | stored, not committed | missing | doubled | dead letters | doubled |"
)
WAYS_HEAD = "| way out | sent | stored | committed | sent again | passed over | stored at the end | doubled |"

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module", params=["mock", "tansu"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker, which outlives what is killed."""
    with started(request.param) as one:
        yield one


def rule(head: str) -> str:
    """Return the line below a table's head."""
    return "|" + " --- |" * (head.count("|") - 1)


def life(stage: Stage, draw: random.Random) -> int:
    """Start a session, kill it at a moment of its life, return how many batches it has told of."""
    child = stage.start(pace=PACE)
    assert child.stdout is not None
    early = draw.random() < 0.2
    if early:  # while it starts, joins, or has just begun
        time.sleep(draw.uniform(0.3, 2.5))
    else:
        assert child.stdout.readline(), child.communicate()[1]
        assert child.stdout.readline(), child.communicate()[1]
        time.sleep(draw.uniform(0.0, 0.5))
    assert child.poll() is None, f"it ended by itself: {child.communicate()[1][-1000:]}"
    child.kill()
    told = child.communicate()[0].splitlines()
    return len([each for each in told if each != "open"]) + (0 if early else 1)


def test_killed_at_fifty_moments(broker: Broker, tmp_path: Path, tell: Callable[[str], None]) -> None:
    """Restarted until it is done: 5,000 messages, each stored once; 10 dead letters, each there once."""
    draw = random.Random(seed := new_seed())
    stage = Stage(broker, tmp_path, partitions=PARTITIONS)
    bad = iter(sorted(draw.sample(range(COUNT), BAD)))
    after = next(bad)
    messages: list[object] = []
    for number in range(COUNT):
        messages.append({"object_id": f"id-{number}", "number": number})
        if number == after:
            messages.append(b"bad")
            after = next(bad, -1)
    stage.onlooker.send(stage.topic, messages, partitions=PARTITIONS)
    nothing = ahead = 0
    for _ in range(KILLS):
        nothing += life(stage, draw) == 0
        ahead += len(stage.ids()) + len(stage.letters()) - stage.committed()
    by_killed = len(stage.ids())
    assert by_killed < COUNT, "fifty lives were enough: the last kills hit nothing"
    with stage.open() as session:
        running = threading.Thread(target=lambda: [None for _ in session])
        running.start()
        done = eventually(lambda: stage.committed() == COUNT + BAD, 120)
        session.stop()
        running.join()
    ids, letters = stage.ids(), [row["position"] for row in stage.letters()]
    tell(HEAD)
    tell(rule(HEAD))
    cells = (
        broker.name, seed, COUNT, BAD, KILLS, nothing, by_killed, ahead, COUNT - len(set(ids)),
        len(ids) - len(set(ids)), len(set(letters)), len(letters) - len(set(letters)),
    )  # fmt: skip
    tell(f"| {' | '.join(map(str, cells))} |")
    assert done, f"seed {seed}: {stage.committed()} of {COUNT + BAD} are committed"
    assert len(ids) == len(set(ids)) == COUNT, f"seed {seed}"
    assert len(letters) == len(set(letters)) == BAD, f"seed {seed}"


def test_members_killed(broker: Broker, tmp_path: Path, tell: Callable[[str], None]) -> None:
    """Two members of a group and one store; ten times one of them is killed: nothing is lost or doubled."""
    draw = random.Random(seed := new_seed())
    stage = Stage(broker, tmp_path, partitions=PARTITIONS)
    stage.send(range(COUNT))
    members: list[subprocess.Popen[str]] = [stage.start(pace=PACE) for _ in range(2)]
    for _ in range(10):
        time.sleep(draw.uniform(1.0, 4.0))
        place = draw.randrange(2)
        members[place].kill()
        members[place].communicate()
        members[place] = stage.start(pace=PACE)
    done = eventually(lambda: stage.committed() == COUNT, 300)
    for each in members:
        each.terminate()
        each.communicate()
    ids = stage.ids()
    doubled = len(ids) - len(set(ids))
    tell(f"{broker.name}, seed {seed}: 2 members, 10 kills, {len(set(ids))} stored, {doubled} doubled")
    assert done, f"seed {seed}"
    assert len(ids) == len(set(ids)) == COUNT, f"seed {seed}"


def test_matrix_of_ways_out(broker: Broker, tmp_path: Path, tell: Callable[[str], None]) -> None:
    """Tells what each way out leaves, as docs/stream.md has it."""
    tell(f"{broker.name}:")
    tell(WAYS_HEAD)
    tell(rule(WAYS_HEAD))
    for number, way in enumerate(WAYS):
        folder = tmp_path / str(number)
        folder.mkdir()
        left = observe(Stage(broker, folder), way)
        cells = (left.sent, left.stored, left.committed, left.again, left.passed_over, left.finally_stored)
        tell(f"| {way} | {' | '.join(map(str, cells))} | {left.doubled} |")
        assert (left.finally_stored, left.doubled) == (left.sent, 0)
