"""A topic for what cannot be processed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from predsession.errors import ConnectError
from predsession.stream.kafkaoptions import Plan, Quiet, without_secrets
from predsession.stream.samples import DeadLetter

log = logging.getLogger("predsession.stream.kafka")

_POLL = 0.1
_AFTER_CLOSE = 3.0
"""Seconds for which letters that are on their way are waited for, once the source is stopped or closed."""
_TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}


@dataclass(frozen=True, slots=True)
class Original:
    """A message as it came.

    Parameters
    ----------
    key, value : bytes or None
        Its own.
    """

    key: bytes | None = field(repr=False)
    value: bytes | None = field(repr=False)


class LetterTopic:
    """Writes dead letters to a topic: the message as it came, with reason and position in its headers.

    Parameters
    ----------
    plan : Plan
        Which brokers, which topic.
    ending : callable
        Returns whether somebody ends it.
    """

    def __init__(self, plan: Plan, ending: Callable[[], bool]) -> None:
        self._plan = plan
        self._ending = ending
        self._producer: Producer | None = None
        self._open = 0
        self._failed: KafkaError | None = None

    def send(self, letters: Sequence[DeadLetter], originals: Sequence[Original | None]) -> None:
        """Write letters, and wait until the broker has them.

        Parameters
        ----------
        letters : sequence of DeadLetter
            In order.
        originals : sequence of Original or None
            One for each, as far as it is known.

        Raises
        ------
        ConnectError
            If the broker does not take them; they are not committed, so they come again.
        """
        self._failed = None
        self._open = 0
        if self._producer is None:
            self._producer = Producer(self._plan.for_letters(), logger=Quiet())
        for letter, original in zip(letters, originals, strict=True):
            self._put(self._producer, letter, original or Original(None, letter.raw))
        ends: float | None = None
        while self._open and self._failed is None and (ends is None or time.monotonic() < ends):
            self._producer.poll(_POLL)
            if ends is None and self._ending():
                ends = time.monotonic() + _AFTER_CLOSE
        if self._open or self._failed is not None:
            self.close()  # what is on its way comes again, from the source
            why = "the source was stopped or closed" if self._failed is None else self._failed.str()
            raise ConnectError(
                f"topic {self._plan.letters!r} of {self._plan.servers} has not taken dead letters: "
                f"{without_secrets(why, self._plan.options)}; they are in the table, and come again",
                url=self._plan.servers,
            )

    def _put(self, producer: Producer, letter: DeadLetter, original: Original) -> None:
        """Hand a letter to librdkafka."""
        headers: list[tuple[str, str | bytes | None]] = [
            ("predsession-reason", letter.reason.encode(errors="replace")),
            ("predsession-position", letter.position.encode()),
        ]
        if letter.object_id is not None:
            headers.append(("predsession-object-id", letter.object_id.encode()))
        assert self._plan.letters is not None, "there is a topic for them"
        while True:
            try:
                producer.produce(
                    self._plan.letters,
                    original.value,
                    original.key,
                    headers=headers,
                    on_delivery=self._delivered,
                )
            except BufferError:
                producer.poll(_POLL)
                if self._ending():
                    self._failed = KafkaError(KafkaError._QUEUE_FULL)
                    return
                continue
            except KafkaException as error:
                self._refused(error.args[0])
                return
            self._open += 1
            return

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        """Take down what became of a letter."""
        self._open -= 1
        if error is not None:
            self._refused(error)

    def _refused(self, error: KafkaError) -> None:
        """Go on without a letter that is too large, for it would be so for ever; the table has it."""
        if error.code() in _TOO_LARGE:
            log.warning("topic %r does not take a dead letter: %s", self._plan.letters, error.str())
        else:
            self._failed = error

    def close(self) -> None:
        """Let go of the producer; what is on its way is given up."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
