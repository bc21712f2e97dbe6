"""What a member of a group holds: messages ahead of their taking, and the ledgers of its partitions.

Two threads meet here: the one that owns the consumer, and the one that takes messages and says what is done.
Invariant: no message of a partition that is not ours is held, or can be committed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence

from confluent_kafka import KafkaError, Message, TopicPartition

from predsession.stream.kafkaledger import Ledger

Part = tuple[str, int]
"""A topic and one of its partitions."""
Place = tuple[str, int, int]
"""The same, and an offset."""

_AGAIN = 1.0
"""Seconds after which a commit that failed is tried again."""
_AGAIN_AT_END = 0.1


class Held:
    """Messages and ledgers.

    Parameters
    ----------
    most : int
        Messages that are held.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._buffer: deque[Message] = deque()
        self._ledgers: dict[Part, Ledger] = {}
        self._error: BaseException | None = None
        self._asked = 0
        """Commits that have no answer yet."""
        self._not_before = 0.0
        self._again = _AGAIN
        self.closing: threading.Event = threading.Event()
        """Set once no more is wanted."""

    # -- for the thread that takes messages ------------------------------------------------------------

    def take(self, most: int, seconds: float) -> list[Message] | None:
        """Return what is there, waiting so long for the first; None after the end.

        Parameters
        ----------
        most : int
            Messages.
        seconds : float
            To wait.

        Returns
        -------
        list of Message or None
            In each partition's order.

        Raises
        ------
        PredSessionError
            Why reading has ended.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._buffer or self.over, seconds)
            if self.closing.is_set():
                return None
            if self._error is not None:
                raise self._error
            taken = [self._buffer.popleft() for _ in range(min(most, len(self._buffer)))]
            for each in taken:
                topic, partition, offset = place_of(each)
                self._ledgers[topic, partition].handed = offset + 1
            self._changed.notify_all()
        return taken

    def done(self, places: Iterable[Place]) -> None:
        """Take down that messages are done; those of partitions that went elsewhere are not ours to commit.

        Parameters
        ----------
        places : iterable of (str, int, int)
            Topic, partition, offset.
        """
        with self._changed:
            for topic, partition, offset in places:
                ledger = self._ledgers.get((topic, partition))
                if ledger is not None:
                    ledger.done(offset)
            self._changed.notify_all()

    def waiting(self) -> int | None:
        """Return how many messages were not taken yet; None while no partition is ours.

        Returns
        -------
        int or None
            As far as the broker has told.
        """
        with self._changed:
            return sum(each.waiting for each in self._ledgers.values()) if self._ledgers else None

    def close(self) -> None:
        """Want no more."""
        self.closing.set()
        with self._changed:
            self._changed.notify_all()

    # -- for the thread that owns the consumer ---------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether no message will come."""
        return self._error is not None or self.closing.is_set()

    def fail(self, error: BaseException) -> None:
        """Have an error raised where messages are taken; the first one is it."""
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    @property
    def parts(self) -> set[Part]:
        """The partitions that are ours."""
        return set(self._ledgers)

    @property
    def full(self) -> bool:
        """Whether there is room for no message."""
        return len(self._buffer) >= self._most

    @property
    def half_empty(self) -> bool:
        """Whether it is worth reading again."""
        return len(self._buffer) * 2 <= self._most

    def room(self, seconds: float) -> bool:
        """Wait for room, or for something else to do; return False if there was neither in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.full or self.over or self.due, seconds)

    def put(self, message: Message) -> bool:
        """Hold a message.

        Parameters
        ----------
        message : Message
            Without an error.

        Returns
        -------
        bool
            False if its partition is not ours.
        """
        topic, partition, offset = place_of(message)
        with self._changed:
            ledger = self._ledgers.get((topic, partition))
            if ledger is None:
                return False
            ledger.came(offset)
            self._buffer.append(message)
            self._changed.notify_all()
        return True

    def add(self, parts: Iterable[Part]) -> None:
        """Take partitions on."""
        with self._changed:
            self._ledgers.update({part: Ledger() for part in parts})

    def drop(self, parts: Iterable[Part]) -> None:
        """Give partitions up, and what is held of them."""
        gone = set(parts)
        with self._changed:
            for part in gone:
                self._ledgers.pop(part, None)
            kept = [each for each in self._buffer if place_of(each)[:2] not in gone]
            self._buffer.clear()
            self._buffer.extend(kept)
            self._changed.notify_all()

    def forget(self) -> None:
        """Drop what is held: the end has come; what is done is still to be committed, and at once."""
        with self._changed:
            self._buffer.clear()
            self._not_before = 0.0
            self._again = _AGAIN_AT_END

    def learn(self, part: Part, *, end: int = -1, begin: int = -1) -> None:
        """Take down where a partition ends, and where reading begins; -1 for what is not known.

        Parameters
        ----------
        part : (str, int)
            Which.
        end : int
            One after its last message.
        begin : int
            Counts only while nothing was handed on.
        """
        with self._changed:
            ledger = self._ledgers.get(part)
            if ledger is not None:
                ledger.end = max(ledger.end, end)
                ledger.handed = begin if ledger.handed < 0 else ledger.handed

    # -- commits ---------------------------------------------------------------------------------------

    @property
    def due(self) -> bool:
        """Whether something can be committed now: one commit at a time, none right after one has failed."""
        if self._asked or time.monotonic() < self._not_before:
            return False
        return self.unsettled

    @property
    def unsettled(self) -> bool:
        """Whether something that is done is not committed yet."""
        return self._asked > 0 or any(each.due for each in self._ledgers.values())

    def to_commit(self, parts: Iterable[Part]) -> list[TopicPartition]:
        """Return what the broker is now to take down, if anything; `answered` has to follow.

        Parameters
        ----------
        parts : iterable of (str, int)
            Of which partitions.

        Returns
        -------
        list of TopicPartition
            With offsets below which everything is done.
        """
        with self._changed:
            due = {
                part: self._ledgers[part]
                for part in parts
                if part in self._ledgers and self._ledgers[part].due
            }
            for ledger in due.values():
                ledger.asked = ledger.settled
            self._asked += bool(due)
            return [TopicPartition(*part, ledger.settled) for part, ledger in due.items()]

    def answered(self, error: KafkaError | None, offsets: Sequence[TopicPartition]) -> KafkaError | None:
        """Take down what the broker says to a commit.

        Parameters
        ----------
        error : KafkaError or None
            Of all of it.
        offsets : sequence of TopicPartition
            Each perhaps with an error of its own.

        Returns
        -------
        KafkaError or None
            Why something of it is to be asked again.
        """
        failed = None
        with self._changed:
            self._asked -= 1
            for each in offsets:
                ledger = self._ledgers.get((each.topic, each.partition))
                trouble = error or each.error
                if ledger is None:
                    continue
                if trouble is None:
                    ledger.kept = each.offset
                else:
                    failed = trouble
                    ledger.failed()
                    self._not_before = time.monotonic() + self._again
            self._changed.notify_all()
        return failed


def place_of(message: Message) -> Place:
    """Return where a message is.

    Parameters
    ----------
    message : Message
        Without an error.

    Returns
    -------
    tuple of (str, int, int)
        Topic, partition, offset.
    """
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None, "a message has a topic"
    assert partition is not None, "and a partition"
    assert offset is not None, "and an offset"
    return topic, partition, offset


def in_kafkas_words(parts: Iterable[Part]) -> list[TopicPartition]:
    """Return partitions as the consumer wants them."""
    return [TopicPartition(*each) for each in parts]
