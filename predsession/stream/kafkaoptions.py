"""What a Kafka source is given: checked before anything is sent, and shown without secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

import confluent_kafka

from predsession.errors import SourceError

Options = Mapping[str, object]

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER = re.compile(r"([A-Za-z]+://)?(\[[0-9A-Fa-f:.%]+\]|[^\s:@/,\[\]]+)(:\d{1,5})?")
_OURS = {"on_commit", "error_cb", "logger"}
_NEVER = {"enable.auto.commit", "enable.auto.offset.store"}
_TO_PRODUCER = ("bootstrap.", "metadata.broker.list", "client.", "security.", "sasl.", "ssl.", "enable.ssl",
                "socket.", "broker.address.", "oauth", "https.", "log_level", "debug")  # fmt: skip
_SECRET = re.compile(r"password|secret|sasl\.(?!mechanism)|\.key|pem|jaas|oauth|token", re.IGNORECASE)
_QUERY = {
    "group": "group_id",
    "auto_offset_reset": "auto_offset_reset",
    "dead_letter_topic": "dead_letter_topic",
}
_RESETS = ("earliest", "latest", "error")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read, and how.

    Parameters
    ----------
    servers : str
        Where brokers are, with commas.
    topics : tuple of str
        Their names; one that begins with ``^`` is a regular expression.
    group : str
        Which group of readers this one belongs to.
    options : mapping
        librdkafka's, all of them; never shown.
    ahead : int
        How many messages are held before they are wanted.
    patience : float
        Seconds for which brokers and topics may be missing at the beginning.
    letters : str or None
        The topic for what cannot be processed.
    """

    servers: str
    topics: tuple[str, ...]
    group: str
    options: Options = field(repr=False)
    ahead: int
    patience: float
    letters: str | None

    @property
    def shown(self) -> str:
        """What it reads, in words."""
        return f"{', '.join(map(repr, self.topics))} of {self.servers}, group {self.group!r}"

    def for_letters(self) -> dict[str, object]:
        """Return the options of a producer for the same brokers."""
        chosen = {name: value for name, value in self.options.items() if name.startswith(_TO_PRODUCER)}
        # With idempotence, trying again after an answer that was lost makes no second letter. A broker that
        # goes away is waited for, as it is by the consumer; stop() and close() end that.
        return {**chosen, "enable.idempotence": True, "message.timeout.ms": 0}


def make_plan(
    servers: str | Sequence[str],
    topics: str | Sequence[str],
    group: str,
    *,
    reset: str,
    letters: str | None,
    options: Options,
    ahead: int,
    patience: float,
) -> Plan:
    """Check what a source is given.

    Parameters
    ----------
    servers, topics : str or sequence of str
        Some, with commas or in a list.
    group : str
        Of readers.
    reset : str
        Where a group begins that has committed nothing.
    letters : str or None
        The topic for what cannot be processed.
    options : mapping
        librdkafka's; they win.
    ahead : int
        How many messages are held.
    patience : float
        Seconds.

    Returns
    -------
    Plan
        All of it.

    Raises
    ------
    SourceError
        If something is wrong with it; nothing was sent.
    """
    hosts = _listed(servers, "bootstrap_servers", _SERVER)
    names = _listed(topics, "topics", _TOPIC)
    if not isinstance(group, str) or not group:
        raise SourceError(f"group_id is {group!r}; wanted a name")
    if reset not in _RESETS:
        raise SourceError(f"auto_offset_reset is {reset!r}; wanted one of {', '.join(_RESETS)}")
    if letters is not None:
        _listed([letters], "dead_letter_topic", _TOPIC)
        if letters in names:
            raise SourceError(f"dead_letter_topic {letters!r} is among the topics: it would be read again")
    if isinstance(ahead, bool) or not isinstance(ahead, int) or ahead < 1:
        raise SourceError(f"ahead is {ahead!r}; wanted 1 or more")
    if not isinstance(patience, int | float) or not 0 < patience < 1e9:
        raise SourceError(f"connect_timeout is {patience!r}; wanted seconds above 0")
    given = {
        "bootstrap.servers": ",".join(hosts),
        "group.id": group,
        "auto.offset.reset": reset,
        "client.id": "predsession",
        # What librdkafka fetches before it is wanted: 16 MB, not 64; and once that is there, it looks again
        # after 50 ms, not after a second.
        "queued.max.messages.kbytes": 16384,
        "fetch.queue.backoff.ms": 50,
        # A topic that was deleted and made again, or one that now fits a pattern, is found within this time.
        "topic.metadata.refresh.interval.ms": 30_000,
        **_checked(options),
        # Offsets are committed by us, once results are stored; never by time.
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
    }
    _try_out(given)
    shown = str(given["bootstrap.servers"]), tuple(names), str(given["group.id"])
    return Plan(*shown, options=given, ahead=ahead, patience=float(patience), letters=letters)


def _listed(given: object, name: str, form: re.Pattern[str]) -> list[str]:
    """Return some names, which were given as a list or with commas."""
    parts = given.split(",") if isinstance(given, str) else given
    if not isinstance(parts, Sequence | set | frozenset):
        raise SourceError(f"{name} is {type(given).__name__}; wanted a text, or a list of texts")
    found = [each.strip() for each in parts if isinstance(each, str)]
    if not found or len(found) != len(parts):
        raise SourceError(f"{name} is empty, or not all of it is text")
    for each in found:
        if not form.fullmatch(each) and not (form is _TOPIC and each.startswith("^")):
            shown = "***" if "@" in each else repr(each)  # a password, perhaps
            raise SourceError(
                f"{name}: {shown} is none; wanted {'host:port' if form is _SERVER else 'a name'}"
            )
    return list(dict.fromkeys(found))


def _checked(options: Options) -> dict[str, object]:
    """Refuse options that would break what this source promises."""
    if not isinstance(options, Mapping) or not all(isinstance(each, str) for each in options):
        raise SourceError(
            "consumer_options is no dict of librdkafka's options: {'session.timeout.ms': 10000}"
        )
    ours = sorted(_OURS & options.keys())
    if ours:
        raise SourceError(f"consumer_options: {', '.join(ours)} cannot be set: this source has its own")
    for name in sorted(_NEVER & options.keys()):
        if str(options[name]).lower() != "false":
            raise SourceError(
                f"consumer_options: {name} would commit offsets before results are stored; leave it out"
            )
    return dict(options)


def _try_out(options: Options) -> None:
    """Have librdkafka check options; it is given no address, so nothing is sent."""
    alone = {
        name: value
        for name, value in options.items()
        if name not in {"bootstrap.servers", "metadata.broker.list"}
    }
    try:
        confluent_kafka.Consumer(alone, logger=_SILENT).close()
    except (confluent_kafka.KafkaException, TypeError, ValueError) as error:
        raise SourceError(f"consumer_options: {without_secrets(_reason(error), options)}") from None


def _reason(error: Exception) -> str:
    """Return what an error says, without numbers."""
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, confluent_kafka.KafkaError) else str(error)


def without_secrets(text: str, options: Options) -> str:
    """Take the values of secret options out of a text.

    Parameters
    ----------
    text : str
        To be shown.
    options : mapping
        librdkafka's.

    Returns
    -------
    str
        With ``***`` in their places.
    """
    for name, value in options.items():
        if _SECRET.search(name) and isinstance(value, str) and len(value) > 2:
            text = text.replace(value, "***")
    return text


class Quiet:
    """What librdkafka wants to log: a line for each attempt. Ours says it once; these are for debugging."""

    def __init__(self, write: Callable[[str], None] | None = None) -> None:
        self._write = write

    def log(self, _level: int, message: str, *values: object) -> None:
        """Hand on a line."""
        if self._write is not None:
            self._write(message % values if values else message)


_SILENT = Quiet()


def read_url(url: str) -> dict[str, object]:
    """Return what ``kafka://host:port/topic1,topic2?group=name`` says.

    Parameters
    ----------
    url : str
        With any number of hosts and topics; also ``auto_offset_reset`` and ``dead_letter_topic``.

    Returns
    -------
    dict
        Keywords for `KafkaSource`.

    Raises
    ------
    SourceError
        If it is no such URL.
    """
    parts = urlsplit(url)
    if parts.scheme != "kafka":
        raise SourceError("a Kafka URL begins with kafka://")
    if "@" in parts.netloc:
        raise SourceError(
            "a Kafka URL has no user and password in it; consumer_options= takes sasl.username and so on"
        )
    topics = parts.path.strip("/")
    if not parts.netloc or not topics or "/" in topics or parts.fragment:
        raise SourceError(f"{url!r} is no Kafka URL; wanted kafka://host:port/topic1,topic2?group=name")
    found: dict[str, object] = {"bootstrap_servers": parts.netloc, "topics": topics}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in _QUERY:
            raise SourceError(f"{name!r} in a Kafka URL means nothing; it takes {', '.join(_QUERY)}")
        found[_QUERY[name]] = value
    return found
