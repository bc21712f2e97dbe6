"""Samples from Kafka over real sockets: all of them, in order, in batches; dead letters; commits."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from kafka_kit import PATIENCE, QUICK, Broker, Mock, client, eventually, started
from kafka_ways import Boom, Stage, twice

from predsession.errors import AuthError, ConnectError, SourceError, StoreError
from predsession.stream import Batch, DeadLetter, KafkaSource, Sample, StreamSession

OFFSET_COMMIT = 8
NOT_COORDINATOR = 16


@pytest.fixture(scope="module")
def mock() -> Iterator[Mock]:
    """Librdkafka's broker."""
    with started("mock") as one:
        assert isinstance(one, Mock)
        yield one


@pytest.fixture(scope="module")
def tansu() -> Iterator[Broker]:
    """The fuller broker."""
    with started("tansu") as one:
        yield one


@pytest.fixture(params=["mock", "tansu"])
def either(request: pytest.FixtureRequest) -> Broker:
    """Both brokers, one after the other."""
    broker: Broker = request.getfixturevalue(request.param)
    return broker


def taken(source: KafkaSource, count: int) -> list[Sample | DeadLetter]:
    """Take so many."""
    found: list[Sample | DeadLetter] = []
    ends = time.monotonic() + PATIENCE
    while len(found) < count and time.monotonic() < ends:
        found.extend(source.take(count - len(found), 0.2) or ())
    assert len(found) == count
    return found


def test_order_and_completeness(either: Broker, tmp_path: Path) -> None:
    """Each message of three partitions comes once, in its partition's order, with its place as position."""
    stage = Stage(either, tmp_path, partitions=3)
    stage.send(range(3000))
    source = stage.source(ahead=100)
    try:
        found = taken(source, 3000)
        assert source.behind() == 0 or eventually(lambda: source.behind() == 0)
        for partition in range(3):
            mine = [each for each in found if each.position.startswith(f"{stage.topic}:{partition}:")]
            assert [each.position.rsplit(":", 1)[1] for each in mine] == [str(place) for place in range(1000)]
            assert [each.fields["number"] for each in mine] == list(range(partition, 3000, 3))
    finally:
        source.close()
    assert stage.committed() == 0, "nothing was done"


def test_dead_letters(either: Broker, tmp_path: Path) -> None:
    """Bad JSON, no id, no value: once in table and topic, with the reason; the next run sees none again."""
    stage = Stage(either, tmp_path)
    letters = f"{stage.topic}-dead"
    either.create(letters)
    bad: list[object] = [b"{no json", {"number": 5}, None, b"[1, 2]", {"object_id": "last", "number": 9}]
    stage.send(range(15), also=bad)
    for _ in range(2):
        session = stage.finish(16, source=stage.source(dead_letter_topic=letters))
        assert len(session.dataset) == 16
        assert stage.committed() == 20
    rows = stage.letters()
    assert [row["position"] for row in rows] == [f"{stage.topic}:0:{place}" for place in range(15, 19)]
    reasons = " ".join(str(row["reason"]) for row in rows)
    assert all(word in reasons for word in ("JSONDecodeError", "object_id", "tombstone", "list"))
    assert [row["raw"] for row in rows] == [b"{no json", b'{"number": 5}', b"", b"[1, 2]"]
    sent = stage.onlooker.read(letters, 4)
    assert [each.value() for each in sent] == [b"{no json", b'{"number": 5}', None, b"[1, 2]"]
    for row, message in zip(rows, sent, strict=True):
        headers = dict(message.headers() or ())
        assert headers["predsession-position"].decode() == row["position"]
        assert headers["predsession-reason"].decode() == row["reason"]


def test_letter_of_a_model(mock: Mock, tmp_path: Path) -> None:
    """What a model fails at goes to the topic as it came, with its key; the rest is stored."""
    stage = Stage(mock, tmp_path)
    letters = f"{stage.topic}-dead"
    mock.create(letters)
    stage.onlooker.send(
        stage.topic, [{"object_id": f"id-{each}", "number": each} for each in range(20)], key=b"k"
    )

    def model(batch: Batch) -> object:
        if "id-7" in batch["object_id"]:
            raise Boom("seven")
        return twice(batch)

    stage.finish(19, model=model, source=stage.source(dead_letter_topic=letters), on_error="skip")
    assert sorted(stage.ids()) == sorted(f"id-{each}" for each in range(20) if each != 7)
    [message] = stage.onlooker.read(letters, 1)
    assert message.key() == b"k"
    assert json.loads(message.value() or b"") == {"object_id": "id-7", "number": 7}
    assert dict(message.headers() or ())["predsession-object-id"] == b"id-7"
    assert stage.committed() == 20


def test_two_topics_and_a_decoder(mock: Mock, tmp_path: Path) -> None:
    """Two topics are one stream; a decoder makes samples of any bytes; what it raises makes a dead letter."""
    first, second = Stage(mock, tmp_path), Stage(mock, tmp_path)
    first.onlooker.send(first.topic, [b"a,1", b"b,2", b"boom"])
    second.onlooker.send(second.topic, [b"c,3"])

    def decode(raw: object) -> dict[str, object]:
        assert isinstance(raw, bytes)
        name, number = raw.decode().split(",")
        return {"object_id": name, "number": int(number)}

    options = dict(first.options)
    topics = [first.topic, second.topic]
    source = KafkaSource(mock.address, topics, first.group, decode=decode, consumer_options=options)
    first.finish(3, source=source)
    assert sorted(first.ids()) == ["a", "b", "c"]
    assert [row["raw"] for row in first.letters()] == [b"boom"]
    assert first.committed() == 3


def test_batches_by_size_and_by_time(mock: Mock, tmp_path: Path) -> None:
    """A batch is full, or as large as it was when its time was over; what was looked at first is not lost."""
    stage = Stage(mock, tmp_path, batch=10)
    stage.send(range(25))
    with stage.open(flush_after=0.3) as session:
        first = session.peek()
        sizes = []
        for batch, _ in session:
            sizes.append(len(batch["object_id"]))
            if sum(sizes) == 25:
                break
    assert first is not None
    assert first["object_id"] == stage.ids()[0] == "id-0"
    assert sizes == [10, 10, 5]
    assert stage.committed() == 25


def test_by_url(mock: Mock, tmp_path: Path) -> None:
    """kafka://host:port/topic?group=name is the same source."""
    stage = Stage(mock, tmp_path)
    stage.send(range(10))
    with StreamSession(
        twice, f"kafka://{mock.address}/{stage.topic}?group={stage.group}", stage.store, batch_size=10
    ) as session:
        next(iter(session))
    assert len(session.dataset) == stage.committed() == 10


def test_out_of_order(mock: Mock, tmp_path: Path) -> None:
    """What is done out of order is committed only as far as everything before it is done."""
    stage = Stage(mock, tmp_path)
    stage.send(range(30))
    source = stage.source()
    places = [each.position for each in taken(source, 30)]
    source.done(places[10:20])
    time.sleep(0.3)
    assert stage.committed() == 0
    source.done(places[:10])
    assert eventually(lambda: stage.committed() == 20)
    source.done(places[21:])
    source.close()
    assert stage.committed() == 20
    again = stage.source()
    assert [each.position for each in taken(again, 10)] == places[20:]
    again.close()


def test_commit_that_fails(mock: Mock, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A commit that the broker refuses is tried again, and told once."""
    stage = Stage(mock, tmp_path)
    stage.send(range(10))
    source = stage.source()
    places = [each.position for each in taken(source, 10)]
    with caplog.at_level(logging.WARNING, "predsession.stream.kafka"):
        mock.refuse(OFFSET_COMMIT, 29, 2)  # TOPIC_AUTHORIZATION_FAILED: librdkafka gives it to us
        source.done(places)
        assert eventually(lambda: stage.committed() == 10)
    source.close()
    told = [each.getMessage() for each in caplog.records]
    assert len(told) == 1, told
    assert "commit failed" in told[0]


def test_nothing_is_fetched_without_room(mock: Mock, tmp_path: Path) -> None:
    """With 20,000 messages and a model that is slow, the source holds what it was told to, and a few more."""
    stage = Stage(mock, tmp_path, options={**QUICK, "max.poll.interval.ms": 2000})
    stage.send(range(20_000))
    source = stage.source(ahead=50)
    taken(source, 10)
    held = source._reader.held
    most = 0

    def paused() -> bool:
        nonlocal most
        most = max(most, len(held._buffer))
        return bool(source._reader._paused)

    assert eventually(paused)
    time.sleep(0.3)
    assert 50 <= max(most, len(held._buffer)) <= 55
    assert source._reader._paused
    behind = source.behind()
    assert behind is not None
    assert behind >= 10_000
    rest = taken(source, 19_990)
    assert [each.fields["number"] for each in rest if isinstance(each, Sample)] == list(range(10, 20_000))
    source.close()


def test_a_result_that_does_not_fit(mock: Mock, tmp_path: Path) -> None:
    """What cannot be stored is not committed, and comes again."""
    stage = Stage(mock, tmp_path)
    stage.send(range(30))
    calls = iter(range(9))

    def model(batch: Batch) -> object:
        return np.zeros((10, 2), np.float32) if next(calls) else twice(batch)

    with pytest.raises(StoreError), stage.open(model) as session:
        for _ in session:
            pass
    assert stage.committed() == len(stage.ids()) == 10
    stage.finish(30)
    assert stage.ids() == [f"id-{each}" for each in range(30)]


def test_nobody_there(tmp_path: Path) -> None:
    """Without a broker it is a ConnectError, after connect_timeout, that names the address."""
    address = "127.0.0.1:9"
    source = KafkaSource(address, "topic", connect_timeout=0.5)
    with pytest.raises(ConnectError, match=address):
        for _ in range(100):
            source.take(1, 1.0)
    source.close()


def test_no_such_topic(mock: Mock, tmp_path: Path) -> None:
    """A topic that is missing is a SourceError that lists those there are."""
    stage = Stage(mock, tmp_path)
    source = KafkaSource(mock.address, [stage.topic, "no-such"], connect_timeout=0.5)
    with pytest.raises(SourceError, match=rf"no topic 'no-such'; it has .*'{stage.topic}'"):
        for _ in range(100):
            source.take(1, 1.0)
    source.close()


FORK = """
import os, sys
from predsession.errors import SourceError
from predsession.stream.kafka import KafkaSource

source = KafkaSource(sys.argv[1], sys.argv[2], sys.argv[3])
def take(count):
    while count > 0:
        count -= len(source.take(count, 1.0))
take(10)
child = os.fork()
if child == 0:
    try:
        source.take(1, 0.1)
    except SourceError as error:
        source.close()
        print(error, flush=True)
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
take(10)
source.close()
print("all", flush=True)
"""


def test_fork(mock: Mock, tmp_path: Path) -> None:
    """A fork of the process that reads may not use the source, and ends without ending it."""
    stage = Stage(mock, tmp_path)
    stage.send(range(20))
    command = [sys.executable, "-c", FORK, mock.address, stage.topic, stage.group]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    refused, end = done.stdout.splitlines()
    assert "a fork of it" in refused
    assert end == "all", done.stderr


def test_password_is_shown_nowhere(mock: Mock, caplog: pytest.LogCaptureFixture) -> None:
    """Neither a repr, nor an error, nor a log line has a password in it."""
    caplog.set_level(logging.DEBUG)
    options = {
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me",
        "sasl.password": "hush-hush", "debug": "all",
    }  # fmt: skip
    source = KafkaSource(mock.address, "topic", consumer_options=options, connect_timeout=1.0)
    with pytest.raises(AuthError) as caught:
        for _ in range(100):
            source.take(1, 1.0)
    source.close()
    shown = f"{source!r} {source._plan!r} {caught.value!r} {caplog.text}"
    assert "SASL" in caplog.text, "librdkafka's lines come to the log"
    assert "hush" not in shown


def test_onlooker_sees_what_we_do(mock: Mock, tmp_path: Path) -> None:
    """The second client is none of ours: an offset that it commits is where we begin."""
    from confluent_kafka import Consumer, TopicPartition

    stage = Stage(mock, tmp_path)
    stage.send(range(10))
    other = client(Consumer, {"bootstrap.servers": mock.address, "group.id": stage.group})
    other.commit(offsets=[TopicPartition(stage.topic, 0, 7)], asynchronous=False)
    other.close()
    source = stage.source()
    assert [each.position for each in taken(source, 3)] == [f"{stage.topic}:0:{place}" for place in (7, 8, 9)]
    source.close()
