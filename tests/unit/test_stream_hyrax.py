"""What the tests of hyrax's ``infer_stream`` ask, where it concerns us: the case stands in each docstring.

Its consumer is a fake that is patched in; ours is any source. What it does wrong is shown right here.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stream_kit import Recorded, double, drain, ids, named, numbered, reasons, samples

from predsession.errors import SessionClosedError, SourceError, StoreError
from predsession.stream import StreamSession, open_results


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where results go."""
    return tmp_path / "results.lance"


def test_neither_sample_nor_request(store: Path) -> None:
    """test_infer_stream "error without sample/request": asking for what is not there says what to pass."""
    with StreamSession(double, store=store) as session, pytest.raises(SourceError, match="pass source="):
        drain(session)


def test_three_messages_in_batches_of_two(store: Path) -> None:
    """test_infer_stream "iterate fake Kafka": three messages, batches of two; the peeked one is not lost."""
    with StreamSession(double, Recorded(samples(3)), store, batch_size=2, flush_after=0.1) as session:
        assert session.peek() is not None
        sizes = [len(batch["object_id"]) for batch, _ in session]
    assert sizes == [2, 1]
    assert ids(store) == named(3)


def test_close_releases_the_consumer(store: Path) -> None:
    """test_infer_stream "close releases consumer while iterator still referenced, exactly once"."""
    source = Recorded(samples(4))
    session = StreamSession(double, source, store, batch_size=2)
    loop = iter(session)
    next(loop)
    session.close()
    session.close()
    del loop
    assert source.closes == 1


def test_body_raises(store: Path) -> None:
    """test_infer_stream "body raises -> closed": and the error is the body's."""
    source = Recorded(samples(4))
    with pytest.raises(ZeroDivisionError), StreamSession(double, source, store) as session:
        for _ in session:
            raise ZeroDivisionError
    assert source.closes == 1
    with pytest.raises(SessionClosedError):
        session.process({"object_id": ["a"]})


def test_restart_after_a_failure(store: Path) -> None:
    """test_infer_stream "restart after failed session": all of it, each once."""
    with (
        contextlib.suppress(ZeroDivisionError),
        StreamSession(double, numbered(4), store, batch_size=2) as one,
    ):
        for _ in one:
            raise ZeroDivisionError
    with StreamSession(double, numbered(4), store) as two:
        drain(two)
    assert ids(store) == named(4)


def test_no_source_is_not_iterable(store: Path) -> None:
    """test_infer_stream "no source -> not iterable": iter() itself says so."""
    with StreamSession(double, store=store) as session, pytest.raises(SourceError):
        iter(session)


def test_partial_batch_on_timeout(store: Path) -> None:
    """test_kafka_stream_dataset "partial on timeout": a batch that is not full comes when its time is up."""
    with StreamSession(double, Recorded(samples(3), ends=False), store, flush_after=0.05) as session:
        batch, _ = next(iter(session))
        assert batch["object_id"] == named(3)


def test_stop_flushes(store: Path) -> None:
    """test_kafka_stream_dataset "stop flush": what was taken when stop() comes is processed."""
    source = Recorded(samples(3), ends=False)
    with StreamSession(double, source, store, flush_after=60) as session:
        take = source.take

        def stopping(most: int, seconds: float) -> Any:
            got = take(most, seconds)
            session.stop()
            return got

        source.take = stopping
        assert drain(session) == named(3)


def test_close_does_not_commit(store: Path) -> None:
    """test_kafka_stream_dataset "close does not commit", "abandoned batch not committed"."""
    source = Recorded(samples(4))
    session = StreamSession(double, source, store, batch_size=2)
    next(session.source)
    session.close()
    assert source.positions == []
    assert len(session.dataset) == 0


def test_break_is_committed(store: Path) -> None:
    """Wrong in hyrax: a batch that was handled before a break is not committed there, and comes again."""
    source = Recorded(samples(4))
    with StreamSession(double, source, store, batch_size=2) as session:
        for _ in session:
            break
    assert source.positions == ["t:0:0", "t:0:1"]
    assert ids(store) == named(2)


def test_no_duplicates(store: Path) -> None:
    """Wrong in hyrax: what comes again is stored again there; here it is known by its id."""
    for _ in range(2):
        with StreamSession(double, Recorded(samples(3)), store) as session:
            drain(session)
    assert ids(store) == named(3)


def test_bad_message_is_no_loop(store: Path) -> None:
    """Wrong in hyrax: a message that cannot be decoded raises there, is not committed, and comes again."""
    for _ in range(2):
        with StreamSession(double, [*numbered(1), "{", *numbered(1, 1)], store) as session:
            drain(session)
    assert ids(store) == named(2)
    assert len(reasons(store)) == 1


def test_close_returns_the_dataset(store: Path) -> None:
    """Wrong in hyrax: close() gives None by default, and with nothing processed raises; with loses it."""
    with StreamSession(double, store=store) as session:
        pass
    assert len(session.dataset) == 0
    assert session.close() is session.dataset


def test_positions_from_the_end(store: Path) -> None:
    """Wrong in hyrax: a negative position is an IndexError there."""
    with StreamSession(double, numbered(3), store) as session:
        drain(session)
    assert np.asarray(session.dataset[-1]).tolist() == [4, 4, 4]


def test_changed_results(store: Path) -> None:
    """Right in hyrax: another dtype or shape of a later batch is an error (ValueError there)."""
    answers = iter([np.ones((1, 3)), np.ones((1, 4))])
    with StreamSession(lambda _: next(answers), store=store) as session:
        session.process({"object_id": ["a"]})
        with pytest.raises(StoreError):
            session.process({"object_id": ["b"]})


def test_missing_object_id(store: Path) -> None:
    """test_streaming_data_provider "validation errors": object_id is needed, and all of one length."""
    with StreamSession(double, store=store) as session:
        for batch in ({"x": [1]}, {"object_id": ["a"], "x": [1, 2]}):
            with pytest.raises(SourceError):
                session.process(batch)


def test_loaded_once(store: Path) -> None:
    """Feature "load once, many batches": the model is made once, however many batches there are."""

    class Model:
        made = 0

        def __init__(self) -> None:
            Model.made += 1

        def __call__(self, batch: Any) -> Any:
            return double(batch)

    with StreamSession(Model(), numbered(10), store, batch_size=2) as session:
        drain(session)
    assert (Model.made, session.counts.batches) == (1, 5)


def test_readable_without_commit(store: Path) -> None:
    """Feature "readable after a crash": rows are there before close(), one table version a batch."""
    session = StreamSession(double, numbered(6), store, batch_size=2)
    for count, _ in enumerate(session, start=1):
        assert len(open_results(store)) == 2 * count
    session.close()


def test_schema_of_hyrax(store: Path) -> None:
    """Persistence: the columns object_id and data, fixed-size lists with tensor_shape and tensor_dtype."""
    with StreamSession(double, numbered(1), store) as session:
        drain(session)
    schema = session.dataset.to_arrow().schema
    assert str(schema.field("data").type).startswith("fixed_size_list<item: float>[3]")
    assert b'"tensor_shape": [3], "tensor_dtype": "float32"' in schema.metadata[b"data"]
