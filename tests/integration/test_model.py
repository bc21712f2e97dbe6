"""A handle on a deployed model, on both kinds of server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import makers
import pytest
from PIL import Image

from predsession import ConnectError, ItemError, NotFoundError, SourceError, connect
from predsession.testing import Fault, FaultyServer, box_number, number_picture

Numbered = Callable[..., list[Path]]


def test_what_it_is(either: str) -> None:
    """Information, classes, settings, status; asked once where it does not change."""
    with FaultyServer(either) as faulty, connect(faulty.url) as model:
        assert model.is_deployed()
        assert model.classes[3] == "ends in 3"
        assert model.meta.class_id("ends in 3") == 3
        assert model.info.raw["task type"]
        assert model.info.max_batch_size == 16
        assert isinstance(model.settings, dict)
        assert model.settings["delay"] == 0.0
        assert model.status()["is_deployed"] is True
        assert model.classes == model.meta.names
        assert len(faulty.calls("get_model_meta")) == 1
        assert faulty.url in repr(model)


def test_one_picture_without_a_job(either: str, tmp_path: Path) -> None:
    """Whatever it is handed in as; it knows its own input, and nothing is left on the server."""
    path = tmp_path / "n.png"
    Image.fromarray(number_picture(5)).save(path)
    with FaultyServer(either) as faulty, connect(faulty.url) as model:
        for picture in (number_picture(5), path, path.read_bytes(), Image.fromarray(number_picture(5))):
            assert box_number(model.predict_one(picture).boxes[0]) == 5
        prediction = model.predict_one(path, {"conf": 0.99})
        assert (prediction.path, len(prediction)) == (str(path), 0)
        assert prediction.load_image().shape == (32, 64, 3)
        assert not faulty.calls("inference_batch_async")


def test_one_picture_that_is_none(either: str, tmp_path: Path) -> None:
    """Refused before anything is sent."""
    with connect(either) as model:
        with pytest.raises(ItemError, match="empty"):
            model.predict_one(makers.write(tmp_path / "x.jpg", b""))
        makers.write_jpeg(tmp_path / "y" / "1.jpg")
        makers.write_jpeg(tmp_path / "y" / "2.jpg")
        with pytest.raises(SourceError, match="one picture"):
            model.predict_one(tmp_path / "y")


def test_a_source(either: str, numbered: Numbered, capsys: pytest.CaptureFixture[str]) -> None:
    """`predict` gives a list, with a bar; `predict_detached` a session."""
    with connect(either) as model:
        predictions = model.predict(numbered(5), conf=0.1)
        assert [box_number(one.boxes[0]) for one in predictions] == list(range(5))
        assert "5/5" in capsys.readouterr().err
        with model.predict_detached(numbered(3)) as session:
            assert len(session) == 3
            assert box_number(next(session).boxes[0]) == 0
        with pytest.raises(ValueError, match="predict_detached"):
            model.predict(numbered(1), on_error="yield")


def test_what_a_server_lacks_is_said(ours: str) -> None:
    """In words, not as a bare 404."""
    missing = [Fault("status", name, times=99, status=404) for name in ("freeze_model", "tasks.stop")]
    with FaultyServer(ours, missing) as faulty, connect(faulty.url) as model:
        for ask in (model.freeze, model.shutdown):
            with pytest.raises(NotFoundError, match="this server cannot do that"):
                ask()


def test_a_server_that_is_not_ready_yet(ours: str) -> None:
    """503 is an answer here: it is not waited for."""
    with (
        FaultyServer(ours, [Fault("status", "is_ready", times=99, status=503)]) as faulty,
        connect(faulty.url) as model,
    ):
        assert not model.is_deployed()
        assert len(faulty.calls("is_ready")) == 1


def test_no_address(monkeypatch: pytest.MonkeyPatch, ours: str) -> None:
    """The environment's counts; without one, the error says what to pass."""
    monkeypatch.delenv("PREDSESSION_URL", raising=False)
    with pytest.raises(ConnectError, match="PREDSESSION_URL"):
        connect()
    monkeypatch.setenv("PREDSESSION_URL", ours)
    with connect() as model:
        assert model.is_deployed()
