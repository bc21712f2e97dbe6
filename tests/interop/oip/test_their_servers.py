"""What Triton and MLServer do, as far as our client relies on it: one fact a test."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pytest
from interop.oip.bare import Bare, Refused, arrays, tensor

from predsession.wire.oip import inference_pb2 as pb
from predsession.wire.oip.messages import InferRequest, Tensor, Wanted
from predsession.wire.oip.rest import HEADER_LENGTH, request_to_body

FRAME = np.random.default_rng(9).integers(0, 256, (32, 48, 3), np.uint8)
SMALL = FRAME.reshape(4, 8, 6, 8, 3).mean((1, 3), np.float32)
SCALE = InferRequest("scale", (tensor("frame", FRAME),), id="seven")
ONE = np.ones((1, 4), np.float32)
ADD = InferRequest("add", (tensor("a", ONE), tensor("b", ONE)))
ECHOED: tuple[Any, ...] = (
    np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64,
    np.uint8, np.uint16, np.uint32, np.uint64, np.bool_,
)  # fmt: skip


def refusal(calling: Any, *arguments: Any, **keywords: Any) -> tuple[str | int, str]:
    """Return the status and the text with which a call is refused."""
    with pytest.raises(Refused) as caught:
        calling(*arguments, **keywords)
    return caught.value.status, caught.value.text


# -- both ------------------------------------------------------------------------------------------------


def test_a_chain_by_hand(on_either: Bare) -> None:
    """The models are the same on both: blocks' means, then their sum; the id comes back."""
    reply = on_either.infer(SCALE)
    got = arrays(reply)
    np.testing.assert_allclose(got["small"], SMALL, rtol=1e-6)
    assert got["total"].tolist() == [FRAME.sum()]
    assert (reply.id, reply.version) == ("seven", "1")
    second = arrays(on_either.infer(InferRequest("sums", (tensor("small", got["small"]),))))
    np.testing.assert_allclose(second["sum"], [SMALL.sum()], rtol=1e-5)


def test_over_http(on_either: Bare) -> None:
    """JSON works with both, flat, whatever the shape."""
    got = arrays(on_either.infer_web(SCALE, binary=False))
    np.testing.assert_allclose(got["small"], SMALL, rtol=1e-6)
    assert got["total"].tolist() == [FRAME.sum()]


def test_dtypes(on_either: Bare) -> None:
    """Every datatype of the protocol's own goes and comes as raw bytes, bytes that are no text among them."""
    sent = {f"{np.dtype(dtype).name}": np.array([0, 1, 1], dtype) for dtype in ECHOED}
    names = {"float16": "fp16", "float32": "fp32", "float64": "fp64"}
    sent = {names.get(name, name): array for name, array in sent.items()}
    sent["bytes"] = np.array([b"ab", b"\xff\0", b""], object)
    got = arrays(on_either.infer(InferRequest("echo", tuple(tensor(*one) for one in sent.items()))))
    assert set(got) == {f"{name}_out" for name in sent}
    for name, array in sent.items():
        assert got[f"{name}_out"].dtype == array.dtype
        assert got[f"{name}_out"].tolist() == array.tolist()


def test_batches(on_either: Bare) -> None:
    """A metadata shape says the whole shape, the batch included: -1, then the model's own sides."""
    metadata = on_either.call("ModelMetadata", name="add")
    assert [list(each.shape) for each in metadata.inputs] == [[-1, 4], [-1, 4]]
    three = np.ones((3, 4), np.float32)
    reply = on_either.infer(InferRequest("add", (tensor("a", three), tensor("b", three))))
    assert [each.shape for each in reply.outputs] == [(3, 4), (3, 4)]


def test_ours_is_ignored(on_either: Bare) -> None:
    """Parameters that a server does not know change nothing."""
    extra = {"predsession_session": "s", "predsession_timings": True}
    reply = on_either.infer(InferRequest("add", ADD.inputs, parameters=extra))
    assert arrays(reply)["c"].tolist() == [[2.0] * 4]


def test_unknown_models(on_either: Bare) -> None:
    """A model that is not there is NOT_FOUND, or 404 with an error as JSON."""
    unknown = InferRequest("nope", SCALE.inputs)
    status, text = refusal(on_either.infer, unknown)
    assert (status, "nope" in text) == ("NOT_FOUND", True)
    status, text = refusal(on_either.infer_web, unknown, binary=False)
    assert (status, "nope" in json.loads(text)["error"]) == (404, True)
    status, _ = refusal(on_either.call, "ModelMetadata", name="nope")
    assert status == "NOT_FOUND"


def test_a_failing_model(on_either: Bare) -> None:
    """A model that raises is INTERNAL, and the text holds its reason; over HTTP it is 500."""
    failing = InferRequest("fail", (tensor("a", ONE[0, :1]),))
    status, text = refusal(on_either.infer, failing)
    assert (status, "this model always fails" in text) == ("INTERNAL", True)
    assert refusal(on_either.infer_web, failing, binary=False)[0] == 500


# -- what they do differently ----------------------------------------------------------------------------


def test_who_it_is(on_triton: Bare, on_mlserver: Bare) -> None:
    """The name tells them apart, and Triton lists its extensions; MLServer has none."""
    first, second = on_triton.call("ServerMetadata"), on_mlserver.call("ServerMetadata")
    assert (first.name, second.name, list(second.extensions)) == ("triton", "mlserver", [])
    assert {"system_shared_memory", "binary_tensor_data", "model_repository", "statistics"} <= {
        *first.extensions
    }


def test_outputs_that_were_not_asked_for(on_triton: Bare, on_mlserver: Bare) -> None:
    """Triton sends only those that were asked for; MLServer sends all, even where a name is unknown."""
    total = InferRequest("scale", SCALE.inputs, (Wanted("total"),))
    for infer in (on_triton.infer, on_triton.infer_web):
        assert list(arrays(infer(total))) == ["total"]
    assert list(arrays(on_mlserver.infer(total))) == ["small", "total"]
    assert list(arrays(on_mlserver.infer_web(total, binary=False))) == ["small", "total"]
    odd = InferRequest("scale", SCALE.inputs, (Wanted("odd"),))
    assert refusal(on_triton.infer, odd) == (
        "INVALID_ARGUMENT", "unexpected inference output 'odd' for model 'scale'",
    )  # fmt: skip
    assert len(on_mlserver.infer(odd).outputs) == 2


def test_what_is_checked(on_triton: Bare, on_mlserver: Bare) -> None:
    """Triton refuses a wrong dtype and a wrong shape; MLServer gives the model whatever came."""
    wrong = InferRequest("scale", (tensor("frame", FRAME.astype(np.float32)),))
    flat = InferRequest("scale", (tensor("frame", FRAME[0]),))
    for request, words in ((wrong, "data-type is 'FP32'"), (flat, "Expected [-1,-1,3], got [48,3]")):
        status, text = refusal(on_triton.infer, request)
        assert (status, words in text) == ("INVALID_ARGUMENT", True)
        assert refusal(on_triton.infer_web, request)[0] == 400
    assert arrays(on_mlserver.infer(wrong))["total"].tolist() == [FRAME.sum()]


def test_binary(on_triton: Bare, on_mlserver: Bare) -> None:
    """Triton's HTTP takes and gives raw bytes; MLServer's takes them for broken JSON."""
    np.testing.assert_allclose(arrays(on_triton.infer_web(SCALE))["small"], SMALL, rtol=1e-6)
    status, text = refusal(on_mlserver.infer_web, SCALE)
    assert (status, "detail" in json.loads(text)) == (422, True)


def test_half_precision_in_json(on_triton: Bare, on_mlserver: Bare) -> None:
    """Triton's JSON has no FP16; MLServer's has, as numbers."""
    half = {"name": "fp16", "datatype": "FP16", "shape": [2], "data": [1.5, 2]}
    status, text = refusal(on_triton.web, "POST", "/v2/models/echo/infer", json={"inputs": [half]})
    assert (status, "FP16 data via JSON is not supported" in text) == (400, True)
    answer = on_mlserver.web("POST", "/v2/models/echo/infer", json={"inputs": [half]}).json()
    assert answer["outputs"][0]["data"] == [1.5, 2.0]


def test_no_bfloat16(on_mlserver: Bare) -> None:
    """MLServer knows neither BF16 nor four-bit numbers: INTERNAL, with the name of the datatype."""
    for name, data in (("BF16", b"\x80\x3f"), ("INT4", b"\1")):
        request = InferRequest("echo", (Tensor("x", name, (1,), data),))
        assert refusal(on_mlserver.infer, request) == ("INTERNAL", f"'{name}' is not a valid Datatype")


def test_numbers_that_are_none(on_triton: Bare, on_mlserver: Bare) -> None:
    """In JSON, Triton writes Infinity, which is no JSON, and MLServer null; raw bytes hold it at both."""
    endless = np.array([np.inf, 1], np.float32)
    request = InferRequest("echo", (tensor("fp32", endless),), (Wanted("fp32_out"),))
    for infer in (on_triton.infer, on_triton.infer_web, on_mlserver.infer):
        assert arrays(infer(request))["fp32_out"].tolist() == endless.tolist()
    content = {"inputs": [{"name": "fp32", "datatype": "FP32", "shape": [1], "data": [1e39]}]}
    path = "/v2/models/echo/infer"
    assert '"data":[Infinity]' in on_triton.web("POST", path, json=content).text
    assert '"data":[null]' in on_mlserver.web("POST", path, json=content).text


def test_typed_fields(on_triton: Bare, on_mlserver: Bare) -> None:
    """Triton answers in raw bytes whatever came; MLServer answers as it was asked."""
    message = pb.ModelInferRequest(model_name="echo")
    added = message.inputs.add(name="fp32", datatype="FP32", shape=[2])
    added.contents.fp32_contents.extend([1, 2])
    assert len(on_triton.call("ModelInfer", message).raw_output_contents) == 1
    reply = on_mlserver.call("ModelInfer", message)
    assert not reply.raw_output_contents
    assert list(reply.outputs[0].contents.fp32_contents) == [1, 2]


def test_one_side_becomes_two(on_mlserver: Bare) -> None:
    """A model that answers by MLServer's own codec turns the shape (2) into (2, 1)."""
    reply = on_mlserver.infer(InferRequest("codec", (tensor("a", np.ones(2, np.float32)),)))
    assert reply.outputs[0].shape == (2, 1)


def test_compressed_requests(on_triton: Bare, on_mlserver: Bare) -> None:
    """Both read a gzipped body, and gzip theirs where that is accepted; the header's length is before it."""
    for bare, binary in ((on_triton, True), (on_mlserver, False)):
        body = request_to_body(SCALE, binary=binary)
        headers = {"Content-Encoding": "gzip", "Accept-Encoding": "gzip", "Content-Type": "application/json"}
        if body.json_length is not None:
            headers[HEADER_LENGTH] = str(body.json_length)
        answer = bare.web("POST", "/v2/models/scale/infer", data=gzip.compress(bytes(body)), headers=headers)
        assert answer.headers["Content-Encoding"] == "gzip"
        cut = int(answer.headers.get(HEADER_LENGTH, len(answer.content)))
        assert json.loads(answer.content[:cut])["outputs"][0]["name"] == "small"


def test_configuration_and_statistics(on_triton: Bare, on_mlserver: Bare) -> None:
    """Triton has both, and the configuration carries parameters of ours; MLServer has neither."""
    config = on_triton.call("ModelConfig", name="scale").config
    quantization = json.loads(config.parameters["predsession_quantization"].string_value)
    assert quantization == {"small": {"scale": [0.5], "zero_point": [0]}}
    assert (config.max_batch_size, on_triton.call("ModelConfig", name="add").config.max_batch_size) == (0, 8)
    assert on_triton.call("ModelConfig", name="counter").config.model_transaction_policy.decoupled
    for name in ("ModelConfig", "ModelStatistics", "SystemSharedMemoryStatus"):
        assert refusal(on_mlserver.call, name)[0] == "UNIMPLEMENTED"
    assert refusal(on_mlserver.web, "GET", "/v2/models/scale/config")[0] == 404


def test_statistics(on_triton: Bare) -> None:
    """They grow with each call, in nanoseconds: the parts lie within the whole, failures are apart."""

    def now() -> Any:
        (one,) = on_triton.call("ModelStatistics", name="scale").model_stats
        return one

    before = now()
    on_triton.infer(SCALE)
    after = now()
    assert after.inference_count - before.inference_count == 1
    whole = after.inference_stats.success.ns - before.inference_stats.success.ns
    parts = [
        getattr(after.inference_stats, part).ns - getattr(before.inference_stats, part).ns
        for part in ("queue", "compute_input", "compute_infer", "compute_output")
    ]
    assert 0 < sum(parts) <= whole


# -- models that come and go -----------------------------------------------------------------------------


def test_which_models_there_are(on_triton: Bare, on_mlserver: Bare) -> None:
    """PyTriton's index is empty: its models come with a call. Statistics name them. MLServer's lists all."""
    assert not on_triton.call("RepositoryIndex").models
    assert on_triton.web("POST", "/v2/repository/index", json={}).json() == []
    names = {each.name for each in on_triton.call("ModelStatistics").model_stats}
    assert {"scale", "sums", "echo", "add", "slow", "fail", "counter"} <= names
    found = {each.name: each.state for each in on_mlserver.call("RepositoryIndex").models}
    assert found["scale"] == "State.READY"  # over gRPC the name of a Python enum's member
    listed = on_mlserver.web("POST", "/v2/repository/index", json={"ready": True}).json()
    assert {each["name"]: each["state"] for each in listed}["scale"] == "READY"


def test_mlserver_reloads(on_mlserver: Bare) -> None:
    """MLServer unloads and loads what lies in its folder, and lists it still; twice is NOT_FOUND."""
    on_mlserver.call("RepositoryModelUnload", model_name="codec")
    states = {each.name: each.state for each in on_mlserver.call("RepositoryIndex").models}
    assert states["codec"] == "State.UNAVAILABLE"
    assert refusal(on_mlserver.call, "ModelReady", name="codec")[0] == "UNKNOWN"
    assert refusal(on_mlserver.call, "RepositoryModelUnload", model_name="codec")[0] == "NOT_FOUND"
    on_mlserver.call("RepositoryModelLoad", model_name="codec")
    assert on_mlserver.call("ModelReady", name="codec").ready
    assert refusal(on_mlserver.call, "RepositoryModelLoad", model_name="nope")[0] == "NOT_FOUND"


def test_what_needs_the_token(on_triton: Bare) -> None:
    """PyTriton lets nobody at models, regions and statistics without its token: UNAVAILABLE, or 403."""
    for name in ("RepositoryIndex", "ModelStatistics", "SystemSharedMemoryStatus"):
        status, text = refusal(on_triton.call, name, secret=False)
        assert (status, "This protocol is restricted" in text) == ("UNAVAILABLE", True)
    wrong = {"triton-access-token": "wrong"}
    status, text = refusal(on_triton.web, "GET", "/v2/models/stats", headers=wrong)
    assert (status, "This API is restricted" in text) == (403, True)
    assert on_triton.call("ModelConfig", secret=False, name="scale").config.name == "scale"
