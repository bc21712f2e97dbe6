"""`KafkaSource`: messages of Kafka's topics as samples; extra ``[kafka]``."""

from __future__ import annotations

import json
import logging
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self, cast

from predsession.errors import MissingExtraError, SourceError

try:
    from predsession.stream.kafkaheld import Place, place_of
    from predsession.stream.kafkaletters import LetterTopic, Original
    from predsession.stream.kafkaoptions import make_plan, read_url
    from predsession.stream.kafkareader import Reader
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "confluent_kafka":
        raise
    raise MissingExtraError("kafka", "a Kafka source") from None
from predsession.stream.samples import DeadLetter, Decode, made_sample
from predsession.stream.source import Taken

if TYPE_CHECKING:
    from confluent_kafka import Message

log = logging.getLogger("predsession.stream.kafka")

_CLOSING = 6.0
"""Seconds for which closing waits for the last commit and the goodbye to the group."""


class KafkaSource:
    """Messages of Kafka's topics, as a member of a group.

    A message's offset is committed once its result, or its dead letter, is stored, and so is everything
    before it in its partition. A thread of its own reads ahead, as far as `ahead`, and keeps the membership
    alive, so that a model may take longer than ``max.poll.interval.ms``. What cannot be decoded, has no
    ``object_id``, or no value (a tombstone) is a dead letter. Nothing is sent before the first sample is
    asked for.

    Parameters
    ----------
    bootstrap_servers : str or sequence of str
        ``"host:port"``, one or more of the cluster.
    topics : str or sequence of str
        One or more; a name that begins with ``^`` is a regular expression.
    group_id : str
        The group, which shares the messages among its members, and whose commits say what was processed.
    decode : callable or None
        From a message's bytes to a dict with ``object_id`` and fields; JSON by default.
    auto_offset_reset : str
        Where a group begins that has committed nothing: "earliest", "latest", or "error".
    dead_letter_topic : str or None
        A topic for dead letters, beside their table: the message as it came, with the headers
        ``predsession-reason`` and ``predsession-position``. A process that is killed between writing there
        and committing writes it twice; the position is the same.
    consumer_options : mapping or None
        librdkafka's, credentials among them: ``{"sasl.password": ...}``. They win, and are never shown.
    ahead : int
        Messages that are held before they are wanted, and at most five more.
    connect_timeout : float
        Seconds for which brokers and topics may be missing at the beginning.

    Raises
    ------
    SourceError
        If something is wrong with these; nothing was sent.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        topics: str | Sequence[str],
        group_id: str = "predsession",
        *,
        decode: Decode | None = None,
        auto_offset_reset: str = "earliest",
        dead_letter_topic: str | None = None,
        consumer_options: Mapping[str, object] | None = None,
        ahead: int = 64,
        connect_timeout: float = 60.0,
    ) -> None:
        if decode is not None and not callable(decode):
            raise SourceError(f"decode is {type(decode).__name__}; wanted a function from bytes to a dict")
        self._plan = make_plan(
            bootstrap_servers,
            topics,
            group_id,
            reset=auto_offset_reset,
            letters=dead_letter_topic,
            options=consumer_options or {},
            ahead=ahead,
            patience=connect_timeout,
        )
        self._decode = decode or _from_json
        self._reader = Reader(self._plan)
        self._stopped = False
        self._letters = LetterTopic(self._plan, self._ending) if dead_letter_topic else None
        self._originals: dict[str, Original] = {}
        """What a letter may have to be written of: what was taken, and is not done."""
        self._process: int | None = None
        self._finish: Callable[[], object] | None = None

    @classmethod
    def from_url(cls, url: str, *, decode: Decode | None = None, ahead: int = 64) -> Self:
        """Make a source of a URL.

        Parameters
        ----------
        url : str
            ``kafka://host:port/topic1,topic2?group=name``; also ``auto_offset_reset=`` and
            ``dead_letter_topic=``.
        decode : callable or None
            As above.
        ahead : int
            As above.

        Returns
        -------
        KafkaSource
            Of it.

        Raises
        ------
        SourceError
            If it is no such URL.
        """
        make = cast("Callable[..., Self]", cls)
        return make(**read_url(url), decode=decode, ahead=ahead)

    def take(self, most: int, seconds: float) -> list[Taken] | None:
        """Return what is there, waiting so long for the first; None once it is closed.

        Parameters
        ----------
        most : int
            Samples and dead letters.
        seconds : float
            To wait.

        Returns
        -------
        list of Sample and DeadLetter, or None
            Perhaps none at all.

        Raises
        ------
        ConnectError
            If no broker has answered for `connect_timeout`.
        AuthError
            If one refuses us.
        SourceError
            If a topic is missing, or this is a child of the process that reads.
        """
        self._check_process()
        if self._process is None and not self._reader.held.closing.is_set():
            self._process = os.getpid()
            self._reader.start()
            # Whoever forgets a source, or ends without closing it, leaves no member behind in the group.
            self._finish = weakref.finalize(self, _close, self._reader, self._process)
        taken = self._reader.held.take(most, seconds)
        return None if taken is None else [self._made(each) for each in taken]

    def _made(self, message: Message) -> Taken:
        """Make a sample of a message."""
        position = "{}:{}:{}".format(*place_of(message))
        value = message.value()
        if self._letters is not None:
            key = message.key()
            self._originals[position] = Original(_bytes(key), _bytes(value))
        if value is None:
            return DeadLetter(position, "a message without a value: a tombstone")
        return made_sample(_bytes(value), self._decode, position)

    def done(self, positions: Sequence[str]) -> None:
        """Take down that samples and dead letters are stored: their offsets are committed.

        Parameters
        ----------
        positions : sequence of str
            ``topic:partition:offset``, in any order.
        """
        self._check_process()
        for each in positions:
            self._originals.pop(each, None)
        self._reader.held.done([_place(each) for each in positions])

    def dead(self, letters: Sequence[DeadLetter]) -> None:
        """Write dead letters to their topic, if there is one.

        Parameters
        ----------
        letters : sequence of DeadLetter
            In order.

        Raises
        ------
        ConnectError
            If the broker does not take them, or `stop` came before it did.
        """
        self._check_process()
        if self._letters is not None and letters:
            self._letters.send(letters, [self._originals.get(each.position) for each in letters])

    def stop(self) -> None:
        """Wait for no broker that is to take dead letters; from any thread, and from a signal handler."""
        self._stopped = True

    def _ending(self) -> bool:
        """Whether somebody stops or closes it."""
        return self._stopped or self._reader.held.closing.is_set()

    def behind(self) -> int | None:
        """Return how many messages were not taken yet, as far as the broker has told.

        Returns
        -------
        int or None
            None while no partition is ours.
        """
        return self._reader.held.waiting()

    def close(self) -> None:
        """Commit what is stored, leave the group; it may be done twice, and while another thread waits."""
        if self._process not in {None, os.getpid()}:
            return  # a child's copy: the thread and the connections are its parent's
        if not self._reader.close(_CLOSING):
            log.warning("%s: no broker answers; the group will miss us by itself", self._plan.shown)
        if self._letters is not None:
            self._letters.close()

    def _check_process(self) -> None:
        """Refuse a child of the process that reads: threads and connections do not survive a fork."""
        if self._process not in {None, os.getpid()}:
            raise SourceError(
                f"this Kafka source is process {self._process}'s, and this is a fork of it: open another"
            )

    def __repr__(self) -> str:
        """Return what it reads; no option is in it."""
        return f"<KafkaSource: {self._plan.shown}>"


def _close(reader: Reader, process: int) -> None:
    """End what nobody has closed."""
    if os.getpid() == process:
        reader.close(_CLOSING)


def _place(position: str) -> Place:
    """Return what a position says."""
    topic, partition, offset = position.rsplit(":", 2)
    return topic, int(partition), int(offset)


def _bytes(value: str | bytes | None) -> bytes | None:
    """Return what came as bytes."""
    return value.encode() if isinstance(value, str) else value


def _from_json(raw: object) -> Mapping[str, object]:
    """Return a JSON object; what else it may be, the sample says."""
    return cast("Mapping[str, object]", json.loads(cast("bytes", raw)))
