"""`StreamSession`: what is run, stored, skipped and told, and what is refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from predictions import found
from stream_kit import KINDS, Recorded, double, drain, ids, named, numbered, reasons, samples

from predsession.errors import ConnectError, ItemError, SessionClosedError, SourceError, StoreError
from predsession.stream import DeadLetter, Sample, StreamSession
from predsession.testing import FakeClock


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where results go: the quicker kind."""
    return tmp_path / "results.parquet"


@pytest.mark.parametrize("kind", KINDS)
def test_two_runs(tmp_path: Path, kind: str) -> None:
    """A store that is opened again is added to; what is stored is not processed again."""
    seen: list[str] = []

    def model(batch: Any) -> Any:
        seen.extend(batch["object_id"])
        return double(batch)

    store = tmp_path / f"r.{kind}"
    for first, fresh in ((0, 10), (5, 5)):
        with StreamSession(model, numbered(10, first), store, batch_size=4) as session:
            drain(session)
        assert (session.counts.stored, session.counts.skipped) == (fresh, 10 - fresh)
    assert seen == named(15)
    assert session.dataset.ids() == named(15)


def test_by_position(store: Path) -> None:
    """With skip_stored=False an object may be there twice, but what came from one place only once."""
    for rows in (samples(4), samples(6)):
        with StreamSession(double, Recorded(rows), store, skip_stored=False) as session:
            drain(session)
    assert ids(store) == named(6)
    same = [*samples(2, 20), *samples(2, 0)]
    moved = [type(each)(each.fields, f"t:1:{place}") for place, each in enumerate(same)]
    with StreamSession(double, Recorded(moved), store, skip_stored=False) as session:
        drain(session)
        session.process({"object_id": ["o0"], "x": np.ones((1, 3), np.float32)})
    assert ids(store) == [*named(6), "o20", "o21", "o0", "o1", "o0"]


def test_twice_in_a_batch(store: Path) -> None:
    """An object that is twice in a batch is processed once: the first counts."""
    with StreamSession(double, store=store) as session:
        results = session.process({"object_id": ["a", "b", "a"], "x": np.arange(9, dtype="f4").reshape(3, 3)})
    assert np.asarray(results)[:, 0].tolist() == [0, 6]
    assert session.counts.skipped == 1


def test_peek(store: Path) -> None:
    """The first sample may be looked at, as often as one likes, and is not lost; None where none comes."""
    with StreamSession(double, numbered(3), store) as session:
        first = session.peek()
        assert first is not None
        assert (first["object_id"], session.peek()) == ("o0", first)
        assert drain(session) == named(3)
        assert session.peek() is None
    with StreamSession(double, Recorded(ends=False), store, clock=FakeClock()) as session:
        assert session.peek(timeout=0) is None
    with pytest.raises(SessionClosedError):
        session.peek()


def test_by_hand(store: Path) -> None:
    """The batches can be taken from the session's source, and given to process()."""
    source = Recorded(samples(5))
    with StreamSession(double, source, store, batch_size=2) as session:
        for batch in session.source:
            before = len(source.positions)
            assert np.array_equal(np.asarray(session.process(batch)), np.asarray(batch["x"]) * 2)
            assert source.positions[before:] == batch.positions
    assert ids(store) == named(5)
    assert source.positions == [f"t:0:{number}" for number in range(5)]


def test_told_when_stored(store: Path) -> None:
    """A source is told of samples only when they are in the store; what was taken and left is not told."""
    source = Recorded(samples(6))
    seen: list[tuple[int, int]] = []
    with StreamSession(double, source, store, batch_size=2) as session:
        for _, _ in session:
            seen.append((len(ids(store)), len(source.positions)))
            if len(seen) == 2:
                break
    assert seen == [(2, 2), (4, 4)]
    assert (len(source.positions), source.closes) == (4, 1)


@pytest.mark.parametrize("place", ["model", "body", "store"])
def test_failures(store: Path, place: str) -> None:
    """Whatever fails, what was stored is told and all else not; the next run does the rest, each once."""

    def model(batch: Any) -> Any:
        if place == "model" and "o4" in batch["object_id"]:
            raise KeyError("o4")
        return double(batch)[:, : 2 if place == "store" and "o4" in batch["object_id"] else 3]

    source = Recorded(samples(8))
    kinds = {"model": KeyError, "body": ZeroDivisionError, "store": StoreError}

    def run() -> None:
        with StreamSession(model, source, store, batch_size=2) as session:
            for batch, _ in session:
                assert place != "body" or "o4" not in batch["object_id"] or 1 / 0

    with pytest.raises(kinds[place]):
        run()
    done = 6 if place == "body" else 4
    assert ids(store) == named(done)
    assert len(source.positions) == done
    assert source.closes == 1
    with StreamSession(double, Recorded(samples(8)), store) as session:
        drain(session)
    assert ids(store) == named(8)


def test_source_that_fails(store: Path) -> None:
    """What came before a source failed is processed first; dead letters that came are kept."""

    def broken() -> Iterator[Any]:
        yield from numbered(5)
        yield "no sample"
        raise OSError("gone")

    seen: list[str] = []

    def run() -> None:
        with StreamSession(double, broken(), store, batch_size=4) as session:
            for batch, _ in session:
                seen.extend(batch["object_id"])

    with pytest.raises(OSError, match="gone"):
        run()
    assert seen == ids(store) == named(5)
    assert len(reasons(store)) == 1


def test_dead_letters_only(store: Path) -> None:
    """Where there are dead letters only, they are put away and told as they come; it is no endless wait."""
    source = Recorded([DeadLetter(f"t:0:{n}", "bad") for n in range(10)], samples(1, 10))
    with StreamSession(double, source, store, batch_size=4) as session:
        for _ in session:
            assert len(source.letters) >= 8
    assert len(reasons(store)) == 10
    assert sorted(source.positions) == sorted(f"t:0:{n}" for n in range(11))
    with StreamSession(double, Recorded([DeadLetter("t:0:1", "bad")]), store) as session:
        drain(session)
    assert len(reasons(store)) == 10, "each position once"


def test_skip(store: Path) -> None:
    """With on_error="skip" only what the model fails at dies, with its reason, once over all runs."""

    def model(batch: Any) -> Any:
        if {"o3", "o5"} & set(batch["object_id"]):
            raise ValueError("not this one")
        return double(batch)

    for _ in range(2):
        with StreamSession(model, numbered(8), store, on_error="skip") as session:
            drain(session)
    assert ids(store) == ["o0", "o1", "o2", "o4", "o6", "o7"]
    assert reasons(store) == {f"iterable:{n}": "ValueError: not this one" for n in ("o3", "o5")}
    with pytest.raises(ValueError, match="not this one"), StreamSession(model, numbered(8), store) as session:
        drain(session)


def test_skip_items(store: Path) -> None:
    """An ItemError among predictions is a dead letter of its object; without skip it is raised."""

    def model(batch: Any) -> Any:
        return [found() if n != "o1" else ItemError("broken", reason="broken") for n in batch["object_id"]]

    source = Recorded(samples(3))
    with StreamSession(model, source, store, on_error="skip") as session:
        drain(session)
    assert ids(store) == ["o0", "o2"]
    assert reasons(store) == {"t:0:1": "ItemError: broken"}
    assert sorted(source.positions) == ["t:0:0", "t:0:1", "t:0:1", "t:0:2"]
    with pytest.raises(ItemError), StreamSession(model, numbered(3), store) as session:
        drain(session)


def test_skip_is_for_samples(store: Path) -> None:
    """That a server is gone is no sample's fault: it ends the run, and nothing is dead."""

    def model(batch: Any) -> Any:
        raise ConnectError("nobody there")

    with (
        pytest.raises(ConnectError),
        StreamSession(model, numbered(8), store, on_error="skip") as session,
    ):
        drain(session)
    assert not reasons(store)


def test_no_source(store: Path) -> None:
    """Without a source, iterating and looking say what to pass, at once."""
    with StreamSession(double, store=store) as session:
        for ask in (iter, StreamSession.peek, lambda session: session.source):
            with pytest.raises(SourceError, match="pass source="):
                ask(session)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"batch_size": True}, "batch_size"),
        ({"flush_after": 0}, "flush_after is 0"),
        ({"flush_after": float("nan")}, "flush_after"),
        ({"flush_after": "5"}, "flush_after"),
        ({"on_error": "yield"}, "on_error is 'yield'"),
        ({"source": 7}, "source is int"),
        ({"source": "/nowhere/at/all"}, "no folder, no video and no camera"),
        ({"source": Recorded(), "decode": dict}, "decode= is for iterables"),
        ({"model": 7}, "model is int"),
    ],
)
def test_arguments(store: Path, keywords: dict[str, Any], words: str) -> None:
    """The caller's mistakes are told before anything begins."""
    with pytest.raises(SourceError, match=words):
        StreamSession(**{"model": double, "store": store, **keywords})
    assert not store.exists()


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ({"x": [1]}, "a batch is a dict with 'object_id'"),
        ({"object_id": "abc"}, "a batch is a dict"),
        ([1], "a batch is a dict"),
        ({"object_id": ["a", "b"], "x": [1]}, "2 object ids, and 1 values of 'x'"),
        ({"object_id": ["a"], "x": np.float32(1)}, "'x' of the batch is float32"),
        ({"object_id": ["a"], "x": 5}, "'x' of the batch is int"),
        ({"object_id": ["a"], "x": "t"}, "'x' of the batch is str"),
    ],
)
def test_no_batch(store: Path, batch: Any, words: str) -> None:
    """What is no batch is told in words."""
    with StreamSession(double, store=store) as session, pytest.raises(SourceError, match=words):
        session.process(batch)


def test_back_pressure(store: Path) -> None:
    """A slow model takes no more from an endless generator than it can hold."""
    pulled = 0

    def endless() -> Iterator[Any]:
        nonlocal pulled
        for sample in numbered(10**9):
            pulled += 1
            yield sample

    most = 0

    def model(batch: Any) -> Any:
        nonlocal most
        time.sleep(0.01)
        most = max(most, pulled - session.counts.stored)
        return double(batch)

    with StreamSession(model, endless(), store, batch_size=8) as session:
        for _ in session:
            if session.counts.batches == 20:
                break
    assert session.counts.stored == 160
    assert most <= 4 * 8


def test_fields(store: Path) -> None:
    """Values that are alike are an array, also JSON's 1 and 1.5; others a list. Other fields part batches."""
    given = [
        {"object_id": "a", "n": 1, "s": "t", "big": 2**70, "flag": True},
        {"object_id": "b", "flag": False, "n": 1.5, "s": "u", "big": 1},
        {"object_id": "c", "n": 1},
    ]
    batches = []

    def model(batch: Any) -> Any:
        batches.append(dict(batch))
        return np.zeros(len(batch["object_id"]))

    with StreamSession(model, iter(given), store) as session:
        drain(session)
    assert [each["object_id"] for each in batches] == [["a", "b"], ["c"]]
    assert batches[0]["n"].dtype == float
    assert batches[0]["flag"].dtype == bool
    assert batches[0]["s"] == ["t", "u"]
    assert batches[0]["big"] == [2**70, 1]


def test_latency(store: Path) -> None:
    """A batch is full, or its first sample has waited long enough; on a clock that jumps."""
    clock = FakeClock()

    class Slow(Recorded):
        def take(self, most: int, seconds: float) -> Any:
            clock.wait(threading.Event(), seconds)
            return super().take(most, 0)

    sizes = []
    source = Slow(*[samples(1, n) for n in range(20)])
    with StreamSession(double, source, store, batch_size=8, flush_after=1, clock=clock) as session:
        for batch, _ in session:
            sizes.append(len(batch["object_id"]))
    assert sum(sizes) == 20
    assert max(sizes) == 5, "a sample each quarter of a second, and one second to wait"


def test_secrets(store: Path) -> None:
    """What is no source is shown without what may be secret."""
    with pytest.raises(SourceError) as caught:
        StreamSession(double, "ftp://user:s3cret@host/x?key=s3cret", store)
    assert "s3cret" not in str(caught.value)


def test_words_that_are_no_text(store: Path) -> None:
    """A dead letter whose words are no text is put away all the same, escaped: it is no poison."""

    def decode(raw: Any) -> Any:
        raise ValueError("half a character: \ud800")

    with StreamSession(double, [b"x"], store, decode=decode) as session:
        drain(session)
    assert list(reasons(store).values()) == ["ValueError: half a character: \\ud800"]
    source = Recorded([Sample({"object_id": "a", "x": np.ones(3)}, "t:\ud800")])
    with pytest.raises(StoreError, match="cannot be stored"), StreamSession(double, source, store) as session:
        drain(session)
