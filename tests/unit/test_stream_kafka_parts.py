"""What a Kafka source is given, and what its ledger says may be committed; no broker."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predsession.errors import ConnectError, MissingExtraError, SourceError
from predsession.stream import DeadLetter, StreamSession, kafkaletters
from predsession.stream.kafka import KafkaSource
from predsession.stream.kafkaledger import Ledger
from predsession.stream.kafkaoptions import without_secrets
from predsession.stream.writer import read_letters

HERE = "127.0.0.1:9"

BAD: list[tuple[dict[str, object], str]] = [
    ({"bootstrap_servers": ""}, "bootstrap_servers"),
    ({"bootstrap_servers": 5}, "bootstrap_servers"),
    ({"bootstrap_servers": ["a:1", 2]}, "bootstrap_servers"),
    ({"bootstrap_servers": "a b:1"}, "host:port"),
    ({"topics": []}, "topics"),
    ({"topics": "a b"}, "topics"),
    ({"topics": None}, "topics"),
    ({"group_id": ""}, "group_id"),
    ({"decode": "json"}, "decode"),
    ({"auto_offset_reset": "newest"}, "earliest, latest, error"),
    ({"dead_letter_topic": "a/b"}, "dead_letter_topic"),
    ({"dead_letter_topic": "t"}, "read again"),
    ({"ahead": 0}, "ahead"),
    ({"ahead": 2.5}, "ahead"),
    ({"connect_timeout": 0}, "connect_timeout"),
    ({"consumer_options": ["a"]}, "consumer_options"),
    ({"consumer_options": {"no.such.option": 1}}, "no.such.option"),
    ({"consumer_options": {"session.timeout.ms": "soon"}}, "session.timeout.ms"),
    ({"consumer_options": {"session.timeout.ms": 400_000}}, "session.timeout.ms"),
    ({"consumer_options": {"enable.auto.commit": True}}, "before results are stored"),
    ({"consumer_options": {"enable.auto.offset.store": "true"}}, "before results are stored"),
    ({"consumer_options": {"error_cb": print}}, "error_cb"),
]


@pytest.mark.parametrize(("keywords", "words"), BAD)
def test_bad_arguments(keywords: dict[str, object], words: str) -> None:
    """What cannot be meant is a SourceError that names it, when the source is made."""
    given: dict[str, object] = {"bootstrap_servers": HERE, "topics": "t", **keywords}
    with pytest.raises(SourceError, match=words):
        KafkaSource(**given)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("kafka://h:9092/t", "'t' of h:9092, group 'predsession'"),
        ("kafka://h/t,u?group=g", "'t', 'u' of h, group 'g'"),
        (
            "kafka://h:1,i:2/t?auto_offset_reset=latest&dead_letter_topic=d",
            "'t' of h:1,i:2, group 'predsession'",
        ),
        ("kafka://[::1]:9092/t", "'t' of [::1]:9092, group 'predsession'"),
    ],
)
def test_url(url: str, shown: str) -> None:
    """A URL says hosts, topics and group."""
    assert repr(KafkaSource.from_url(url)) == f"<KafkaSource: {shown}>"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("kafka://h:9092", "kafka://host:port/topic"),
        ("kafka:///t", "kafka://host:port/topic"),
        ("kafka://h/a/b", "kafka://host:port/topic"),
        ("http://h/t", "kafka://"),
        ("kafka://h/t?groop=g", "groop"),
        ("kafka://h/t?group=", "group_id"),
        ("kafka://me:hush-hush@h/t", "sasl.username"),
    ],
)
def test_bad_url(url: str, words: str) -> None:
    """Any other is refused, and a password in it is not shown."""
    with pytest.raises(SourceError, match=words) as caught:
        KafkaSource.from_url(url)
    assert "hush" not in str(caught.value)


def test_options_win_and_are_not_shown() -> None:
    """An option takes the place of the argument; no secret is in a repr or an error."""
    secret = {"sasl.mechanism": "PLAIN", "sasl.username": "nobody", "sasl.password": "hush-hush"}
    source = KafkaSource(
        HERE, "t", consumer_options={"group.id": "theirs", "auto.offset.reset": "latest", **secret}
    )
    assert "group 'theirs'" in repr(source)
    assert source._plan.options["auto.offset.reset"] == "latest"
    assert "hush" not in repr(source) + repr(source._plan) + str(vars(source))
    with pytest.raises(SourceError) as caught:
        KafkaSource(HERE, "t", consumer_options={**secret, "hush-hush": 1})
    assert "hush" not in str(caught.value)
    assert without_secrets("a hush-hush b PLAIN", secret) == "a *** b PLAIN"


def test_password_in_the_address() -> None:
    """An address with a password in it is refused without showing it."""
    with pytest.raises(SourceError) as caught:
        KafkaSource("me:hush-hush@h:9092", "t")
    assert "hush" not in str(caught.value)


def test_closed_before_anything(recwarn: pytest.WarningsRecorder) -> None:
    """A source that was never asked has no thread; it is closed at once, and gives nothing afterwards."""
    source = KafkaSource(HERE, "t")
    assert source.behind() is None
    source.close()
    source.close()
    assert source.take(5, 10.0) is None


def test_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without confluent-kafka the name says which extra to install."""
    import sys

    import predsession.stream

    for name in [each for each in sys.modules if each.startswith("predsession.stream.kafka")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(vars(predsession.stream), "KafkaSource", raising=False)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(MissingExtraError, match=r"predsession\[kafka\]"):
        predsession.stream.KafkaSource  # noqa: B018 - that it is looked up is the point


@given(st.data())
def test_ledger_never_passes_over(data: st.DataObject) -> None:
    """Whatever is done in whatever order, what is settled is exactly what has nothing open below it."""
    gaps = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=30))
    begin = data.draw(st.integers(0, 5))
    offsets = [begin + sum(gaps[:place]) for place in range(len(gaps))]
    order = data.draw(st.permutations(offsets))
    come = data.draw(st.integers(0, len(offsets)))
    ledger = Ledger()
    for each in offsets[:come]:
        ledger.came(each)
    done: set[int] = set()
    came = offsets[:come]
    for each in order:
        if each not in came:
            later = offsets[len(came) : offsets.index(each) + 1]
            for other in later:
                ledger.came(other)
            came = came + later
        ledger.done(each)
        ledger.done(each)
        done.add(each)
        still = [other for other in came if other not in done]
        below = [other for other in came if not still or other < still[0]]
        assert ledger.settled == (below[-1] + 1 if below else offsets[0])
        assert len(ledger) <= len(came)
    assert len(ledger) == 0


def test_ledger_begins_anew() -> None:
    """A topic that was made again begins below: nothing old is committed, nothing new is passed over."""
    ledger = Ledger()
    for offset in (7, 8, 9):
        ledger.came(offset)
    ledger.done(7)
    ledger.came(0)
    ledger.done(8)
    assert not ledger.due
    ledger.done(0)
    assert ledger.due
    assert ledger.settled == 1


def test_ledger_stays_small() -> None:
    """A message that is never done costs no memory for those after it."""
    ledger = Ledger()
    ledger.came(0)
    for offset in range(1, 10_000):
        ledger.came(offset)
        ledger.done(offset)
    assert len(ledger) == 2
    assert ledger.settled == 0


def test_commit_that_failed_is_due_again() -> None:
    """What the broker did not take down is asked for again."""
    ledger = Ledger()
    ledger.came(0)
    assert not ledger.due
    ledger.done(0)
    assert ledger.due
    ledger.asked = ledger.settled
    assert not ledger.due
    ledger.failed()
    assert ledger.due


def test_stop_waits_for_no_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """stop() ends the wait for a broker that takes no dead letters, also one that would be for ever; they are
    not told as done, and come again.
    """
    monkeypatch.setattr(kafkaletters, "_AFTER_CLOSE", 0.1)
    source = KafkaSource(HERE, "t", dead_letter_topic="dead")
    assert source._plan.for_letters()["message.timeout.ms"] == 0
    told: list[str] = []
    letter = DeadLetter("t:0:0", "bad", b"x")
    taken = threading.Event()

    def take(most: int, seconds: float) -> list[DeadLetter]:
        taken.set()
        return [letter]

    monkeypatch.setattr(source, "take", take)
    monkeypatch.setattr(source, "done", told.extend)
    with StreamSession(lambda batch: batch["x"], source, tmp_path / "r.parquet") as session:

        def stop() -> None:
            taken.wait(30)
            session.stop()

        stopping = threading.Thread(target=stop)
        stopping.start()
        with pytest.raises(ConnectError, match=r"stopped or closed.*in the table, and come again"):
            next(iter(session))
        stopping.join()
    assert told == []
    assert [each.position for each in read_letters(tmp_path / "r.parquet")] == ["t:0:0"]
