"""Our client against a server that is built on the vendor's compiled messages; their description and ours."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import edge_kit
import numpy as np
import pytest
from google.protobuf import descriptor_pb2
from interop.edge.vendor import Vendor

from predsession import NotFoundError, RefusedError, RequestTimeoutError
from predsession.edge import BatchInferItem, FinishReason, InferenceClient
from predsession.wire.edge import inference_pb2

PICTURE = np.arange(8 * 6 * 3, dtype=np.uint8).reshape(6, 8, 3)
File = descriptor_pb2.FileDescriptorProto


@pytest.fixture(scope="module")
def theirs(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vendor]:
    """A runtime of their messages."""
    with Vendor(python, "their_server.py", tmp_path_factory.mktemp("theirs")) as process:
        process.endpoint = process.read()
        yield process


@pytest.fixture
def client(theirs: Vendor) -> Iterator[InferenceClient]:
    """Our client of it."""
    with InferenceClient(theirs.endpoint) as made:
        yield made


def asked(theirs: Vendor, name: str) -> dict[str, Any]:
    """Return the request that came, as they read it."""
    told, message = theirs.read()
    assert told == name
    assert isinstance(message, dict)
    return message


def test_infer(client: InferenceClient) -> None:
    """Everything that their messages hold comes to the caller."""
    result = client.infer(PICTURE, "m", timeout_ms=1234, priority=6)
    (found,) = result.objects
    assert (found.label, found.class_id, found.score) == ("cat", 3, 0.5)
    assert found.bbox.to_xyxy(100, 100) == (25, 50, 75, 75)
    assert np.flatnonzero(result.masks[0].to_numpy_mask()).tolist() == [1, 2, 133, 134, 135]
    assert tuple(result.landmarks[0].points[0]) == (0.5, 0.25, 1.0)
    assert [one.label for one in result.classifications] == ["street"]
    assert result.ocr_lines[0].text == "STOP"
    assert result.embeddings[0].data.tolist() == [1.0, -2.0]
    assert result.depth_maps[0].data.tolist() == [[1.0, 2.0]]
    assert (result.infer_time_us, result.queue_time_us, result.hw_infer_time_us) == (1234, 6, 3)
    np.testing.assert_array_equal(result.raw_outputs[0], PICTURE)
    with pytest.raises(NotFoundError, match="Model not found"):
        client.infer(PICTURE, "other")
    with pytest.raises(RequestTimeoutError):
        client.infer(PICTURE, "m", timeout_ms=50)
    assert client.infer_async(PICTURE, "m").result(20).ok
    assert [one.ok for one in client.infer_many([PICTURE] * 9, "m")] == [True] * 9


@pytest.mark.parametrize("dtype", ["u1", "i1", "<u2", "<i2", "<f2", "<f4", "<i4", "<u4"])
def test_tensors(client: InferenceClient, dtype: str) -> None:
    """Every dtype of the wire comes back as it went."""
    array = np.arange(24).astype(dtype).reshape(2, 3, 4)
    one, two = client.infer_with_tensors("m", [array, array[:1]])
    np.testing.assert_array_equal(one, array)
    assert (one.dtype, two.shape) == (array.dtype, (1, 3, 4))


def test_a_batch(client: InferenceClient) -> None:
    """Items are told apart, those that failed, too."""
    items = [BatchInferItem(PICTURE, name) for name in ("m", "other", "m")]
    assert [one.ok for one in client.infer_batch(items)] == [True, False, True]
    assert [one.ok for one in client.infer_batch_async(items).result(20)] == [True, False, True]


def test_subscribe(theirs: Vendor, client: InferenceClient) -> None:
    """Frames come, failed ones are left out, and closing is noticed there."""
    frames = client.subscribe("cam0", "m", fps=25, session_id="s", raw_output_only=True)
    numbers = [next(frames)[0] for _ in range(6)]
    assert numbers == [0, 1, 2, 4, 5, 6]
    frames.close()
    wanted = {"model_id": "m", "stream_id": "cam0", "fps_limit": 25, "session_id": "s"}
    assert asked(theirs, "StreamInfer") == {**wanted, "raw_output_only": True}
    assert asked(theirs, "cancelled") == {}
    with pytest.raises(NotFoundError):
        next(client.subscribe("cam0", "other"))
    asked(theirs, "StreamInfer")


def test_models(theirs: Vendor, client: InferenceClient) -> None:
    """Models are registered, described and let go."""
    spec = {"shape": [1, 8, 8, 3], "dtype": "int8", "name": "in"}
    name = client.register_model("/m.hef", "m", owner_id="me", model_type="detection", inputs=[spec])
    assert name == "m"
    assert asked(theirs, "RegisterModel") == {
        "model_path": "/m.hef", "model_id": "m", "owner_id": "me", "model_type": "detection",
        "inputs": [{"shape": [1, 8, 8, 3], "dtype": "INT8", "name": "in"}],
    }  # fmt: skip
    with pytest.raises(RefusedError, match="Failed to load"):
        client.register_model("/bad", "m")
    asked(theirs, "RegisterModel")
    (listed,) = client.list_models()
    asked(theirs, "ListModels")
    info = client.get_model_info("m")
    assert asked(theirs, "GetModelInfo") == {"model_id": "m"}
    assert listed == info
    assert (info.name, info.owner_id, info.load_timestamp) == ("M", "me", 7)
    assert info.inputs[0]["dtype"] == "uint8"
    assert client.get_model_info("other") is None
    asked(theirs, "GetModelInfo")
    client.unregister_model("m", owner_id="me")
    assert asked(theirs, "UnregisterModel") == {"model_id": "m", "owner_id": "me"}
    with pytest.raises(RefusedError, match="Failed to unregister"):
        client.unregister_model("other")
    asked(theirs, "UnregisterModel")


def test_sessions_stats_and_settings(theirs: Vendor, client: InferenceClient) -> None:
    """What is asked arrives, and the name that the runtime chose is the one that counts."""
    name = client.create_session("mine", "app", allowed_models=["m"], max_qps=5, max_concurrent=2)
    assert name == "app-stream-model-1"
    assert asked(theirs, "CreateSession") == {
        "session_id": "mine", "app_id": "app", "allowed_models": ["m"], "max_qps": 5, "max_concurrent": 2,
        "priority": 4,
    }  # fmt: skip
    client.destroy_session(name)
    asked(theirs, "DestroySession")
    with pytest.raises(NotFoundError, match="Session not found"):
        client.destroy_session("mine")
    asked(theirs, "DestroySession")
    stats = client.get_stats()
    assert (stats["device_utilization"], stats["cpu_utilization"], stats["ram_total_kib"]) == (0.5, -1, 4)
    assert stats["model_stats"][0]["total_inferences"] == 5
    client.update_postprocess_config("m", {"detection_threshold": 0.5})
    told = asked(theirs, "UpdatePostprocessConfig")
    assert told == {"model_id": "m", "config_json": '{"detection_threshold": 0.5}'}
    with pytest.raises(RefusedError, match="Failed to update config: -3"):
        client.update_postprocess_config("m", {"unknown": 1})
    asked(theirs, "UpdatePostprocessConfig")


def test_text(theirs: Vendor, client: InferenceClient) -> None:
    """Texts are encoded and written, whatever flags their runtime leaves out."""
    assert client.encode_text("a cat").tolist() == [0.5, 0.25]
    with pytest.raises(RefusedError, match="empty text"):
        client.encode_text("")
    session = client.genai_create_session("/x.hef", "vlm", lora_name="l")
    assert asked(theirs, "GenaiCreateSession") == {
        "hef_path": "/x.hef",
        "kind": "GENAI_KIND_VLM",
        "lora_name": "l",
    }
    tokens = client.genai_generate(session, [{"role": "user", "content": "hi"}], top_k=5)
    assert "".join(tokens) == "Hello"
    assert tokens.finish_reason is FinishReason.MAX_TOKENS
    assert asked(theirs, "GenaiGenerate")["params"]["top_k"] == 5
    assert client.genai_abort(session)
    assert asked(theirs, "GenaiAbort") == {"session_id": session}
    client.genai_destroy_session(session)
    assert asked(theirs, "GenaiDestroySession")["hef_path"] == session


# -- descriptions --------------------------------------------------------------------------------------

NEWER = {
    "TensorSpec.byte_size",
    "ModelRegisterRequest.transient",
    "ModelRegisterRequest.raw_output_only",
    "ModelInfo.transient",
    "Tensor.buffer_id", "ModelRegisterRequest.batch_size", "ModelInfo.batch_size",
    "StreamInferResponse.skew_us", "InferenceStats.avg_skew_us", "InferenceStats.max_skew_us",
    "InferenceStats.skew_samples", "GetStatsRequest.sampling_window_ms",
}  # fmt: skip
"""Fields that 0.7.4 may lack."""


def fields(file: File) -> dict[str, tuple[object, ...]]:
    """Return every field by its message and name: number, type, how often, of which message or enum."""
    return {
        f"{message.name}.{field.name}": (
            field.number,
            field.type,
            field.label,
            field.type_name.rsplit(".", 1)[-1],
            field.HasField("oneof_index"),
        )
        for message in file.message_type
        for field in message.field
    }


def enums(file: File) -> dict[str, int]:
    """Return every value of every enum; names are not on the wire, and theirs have a prefix in one."""
    return {
        f"{enum.name}.{value.name.removeprefix('GENAI_FINISH_')}": value.number
        for enum in file.enum_type
        for value in enum.value
    }


def methods(file: File) -> dict[str, tuple[str, str, bool, bool]]:
    """Return every call with what goes in and what comes out."""
    (service,) = file.service
    return {
        f"{file.package}.{service.name}/{one.name}": (
            one.input_type.rsplit(".", 1)[-1],
            one.output_type.rsplit(".", 1)[-1],
            one.client_streaming,
            one.server_streaming,
        )
        for one in service.method
    }


@pytest.mark.parametrize("mine", ["ours", "the tests' table"])
def test_descriptions(vendor: Vendor, mine: str) -> None:
    """Fields, enums and calls are theirs, one by one; what is new is new in their newest, too."""
    about = vendor.run("about")
    theirs = File.FromString(base64.b64decode(about["descriptor"]))
    ours = edge_kit.description()
    if mine == "ours":
        ours = File()
        inference_pb2.DESCRIPTOR.CopyToProto(ours)
    assert ours.package == theirs.package
    old = about["version"] == "0.7.4"
    lacking = {name for name in fields(ours) if name not in fields(theirs)}
    assert lacking <= (NEWER if old else set())
    assert {name: field for name, field in fields(ours).items() if name not in lacking} == fields(theirs)
    assert enums(ours) == enums(theirs)
    known = methods(theirs)
    if old:
        # An Empty is a GetStatsRequest that asks for nothing.
        call = "aipc.inference.InferenceService/GetStats"
        assert known[call][0] in {"Empty", "GetStatsRequest"}
        known[call] = ("GetStatsRequest", *known[call][1:])
    assert methods(ours) == known
