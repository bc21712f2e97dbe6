"""Their `PredictionSession` and `ModelAPI`, our server: what works there works here, and equals ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interop.client_process import TheirClient
from interop.pictures import spots, write_clip, write_pictures
from interop.their_server import TheirServer, assert_all_equal, truths_of, until
from PIL import Image
from server_kit import Caller

from predsession import PredictionSession
from predsession.testing import RunningServer

COUNT = 30
MODEL = f"{Path(__file__).with_name('spots_model.py')}:Spots"


@pytest.fixture(scope="module", params=["with the extension", "stock"])
def ours(request: pytest.FixtureRequest) -> Iterator[str]:
    """Our server, both as it is and as it imitates theirs."""
    with RunningServer(MODEL, stock=request.param == "stock") as server:
        yield server.url


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Pictures in a folder of their own."""
    return write_pictures(tmp_path / "pictures", 12)


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """A clip."""
    return write_clip(tmp_path / "clip.mp4", COUNT)


def run_ours(url: str, source: object, **keywords: Any) -> list[Any]:
    """Run a session of ours."""
    with PredictionSession(url, source, **keywords) as session:
        return list(session)


def test_one_image(client: TheirClient, ours: str, paths: list[Path], tmp_path: Path) -> None:
    """Prediction, state, progress, final result, and the picture, loaded and drawn."""
    answer = client.run("session", ours, input=str(paths[2]), look=True, draw=str(tmp_path / "drawn"))
    assert_all_equal(run_ours(ours, paths[2]), truths_of(answer))
    assert (answer["length"], answer["final"], answer["classes"]) == (1, None, ["wide", "tall"])
    before, after = answer["looks"]
    assert before["status"]["uuid"] == answer["uuid"]
    assert (after["status"]["stage"], after["done"]) == ("Finished", True)
    assert after["status"]["progress"]["current"] == after["status"]["progress"]["total"] == 1
    assert answer["pictures"] == [{"shape": [96, 160, 3], "changed": True}]
    drawn = np.asarray(Image.open(tmp_path / "drawn" / f"vis_{paths[2].name}.png").convert("RGB"))
    assert (drawn != np.asarray(Image.open(paths[2]))).any()


@pytest.mark.parametrize("recursive", [False, True])
def test_a_folder(client: TheirClient, ours: str, paths: list[Path], recursive: bool) -> None:
    """Every file's own, in the order in which their client sends them."""
    write_pictures(paths[0].parent / "deeper", 4, first=700)
    folder = str(paths[0].parent)
    answer = client.run("session", ours, input=folder, keywords={"recursive": recursive, "batch_size": 5})
    assert len(answer["names"]) == answer["length"] == (16 if recursive else 12)
    assert_all_equal(run_ours(ours, answer["names"]), truths_of(answer))


def test_settings_and_classes(client: TheirClient, ours: str, paths: list[Path]) -> None:
    """By each way their client has to pass them."""
    for keywords in (
        {"conf": 0.85},
        {"max_objects": 1},
        {"classes": ["tall"]},
        {"inference_settings": {"max_objects": 2}},
        {"settings": {"max_objects": 1}},
    ):
        answer = client.run("session", ours, input=str(paths[0].parent), keywords=keywords)
        assert_all_equal(run_ours(ours, answer["names"], **keywords), truths_of(answer))


def test_stopping(client: TheirClient, ours: str, paths: list[Path]) -> None:
    """What was taken before is right; the job is stopped; ours computes no further, theirs would."""
    keywords = {"delay": 0.1, "batch_size": 1}
    answer = client.run("session", ours, input=str(paths[0].parent), keywords=keywords, stop_after=2)
    assert_all_equal(run_ours(ours, answer["names"][:2]), truths_of(answer))
    with Caller(ours) as caller:
        until(lambda: caller.progress(answer["uuid"])["finished"], "the end of the job")
        ended = caller.pop(answer["uuid"])
    assert (ended["stopped"], ended["stage"]) == (True, "Cancelled")


def test_leaving_a_block(client: TheirClient, ours: str, paths: list[Path]) -> None:
    """The end of their ``with`` block stops the job."""
    keywords = {"delay": 0.1, "batch_size": 1}
    folder = str(paths[0].parent)
    answer = client.run("block", ours, input=folder, keywords=keywords, leave_after=3)
    assert len(truths_of(answer)) == 3
    with Caller(ours) as caller:
        assert caller.progress(answer["uuid"])["stopped"]


def test_a_model_that_fails(client: TheirClient, ours: str, paths: list[Path]) -> None:
    """Their client's error has the type and the message."""
    answer = client.run("session", ours, input=str(paths[0].parent), keywords={"fail_at": 1})
    assert answer["error"].startswith("RuntimeError: Inference Error: ValueError: ")
    assert answer["error"].endswith("told to fail at 1 spots")


@pytest.mark.parametrize(
    "keywords", [{}, {"stride": 3}, {"direction": "forward", "batch_size": 7}, {"duration": 0.5}]
)
def test_a_clip(client: TheirClient, ours: str, clip: Path, keywords: dict[str, Any]) -> None:
    """The frames they ask for, each its own, and the final result of an untracked clip."""
    answer = client.run("session", ours, input=str(clip), keywords=keywords)
    predictions = run_ours(ours, clip, **keywords)
    assert [one["frame_index"] for one in answer["predictions"]] == [one.frame_index for one in predictions]
    assert answer["length"] == len(predictions)
    assert_all_equal(predictions, truths_of(answer))
    assert answer["final"] == {"ann": [], "video_ann": None}


def test_drawing_frames(client: TheirClient, ours: str, clip: Path, tmp_path: Path) -> None:
    """Frames are loaded from the clip, and drawn."""
    keywords = {"stride": 10}
    answer = client.run("session", ours, input=str(clip), keywords=keywords, draw=str(tmp_path / "drawn"))
    assert [one["shape"] for one in answer["pictures"]] == [[96, 160, 3]] * 3
    assert all(one["changed"] for one in answer["pictures"])


@pytest.mark.parametrize("config", [None, {"with_reid": False, "track_buffer": 10}, {"tracker": "botsort"}])
def test_tracking(client: TheirClient, ours: str, clip: Path, config: dict[str, Any] | None) -> None:
    """The tracks are those that ours gets, in every prediction and in the final result.

    Against their own server their client fails here, unless `with_reid` is off: it wants to download weights.
    """
    keywords = {"tracking": True, "tracking_config": config}
    answer = client.run("session", ours, input=str(clip), keywords=keywords)
    with PredictionSession(ours, clip, tracking_config={"tracker": "botsort"}) as session:
        predictions = list(session)
        tracks = session.tracks
    assert_all_equal(predictions, truths_of(answer))
    video = answer["final"]["video_ann"]
    told = {int(figure["trackId"]) for frame in video["frames"] for figure in frame["figures"]}
    assert told == {track.id for track in tracks}
    assert len(told) >= 3
    assert video["framesCount"] == COUNT


ASKED = [
    "get_info",
    "get_settings",
    "get_tracking_settings",
    "get_model_meta",
    "get_classes",
    "list_pretrained_models",
    "list_pretrained_model_infos",
    "is_deployed",
    "status",
    "freeze_model",
]
"""Every method of their `ModelAPI` that needs no platform and works on their own server."""


def test_what_works_there_works_here(client: TheirClient, ours: str, production: TheirServer) -> None:
    """Everything their `ModelAPI` asks has the same kind, and the same keys."""
    theirs = client.run("model_api", production.url, ask=ASKED)
    answer = client.run("model_api", ours, ask=ASKED)
    assert [*theirs] == [*answer] == ASKED
    assert {name: type(value) for name, value in answer.items()} == {
        name: type(value) for name, value in theirs.items()
    }
    for name in ("get_info", "status", "get_model_meta", "freeze_model"):
        assert list(answer[name]) == list(theirs[name])
    assert set(answer["list_pretrained_model_infos"][0]) >= set(theirs["list_pretrained_model_infos"][0])
    assert answer["get_classes"] == ["wide", "tall"]
    assert answer["is_deployed"] is True


def test_the_deployment(client: TheirClient, ours: str, paths: list[Path]) -> None:
    """What is told of it is true; a model on a CPU is not frozen, in the words of theirs, and works on."""
    told = client.run("model_api", ours, ask=ASKED, input=str(paths[4]))
    assert told["get_info"]["model_name"] == "Spots"
    assert told["get_info"]["model_source"] == "Custom models"
    assert told["get_info"]["task_type"] == "instance segmentation"
    assert told["list_pretrained_models"] == ["Spots"]
    assert told["list_pretrained_model_infos"][0]["number_of_classes"] == 2
    assert told["freeze_model"]["message"].startswith("Failed to freeze model. ")
    assert_all_equal(run_ours(ours, paths[4]), truths_of(told))


def test_loading(client: TheirClient, ours: str) -> None:
    """`ModelAPI.load` of the model that runs is done; of another, or to another device, it is refused."""
    loaded = client.run("model_api", ours, ask=[], load={"model": "Spots"})
    assert loaded == {"load": None}
    for wanted in ({"model": "Else"}, {"model": "Spots", "device": "cuda:0"}):
        assert "error" in client.run("model_api", ours, ask=["is_deployed"], load=wanted)
    assert client.run("model_api", ours, ask=["is_deployed"]) == {"is_deployed": True}


def test_predicting_with_the_handle(client: TheirClient, ours: str, paths: list[Path]) -> None:
    """`ModelAPI.predict`, which shows a bar and returns a list."""
    answer = client.run("model_api", ours, ask=[], input=str(paths[4]), keywords={"conf": 0.5})
    assert_all_equal(run_ours(ours, paths[4]), truths_of(answer))


BEYOND_THEM = {
    "a list of paths": lambda paths: [str(path) for path in paths],
    "an array": lambda paths: {"as": "array", "paths": [str(paths[0])], "list": False},
    "a list of arrays": lambda paths: {"as": "array", "paths": [str(path) for path in paths]},
    "a list of bytes": lambda paths: {"as": "bytes", "paths": [str(path) for path in paths]},
}


@pytest.mark.parametrize("name", BEYOND_THEM)
def test_what_only_ours_can(
    client: TheirClient, ours: str, production: TheirServer, paths: list[Path], name: str
) -> None:
    """Their client fails with these, on either server; ours runs them."""
    for url in (ours, production.url):
        assert "error" in client.run("session", url, input=BEYOND_THEM[name](paths))
    sources = [spots(number) for number in range(3)] if "array" in name else paths
    assert len(run_ours(ours, sources)) == len(sources)
