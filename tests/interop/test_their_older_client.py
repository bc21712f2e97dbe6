"""Their older `Session`, our server: pictures, batches, clips and the iterators, by file and by id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import requests
from interop.client_process import TheirClient
from interop.pictures import write_clip, write_pictures
from interop.test_their_sessions import MODEL, run_ours
from interop.their_server import TheirServer

from predsession import Prediction
from predsession.testing import RunningServer

COUNT = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library: a project of seven pictures and a clip."""
    root = tmp_path_factory.mktemp("library")
    write_pictures(root / "street" / "monday", 7)
    write_clip(root / "street" / "monday" / "clip.mp4", COUNT)
    return root


@pytest.fixture(scope="module")
def ours(folder: Path) -> Iterator[str]:
    """Our server, with the library."""
    with RunningServer(MODEL, arguments=["--library", str(folder)]) as server:
        yield server.url


@pytest.fixture(scope="module")
def library(ours: str) -> dict[str, Any]:
    """The ids: of the project, of its pictures, of its clip."""
    project = requests.get(f"{ours}/library", timeout=30).json()["projects"][0]
    dataset = project["datasets"][0]["id"]
    items = requests.get(f"{ours}/library/datasets/{dataset}", timeout=30).json()["items"]
    return {
        "project": project["id"],
        "images": [one["id"] for one in items if one["kind"] == "image"],
        "video": next(one["id"] for one in items if one["kind"] == "video"),
    }


def call(client: TheirClient, url: str, name: str, **keywords: Any) -> Any:
    """Call one method."""
    answer = client.run("old_session", url, calls=[[name, keywords]])
    assert "error" not in answer, answer
    return answer["answers"][0]


def assert_same(annotations: Sequence[dict[str, Any]], predictions: Sequence[Prediction]) -> None:
    """Hold the annotations of their client against our predictions: names, scores, masks."""
    assert len(annotations) == len(predictions)
    for annotation, prediction in zip(annotations, predictions, strict=True):
        again = Prediction.from_json({"annotation": annotation}, meta=prediction.meta)
        assert again.size == prediction.size
        assert list(again.classes) == list(prediction.classes)
        assert (again.scores == prediction.scores).all()
        assert (again.boxes == prediction.boxes).all()
        assert (again.masks == prediction.masks).all()


def test_what_the_model_is(client: TheirClient, ours: str) -> None:
    """Session info, classes, settings, and what is deployed."""
    assert call(client, ours, "get_session_info")["task type"] == "instance segmentation"
    assert [one["title"] for one in call(client, ours, "get_model_meta")["classes"]] == ["wide", "tall"]
    assert call(client, ours, "get_default_inference_settings")["max_objects"] == 8
    assert call(client, ours, "get_deploy_info")["model_name"] == "Spots"


def test_files(client: TheirClient, ours: str, folder: Path) -> None:
    """One picture, and several, with settings in the old place."""
    paths = sorted((folder / "street" / "monday").glob("*.jpg"))
    one = call(client, ours, "inference_image_path", image_path=str(paths[0]))
    assert_same([one], run_ours(ours, paths[:1]))
    names = [str(path) for path in paths]
    assert_same(call(client, ours, "inference_image_paths", image_paths=names), run_ours(ours, paths))
    calls = [["inference_image_paths", {"image_paths": names}]]
    answer = client.run("old_session", ours, calls=calls, settings={"max_objects": 1})
    assert_same(answer["answers"][0], run_ours(ours, paths, max_objects=1))


@pytest.fixture(scope="module")
def imitation() -> Iterator[str]:
    """Our server as it imitates theirs."""
    with RunningServer(MODEL, stock=True) as server:
        yield server.url


def test_files_where_ours_imitates_theirs(client: TheirClient, imitation: str, folder: Path) -> None:
    """With `--stock`: what the model is, one picture, and several with settings."""
    test_what_the_model_is(client, imitation)
    test_files(client, imitation, folder)


BY_ID: list[list[Any]] = [
    ["inference_image_ids_async", {"image_ids": [1, 2]}],
    ["inference_video_id_async", {"video_id": 1}],
    ["inference_project_id_async", {"project_id": 1}],
]


@pytest.mark.parametrize("named", BY_ID, ids=lambda named: str(named[0]))
def test_ids_where_ours_imitates_theirs(
    client: TheirClient, imitation: str, production: TheirServer, named: list[Any]
) -> None:
    """With `--stock`, as on theirs, no platform knows an id: their client fails in the same way."""
    theirs, ours = (client.run("old_session", url, calls=[named]) for url in (production.url, imitation))
    kinds = [answer["error"].partition(":")[0] for answer in (theirs, ours)]
    assert kinds[0] == kinds[1], (theirs, ours)


def test_pictures_by_id(client: TheirClient, ours: str, library: dict[str, Any]) -> None:
    """One, several at once, several by an iterator, and a whole project by an iterator."""
    ids = library["images"]
    predictions = run_ours(ours, None, image_ids=ids)
    assert_same([call(client, ours, "inference_image_id", image_id=ids[0])], predictions[:1])
    assert_same(call(client, ours, "inference_image_ids", image_ids=ids), predictions)
    for name, keywords in (
        ("inference_image_ids_async", {"image_ids": ids}),
        ("inference_project_id_async", {"project_id": library["project"]}),
    ):
        told = call(client, ours, name, **keywords)
        assert_same([one["annotation"] for one in told], predictions)
        assert [one["image_id"] for one in told] == ids
        assert [one["image_name"] for one in told] == [one.name for one in predictions]


def test_a_clip_by_id(client: TheirClient, ours: str, library: dict[str, Any]) -> None:
    """At once, and by an iterator; from a frame on, so many."""
    for keywords, mine in (
        ({}, {}),
        ({"start_frame_index": 4, "frames_count": 6}, {"start_frame": 4, "num_frames": 6}),
    ):
        predictions = run_ours(ours, None, video_id=library["video"], **mine)
        assert len(predictions) == (6 if mine else COUNT)
        for name in ("inference_video_id", "inference_video_id_async"):
            assert_same(call(client, ours, name, video_id=library["video"], **keywords), predictions)


@pytest.mark.parametrize("kind", ["image_ids", "video_id", "project_id"])
def test_their_newer_client_by_id(client: TheirClient, ours: str, library: dict[str, Any], kind: str) -> None:
    """`PredictionSession` with ids, without a platform."""
    ids = {"image_ids": library["images"], "video_id": library["video"], "project_id": library["project"]}
    answer = client.run("session", ours, input=None, keywords={kind: ids[kind]})
    assert "error" not in answer, answer
    predictions = run_ours(ours, None, **{kind: ids[kind]})
    assert_same([one["annotation"] for one in answer["predictions"]], predictions)
