"""The vendor's released client, unmodified, against our server: every method, over TCP and a unix socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interop.edge.vendor import Vendor
from PIL import Image
from server_kit import Server

from predsession.server.models.pixels import box_number, number_picture, number_score

MODELS = Path(__file__).parents[2] / "edge_models.py"
FRAMES = 8


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Our server, with a camera."""
    folder = tmp_path_factory.mktemp("ours")
    (folder / "cam").mkdir()
    for number in range(FRAMES):
        Image.fromarray(number_picture(number)).save(folder / "cam" / f"{number}.png")
    doors = ("--grpc", "127.0.0.1:0", "--grpc", f"unix:{folder}/door.sock")
    with Server("pixels", *doors, "--stream", f"cam0_main={folder / 'cam'}") as running:
        yield running


@pytest.fixture(params=["tcp", "unix"])
def endpoint(request: pytest.FixtureRequest, server: Server) -> str:
    """Either address."""
    return server.grpc[request.param == "unix"]


@pytest.fixture
def door(server: Server) -> str:
    """One address."""
    return server.grpc[1]


def number_of(result: dict[str, Any], size: tuple[int, int] = (64, 32)) -> int:
    """Read the number off what their client shows."""
    x, y, width, height = result["objects"][0]["box"]
    return box_number(np.array([x, y, x + width, y + height]) * [*size, *size])


def call(vendor: Vendor, endpoint: str, method: str, *arguments: object, **keywords: object) -> Any:
    """Call one of their client's methods."""
    return vendor.run("call", endpoint=endpoint, method=method, arguments=list(arguments), keywords=keywords)


def test_infer(vendor: Vendor, endpoint: str) -> None:
    """Their client reads what was found, and the raw outputs, off a picture of any size."""
    for number, size in ((7, (64, 32)), (4711, (640, 480))):
        picture = vendor.picture(number_picture(number, size))
        result = vendor.run("infer", endpoint=endpoint, model="pixels", picture=picture)
        assert number_of(result, size) == number
        assert box_number(result["outputs"][0][0]) == number
        (found,) = result["objects"]
        assert (found["label"], found["class_id"]) == (f"ends in {number % 10}", number % 10)
        assert found["score"] == pytest.approx(number_score(number))
        assert all(time > 0 for time in result["times"])


def test_infer_async(vendor: Vendor, endpoint: str) -> None:
    """Several of their futures are on their way at once."""
    picture = vendor.picture(number_picture(5))
    results = vendor.run("infer", endpoint=endpoint, model="pixels", picture=picture, later=20)
    assert [number_of(one) for one in results] == [5] * 20


def test_errors(vendor: Vendor, door: str) -> None:
    """Their client raises with our words: unknown models, sessions, wrong tensors, late answers."""
    picture = vendor.picture(number_picture(1))
    asked = {"endpoint": door, "picture": picture}
    assert vendor.run("infer", model="none", **asked) == {
        "error": "RuntimeError: Inference failed: Model not found"
    }
    wrong = vendor.picture(np.zeros((4, 4), np.float32))
    answer = vendor.run("infer", endpoint=door, picture=wrong, model="pixels")
    assert "Invalid input: the tensor is (4, 4) FLOAT32" in answer["error"]
    assert call(vendor, door, "update_postprocess_config", "pixels", json.dumps({"delay": 0.4})) is True
    late = vendor.run("infer", model="pixels", keywords={"timeout_ms": 100}, **asked)
    assert "DEADLINE_EXCEEDED" in late["error"] or "Inference timeout" in late["error"]
    assert call(vendor, door, "update_postprocess_config", "pixels", json.dumps({"delay": 0})) is True


@pytest.mark.parametrize("later", [False, True])
def test_infer_batch(vendor: Vendor, door: str, later: bool) -> None:
    """A batch with a bad model in it: their client gives the others, and the reason as a message."""
    items = [
        [vendor.picture(number_picture(number)), "none" if number == 1 else "pixels"] for number in range(3)
    ]
    results = vendor.run("batch", endpoint=door, items=items, later=later)
    assert [one["status"] for one in results] == ["", "Model not found", ""]
    assert [number_of(results[number]) for number in (0, 2)] == [0, 2]
    assert vendor.run("batch", endpoint=door, items=[], later=later) == []


def test_infer_with_tensors(vendor: Vendor, door: str) -> None:
    """Raw outputs have their dtypes and shapes."""
    picture = vendor.picture(number_picture(77))
    boxes, scores, ids = vendor.run("tensors", endpoint=door, model="pixels", picture=picture)
    assert [each[0] for each in (boxes, scores, ids)] == ["float32", "float32", "int32"]
    assert box_number(boxes[1][0]) == 77
    assert ids[1] == [7]


def test_subscribe(vendor: Vendor, endpoint: str) -> None:
    """Frames come in order with their own results; closing their generator ends it."""
    keywords = {"stream": "cam0_main", "model": "pixels", "fps": 100}
    answer = vendor.run("subscribe", endpoint=endpoint, keywords=keywords, count=12)
    numbers = [number for number, _ in answer["frames"]]
    assert numbers == sorted(set(numbers))
    assert [number_of(result) for _, result in answer["frames"]] == [number % FRAMES for number in numbers]
    assert all(result["outputs"] is None and result["stamp"] for _, result in answer["frames"])
    raw = vendor.run("subscribe", endpoint=endpoint, keywords={**keywords, "raw_output_only": True}, count=1)
    ((number, result),) = raw["frames"]
    assert (box_number(result["outputs"][0][0]), result["objects"]) == (number % FRAMES, [])
    unknown = vendor.run("subscribe", endpoint=endpoint, keywords={**keywords, "model": "none"}, count=1)
    assert "NOT_FOUND" in unknown["error"]


def test_models(vendor: Vendor, door: str) -> None:
    """A model is registered, listed, described, used and unregistered; masks come as theirs decodes them."""
    assert call(vendor, door, "register_model", f"{MODELS}:Masks", "masks", "me") == "masks"
    models = call(vendor, door, "list_models")
    assert [one["model_id"] for one in models] == ["pixels", "masks"]
    assert [spec["name"] for spec in models[1]["outputs"]] == ["boxes", "scores", "class_ids"]
    info = call(vendor, door, "get_model_info", "masks")
    assert (info["model_id"], info["model_path"]) == ("masks", f"{MODELS}:Masks")
    picture = vendor.picture(np.zeros((40, 60, 3), np.uint8))
    result = vendor.run("infer", endpoint=door, model="masks", picture=picture)
    half, corner = (np.array(mask) for mask in result["masks"])
    assert (half.shape, half[:, 30:].all(), half[:, :30].any(), corner.sum()) == ((40, 60), True, False, 150)
    assert call(vendor, door, "unregister_model", "masks") is None
    assert "Failed to unregister" in call(vendor, door, "unregister_model", "masks")["error"]
    assert "NOT_FOUND" in call(vendor, door, "get_model_info", "masks")["error"]
    assert "Failed to load" in call(vendor, door, "register_model", "/no/such.toml", "other")["error"]
    assert "model_id and model_path required" in call(vendor, door, "register_model", "x")["error"]


def test_landmarks(vendor: Vendor, door: str) -> None:
    """Keypoints come as landmarks, tags as classifications."""
    assert call(vendor, door, "register_model", f"{MODELS}:Points", "points") == "points"
    picture = vendor.picture(np.zeros((40, 60, 3), np.uint8))
    result = vendor.run("infer", endpoint=door, model="points", picture=picture)
    assert result["landmarks"] == [[[0.5, 0.25, 1.0], [0.0, 0.0, 0.0]]]
    assert result["classifications"] == ["outdoors"]
    assert call(vendor, door, "unregister_model", "points") is None


def test_stats(vendor: Vendor, door: str) -> None:
    """Counters move with the calls."""

    def total() -> int:
        stats = call(vendor, door, "get_stats")
        assert stats["ram_total_kib"] > 0
        return int(stats["model_stats"][0]["total_inferences"])

    before = total()
    picture = vendor.picture(number_picture(5))
    vendor.run("infer", endpoint=door, model="pixels", picture=picture, later=5)
    assert total() - before == 5


def test_sessions(vendor: Vendor, door: str) -> None:
    """The name that was asked for comes back, and its quotas hold."""
    name = call(vendor, door, "create_session", "mine", "app", ["pixels"], 2, 0)
    assert name == "mine"
    picture = vendor.picture(number_picture(5))
    asked = {"endpoint": door, "picture": picture, "keywords": {"session_id": name}}
    over = vendor.run("infer", model="pixels", later=9, **asked)
    assert "max_qps" in over["error"]
    other = vendor.run("infer", model="other", **asked)
    assert "Model not found" in other["error"]
    assert call(vendor, door, "destroy_session", "mine") is None
    assert "Session not found" in call(vendor, door, "destroy_session", "mine")["error"]
    gone = vendor.run("infer", model="pixels", **asked)
    assert "Session not found" in gone["error"]


def test_postprocess_config(vendor: Vendor, door: str) -> None:
    """A threshold changes what is found; an unknown key is refused."""
    picture = vendor.picture(number_picture(1))
    asked = {"endpoint": door, "picture": picture, "model": "pixels"}
    for threshold, count in ((0.9, 0), (0.1, 1)):
        config = json.dumps({"detection_threshold": threshold})
        assert call(vendor, door, "update_postprocess_config", "pixels", config) is True
        assert len(vendor.run("infer", **asked)["objects"]) == count
    refused = call(vendor, door, "update_postprocess_config", "pixels", '{"unknown": 1}')
    assert "Failed to update config" in refused["error"]


@pytest.mark.parametrize(("method", "arguments"), [
    ("encode_text", ["a cat"]),
    ("genai_create_session", ["/x.hef"]),
    ("genai_destroy_session", ["x"]),
    ("genai_generate", ["x", ['{"role": "user", "content": "hi"}']]),
    ("genai_abort", ["x"]),
])  # fmt: skip
def test_what_our_server_lacks(vendor: Vendor, door: str, method: str, arguments: list[object]) -> None:
    """It says UNIMPLEMENTED, and why."""
    answer = call(vendor, door, method, *arguments)
    assert "UNIMPLEMENTED" in answer["error"]
    assert "this server has no" in answer["error"]
