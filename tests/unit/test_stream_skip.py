"""``on_error="skip"``: a sample's fault is a dead letter; the model's, or the caller's, is raised."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from stream_kit import KINDS, Recorded, double, drain, ids, named, numbered, reasons, samples

from predsession.errors import InvalidRequestError, PredSessionError, SourceError, StoreError
from predsession.model import DeployedModel
from predsession.stream import Sample, StreamSession


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where results go: the quicker kind."""
    return tmp_path / "results.parquet"


@pytest.mark.parametrize("skip_stored", [True, False])
def test_second_of_its_name(store: Path, skip_stored: bool) -> None:
    """Where an object is twice in a batch and the first fails, the second is processed: it is not lost."""

    def model(batch: Any) -> Any:
        if (np.asarray(batch["x"]) < 0).any():
            raise ValueError("negative")
        return np.asarray(batch["x"]) * 2

    numbers = {"t:0:0": ("a", -1.0), "t:0:1": ("b", 1.0), "t:0:2": ("a", 2.0), "t:0:3": ("a", 3.0)}
    source = Recorded([Sample({"object_id": name, "x": x}, place) for place, (name, x) in numbers.items()])
    with StreamSession(model, source, store, on_error="skip", skip_stored=skip_stored) as session:
        ((batch, results),) = session
        assert session.processed_ids == batch["object_id"]
    wanted = {"b": 2.0, "a": 4.0} if skip_stored else {"b": 2.0, "a": 6.0}
    assert {name: float(np.asarray(session.dataset.get(name))) for name in ids(store)} == wanted
    assert np.asarray(results).tolist() == ([2.0, 4.0] if skip_stored else [2.0, 4.0, 6.0])
    assert reasons(store) == {"t:0:0": "ValueError: negative"}
    assert sorted(set(source.positions)) == list(numbers)
    assert (session.counts.skipped, session.counts.dead) == (int(skip_stored), 1)


@pytest.mark.parametrize("fails_together", [True, False])
@pytest.mark.parametrize("batch_size", [1, 3, 8])
def test_rows_of_another_shape(store: Path, fails_together: bool, batch_size: int) -> None:
    """A sample whose row has another shape than the store's, or the first's, is dead; the rest is stored."""

    def model(batch: Any) -> Any:
        if fails_together and len(batch["object_id"]) > 1:
            raise ValueError("one by one")
        odd = {"o1", "o4"} & set(batch["object_id"])
        return np.ones((len(batch["object_id"]), 2 if odd else 3))

    source = Recorded(samples(8))
    with StreamSession(model, source, store, batch_size=batch_size, on_error="skip") as session:
        drain(session)
    if fails_together or batch_size == 1:
        assert ids(store) == [name for name in named(8) if name not in {"o1", "o4"}]
        assert sorted(reasons(store)) == ["t:0:1", "t:0:4"]
    assert len(session.dataset) + len(reasons(store)) == 8
    assert {f"t:0:{number}" for number in range(8)} == set(source.positions)


def test_whole_batch_of_another_shape(store: Path) -> None:
    """A whole batch that does not fit what is stored is dead, in this run and at the beginning of another."""

    def model(batch: Any) -> Any:
        return double(batch)[:, : 2 if {"o2", "o3"} & set(batch["object_id"]) else 3]

    for first in (0, 2):
        source = Recorded(samples(2, first), samples(2, first + 2))
        with StreamSession(model, source, store, batch_size=2, on_error="skip") as session:
            drain(session)
        assert len(set(source.positions)) == 4
    assert ids(store) == ["o0", "o1", "o4", "o5"]
    assert sorted(reasons(store)) == ["t:0:2", "t:0:3"]


@pytest.mark.parametrize(
    ("wrong", "words", "stored"),
    [
        *((lambda batch: "text", "the model returned str", stored) for stored in (True, False)),
        *((lambda batch: None, "the model returned NoneType", stored) for stored in (True, False)),
        *(
            (lambda batch: [1.0] * len(batch["object_id"]), "list of float", stored)
            for stored in (True, False)
        ),
        *((lambda batch: np.ones(7), "wanted 8 rows", stored) for stored in (True, False)),
        (lambda batch: {"other": batch["x"]}, "the store holds the outputs data", True),
        (lambda batch: batch["y"], "y", False),
    ],
)
def test_mistakes_of_the_model(store: Path, wrong: Any, words: str, stored: bool) -> None:
    """What a function returns wrongly in any case is raised, and buries nothing; so is, while nothing was
    ever stored, an error in which all samples of a batch fail.
    """
    if stored:
        with StreamSession(double, numbered(1, 100), store) as session:
            drain(session)
    source = Recorded(samples(8))
    with pytest.raises((PredSessionError, KeyError), match=words):  # noqa: SIM117 - what raises is inside
        with StreamSession(wrong, source, store, on_error="skip") as session:
            drain(session)
    assert (source.positions, reasons(store) if stored else {}) == ([], {})


def test_refused_settings(store: Path) -> None:
    """A setting that the server refuses is raised: it is no image's fault."""

    class Refusing(DeployedModel):
        info = SimpleNamespace(raw={}, app_name="m")

        def __init__(self) -> None:
            """Connect to nothing."""

        def predict_detached(self, *_: object, **__: object) -> Any:
            raise InvalidRequestError("no setting 'konf'", status=400)

    given = [{"object_id": name, "image": np.zeros((2, 2, 3), np.uint8)} for name in "ab"]
    for batch_size in (1, 2):
        with (
            pytest.raises(InvalidRequestError, match="konf"),
            StreamSession(Refusing(), given, store, batch_size=batch_size, on_error="skip") as session,
        ):
            drain(session)


def test_raise_is_as_it_was(store: Path) -> None:
    """Without skip, what does not fit is an error before anything is written or told."""
    source = Recorded(samples(2), samples(2, 2))

    def model(batch: Any) -> Any:
        return double(batch)[:, : 2 if "o2" in batch["object_id"] else 3]

    with pytest.raises(StoreError), StreamSession(model, source, store, batch_size=2) as session:
        drain(session)
    assert ids(store) == named(2)
    assert len(source.positions) == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("named_outputs", [True, False])
def test_all_is_stored(tmp_path: Path, kind: str, named_outputs: bool) -> None:
    """process() of what is stored already returns no row, of the store's kind."""
    one = {"object_id": ["a"], "x": np.ones((1, 3), np.float32)}
    model = (lambda batch: {"y": double(batch)}) if named_outputs else double
    with StreamSession(model, store=tmp_path / f"r.{kind}") as session:
        session.process(one)
        assert session.processed_ids == ["a"]
        again: Any = session.process(one)
        assert session.processed_ids == []
        array = again["y"] if named_outputs else again
        assert (array.shape, array.dtype) == ((0, 3), np.float32)


@pytest.mark.parametrize("bad", [None, 7])
def test_no_path(bad: Any) -> None:
    """A store that is no path is told in words."""
    with pytest.raises(SourceError, match="store is"):
        StreamSession(double, store=bad)
