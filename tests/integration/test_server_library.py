"""A library on a real server: ids that stay, files that are fetched, predictions that are written back."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from number_clips import frames_of, write_numbers
from PIL import Image
from server_kit import Caller, Server, numbers, png, until

from predsession import PredictionSession, SourceError
from predsession.server.models.pixels import box_number, number_box, number_picture, read_number

PICTURES = {"p/a/1.png": 1, "p/a/2.png": 2, "p/a/10.png": 10, "p/a/deep/3.png": 3, "p/b/img/4.png": 4}


def fill(root: Path) -> Path:
    """Fill a library: one project of two datasets, one of a video, and files at every height."""
    for place, number in {**PICTURES, "q/5.png": 5, "6.png": 6}.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_bytes(png(number))
    (root / "v" / "d").mkdir(parents=True)
    write_numbers(root / "v" / "d" / "clip.mp4", 30)
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A library's folder."""
    return fill(tmp_path / "library")


@pytest.fixture
def served(root: Path) -> Iterator[Caller]:
    """A caller of a server with that library."""
    with Server("pixels", "--library", str(root)) as server, Caller(server.url) as caller:
        yield caller


def get(caller: Caller, place: str) -> Any:
    """Get JSON."""
    reply = caller.http.get(f"{caller.url}/{place}", timeout=30)
    assert reply.status_code == 200, (place, reply.status_code, reply.text)
    return reply.json()


def listing(caller: Caller) -> dict[str, int]:
    """Return the id of every item, by project, dataset and name."""
    found: dict[str, int] = {}
    for project in get(caller, "library")["projects"]:
        for dataset in project["datasets"]:
            for item in get(caller, f"library/datasets/{dataset['id']}")["items"]:
                found[f"{project['name']}|{dataset['name']}|{item['name']}"] = item["id"]
    return found


def dataset_id(caller: Caller, project: str, dataset: str) -> int:
    """Return the id of a dataset."""
    for one in get(caller, "library")["projects"]:
        for each in one["datasets"]:
            if (one["name"], each["name"]) == (project, dataset):
                found: int = each["id"]
                return found
    raise AssertionError(f"no dataset {project}/{dataset}")


def project_id(caller: Caller, name: str) -> int:
    """Return the id of a project."""
    return int(next(one["id"] for one in get(caller, "library")["projects"] if one["name"] == name))


def run(caller: Caller, endpoint: str, **state: Any) -> list[dict[str, Any]]:
    """Run a job by ids to its end."""
    uuid = caller.ask(endpoint, **state)["inference_request_uuid"]
    items, last = caller.drain(uuid)
    assert last["exception"] is None, last["exception"]
    return items


def test_every_file_has_its_place(served: Caller) -> None:
    """Project, dataset, name; files that lie higher are the dataset and project ``.``."""
    assert set(listing(served)) == {
        "p|a|1.png", "p|a|2.png", "p|a|10.png", "p|a|deep/3.png", "p|b|4.png", "q|.|5.png", ".|.|6.png",
        "v|d|clip.mp4",
    }  # fmt: skip
    named = get(served, f"library/datasets/{dataset_id(served, 'p', 'a')}")
    assert [item["name"] for item in named["items"]] == ["1.png", "2.png", "10.png", "deep/3.png"]
    assert named["project_id"] == project_id(served, "p")
    assert (named["images_count"], named["videos_count"], named["total"]) == (4, 0, 4)
    assert get(served, f"library/projects/{named['project_id']}")["name"] == "p"


def test_lists_come_in_pages(served: Caller) -> None:
    """Each tells where the next begins."""
    place = f"library/datasets/{dataset_id(served, 'p', 'a')}"
    names, after = [], 0
    while after is not None:
        page = get(served, f"{place}?after={after}&limit=3")
        names += [item["name"] for item in page["items"]]
        after = page["next"]
    assert names == ["1.png", "2.png", "10.png", "deep/3.png"]
    first = get(served, "library?limit=2")
    assert (len(first["projects"]), first["total"], first["next"]) == (2, 4, 2)
    assert get(served, "library?after=2")["next"] is None
    assert served.http.get(f"{served.url}/library?limit=x", timeout=30).status_code == 400


def test_ids_stay(root: Path) -> None:
    """Through restarts, new files, moves, a renamed dataset and a renamed project; a copy is a new item."""
    with Server("pixels", "--library", str(root)) as server, Caller(server.url) as caller:
        before = listing(caller)
        dataset, project = dataset_id(caller, "p", "a"), project_id(caller, "p")
    (root / "p" / "a" / "0.png").write_bytes(png(100))
    (root / "p" / "a" / "1.png").rename(root / "p" / "b" / "moved.png")
    (root / "p" / "a" / "copy.png").write_bytes(png(2))
    (root / "p" / "a").rename(root / "p" / "z")
    (root / "p").rename(root / "renamed")
    with Server("pixels", "--library", str(root)) as server, Caller(server.url) as caller:
        after = listing(caller)
        assert (dataset_id(caller, "renamed", "z"), project_id(caller, "renamed")) == (dataset, project)
        assert numbers(run(caller, "inference_batch_ids_async", images_ids=[before["p|a|1.png"]])) == [1]
    for old, new in (
        ("p|a|1.png", "renamed|b|moved.png"), ("p|a|2.png", "renamed|z|2.png"),
        ("p|b|4.png", "renamed|b|4.png"),
        ("p|a|deep/3.png", "renamed|z|deep/3.png"), ("q|.|5.png", "q|.|5.png"), (".|.|6.png", ".|.|6.png"),
        ("v|d|clip.mp4", "v|d|clip.mp4"),
    ):  # fmt: skip
        assert after[new] == before[old], new
    assert not {after["renamed|z|0.png"], after["renamed|z|copy.png"]} & set(before.values())


def test_ids_go_with_files_that_change_places(root: Path) -> None:
    """Two that were exchanged, one that took the place of another, and one that was saved anew."""
    folder = root / "p" / "a"
    with Server("pixels", "--library", str(root)) as server, Caller(server.url) as caller:
        ids = listing(caller)
    for old, new in (("1.png", "x"), ("2.png", "1.png"), ("x", "2.png"), ("10.png", "11.png")):
        (folder / old).rename(folder / new)
    (folder / "deep" / "3.png").rename(folder / "10.png")
    (root / "q" / "fresh").write_bytes(png(55))
    (root / "q" / "fresh").replace(root / "q" / "5.png")
    wanted = [ids[f"p|a|{name}"] for name in ("1.png", "2.png", "10.png", "deep/3.png")]
    with Server("pixels", "--library", str(root)) as server, Caller(server.url) as caller:
        items = run(caller, "inference_batch_ids_async", images_ids=[*wanted, ids["q|.|5.png"]])
    assert numbers(items) == [1, 2, 10, 3, 55]
    assert [item["name"] for item in items] == ["2.png", "1.png", "11.png", "10.png", "5.png"]


def test_a_running_server_sees_changes(served: Caller, root: Path) -> None:
    """A file that was moved or written over keeps its id at once; one that is gone is not answered."""
    ids = listing(served)
    (root / "p" / "a" / "2.png").rename(root / "q" / "elsewhere.png")
    (root / "p" / "a" / "10.png").write_bytes(png(77))
    (root / "p" / "a" / "1.png").unlink()
    import time

    time.sleep(2.1)  # the library is looked through again after two seconds at the latest
    places = [ids["p|a|2.png"], ids["p|a|10.png"]]
    assert numbers(run(served, "inference_batch_ids_async", images_ids=places)) == [2, 77]
    items = run(served, "inference_batch_ids_async", images_ids=[ids["p|a|1.png"]], item_errors=True)
    assert items[0]["error"]["type"] == "BadImageError"
    assert items[0]["image_id"] == ids["p|a|1.png"]


def test_images_and_frames_are_fetched(served: Caller, root: Path) -> None:
    """An image is its file, byte for byte; a frame is a picture of that frame, in two formats."""
    ids = listing(served)
    reply = served.http.get(f"{served.url}/library/images/{ids['p|a|2.png']}", timeout=30)
    assert reply.content == (root / "p" / "a" / "2.png").read_bytes()
    assert reply.headers["content-type"] == "image/png"
    assert reply.headers["x-content-type-options"] == "nosniff"
    video = ids["v|d|clip.mp4"]
    for frame in (0, 29, 13):
        for kind, name in (("png", "PNG"), ("jpg", "JPEG")):
            place = f"{served.url}/library/videos/{video}/frames/{frame}?format={kind}"
            picture = Image.open(io.BytesIO(served.http.get(place, timeout=30).content))
            assert picture.format == name
            assert read_number(np.asarray(picture)) == frame
    for place in (
        "images/999",
        f"images/{video}",
        f"videos/{video}/frames/30",
        "videos/x/frames/0",
        "datasets/99",
    ):
        reply = served.http.get(f"{served.url}/library/{place}", timeout=30)
        assert reply.status_code == 404, place
        assert str(root) not in reply.text


def test_nothing_outside_is_served(root: Path, tmp_path: Path) -> None:
    """Links are no items; and what becomes a link after it was seen is refused, written through neither."""
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(99))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "9.png").write_bytes(png(9))
    (root / "p" / "a" / "link.png").symlink_to(secret)
    (root / "p" / "folder").symlink_to(outside)
    with Server("pixels", "--library", str(root)) as server, Caller(server.url) as caller:
        ids = listing(caller)
        assert not [name for name in ids if "link" in name or "folder" in name]
        (root / "p" / "a" / "2.png").unlink()
        (root / "p" / "a" / "2.png").symlink_to(secret)
        (root / "p" / "b" / "img").rename(tmp_path / "img")
        (root / "p" / "b" / "img").symlink_to(tmp_path / "img")
        for name in ("p|a|2.png", "p|b|4.png"):
            assert caller.http.get(f"{caller.url}/library/images/{ids[name]}", timeout=30).status_code == 404
        uuid = caller.ask("inference_batch_ids_async", images_ids=[ids["p|a|2.png"]])[
            "inference_request_uuid"
        ]
        assert caller.drain(uuid)[1]["stage"] == "Error"
        (root / "p" / "a" / "ann").symlink_to(outside)
        state = {"images_ids": [ids["p|a|1.png"]], "upload_mode": "append"}
        uuid = caller.ask("inference_batch_ids_async", **state)["inference_request_uuid"]
        assert caller.drain(uuid)[1]["exception"]["type"] == "WritingError"
        assert [path.name for path in outside.iterdir()] == ["9.png"]


def test_the_library_is_behind_the_token(root: Path) -> None:
    """As everything else."""
    with Server("pixels", "--library", str(root), "--token", "secret") as server:
        with Caller(server.url) as caller:
            for place in ("library", "library/images/1", "library/videos/1/frames/0"):
                assert caller.http.get(f"{caller.url}/{place}", timeout=30).status_code == 401
            assert (
                caller.post("inference_batch_ids_async", json={"state": {"images_ids": [1]}}).status_code
                == 401
            )
        with Caller(server.url, token="secret") as caller:
            assert len(listing(caller)) == 8


def test_results_know_what_they_belong_to(served: Caller) -> None:
    """Images by ids, in the order of the ids, under each of the keys; the sync calls answer the same."""
    ids = listing(served)
    wanted = [ids["p|a|10.png"], ids["p|b|4.png"], ids["p|a|deep/3.png"]]
    for key in ("images_ids", "image_ids", "batch_ids", "imageIds"):
        items = run(served, "inference_batch_ids_async", **{key: wanted})
        assert numbers(items) == [10, 4, 3]
        assert [item["image_id"] for item in items] == wanted
        assert [item["name"] for item in items] == ["10.png", "4.png", "deep/3.png"]
        assert {item["project_id"] for item in items} == {project_id(served, "p")}
    a, b = dataset_id(served, "p", "a"), dataset_id(served, "p", "b")
    assert [item["dataset_id"] for item in items] == [a, b, a]
    for key in ("image_id", "imageId"):
        assert numbers(run(served, "inference_image_id_async", **{key: wanted[1]})) == [4]
    assert numbers([served.ask("inference_image_id", image_id=wanted[1])]) == [4]
    assert numbers(served.ask("inference_batch_ids", images_ids=wanted)) == [10, 4, 3]


def test_projects_and_datasets(served: Caller) -> None:
    """All images of a project in natural order, or of some of its datasets; of a video's project none."""
    project = project_id(served, "p")
    assert numbers(run(served, "inference_project_id_async", project_id=project)) == [1, 2, 10, 3, 4]
    dataset = dataset_id(served, "p", "b")
    items = run(served, "inference_project_id_async", projectId=project, datasetIds=[dataset])
    assert numbers(items) == [4]
    for state in (
        {"project_id": 99},
        {"project_id": project_id(served, "v")},
        {"project_id": project, "dataset_ids": [99]},
        {"project_id": project_id(served, "q"), "dataset_ids": [dataset]},
    ):
        reply = served.post("inference_project_id_async", json={"state": state})
        assert (reply.status_code, "no images" in reply.text) == (404, True)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({}, range(30)),
        ({"startFrameIndex": 3, "framesCount": 4}, range(3, 7)),
        ({"start_frame": 26, "end_frame": 29}, range(26, 29)),
        ({"start_frame_index": 27, "frames_count": 9}, range(27, 30)),
        ({"direction": "backward", "stride": 10}, [29, 19, 9]),
    ],
)
def test_videos(served: Caller, state: dict[str, Any], expected: list[int]) -> None:
    """Frames of a video by its id; here the end is exclusive, as on a platform's server."""
    video = listing(served)["v|d|clip.mp4"]
    items = run(served, "inference_video_id_async", video_id=video, **state)
    assert frames_of(items) == list(expected)
    assert {item["video_id"] for item in items} == {video}
    assert {item["dataset_id"] for item in items} == {dataset_id(served, "v", "d")}
    answer = served.ask("inference_video_id", videoId=video, **state)
    assert (frames_of(answer["ann"]), answer["video_ann"]) == (list(expected), None)


def test_a_tracked_video(root: Path) -> None:
    """By its id, with ids for the objects; the sync call brings the tracks."""
    sample = Path(__file__).parents[1] / "samples" / "pedestrians.mp4"
    (root / "v" / "d" / "walk.mp4").write_bytes(sample.read_bytes())
    with Server("detect", "--library", str(root)) as server, Caller(server.url) as caller:
        video = listing(caller)["v|d|walk.mp4"]
        answer = caller.ask("inference_video_id", video_id=video, num_frames=10, tracker="bytetrack")
        assert len(answer["ann"]) == 10
        assert [frame["index"] for frame in answer["video_ann"]["frames"]] == list(range(10))
        with PredictionSession(server.url, video_id=video, tracking=True, num_frames=10) as session:
            found = list(session)
            assert [one.frame_index for one in found] == list(range(10))
            assert found[3].load_image().shape == (384, 512, 3)
        assert {int(number) for one in found for number in one.track_ids} - {-1} == {
            track.id for track in session.tracks
        }


@pytest.mark.parametrize(
    ("endpoint", "state", "status", "message"),
    [
        ("inference_batch_ids_async", {}, 400, "images_ids is None"),
        ("inference_batch_ids_async", {"images_ids": []}, 400, "images_ids is []"),
        ("inference_batch_ids_async", {"images_ids": ["1"]}, 400, "it must be an id"),
        ("inference_batch_ids_async", {"images_ids": [1, 999]}, 404, "There is no image 999"),
        ("inference_video_id_async", {"video_id": 1}, 404, "There is no video 1"),
        ("inference_image_id", {"images_ids": [1, 2]}, 400, "Only one id expected but got 2"),
        (
            "inference_batch_ids_async",
            {"images_ids": [1], "upload_mode": "delete"},
            400,
            "upload_mode is 'delete'",
        ),
        ("inference_batch_ids_async", {"images_ids": [1], "output_project_id": 99}, 404, "no project 99"),
        (
            "inference_batch_ids_async",
            {"images_ids": [1], "upload_mode": "iou_merge", "iou_merge_threshold": 2},
            400,
            "iou_merge_threshold is 2",
        ),
        (
            "inference_batch_ids_async",
            {"images_ids": [1], "upload_mode": "create", "output_project_id": 1},
            400,
            "makes a new project",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    served: Caller, endpoint: str, state: dict[str, Any], status: int, message: str
) -> None:
    """In words that say what, and before anything is computed."""
    reply = served.post(endpoint, json={"state": state})
    assert reply.status_code == status
    assert message in reply.text


def annotation(caller: Caller, image: int) -> dict[str, Any]:
    """Return an image's annotation, as the server tells it."""
    found: dict[str, Any] = get(caller, f"library/images/{image}/annotation")
    return found


def write(path: Path, *objects: dict[str, Any]) -> None:
    """Write an annotation."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(
            {
                "description": "mine",
                "tags": [{"name": "t"}],
                "size": {"width": 64, "height": 32},
                "objects": objects,
            }
        )
    )


def rectangle(title: str, box: tuple[float, ...]) -> dict[str, Any]:
    """Return an object around a box."""
    x1, y1, x2, y2 = (round(side) for side in box)
    points = {"exterior": [[x1, y1], [x2 - 1, y2 - 1]], "interior": []}
    return {"classTitle": title, "geometryType": "rectangle", "points": points, "tags": []}


def found_in(objects: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return class and number of each object."""
    rows = []
    for one in objects:
        (left, top), (right, bottom) = one["points"]["exterior"]
        rows.append((one["classTitle"], box_number([left, top, right + 1, bottom + 1])))
    return rows


def test_append_and_replace(served: Caller, root: Path) -> None:
    """Append adds to what is there, replace takes its place; what is beside the objects stays."""
    ids = listing(served)
    image, place = ids["p|a|2.png"], root / "p" / "a" / "ann" / "2.png.json"
    assert annotation(served, image) == {"description": "", "tags": [], "objects": []}
    write(place, rectangle("mine", number_box(50)))
    run(served, "inference_batch_ids_async", images_ids=[image], upload_mode="append")
    assert found_in(annotation(served, image)["objects"]) == [("mine", 50), ("ends in 2", 2)]
    run(served, "inference_batch_ids_async", images_ids=[image], upload_mode="append")
    assert found_in(annotation(served, image)["objects"]) == [
        ("mine", 50),
        ("ends in 2", 2),
        ("ends in 2", 2),
    ]
    run(served, "inference_batch_ids_async", images_ids=[image], upload_mode="replace")
    now = annotation(served, image)
    assert found_in(now["objects"]) == [("ends in 2", 2)]
    assert (now["description"], now["tags"]) == ("mine", [{"name": "t"}])
    assert set(now["objects"][0]) >= {"key", "classTitle", "tags", "points", "geometryType"}
    meta = json.loads((root / "p" / "meta.json").read_text())
    assert {one["title"]: one["shape"] for one in meta["classes"]} == {"ends in 2": "rectangle"}
    assert not list(root.rglob(".*.json.*")), "no half-written file is left"


@pytest.mark.parametrize(
    ("title", "width", "threshold", "kept"),
    [
        ("ends in 4", 1, 0.9, False),
        ("ends in 4", 2, 0.4, False),
        ("ends in 4", 2, 0.5, True),
        ("ends in 5", 1, 0.5, True),
        ("ends in 4", 1, 1.0, True),
    ],
)
def test_iou_merge(served: Caller, root: Path, title: str, width: int, threshold: float, kept: bool) -> None:
    """A prediction that overlaps a present object of its class by more than the threshold is left out."""
    image = listing(served)["p|b|4.png"]
    x1, y1, _, y2 = number_box(4)
    write(root / "p" / "b" / "ann" / "4.png.json", rectangle(title, (x1, y1, x1 + width, y2)))
    state = {"images_ids": [image], "upload_mode": "iou_merge", "iou_merge_threshold": threshold}
    run(served, "inference_batch_ids_async", **state)
    assert len(annotation(served, image)["objects"]) == (2 if kept else 1)


def test_create_makes_a_project(served: Caller, root: Path) -> None:
    """With the images, the same files under a second name, and only the predictions; each time a new one."""
    project = project_id(served, "p")
    write(root / "p" / "a" / "ann" / "2.png.json", rectangle("mine", number_box(50)))
    for name in ("p (predictions)", "p (predictions 2)"):
        assert len(run(served, "inference_project_id_async", project_id=project, upload_mode="create")) == 5
        made = root / name
        assert sorted(str(path.relative_to(made)) for path in made.rglob("*.png")) == [
            "a/1.png", "a/10.png", "a/2.png", "a/deep/3.png", "b/4.png",
        ]  # fmt: skip
        data = json.loads((made / "a" / "ann" / "2.png.json").read_text())
        assert found_in(data["objects"]) == [("ends in 2", 2)]
        assert (made / "a" / "ann" / "deep" / "3.png.json").exists()
    assert (root / "p" / "a" / "2.png").stat().st_nlink == 3
    assert annotation(served, listing(served)["p|a|2.png"])["objects"][0]["classTitle"] == "mine"


def test_an_output_project(served: Caller, root: Path) -> None:
    """Predictions go to another project, images along; what is there stays, or not, as the mode says."""
    ids, output = listing(served), project_id(served, "q")
    state = {"images_ids": [ids["p|a|2.png"]], "output_project_id": output}
    run(served, "inference_batch_ids_async", **state)
    place = root / "q" / "a" / "ann" / "2.png.json"
    assert found_in(json.loads(place.read_text())["objects"]) == [("ends in 2", 2)]
    run(served, "inference_batch_ids_async", **state)
    assert len(json.loads(place.read_text())["objects"]) == 2
    run(served, "inference_batch_ids_async", **state, upload_mode="replace")
    assert len(json.loads(place.read_text())["objects"]) == 1
    assert not (root / "p" / "a" / "ann").exists()
    assert (root / "q" / "a" / "2.png").samefile(root / "p" / "a" / "2.png")


def test_a_class_of_another_shape_gets_a_suffix(served: Caller, root: Path) -> None:
    """A project whose class of that name has another geometry keeps it."""
    image = listing(served)["p|a|2.png"]
    meta = {"classes": [{"title": "ends in 2", "shape": "bitmap", "color": "#000000"}], "tags": []}
    (root / "p" / "meta.json").write_text(json.dumps(meta))
    state = {"images_ids": [image], "upload_mode": "append", "model_prediction_suffix": "_pred"}
    run(served, "inference_batch_ids_async", **state)
    assert annotation(served, image)["objects"][0]["classTitle"] == "ends in 2_pred"
    classes = json.loads((root / "p" / "meta.json").read_text())["classes"]
    assert [(one["title"], one["shape"]) for one in classes] == [
        ("ends in 2", "bitmap"), ("ends in 2_pred", "rectangle"),
    ]  # fmt: skip


def test_a_file_that_cannot_be_read_is_not_written_over(served: Caller, root: Path) -> None:
    """The job ends with an error that names it; what was predicted before is there."""
    ids = listing(served)
    place = root / "p" / "a" / "ann" / "2.png.json"
    place.parent.mkdir()
    place.write_text("{half a fi")
    state = {"images_ids": [ids["p|a|1.png"], ids["p|a|2.png"]], "upload_mode": "append"}
    uuid = served.ask("inference_batch_ids_async", **state)["inference_request_uuid"]
    items, last = served.drain(uuid)
    assert (numbers(items), last["stage"]) == ([1], "Error")
    assert "2.png.json cannot be read" in last["exception"]["message"]
    assert place.read_text() == "{half a fi"


def test_predictions_are_written_once(root: Path, tmp_path: Path) -> None:
    """A server that is killed in the middle of a job that appends: the next life goes on, and nothing is
    there twice.
    """
    for number in range(60):
        (root / "q" / f"n{number}.png").write_bytes(png(200 + number))
    arguments = ("pixels", "--library", str(root), "--data", str(tmp_path / "data"), "--quiet")
    uuid = ""
    for life in range(4):
        with Server(*arguments) as server, Caller(server.url) as caller:
            if not uuid:
                state = {"project_id": project_id(caller, "q"), "settings": {"delay": 0.02}, "batch_size": 4}
                uuid = caller.ask("inference_project_id_async", **state, upload_mode="append", session="s")[
                    "inference_request_uuid"
                ]
            have = 0 if not life else caller.progress(uuid)["progress"]["current"]
            if life < 3:
                goal = (life + 1) * 12

                def far(uuid: str = uuid, caller: Caller = caller, goal: int = goal) -> bool:
                    return bool(caller.pop(uuid, ack=0, limit=1)["progress"]["current"] >= goal)

                until(far, "some results")
                server.kill()
            else:
                items, last = caller.read(uuid)
    assert (last["stage"], len(items), have <= 61) == ("Finished", 61, True)
    files = list((root / "q" / "ann").glob("*.json"))
    assert len(files) == 61
    assert {len(json.loads(path.read_text())["objects"]) for path in files} == {1}


def test_without_a_library(either: str) -> None:
    """The job ends in the stage Error at once, as on a server that no platform stands behind."""
    with Caller(either) as caller:
        for endpoint, state in (
            ("inference_batch_ids_async", {"images_ids": [5]}),
            ("inference_image_id_async", {"image_id": 5}),
            ("inference_video_id_async", {"video_id": 5}),
            ("inference_project_id_async", {"project_id": 5}),
        ):
            uuid = caller.ask(endpoint, **state)["inference_request_uuid"]
            items, last = caller.drain(uuid)
            assert (items, last["stage"]) == ([], "Error")
            kind = last["exception"]["type"]
            assert kind in {"AttributeError", "NoLibraryError"}
        for endpoint in ("inference_image_id", "inference_batch_ids", "inference_video_id"):
            reply = caller.post(endpoint, json={"state": {"image_ids": [5], "video_id": 5}})
            assert reply.status_code == 500
            assert reply.json()["detail"]["message"].partition("(")[0] in {"AttributeError", "NoLibraryError"}
        assert caller.http.get(f"{either}/library", timeout=30).status_code == 404


def test_our_client_by_ids(served: Caller, root: Path) -> None:
    """Images, datasets, projects, videos: predictions know their ids, and load their pictures by them."""
    ids = listing(served)
    wanted = [ids["p|a|10.png"], ids["p|a|1.png"]]
    with PredictionSession(served.url, image_ids=wanted) as session:
        found = list(session)
    assert [one.image_id for one in found] == wanted
    assert [one.name for one in found] == ["10.png", "1.png"]
    assert read_number(found[0].load_image()) == 10
    dataset = dataset_id(served, "p", "a")
    with PredictionSession(served.url, dataset_id=dataset) as session:
        assert [box_number(one.boxes[0]) for one in session] == [1, 2, 10, 3]
        assert len(session) == 4
    with PredictionSession(served.url, project_id=project_id(served, "p"), upload_mode="append") as session:
        assert {one.dataset_id for one in session} == {dataset, dataset_id(served, "p", "b")}
    assert len(list((root / "p").rglob("ann/**/*.json"))) == 5
    with PredictionSession(served.url, video_id=ids["v|d|clip.mp4"], start_frame=28) as session:
        found = list(session)
    assert [one.frame_index for one in found] == [28, 29]
    assert read_number(found[1].load_image()) == 29
    with pytest.raises(SourceError, match="datasets of one project at a time"):
        PredictionSession(served.url, dataset_ids=[dataset, dataset_id(served, "q", ".")])


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    """Said at the start, in one line."""
    with pytest.raises(RuntimeError, match="ended with 2: predsession serve: there is no folder"):
        Server("pixels", "--library", str(tmp_path / "nowhere"))


def test_a_stock_server_has_none(root: Path) -> None:
    """Rather than one that nobody can ask."""
    with pytest.raises(RuntimeError, match="ended with 2: predsession serve: a server with --stock has no"):
        Server("pixels", "--stock", "--library", str(root))


def test_pictures_of_any_kind(root: Path, tmp_path: Path) -> None:
    """EXIF orientation counts as for uploads; a damaged file is an error, the others are answered."""
    stored = Image.fromarray(number_picture(8)).transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6
    stored.save(root / "q" / "turned.png", exif=exif)
    (root / "q" / "bad.jpg").write_bytes(b"no picture")
    with Server("pixels", "--library", str(root)) as server, Caller(server.url) as caller:
        project = project_id(caller, "q")
        items = run(caller, "inference_project_id_async", project_id=project, item_errors=True)
        assert numbers(items) == [5, "BadImageError", 8]
        assert items[1]["name"] == "bad.jpg"
