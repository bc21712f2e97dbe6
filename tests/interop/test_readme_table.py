"""What README.md and docs/migrating.md set beside their `PredictionSession`: both clients, their server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from interop.client_process import TheirClient
from interop.pictures import spots, write_clip, write_pictures
from interop.their_server import TheirServer, assert_all_equal, truths_of

from predsession import ItemError, Prediction, PredictionSession
from predsession.testing import Fault, FaultyServer

LOST = Fault("drop_after", "pop_inference_results", nth=2)
BUSY = Fault("status", "inference_batch_async", status=503)


@dataclass(frozen=True)
class Patience:
    """Clients of theirs that try for 25 s, while other tests run, on another server: names get mixed up."""

    empty: Path
    """A folder of five pictures, one of which is empty; the first client runs it."""
    pictures: Path
    """A folder of 60; the second client runs it, and its upload is answered 503, once."""
    clients: tuple[TheirClient, TheirClient]


@pytest.fixture(scope="module")
def patience(
    python: str, development: TheirServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Patience]:
    """Both have begun."""
    homes = [tmp_path_factory.mktemp("patience") for _ in range(2)]
    write_pictures(homes[0] / "pictures", 5)[2].write_bytes(b"")
    write_pictures(homes[1] / "pictures", 60, first=100)
    clients = TheirClient(python, homes[0]), TheirClient(python, homes[1])
    with FaultyServer(development.url, [BUSY]) as faulty:
        for process, url, home in zip(clients, (development.url, faulty.url), homes, strict=True):
            process.start("session", url, input=str(home / "pictures"))
        yield Patience(homes[0] / "pictures", homes[1] / "pictures", clients)
        for process in clients:
            process.close()


@pytest.fixture(autouse=True)
def _begun(patience: Patience, production: TheirServer) -> None:
    """Have them begin before the first test."""
    production.mark()


def run(server: TheirServer, source: object, **keywords: Any) -> list[Prediction]:
    """Run a session of ours."""
    with PredictionSession(server.url, source, **keywords) as session:
        return list(session)


def test_what_can_be_handed_in(client: TheirClient, production: TheirServer, tmp_path: Path) -> None:
    """12 paths in a list, an array, 12 times bytes: two `TypeError`, a `ValueError`; here 12, 1, 12."""
    paths = write_pictures(tmp_path, 12, suffix=".png")
    names = [str(path) for path in paths]
    errors = [
        client.run("session", production.url, input=source)["error"].partition(":")[0]
        for source in (
            names,
            {"as": "array", "paths": names[:1], "list": False},
            {"as": "bytes", "paths": names},
        )
    ]
    assert errors == ["TypeError", "TypeError", "ValueError"]
    truths = production.direct(paths)
    assert_all_equal(run(production, names), truths)
    assert_all_equal(run(production, spots(0)), truths[:1])
    assert_all_equal(run(production, [path.read_bytes() for path in paths]), truths)


@pytest.mark.parametrize(
    ("count", "words"), [(300, "KeyError: 'im_"), (1200, "Too many files. Maximum number of files is 1000.")]
)
def test_a_folder(
    client: TheirClient, production: TheirServer, tmp_path: Path, count: int, words: str
) -> None:
    """Of 300 it fails with a `KeyError`, of 1,200 it is refused; here each gives all of them, in order."""
    paths = write_pictures(tmp_path, count)
    assert words in client.run("session", production.url, input=str(tmp_path))["error"]
    predictions = run(production, tmp_path)
    assert [each.path for each in predictions] == [str(path) for path in paths]


def test_an_answer_that_is_lost(client: TheirClient, production: TheirServer, tmp_path: Path) -> None:
    """Of 60 images one answer with results does not arrive: there some are missing, and others' places shift.

    How many, 42 of 60 as the documents have it, depends on what that answer held. Here none is missing.
    """
    paths = write_pictures(tmp_path, 60)
    with FaultyServer(production.url, [LOST]) as faulty:
        answer = client.run("session", faulty.url, input=str(tmp_path), keywords={"delay": 0.05})
        assert [call.fault for call in faulty.seen if call.fault], "the fault was never made"
    assert 30 < len(answer["predictions"]) < 60
    last = len(answer["predictions"]) - 1
    assert truths_of(answer)[last].annotation == production.direct([Path(answer["names"][-1])])[0].annotation
    with FaultyServer(production.url, [LOST]) as faulty:
        with PredictionSession(faulty.url, tmp_path, delay=0.05) as session:
            predictions = list(session)
        assert [call.fault for call in faulty.seen if call.fault], "the fault was never made"
    assert_all_equal(predictions, production.direct(paths))


def test_equal_names(client: TheirClient, production: TheirServer, tmp_path: Path) -> None:
    """Of six pictures in two folders, three names each, three are another's there, and none here."""
    for first, name in ((0, "a"), (100, "b")):
        for path in write_pictures(tmp_path / name, 3, first=first):
            path.rename(path.with_name(f"{int(path.stem[3:]) % 100}.jpg"))
    answer = client.run("session", production.url, input=str(tmp_path), keywords={"recursive": True})
    truths = production.direct([Path(name) for name in answer["names"]])
    wrong = [a.annotation != b.annotation for a, b in zip(truths_of(answer), truths, strict=True)]
    assert sum(wrong) == 3
    predictions = run(production, tmp_path, recursive=True)
    assert_all_equal(predictions, production.direct([Path(str(each.path)) for each in predictions]))


@pytest.mark.parametrize(
    ("keywords", "frames"),
    [({"start_frame": 10, "num_frames": 5}, range(10, 15)), ({"end_frame": 7}, range(7))],
)
def test_a_part_of_a_clip(
    client: TheirClient, production: TheirServer, tmp_path: Path, keywords: dict[str, int], frames: range
) -> None:
    """All 40 frames are run there, whatever was asked for; here those that were."""
    clip = write_clip(tmp_path / "clip.mp4", 40)
    answer = client.run("session", production.url, input=str(clip), keywords=keywords)
    assert len(answer["predictions"]) == 40, answer
    assert [each.frame_index for each in run(production, clip, **keywords)] == list(frames)


def test_leaving_early(client: TheirClient, production: TheirServer, tmp_path: Path) -> None:
    """Left after 3 of 60, their server computes all the same; of ours little more than what was taken."""
    write_pictures(tmp_path, 60)
    keywords = {"key": "left by theirs", "delay": 0.05}
    answer = client.run("block", production.url, input=str(tmp_path), keywords=keywords, leave_after=3)
    assert len(answer["predictions"]) == 3
    production.wait_until_idle()
    assert production.computed("left by theirs") == 60
    production.mark()
    with PredictionSession(production.url, tmp_path, key="left by ours", delay=0.05) as session:
        for _ in range(3):
            next(session)
    assert production.live() == []
    production.wait_until_idle()
    assert 3 <= production.computed("left by ours") < 30


def test_an_empty_file(patience: Patience, development: TheirServer) -> None:
    """One of five: their run fails as a whole, with an `HTTPError`; ours names the file, and gives four."""
    answer = patience.clients[0].read()
    assert answer["error"].startswith("HTTPError")
    outcomes = run(development, patience.empty, on_error="yield")
    assert [isinstance(each, ItemError) for each in outcomes] == [False, False, True, False, False]
    assert str(patience.empty / "im_0002.jpg") in str(outcomes[2])


def test_a_server_that_is_busy_once(patience: Patience, development: TheirServer) -> None:
    """An upload is answered 503: theirs then sends empty files, and gets an `HTTPError`; ours gives 60."""
    answer = patience.clients[1].read()
    assert answer["error"].startswith("HTTPError")
    with (
        FaultyServer(development.url, [BUSY]) as faulty,
        PredictionSession(faulty.url, patience.pictures) as session,
    ):
        assert len(list(session)) == 60
