"""Models and inference in the Open Inference Protocol: over gRPC, a unix socket, HTTP, and JSON alone."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import requests
import tensor_models
from oip_server_kit import (
    MODELS,
    OPTIONS,
    Client,
    Grpc,
    Held,
    Http,
    Refused,
    arrays,
    ask,
    give,
    oip_server,
    pair,
    refused,
    slow,
    to_bytes,
)
from server_kit import PATIENCE, Server, until

from predsession.server.models.pixels import box_number, number_picture, number_score
from predsession.wire.oip import inference_pb2 as pb
from predsession.wire.oip.messages import InferRequest, Tensor, Wanted
from predsession.wire.oip.methods import METHODS
from predsession.wire.oip.protobuf import request_to_message
from predsession.wire.oip.rest import HEADER_LENGTH, request_to_body


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests of this file."""
    models = ["Mixed", "Odd", "Slow", "Count", "Told"]
    limits = ["--limit-pixels", "100K", "--limit-body", "32M", "--limit-frames", "60"]
    with oip_server(tmp_path_factory.mktemp("oip"), *limits, models=models) as running:
        yield running


@pytest.fixture(params=["grpc", "unix", "http", "json"])
def client(request: pytest.FixtureRequest, server: Server) -> Iterator[Client]:
    """A client of each kind."""
    kinds: dict[str, Any] = {
        "grpc": lambda: Grpc(server.oip[0]),
        "unix": lambda: Grpc(server.oip[1]),
        "http": lambda: Http(server.url),
        "json": lambda: Http(server.url, binary=False),
    }
    made = kinds[request.param]()
    yield made
    made.close()


@pytest.fixture
def http(server: Server) -> Iterator[Http]:
    """A client over HTTP."""
    made = Http(server.url)
    yield made
    made.close()


@pytest.fixture
def rpc(server: Server) -> Iterator[Grpc]:
    """A client over gRPC."""
    with Grpc(server.oip[0]) as made:
        yield made


# -- what there is ---------------------------------------------------------------------------------


def test_who_it_is(client: Client) -> None:
    """The server says its name and its extensions; health is green."""
    told = client.server()
    assert told["name"] == "predsession"
    wanted = {"binary_tensor_data", "model_repository", "statistics", "predsession_residency"}
    assert wanted <= set(told["extensions"])
    if isinstance(client, Grpc):
        assert client.message("ServerLive", pb.ServerLiveRequest()).live
        assert client.message("ServerReady", pb.ServerReadyRequest()).ready
    else:
        assert client.send("GET", "/health/live").json() == {"live": True}
        assert client.send("GET", "/health/ready").status_code == 200


def test_model_facts(client: Client) -> None:
    """Metadata has names, datatypes and shapes with -1; the configuration, scales and the decoupled flag."""
    told = client.metadata("net")
    assert told["inputs"] == [{"name": name, "datatype": "FP32", "shape": [-1]} for name in ("a", "b")]
    assert [one["name"] for one in told["outputs"]] == ["sum", "product"]
    assert (told["versions"], told["platform"]) == (["1"], "onnxruntime_onnx")
    config = client.config("Mixed")
    scales = json.loads(config["parameters"]["predsession_quantization"]["string_value"])
    assert scales == {"nibbles": {"scale": [0.5], "zero_point": [1]}}
    assert config["max_batch_size"] == 0
    assert config["input"][0]["data_type"] == "TYPE_FP16"
    assert client.config("Count")["model_transaction_policy"]["decoupled"]
    picture = client.metadata("pixels", "1")
    assert picture["inputs"] == [{"name": "image", "datatype": "UINT8", "shape": [-1, -1, 3]}]
    assert [one["datatype"] for one in picture["outputs"]] == ["FP32", "FP32", "INT64"]


def test_unknown_models_and_versions(client: Client) -> None:
    """What is not there is NOT_FOUND, whatever is asked of it."""
    request = ask("nope", *pair())
    for call in (
        lambda: client.metadata("nope"),
        lambda: client.infer(request),
    ):
        error = refused(call)
        assert error.status == "NOT_FOUND"
        assert "there is no model 'nope'; there are pixels, net" in error.text
    assert refused(client.metadata, "net", "2").text == "model net has no version '2'; it has 1"
    assert refused(client.unload, "nope").status == "NOT_FOUND"
    assert refused(client.load, "nope").status == "NOT_FOUND"
    assert client.ready("net", "1")
    assert not client.ready("nope")
    assert not client.ready("net", "2")
    assert not client.ready("broken")
    assert "UNAVAILABLE: not loaded" in refused(client.metadata, "broken").text


# -- inference -------------------------------------------------------------------------------------


def test_infer(client: Client) -> None:
    """All outputs without a wish, else those that are wished for, in that order; the id comes back."""
    reply = client.infer(ask("net", *pair(), number="seven"))
    assert (reply.model, reply.version, reply.id) == ("net", "1", "seven")
    assert {name: array.tolist() for name, array in arrays(reply).items()} == {
        "sum": [4, 6],
        "product": [3, 8],
    }
    assert [one.name for one in client.infer(ask("net", *pair(), outputs=["product"])).outputs] == ["product"]
    turned = client.infer(ask("net", *reversed(pair()), outputs=["product", "sum"]))
    assert [one.name for one in turned.outputs] == ["product", "sum"]
    assert arrays(client.infer(ask("net", *pair([], []))))["sum"].shape == (0,)


def test_a_picture_model(client: Client) -> None:
    """A model of pictures takes one and gives boxes, scores and classes."""
    for number, size in ((7, (64, 32)), (99_999, (333, 205))):
        found = arrays(client.infer(ask("pixels", give("image", number_picture(number, size)))))
        assert box_number(found["boxes"][0]) == number
        assert found["class_ids"].tolist() == [number % 10]
        assert found["scores"][0] == pytest.approx(number_score(number))
    nothing = arrays(client.infer(ask("pixels", give("image", np.zeros((5, 5, 3), np.uint8)))))
    assert nothing["boxes"].shape == (0, 4)
    error = refused(client.infer, ask("pixels", give("image", np.zeros((300, 400, 3), np.uint8))))
    assert error.text == "input image: 400 x 300 pixels; wanted 1 to 102400"


@pytest.mark.parametrize("kind", ["grpc", "http"])
def test_every_datatype(server: Server, kind: str) -> None:
    """Half precision, bfloat16, four bits, bytes, truth values and a scalar come back as they went."""
    import ml_dtypes

    made: Client = Grpc(server.oip[0]) if kind == "grpc" else Http(server.url)
    given = {
        "half": ("FP16", np.array([1.5, -2.25], np.float16)),
        "brain": ("BF16", np.array([1.5, 300], ml_dtypes.bfloat16)),
        "nibbles": ("INT4", np.array([-8, 7, 1], np.int8)),
        "words": ("BYTES", np.array([b"\x00\xff", b""], object)),
        "flags": ("BOOL", np.array([[True, False]])),
        "big": ("UINT64", np.array(2**64 - 1, np.uint64)),
    }
    got = arrays(
        made.infer(ask("Mixed", *(give(name, array, kind) for name, (kind, array) in given.items())))
    )
    for name, (_, array) in given.items():
        assert got[name].dtype == array.dtype
        assert (got[name] == array).all()
    made.close()


def test_networks_of_odd_types(http: Http) -> None:
    """A network of half precision, bfloat16, texts or truth values runs; one of four bits is refused."""
    import ml_dtypes

    cases: dict[str, Any] = {
        "FP16": np.array([[1, 2, 3]], np.float16),
        "BF16": np.array([[1, 2, 300]], ml_dtypes.bfloat16),
        "BYTES": np.array([[b"a", "ä".encode(), b""]], object),
        "BOOL": np.array([[True, False, True]]),
    }
    for name, array in cases.items():
        http.load(f"odd{name}", network=tensor_models.identity(name))
        got = arrays(http.infer(ask(f"odd{name}", give("x", array, name))))["y"]
        assert got.dtype == array.dtype
        assert [
            one.encode() if isinstance(one, str) else one for one in got.reshape(-1).tolist()
        ] == array.reshape(-1).tolist()
    bad = give("x", np.array([[b"\xff", b"", b""]], object), "BYTES")
    assert "an element is no text in UTF-8" in refused(http.infer, ask("oddBYTES", bad)).text
    for name in cases:
        http.unload(f"odd{name}")
    error = refused(http.load, "four")
    assert (error.status, "failed to load" in error.text) == ("INVALID_ARGUMENT", True)


def test_typed_contents(rpc: Grpc) -> None:
    """Typed fields are read as raw bytes are."""
    message = pb.ModelInferRequest(model_name="net")
    for name, values in (("a", [1, 2]), ("b", [3, 4])):
        message.inputs.add(name=name, datatype="FP32", shape=[2]).contents.fp32_contents.extend(values)
    reply = rpc.message("ModelInfer", message)
    assert np.frombuffer(reply.raw_output_contents[0], "<f4").tolist() == [4, 6]


def bad_requests() -> list[tuple[str, InferRequest, str]]:
    """Requests that the network of sums cannot take, and what is said to each."""
    a, b = pair()
    wide = give("a", np.zeros((2, 1), np.float32))
    return [
        ("missing", ask("net", a), "input 'b' is missing; the model wants 'a', 'b'"),
        (
            "unknown",
            ask("net", a, b, give("c", np.zeros(2, np.float32))),
            "unexpected input 'c'; the model has 'a', 'b'",
        ),
        ("twice", ask("net", a, b, a), "input 'a' is there 2 times"),
        ("datatype", ask("net", give("a", np.zeros(2)), b), "input a is FP64 [2]; the model wants FP32 [-1]"),
        ("rank", ask("net", wide, b), "input a is FP32 [2, 1]; the model wants FP32 [-1]"),
        (
            "output",
            ask("net", a, b, outputs=["zzz"]),
            "unexpected output 'zzz'; the model has 'sum', 'product'",
        ),
        ("outputs", ask("net", a, b, outputs=["sum", "sum"]), "output 'sum' is there 2 times"),
        (
            "key",
            ask("net", a, b, outputs=[Wanted("sum", {"predsession_keep": "k"})]),
            "needs the request's parameter",
        ),
        ("send", ask("net", a, b, outputs=[Wanted("sum", {"predsession_send": 1})]), "must be true or false"),
        ("class", ask("net", a, b, outputs=[Wanted("sum", {"classification": 1})]), "does not classify"),
        (
            "region",
            ask("net", Tensor("a", "FP32", (2,), None, {"shared_memory_region": "r"}), b),
            "no shared memory",
        ),
        ("flat", ask("Mixed", give("flags", np.zeros((2, 3), np.bool_), "BOOL")), "is missing"),
    ]


@pytest.mark.parametrize("case", bad_requests(), ids=lambda case: case[0])
def test_what_does_not_fit(client: Client, case: tuple[str, InferRequest, str]) -> None:
    """A request that the model cannot take is refused before it runs, with what came and what is wanted."""
    error = refused(client.infer, case[1])
    assert error.status == "INVALID_ARGUMENT"
    assert case[2] in error.text


@pytest.mark.parametrize("shape", [(3,), (-2,), (1 << 40,), (2, 0), (1 << 62,)])
def test_bytes_that_do_not_fit(rpc: Grpc, http: Http, shape: tuple[int, ...]) -> None:
    """Fewer or more bytes than the shape has, and shapes that are none, are refused."""
    request = ask("net", Tensor("a", "FP32", shape, b"12345678"), pair()[1])
    for made in (rpc, http):
        assert refused(made.infer, request).status == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raise", "model Odd: RuntimeError: told to"),
        ("half", "model Odd: RuntimeError: half a \\ud800 character"),
        ("exit", "model Odd: SystemExit: 3"),
        ("stop", "model Odd: StopIteration"),
        ("none", "model Odd: the model returned NoneType, not a dict of arrays"),
        ("name", "model Odd: the model returned z; it promised y"),
        ("more", "model Odd: the model returned y, z; it promised y"),
        ("dtype", "model Odd: the model returned y as float64; it promised FP32 [2]"),
        ("shape", "model Odd: the model returned y with shape [3]; it promised FP32 [2]"),
    ],
)
def test_models_that_misbehave(rpc: Grpc, http: Http, how: str, words: str) -> None:
    """What a model raises, or returns and may not, is that call's error; the next call is answered."""
    for made in (rpc, http):
        error = refused(made.infer, ask("Odd", give("how", np.array([how.encode()], object), "BYTES")))
        assert error.status == "INTERNAL"
        assert error.text.startswith(words)
        assert made.infer(ask("Odd", give("how", np.array([b"well"], object), "BYTES"))).outputs


def test_many_at_once(server: Server, rpc: Grpc) -> None:
    """Fifty calls at once each get their own answer, though the model has one buffer for all."""
    https = [Http(server.url) for _ in range(10)]

    def one(number: int) -> int:
        made: Client = rpc if number % 2 else https[number // 2 % 10]
        return int(arrays(made.infer(slow(number, 0.002)))["number"][0])

    with ThreadPoolExecutor(50) as pool:
        assert list(pool.map(one, range(50))) == list(range(50))
    for each in https:
        each.close()


def test_too_many_at_once(server: Server, rpc: Grpc) -> None:
    """Calls beyond those that may wait are refused at once, and those that wait are answered."""

    def one(number: int) -> str:
        try:
            return str(arrays(rpc.infer(slow(number, 1.5 if not number else 0)))["number"][0])
        except Refused as error:
            return error.status

    with ThreadPoolExecutor(90) as pool:
        said = list(pool.map(one, range(90)))
    assert set(said) - {"RESOURCE_EXHAUSTED"} <= {str(number) for number in range(90)}
    assert "RESOURCE_EXHAUSTED" in said
    assert sum(word != "RESOURCE_EXHAUSTED" for word in said) >= 60


def test_a_caller_that_goes(server: Server, rpc: Grpc) -> None:
    """A call that is cancelled while it waits is never run."""
    before = int(arrays(rpc.infer(slow(0)))["calls"])
    with grpc.insecure_channel(rpc.address, options=OPTIONS) as channel, Held(server, rpc) as first:
        made = channel.unary_unary(METHODS["ModelInfer"].path, request_serializer=to_bytes)
        ready = channel.unary_unary(METHODS["ModelReady"].path, request_serializer=to_bytes)
        waiting = [made.future(request_to_message(slow(2))) for _ in range(5)]
        ready(pb.ModelReadyRequest(name="Slow"))
        for each in waiting:
            each.cancel()
        ready(pb.ModelReadyRequest(name="Slow"))  # it is answered after what came before it was read
        first.leave()
    assert int(arrays(rpc.infer(slow(3)))["calls"]) == before + 2


def test_a_caller_that_hangs_up(server: Server, http: Http) -> None:
    """The same over HTTP: a call whose connection is closed while it waits is never run."""
    before = int(arrays(http.infer(slow(0)))["calls"])
    with Held(server, http) as first:
        body = request_to_body(slow(2), binary=True)
        waiting = HTTPConnection(server.url.removeprefix("http://"))
        waiting.request("POST", "/v2/models/Slow/infer", bytes(body), {HEADER_LENGTH: str(body.json_length)})
        requests.get(f"{server.url}/healthz", timeout=PATIENCE)  # by its answer that was read,
        waiting.close()
        requests.get(f"{server.url}/healthz", timeout=PATIENCE)  # and by this one, that it was closed
        first.leave()
    assert int(arrays(http.infer(slow(3)))["calls"]) == before + 2


def test_statistics(client: Client) -> None:
    """Counters count calls, and their times are those of the parts."""
    before = client.statistics("net")[0]
    client.infer(ask("net", *pair()))
    refused(client.infer, ask("net", pair()[0]))
    after = client.statistics("net")[0]
    assert after.inference_count == before.inference_count + 1
    assert after.last_inference >= before.last_inference
    for name in ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output"):
        one, other = getattr(after.inference_stats, name), getattr(before.inference_stats, name)
        assert (one.count, one.ns > other.ns) == (other.count + 1, True), name
    parts = ("queue", "compute_input", "compute_infer", "compute_output")
    assert after.inference_stats.success.ns == sum(getattr(after.inference_stats, part).ns for part in parts)
    assert after.batch_stats[0].batch_size == 1
    assert {one.name for one in client.statistics()} >= {"net", "pixels", "Count"}


def test_timings(client: Client) -> None:
    """A call that asks for it is told its own four times."""
    names = {f"predsession_{part}_ns" for part in ("queue", "pre", "infer", "post")}
    for request in (
        ask("net", *pair(), predsession_timings=True),
        ask("pixels", give("image", number_picture(3)), predsession_timings=True),
    ):
        told = client.infer(request).parameters
        assert set(told) == names
        assert all(isinstance(value, int) and value >= 0 for value in told.values())
        assert told["predsession_infer_ns"] > 0
    assert not client.infer(ask("net", *pair())).parameters


# -- bodies ----------------------------------------------------------------------------------------


def test_packed_bodies(http: Http) -> None:
    """A body may come packed, and the answer goes packed to those who ask for it."""
    body = request_to_body(ask("net", *pair()), binary=True)
    headers = {HEADER_LENGTH: str(body.json_length)}
    for name, packed in (("gzip", gzip.compress(bytes(body))), ("deflate", zlib.compress(bytes(body)))):
        reply = http.send(
            "POST",
            "/models/net/infer",
            data=packed,
            headers={**headers, "Content-Encoding": name, "Accept-Encoding": name},
        )
        assert reply.headers["Content-Encoding"] == name
        assert len(reply.content) > int(reply.headers[HEADER_LENGTH])
    plain = http.send(
        "POST", "/models/net/infer", data=bytes(body), headers={**headers, "Accept-Encoding": "identity"}
    )
    assert "Content-Encoding" not in plain.headers


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        ("gzip", gzip.compress(bytes(64 << 20), 9, mtime=0), "OUT_OF_RANGE"),
        ("deflate", zlib.compress(bytes(64 << 20), 9), "OUT_OF_RANGE"),
        ("gzip", b"no gzip", "INVALID_ARGUMENT"),
        ("gzip", gzip.compress(b"{}", mtime=0)[:-4], "INVALID_ARGUMENT"),
        ("gzip", gzip.compress(b"{}", mtime=0) + b"more", "INVALID_ARGUMENT"),
        ("br", b"{}", "INVALID_ARGUMENT"),
    ],
)
def test_bodies_that_unpack_to_much(http: Http, encoding: str, body: bytes, status: str) -> None:
    """A body that unpacks to more than is allowed, or is not packed as it says, is refused."""
    error = refused(http.send, "POST", "/models/net/infer", data=body, headers={"Content-Encoding": encoding})
    assert error.status == status
    assert http.ready("net")


def test_large_bodies(rpc: Grpc, http: Http) -> None:
    """Tensors of megabytes go through either door; a body beyond the limit is refused."""
    big = np.arange(1 << 20, dtype=np.float32)
    for made in (rpc, http):
        got = arrays(made.infer(ask("net", give("a", big), give("b", big), outputs=["sum"])))["sum"]
        assert (got == 2 * big).all()
    huge = np.zeros(5 << 20, np.float32)
    assert refused(http.infer, ask("net", give("a", huge), give("b", huge))).status == "OUT_OF_RANGE"
    assert refused(rpc.infer, ask("net", give("a", huge), give("b", huge))).status == "RESOURCE_EXHAUSTED"


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"", {}),
        (b"[]", {}),
        (b"{", {}),
        (b"[" * 100_000, {}),
        (b'{"inputs": 5}', {}),
        (b'{"inputs": [[]]}', {}),
        (b'{"inputs": []}', {HEADER_LENGTH: "99999999999"}),
        (b'{"inputs": []}', {HEADER_LENGTH: "-1"}),
        (b'{"inputs": []}', {HEADER_LENGTH: "3"}),
        (b'{"inputs": []}', {HEADER_LENGTH: "\xb2"}),
        (b'{"inputs": []}xx', {HEADER_LENGTH: "14"}),
        (b'{"inputs": [{"name": "a", "datatype": "FP32", "shape": [1e999], "data": []}]}', {}),
        (b'{"inputs": [{"name": "a", "datatype": "FP32", "shape": [NaN], "data": [NaN]}]}', {}),
        (b'{"inputs": [{"name": "a", "datatype": "BYTES", "shape": [1], "data": ["\\ud800"]}]}', {}),
    ],
)
def test_rubbish_over_http(http: Http, body: bytes, headers: dict[str, str]) -> None:
    """A body that is no request is the caller's mistake, told as the protocol tells it."""
    error = refused(http.send, "POST", "/models/net/infer", data=body, headers=headers)
    assert error.status == "INVALID_ARGUMENT"


def answered(rpc: Grpc, path: str, body: bytes) -> str:
    """Send bytes; return how they were answered."""
    try:
        rpc.raw(path, body)
    except Refused as error:
        return error.status
    return "OK"


def test_rubbish_over_grpc(rpc: Grpc) -> None:
    """Bytes that are no message, for any call, harm nobody."""
    rubbish = [b"\xff" * 20, b"\x0a\xff\xff\xff\xff\x0f", bytes(range(256)), b"\x0a\x03net\x2a\x02\x18\x01"]
    for method in METHODS.values():
        for body in rubbish:
            if not method.streams:
                assert answered(rpc, method.path, body) != "UNAVAILABLE"
    assert rpc.infer(ask("net", *pair())).outputs


def test_calls_that_are_none(server: Server, http: Http, rpc: Grpc) -> None:
    """A path, a method or a call that is not there is said to be none, in the protocol's form."""
    for method, path in (
        ("GET", "/nope"),
        ("POST", "/models/net"),
        ("DELETE", "/models/net"),
        ("GET", "/models/"),
    ):
        assert refused(http.send, method, path).status == "NOT_FOUND"
    assert (
        refused(rpc.message, "SystemSharedMemoryStatus", pb.SystemSharedMemoryStatusRequest()).status
        == "UNIMPLEMENTED"
    )
    assert refused(rpc.raw, "/inference.GRPCInferenceService/Nope", b"").status == "UNIMPLEMENTED"
    page = requests.get(f"{server.url}/v2", headers={"Origin": "https://elsewhere.example"}, timeout=30)
    assert (page.status_code, list(page.json())) == (403, ["error"])


def test_networks_of_picture_models(tmp_path: Path) -> None:
    """Beside a model of pictures is the network that it is made of; masks come as an array."""
    models = ["segment", "--model", f"{MODELS}:Pose"]
    with Server(*models, "--oip") as running, requests.Session() as session:
        made = Http(running.url)
        assert made.index() == {"segment": "READY", "Pose": "READY", "segment.network": "READY"}
        assert made.metadata("Pose")["outputs"][-1] == {
            "name": "keypoints",
            "datatype": "FP32",
            "shape": [-1, 2, 3],
        }
        pose = arrays(made.infer(ask("Pose", give("image", np.zeros((40, 50, 3), np.uint8)))))
        assert pose["keypoints"].tolist() == [[[1, 2, 1], [3, 4, 1]]]
        assert made.metadata("segment.network")["inputs"][0]["shape"] == [1, 256, 256, 3]
        x = give("input_1:0", np.zeros((1, 256, 256, 3), np.float32))
        assert arrays(made.infer(ask("segment.network", x)))["activation_10:0"].shape == (1, 256, 256, 1)
        found = arrays(made.infer(ask("segment", give("image", np.zeros((40, 50, 3), np.uint8)))))
        assert found["masks"].shape == (len(found["boxes"]), 40, 50)
        assert running.oip == []
        assert session.get(f"{running.url}/healthz", timeout=30).ok
        made.close()


def test_no_leaks(server: Server, http: Http) -> None:
    """Models that come and go leave no thread."""
    tasks = Path(f"/proc/{server.process.pid}/task")

    def threads() -> int:
        return len(list(tasks.iterdir()))

    http.load("come", network=tensor_models.arithmetic())
    http.unload("come")
    before = threads()
    for _ in range(10):
        http.load("come", network=tensor_models.arithmetic())
        http.infer(ask("come", *pair()))
        http.unload("come")
    until(lambda: threads() <= before, "the threads' end")
