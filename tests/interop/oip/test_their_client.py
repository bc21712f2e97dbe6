"""NVIDIA's released client, unmodified, against our server; and against Triton, where both must agree."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interop.edge.vendor import Vendor
from interop.oip.theirs import Theirs
from onnx_maker import network
from server_kit import Server

MODELS = Path(__file__).with_name("our_models.py")
NAMES = ("Scale", "Sums", "Echo", "Add", "Slow", "Fail", "Counter")
FRAME = np.random.default_rng(9).integers(0, 256, (32, 48, 3), np.uint8)
SMALL = FRAME.reshape(4, 8, 6, 8, 3).mean((1, 3), np.float32)
ONE: list[Any] = ["FP32", [1, 4], [1.0] * 4]
WIRE = {
    np.dtype(np.uint8): "UINT8", np.dtype(np.float32): "FP32", np.dtype(np.int64): "INT64",
}  # fmt: skip


def written(array: np.ndarray) -> list[Any]:
    """Write an array for their client's process."""
    return [WIRE[array.dtype], list(array.shape), array.reshape(-1).tolist()]


SCALE = {"model": "scale", "inputs": {"frame": written(FRAME)}}
ADD = {"model": "add", "inputs": {"a": ONE, "b": ONE}}
FAIL = {"model": "fail", "inputs": {"a": ["FP32", [1], [1.0]]}}


def counting(number: int, **more: Any) -> dict[str, Any]:
    """Ask for so many answers."""
    return {"model": "counter", "inputs": {"n": ["INT64", [1], [number]]}, **more}


@dataclass(frozen=True)
class Door:
    """Their client at one door of a server."""

    client: Vendor
    name: str
    url: str
    headers: dict[str, str]
    grpc: str

    def run(self, do: str, **task: Any) -> Any:
        """Do a task."""
        return self.client.run(do, door=self.name, url=self.url, **task)

    def infer(self, task: dict[str, Any], **more: Any) -> Any:
        """Infer."""
        return self.run("infer", **task, **more)

    def call(self, method: str, *arguments: Any, **keywords: Any) -> Any:
        """Call a method that answers with JSON."""
        keywords = {"headers": self.headers, **keywords}
        if self.name == "grpc" and method.startswith("get_"):
            keywords["as_json"] = True
        return self.run("call", method=method, arguments=list(arguments), keywords=keywords)

    def stream(self, *requests: dict[str, Any], count: int, **more: Any) -> Any:
        """Send requests on a stream, and take so many answers."""
        return self.client.run(
            "stream", door="grpc", url=self.grpc, requests=list(requests), count=count, **more
        )

    @property
    def status(self) -> Callable[[str, int], str]:
        """Choose what their client calls a status, of gRPC's name and HTTP's number."""
        return lambda name, number: f"StatusCode.{name}" if self.name == "grpc" else str(number)


@pytest.fixture(scope="session")
def client(client_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vendor]:
    """Their client, in a process of its own."""
    folder = tmp_path_factory.mktemp("tritonclient")
    with Vendor(client_python, str(Path(__file__).with_name("their_client.py")), folder) as process:
        yield process


@pytest.fixture(scope="module")
def our_server() -> Iterator[Server]:
    """Our server, with the models that Triton has."""
    models = [word for name in NAMES for word in ("--tensor-model", f"{name.lower()}={MODELS}:{name}")]
    with Server("pixels", "--oip", "--oip-grpc", "127.0.0.1:0", *models) as running:
        yield running


def door_of(request: pytest.FixtureRequest, whose: str, name: str) -> Door:
    """Open one door of our server, or of Triton."""
    client: Vendor = request.getfixturevalue("client")
    if whose == "ours":
        server: Server = request.getfixturevalue("our_server")
        (grpc,) = server.oip
        return Door(client, name, grpc if name == "grpc" else server.url.removeprefix("http://"), {}, grpc)
    theirs: Theirs = request.getfixturevalue("triton")
    headers = dict(theirs.metadata) if name == "grpc" else theirs.headers
    url = theirs.grpc if name == "grpc" else theirs.http.removeprefix("http://")
    return Door(client, name, url, headers, theirs.grpc)


@pytest.fixture(params=["ours-grpc", "ours-http", "triton-grpc", "triton-http"])
def door(request: pytest.FixtureRequest) -> Door:
    """Either door of our server, and of Triton."""
    return door_of(request, *request.param.split("-"))


@pytest.fixture(params=["ours", "triton"])
def streams(request: pytest.FixtureRequest) -> Door:
    """The door of either that streams."""
    return door_of(request, request.param, "grpc")


@pytest.fixture(params=["grpc", "http"])
def ours(request: pytest.FixtureRequest) -> Door:
    """Either door of our server."""
    return door_of(request, "ours", request.param)


def array_of(value: list[Any]) -> np.ndarray:
    """Read an array of their client's process."""
    return np.array(value[2]).reshape(value[1])


def test_health(door: Door) -> None:
    """Server and models are ready."""
    assert door.call("is_server_live") is True
    assert door.call("is_server_ready") is True
    assert door.call("is_model_ready", "scale") is True


def test_a_model_that_is_not_there(door: Door) -> None:
    """It is not ready, which is no error."""
    assert door.call("is_model_ready", "nope") is False


def test_what_it_is(door: Door) -> None:
    """Name, version and extensions."""
    about = door.call("get_server_metadata")
    assert about["version"]
    assert {"binary_tensor_data", "model_repository", "statistics"} <= set(about["extensions"])


def test_metadata(door: Door) -> None:
    """Names, datatypes and shapes."""
    about = door.call("get_model_metadata", "scale")
    shapes = {
        each["name"]: (each["datatype"], [int(side) for side in each["shape"]]) for each in about["outputs"]
    }
    assert shapes == {"small": ("FP32", [-1, -1, 3]), "total": ("INT64", [1])}
    assert [each["datatype"] for each in about["inputs"]] == ["UINT8"]
    assert about["versions"] == ["1"]


def test_config(door: Door) -> None:
    """The configuration has the tensors, the transaction policy, and the scales as a parameter."""
    config = door.call("get_model_config", "scale")
    config = config.get("config", config)
    assert [(each["data_type"], [int(side) for side in each["dims"]]) for each in config["input"]] == [
        ("TYPE_UINT8", [-1, -1, 3])
    ]
    text = config["parameters"]["predsession_quantization"]["string_value"]
    assert "0.5" in text
    counter = door.call("get_model_config", "counter")
    counter = counter.get("config", counter)
    assert counter["model_transaction_policy"]["decoupled"] is True


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("asked", [None, ["total"], ["total", "small"]])
def test_infer(door: Door, binary: bool, asked: list[str] | None) -> None:
    """Inputs and outputs as raw bytes or as JSON; what was asked for comes, and nothing else."""
    reply = door.infer(SCALE, id="seven", outputs=asked, binary=binary, binary_outputs=binary)
    assert reply["id"] == "seven"
    assert set(reply["outputs"]) == set(asked or ["small", "total"])
    assert reply["outputs"]["total"] == ["INT64", [1], [int(FRAME.sum())]]
    if "small" in reply["outputs"]:
        np.testing.assert_allclose(array_of(reply["outputs"]["small"]), SMALL, rtol=1e-6)


def test_chain(door: Door) -> None:
    """One model's output is the next one's input."""
    small = door.infer(SCALE)["outputs"]["small"]
    sums = door.infer({"model": "sums", "inputs": {"small": small}})["outputs"]
    np.testing.assert_allclose(array_of(sums["sum"]), [SMALL.sum()], rtol=1e-5)


def test_dtypes(door: Door) -> None:
    """Every datatype comes back as it went, bytes that are no text among them."""
    whole = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
    sent: dict[str, list[Any]] = {name.lower(): [name, [3], [0, 1, 100]] for name in whole}
    sent.update({name.lower(): [name, [2], [0.5, -2.0]] for name in ("FP16", "FP32", "FP64")})
    sent["bool"] = ["BOOL", [2], [True, False]]
    sent["bytes"] = ["BYTES", [3], ["ab", "\xff\x00", ""]]
    reply = door.infer({"model": "echo", "inputs": sent})
    assert reply["outputs"] == {f"{name}_out": value for name, value in sent.items()}


def test_compressed(door: Door) -> None:
    """Compression changes nothing."""
    both = {"request_compression_algorithm": "gzip", "response_compression_algorithm": "gzip"}
    keywords = {"compression_algorithm": "gzip"} if door.name == "grpc" else both
    assert door.infer(SCALE, keywords=keywords)["outputs"]["total"][2] == [int(FRAME.sum())]
    if door.name == "http":
        both = {"request_compression_algorithm": "deflate", "response_compression_algorithm": "deflate"}
        assert door.infer(SCALE, keywords=both)["outputs"]["total"][2] == [int(FRAME.sum())]


def test_several_at_once(door: Door) -> None:
    """Several calls are on their way at once."""
    replies = door.infer(ADD, later=8)
    assert [each["outputs"]["c"][2] for each in replies] == [[2.0] * 4] * 8


def test_statistics(door: Door) -> None:
    """They grow with each call; the parts lie within the whole."""

    def now() -> tuple[int, int, int]:
        (one,) = door.call("get_inference_statistics", "add")["model_stats"]
        spent = one["inference_stats"]
        parts = ("queue", "compute_input", "compute_infer", "compute_output")
        return (
            int(one["inference_count"]),
            int(spent["success"]["ns"]),
            sum(int(spent[part].get("ns", 0)) for part in parts),
        )

    door.infer(ADD)
    before = now()
    door.infer(ADD)
    count, whole, parts = (two - one for one, two in zip(before, now(), strict=True))
    assert count == 1
    assert 0 < parts <= whole


ODD = {
    "an unknown model": ({**SCALE, "model": "nope"}, ("NOT_FOUND", 404)),
    "an unknown output": ({**SCALE, "outputs": ["odd"]}, ("INVALID_ARGUMENT", 400)),
    "a wrong datatype": ({"model": "scale", "inputs": {"frame": ["FP32", [8, 8, 3], [0.0] * 192]}},
                         ("INVALID_ARGUMENT", 400)),
    "a wrong shape": ({"model": "scale", "inputs": {"frame": ["UINT8", [8, 24], [0] * 192]}},
                      ("INVALID_ARGUMENT", 400)),
    "no input": ({"model": "add", "inputs": {"a": ONE}}, ("INVALID_ARGUMENT", 400)),
    "an input too many": ({"model": "add", "inputs": {"a": ONE, "b": ONE, "x": ONE}},
                          ("INVALID_ARGUMENT", 400)),
    "a model that raises": (FAIL, ("INTERNAL", 500)),
    "a model that streams": (counting(1), ("UNIMPLEMENTED", 501)),
}  # fmt: skip


@pytest.mark.parametrize("what", list(ODD))
def test_errors(door: Door, what: str) -> None:
    """Our statuses are Triton's."""
    task, status = ODD[what]
    told = door.infer(task)
    assert told.get("status") == door.status(*status), told
    assert told["error"]


def test_deadlines(streams: Door) -> None:
    """A call that takes too long ends when its caller said; their HTTP client has no such thing."""
    slow = {"model": "slow", "inputs": {"seconds": ["FP32", [1], [2.0]]}}
    assert "DEADLINE_EXCEEDED" in streams.infer(slow, keywords={"client_timeout": 0.2})["status"]


# -- streams ------------------------------------------------------------------------------------------------


def test_stream(streams: Door) -> None:
    """Each request has its answer, under its id."""
    replies = streams.stream(*({**ADD, "id": str(number)} for number in range(5)), count=5)
    assert sorted(each["id"] for each in replies) == list("01234")
    assert all(each["outputs"]["c"][2] == [2.0] * 4 for each in replies)


def test_stream_of_many(streams: Door) -> None:
    """A decoupled model answers as often as it likes, and says when it is done if that is asked for."""
    final = {"enable_empty_final_response": True}
    replies = streams.stream(counting(4, id="a", keywords=final), count=5)
    assert [each["outputs"]["i"][2] for each in replies[:4]] == [[0], [1], [2], [3]]
    assert replies[4]["outputs"] == {}
    assert replies[4]["parameters"]["triton_final_response"] == {"bool_param": True}
    assert len(streams.stream(counting(3), count=3)) == 3


def test_stream_goes_on(streams: Door) -> None:
    """A request that fails is told as one, and the stream goes on."""
    replies = streams.stream({**ADD, "model": "nope"}, count=1)
    assert "nope" in replies[0]["error"]
    replies = streams.stream(FAIL, {**ADD, "id": "good"}, count=2)
    assert sum("error" in each for each in replies) == 1
    assert [each["id"] for each in replies if "error" not in each] == ["good"]


def test_stream_that_is_left(streams: Door) -> None:
    """A stream that is cancelled in its middle leaves a server that answers."""
    assert len(streams.stream(counting(3000), count=3, cancel=True)) == 3
    assert streams.infer(ADD)["outputs"]["c"][2] == [2.0] * 4


# -- models that come and go, on our server -----------------------------------------------------------------


def listed(ours: Door) -> dict[str, str]:
    """Return the repository: each model and its state."""
    found = ours.call("get_model_repository_index")
    return {
        each["name"]: each.get("state", "")
        for each in (found["models"] if isinstance(found, dict) else found)
    }


def test_repository(ours: Door) -> None:
    """A model is listed, unloaded, gone, and loaded again."""
    assert listed(ours)["sums"] == "READY"
    assert ours.call("unload_model", "sums") is None
    assert listed(ours).get("sums") != "READY"
    small = {"model": "sums", "inputs": {"small": written(SMALL)}}
    assert ours.infer(small)["status"] == ours.status("NOT_FOUND", 404)
    assert ours.call("load_model", "sums") is None
    assert ours.infer(small)["outputs"]["mean"]


def test_a_model_with_the_call(ours: Door) -> None:
    """An ONNX file comes with the load; the model is there when the call returns, until it is unloaded."""
    content = base64.b64encode(network({"y": np.array([1.5, 2.5], np.float32)})).decode()
    assert ours.run("load", name="net", config="{}", files={"file:1/model.onnx": content}, headers={}) is None
    picture = ["FP32", [1, 3, 32, 64], [0.0] * (3 * 32 * 64)]
    assert ours.infer({"model": "net", "inputs": {"images": picture}})["outputs"]["y"] == [
        "FP32",
        [1, 2],
        [1.5, 2.5],
    ]
    assert ours.call("unload_model", "net") is None
    gone = ours.infer({"model": "net", "inputs": {"images": picture}})
    assert gone["status"] == ours.status("NOT_FOUND", 404)
    broken = base64.b64encode(b"no network").decode()
    told = ours.run("load", name="net", config="{}", files={"file:1/model.onnx": broken}, headers={})
    assert told["status"] == ours.status("INVALID_ARGUMENT", 400)


def test_no_regions(ours: Door) -> None:
    """Our server has no shared memory, and does not say that it has."""
    assert "system_shared_memory" not in ours.call("get_server_metadata")["extensions"]
    told = ours.call("get_system_shared_memory_status")
    assert told["status"] in {ours.status("UNIMPLEMENTED", 404), ours.status("UNIMPLEMENTED", 501)}
