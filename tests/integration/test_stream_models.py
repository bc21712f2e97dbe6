"""Models behind a URL: images through a deployed one, tensors through the Open Inference Protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import makers
import numpy as np
import pytest
import stream_models
from stream_kit import drain, ids, named, numbered, reasons

from predsession import connect
from predsession.errors import ConnectError, PredSessionError, SourceError
from predsession.prediction import Prediction
from predsession.server.models.pixels import box_number, number_picture
from predsession.stream import FolderSource, StreamSession
from predsession.tensor import TensorSession
from predsession.testing import RunningServer


@pytest.fixture(scope="module")
def tensor_address() -> Iterator[str]:
    """A server with models of tensors."""
    arguments = ["--oip-grpc", "127.0.0.1:0"]
    for name in ("Many", "Single", "First"):
        arguments += ["--tensor-model", f"{name.lower()}={stream_models.__file__}:{name}"]
    with RunningServer("pixels", arguments=arguments) as server:
        yield server.oip[0]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where results go."""
    return tmp_path / "r.lance"


def pictures(count: int, field: str = "image") -> Iterator[dict[str, Any]]:
    """Samples with pictures of numbers."""
    for number in range(count):
        yield {"object_id": f"o{number}", field: number_picture(number)}


def test_images_by_url(ours: str, store: Path) -> None:
    """A URL runs images; each result belongs to its sample, and the store says which model made it."""
    with StreamSession(ours, pictures(9), store, batch_size=4) as session:
        results = [each for _, part in session for each in part]
    assert all(isinstance(each, Prediction) for each in results)
    assert ids(store) == named(9)
    assert list(session.dataset.to_predictions()) == results
    assert [box_number(each.boxes[0]) for each in results if isinstance(each, Prediction)] == list(range(9))
    with connect(ours) as model:
        card = model.info.raw["predsession"]
    assert isinstance(card, dict)
    table = session.dataset.to_arrow()
    assert set(table["model"].to_pylist()) == {"pixels"}
    assert set(table["model_version"].to_pylist()) == {card["digest"]}


def test_images_by_handle(ours: str, store: Path) -> None:
    """A DeployedModel stays open: it is the caller's; another field may be the image."""
    with connect(ours) as model:
        with StreamSession(model, pictures(3, "cutout"), store, image_field="cutout") as session:
            drain(session)
        with (
            pytest.raises(SourceError, match="image_field= says which"),
            StreamSession(model, pictures(9), store, image_field="cutout") as session,
        ):
            drain(session)
        assert model.status()
    assert ids(store) == named(3)


def test_settings(detector: str, store: Path) -> None:
    """settings= are keywords of its sessions: a score that nothing reaches finds nothing."""
    with StreamSession(detector, pictures(1), store, settings={"conf": 0.999}) as session:
        drain(session)
    assert [len(each.scores) for each in session.dataset.to_predictions()] == [0]


def test_bad_images(ours: str, store: Path, tmp_path: Path) -> None:
    """What the session finds wrong with an image is a dead letter; whatever else is in the batch is done."""
    good = makers.write(tmp_path / "a.png", makers.png())
    bad = makers.write(tmp_path / "b.png", makers.truncated(makers.png()))
    given = [
        {"object_id": "good", "image": str(good)},
        {"object_id": "bad", "image": str(bad)},
        {"object_id": "lost", "image": str(tmp_path / "c.png")},
        {"object_id": "good2", "image": str(good)},
    ]
    with StreamSession(ours, given, store, on_error="skip") as session:
        drain(session)
    assert ids(store) == ["good", "good2"]
    assert set(reasons(store)) == {"iterable:bad", "iterable:lost"}


def test_folder(ours: str, store: Path, tmp_path: Path) -> None:
    """A folder of images, a damaged one among them, by path; again, nothing is computed twice."""
    for name in ("1.png", "2.png", "sub/3.png"):
        makers.write(tmp_path / "in" / name, makers.png())
    makers.write(tmp_path / "in" / "cut.png", makers.truncated(makers.png()))
    for _ in range(2):
        with StreamSession(ours, FolderSource(tmp_path / "in", follow=False), store) as session:
            drain(session)
    assert session.counts.skipped == 3
    assert ids(store) == ["1.png", "2.png", "sub/3.png"]
    assert set(reasons(store)) == {"folder:cut.png"}


def test_nobody_there(store: Path) -> None:
    """A server that is not there is told when the session is opened, before anything is taken."""
    taken = []

    def source() -> Iterator[Any]:
        taken.append(1)
        yield from pictures(1)

    once = SimpleNamespace(token="t", retry_count=1)
    with connect("http://127.0.0.1:9", api=once) as model, pytest.raises(ConnectError):
        StreamSession(model, source(), store)
    assert not taken


@pytest.mark.parametrize(("name", "rows"), [("many", True), ("single", False), ("first", False)])
def test_tensors(tensor_address: str, store: Path, name: str, rows: bool) -> None:
    """Fields are inputs by name: batches at once where the model has room for them, else one by one."""
    address = f"grpc://{tensor_address.rpartition('//')[2]}/{name}"
    with StreamSession(address, numbered(7), store, batch_size=4, on_error="skip") as session:
        drain(session)
    dataset = session.dataset
    left = [n for n in named(7) if name != "single" or n != "o4"]
    assert dataset.ids() == left
    assert dataset.to_arrays()["twice"][:, 0].tolist() == [2.0 * int(n[1:]) for n in left]
    if rows:
        assert dataset.to_arrays()["rows"].tolist() == [4, 4, 4, 4, 3, 3, 3]
    assert set(dataset.to_arrow()["model"].to_pylist()) == {name}
    with TensorSession(tensor_address, models=[name]) as tensors:
        versions = tensors._book.facts(name).versions
    assert set(dataset.to_arrow()["model_version"].to_pylist()) == {versions[-1]}
    if name == "single":
        assert "no fours" in reasons(store)["iterable:o4"]


def test_tensors_by_session(tensor_address: str, store: Path) -> None:
    """A TensorSession stays open; what its model needs and a sample lacks is told by name."""
    with TensorSession(tensor_address, models=["many"]) as tensors:
        with StreamSession(tensors, store=store) as session:
            with pytest.raises(SourceError, match="samples lack x; the model takes x"):
                session.process({"object_id": ["a"], "y": np.ones((1, 3), np.float32)})
            with pytest.raises(PredSessionError):
                session.process({"object_id": ["a"], "x": np.ones((1, 5), np.float32)})
            session.process({"object_id": ["a"], "x": np.ones((1, 3), np.float32)})
        assert tensors.get_model_names()
    assert ids(store) == ["a"]
