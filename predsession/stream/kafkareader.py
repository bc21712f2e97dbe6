"""The one thread that owns a Kafka consumer: it reads ahead, keeps the membership alive, commits.

Invariant: nothing but this thread touches the consumer, and it asks for messages, or at least for news of the
group, well within ``max.poll.interval.ms``, whatever those who take messages do.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from predsession.errors import ConnectError
from predsession.stream.kafkaheld import Held, Part, in_kafkas_words
from predsession.stream.kafkaoptions import Plan, Quiet, without_secrets
from predsession.stream.kafkatopics import find_topics, refusal

log = logging.getLogger("predsession.stream.kafka")

_POLL = 0.1
"""Seconds for which the thread waits for a message, so the longest that a commit or the end waits for it."""
_TURN = 0.5
"""Seconds between two polls while the buffer is full. Each tells of changes in the group, and may bring one
message more: so it holds a few above what it was told to."""
_GRACE = 2.5
"""Seconds for which a full buffer is no reason to pause: pausing throws away what librdkafka has fetched, and
reading again takes it most of a second. It is less where ``max.poll.interval.ms`` is short."""
_POLL_INTERVAL = 300_000
_LOOK = 0.5
"""Seconds between two looks at how far behind we are."""
_COMMITTED = 1.0
"""Seconds for which the thread waits to hear what is committed; it only counts with that."""
_LAST_COMMIT = 3.0
"""Seconds for which the end waits for the last commit."""


class Reader:
    """Messages of some topics, as a member of a group.

    Parameters
    ----------
    plan : Plan
        What to read.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.held = Held(plan.ahead)
        self._paused: set[Part] = set()
        self._unread: set[Part] = set()
        """Partitions of which it is not known where reading begins."""
        self._told: set[object] = set()
        """Kinds of trouble that were logged since the last message."""
        interval = plan.options.get("max.poll.interval.ms", _POLL_INTERVAL)
        self._grace = min(_GRACE, float(str(interval)) / 1000 / 4)
        self._full_for = 0.0
        self._looked = 0.0
        self._idle_since: float | None = None
        self._thread = threading.Thread(target=self._run, name="predsession-stream-kafka", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self, seconds: float) -> bool:
        """Commit what is done, leave the group, end the thread.

        Parameters
        ----------
        seconds : float
            To wait for it.

        Returns
        -------
        bool
            Whether it has ended.
        """
        self.held.close()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    # -- the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Own the consumer from its beginning to its end."""
        try:
            options = {**self._plan.options, "error_cb": self._trouble, "on_commit": self._answered}
            consumer = Consumer(options, logger=Quiet(self._whisper))
            try:
                self._read(consumer)
            finally:
                self._end(consumer)
        except KafkaException as error:
            text = without_secrets(error.args[0].str(), self._plan.options)
            about = f"reading {self._plan.shown} has failed: {text}"
            self.held.fail(ConnectError(about, url=self._plan.servers))
        except BaseException as error:  # noqa: BLE001 - it is raised where messages are taken
            self.held.fail(error)

    def _read(self, consumer: Consumer) -> None:
        """Join the group, and read until it is over."""
        find_topics(consumer, self._plan, over=lambda: self.held.over)
        if self.held.over:
            return
        consumer.subscribe(
            list(self._plan.topics), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        while not self.held.over:
            self._commit(consumer)
            if self._room(consumer):
                self._received(consumer.poll(_POLL))
            if time.monotonic() > self._looked + _LOOK:
                self._look(consumer)

    def _room(self, consumer: Consumer) -> bool:
        """Pause and resume; False where something else is to be done before the next poll."""
        ours = self.held.parts
        if self.held.full and self._paused != ours:
            if self.held.room(_TURN):
                return False
            self._full_for += _TURN
            if self._full_for >= self._grace:
                consumer.pause(in_kafkas_words(ours - self._paused))
                self._paused = ours
            return True
        self._full_for = 0.0
        if self._paused and self.held.half_empty:
            consumer.resume(in_kafkas_words(self._paused))
            self._paused = set()
        return True

    def _received(self, message: Message | None) -> None:
        """Hold a message; see to what is wrong."""
        if message is None:
            return
        error = message.error()
        if error is not None:
            self._trouble(error)
        elif self.held.put(message) and self._told:
            log.info("%s: messages come again", self._plan.shown)
            self._told.clear()

    def _end(self, consumer: Consumer) -> None:
        """Commit what is done, with little patience, and leave the group."""
        ends = time.monotonic() + _LAST_COMMIT
        self.held.forget()
        try:
            consumer.pause(in_kafkas_words(self.held.parts))
            while self.held.unsettled and time.monotonic() < ends:
                self._commit(consumer)
                consumer.poll(0.02)  # for the answer; a message that still comes will come again
        finally:
            consumer.close()

    # -- commits and the group: called from within poll ------------------------------------------------

    def _commit(self, consumer: Consumer, parts: Iterable[Part] | None = None) -> None:
        """Ask the broker to take down what is done; it answers to `_answered`."""
        if parts is None and not self.held.due:
            return
        offsets = self.held.to_commit(self.held.parts if parts is None else parts)
        if offsets:
            try:
                consumer.commit(offsets=offsets, asynchronous=True)
            except KafkaException as error:
                self._answered(error.args[0], offsets)

    def _answered(self, error: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
        """Take down what the broker says to a commit."""
        failed = self.held.answered(error, offsets)
        if failed is not None:
            self._tell(("commit", failed.code()), f"a commit failed, and is tried again: {failed.str()}")

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Take partitions on; reading begins where the group has committed."""
        fresh = _parts_of(partitions)
        self.held.add(fresh)
        self._unread |= fresh

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Give partitions up; what is done of them is committed, as long as they are ours."""
        self._commit(consumer, _parts_of(partitions))
        self._lost(consumer, partitions)

    def _lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Forget partitions that are somebody else's."""
        gone = _parts_of(partitions)
        self.held.drop(gone)
        self._paused -= gone
        self._unread -= gone

    # -- how far we are --------------------------------------------------------------------------------

    def _look(self, consumer: Consumer) -> None:
        """See how far behind we are, and whether anything is ours at all."""
        self._looked = time.monotonic()
        if self._unread:
            self._look_at_begin(consumer)
        ours = self.held.parts
        for part in ours:
            low, high = consumer.get_watermark_offsets(TopicPartition(*part), cached=True)
            begin = high if self._plan.options["auto.offset.reset"] == "latest" else low
            self.held.learn(part, end=high, begin=max(-1, begin))
        self._idle_since = None if ours else self._idle_since or self._looked
        if self._idle_since is not None and self._looked > self._idle_since + self._plan.patience:
            why = "there are more members than partitions, or one that died is counted until its time is over"
            self._tell("idle", f"no partition is ours yet: {why}")

    def _look_at_begin(self, consumer: Consumer) -> None:
        """Ask once for what is committed of new partitions."""
        asked, self._unread = self._unread, set()
        try:
            found = consumer.committed(in_kafkas_words(asked), timeout=_COMMITTED)
        except KafkaException:
            return  # then what comes tells where we are
        for each in found:
            self.held.learn((each.topic, each.partition), begin=max(-1, each.offset))

    # -- trouble ---------------------------------------------------------------------------------------

    def _trouble(self, error: KafkaError) -> None:
        """Log what passes by itself, once; end over what does not."""
        if error.code() == KafkaError._PARTITION_EOF:
            return
        refused = refusal(error, self._plan)
        if refused is not None:
            self.held.fail(refused)
        else:
            self._tell(error.code(), f"{error.str()}; it goes on by itself when that is over")

    def _tell(self, kind: object, text: str) -> None:
        """Log something once, until messages come again."""
        if kind not in self._told:
            self._told.add(kind)
            log.warning("%s: %s", self._plan.shown, without_secrets(text, self._plan.options))

    def _whisper(self, line: str) -> None:
        """Keep librdkafka's own lines for debugging."""
        log.debug("%s", without_secrets(line, self._plan.options))


def _parts_of(partitions: Iterable[TopicPartition]) -> set[Part]:
    """Return partitions in our words."""
    return {(each.topic, each.partition) for each in partitions}
