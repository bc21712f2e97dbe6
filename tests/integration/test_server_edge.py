"""The embedded server's gRPC door, with our client, over TCP and a unix socket."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import held_numbers
import numpy as np
import pytest
import requests
from edge_kit import M
from edge_server_kit import MODELS, edge_server, number_of, restoring
from onnx_maker import YOLOV8, described
from server_kit import Server, until

from predsession import (
    AuthError,
    NotFoundError,
    PredictionSession,
    RateLimitError,
    RefusedError,
    RequestTimeoutError,
    UploadTooLargeError,
)
from predsession.edge import BatchInferItem, InferenceClient
from predsession.server.models.pixels import box_number, number_picture, number_score


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests of this file."""
    with edge_server(tmp_path_factory.mktemp("edge")) as running:
        yield running


@pytest.fixture(params=["tcp", "unix"])
def either(request: pytest.FixtureRequest, server: Server) -> Iterator[InferenceClient]:
    """A client by either kind of address."""
    with InferenceClient(server.grpc[request.param == "unix"]) as client:
        yield client


@pytest.fixture
def client(server: Server) -> Iterator[InferenceClient]:
    """A client that leaves the settings as they were."""
    with restoring(server) as made:
        yield made


def test_one_picture(either: InferenceClient) -> None:
    """A picture of any size is answered with what was found, normalized, and with the model's own arrays."""
    for number, size in ((7, (64, 32)), (99_999, (640, 480)), (262_143, (65, 33))):
        result = either.infer(number_picture(number, size), "pixels")
        assert number_of(result, size) == number
        (found,) = result.objects
        assert (found.label, found.class_id) == (f"ends in {number % 10}", number % 10)
        assert found.score == pytest.approx(number_score(number))
        boxes, scores, ids = either.infer_with_tensors("pixels", [number_picture(number, size)])
        assert (box_number(boxes[0]), ids.tolist()) == (number, [number % 10])
        assert (boxes.dtype, scores.dtype, ids.dtype) == (np.float32, np.float32, np.int32)
        assert result.infer_time_us >= result.hw_infer_time_us > 0
    assert either.infer(np.zeros((5, 5, 3), np.uint8), "pixels").objects == ()


def test_large_pictures(either: InferenceClient) -> None:
    """A frame far above gRPC's own 4 MiB is answered; one above the interface's limit or ours is refused."""
    assert number_of(either.infer(number_picture(5, (4000, 3000)), "pixels"), (4000, 3000)) == 5
    with pytest.raises(RefusedError, match="Invalid input: 7000 x 3000 pixels; the limit is 20971520"):
        either.infer(np.zeros((3000, 7000, 3), np.uint8), "pixels")
    with pytest.raises(UploadTooLargeError):
        either.infer(np.zeros((5000, 5000, 3), np.uint8), "pixels")


def test_many_in_flight(either: InferenceClient) -> None:
    """Answers come in order, each its picture's own, with several on their way."""
    pictures = (number_picture(number) for number in range(200))
    results = either.infer_many(pictures, "pixels", depth=4)
    assert [number_of(result) for result in results] == list(range(200))


@pytest.mark.parametrize("wrong", [
    np.zeros((8, 8), np.uint8), np.zeros((8, 8, 4), np.uint8), np.zeros((8, 8, 3), np.float32),
    np.zeros((2, 8, 8, 3), np.uint8), np.zeros((0, 8, 3), np.uint8),
])  # fmt: skip
def test_what_is_no_picture(client: InferenceClient, wrong: np.ndarray) -> None:
    """A tensor that is no RGB picture is refused, in words that say what it is and what is wanted."""
    with pytest.raises(RefusedError, match=r"Invalid input: the tensor is .*; wanted \(H, W, 3\) UINT8"):
        client.infer(wrong, "pixels")
    batched = client.infer(number_picture(3)[None], "pixels")
    assert number_of(batched) == 3


def test_a_failing_model(client: InferenceClient, server: Server) -> None:
    """A picture at which the model raises fails alone; one at which its process dies does, too."""
    client.update_postprocess_config("pixels", {"fail_at": 13, "exit_at": 14})
    items = [BatchInferItem(number_picture(number), "pixels") for number in (12, 13, 15)]
    good, bad, other = client.infer_batch(items)
    assert (number_of(good), bad.ok, number_of(other)) == (12, False, 15)
    assert bad.status_message == "Inference failed: model pixels: told to fail at 13"
    with pytest.raises(
        RefusedError, match=r"Inference failed: model pixels: its process ended \(exit code 70"
    ):
        client.infer(number_picture(14), "pixels", timeout_ms=20_000)
    assert number_of(client.infer(number_picture(16), "pixels", timeout_ms=20_000)) == 16


def test_a_batch(client: InferenceClient) -> None:
    """A batch is answered in order, by several models, each item by itself; an empty one is refused."""
    names = ["pixels", "none", "pixels"]
    items = [BatchInferItem(number_picture(number), name) for number, name in enumerate(names)]
    first, second, third = client.infer_batch(items)
    assert [number_of(first), number_of(third)] == [0, 2]
    assert (second.ok, second.status_message) == (False, "Model not found")
    client.update_postprocess_config("pixels", {"delay": 0.6})
    late = client.infer_batch([BatchInferItem(number_picture(0), "pixels", timeout_ms=50)] * 2)
    assert [each.status_message for each in late] == ["Inference timeout"] * 2
    assert all(isinstance(each.error, RequestTimeoutError) for each in late)
    client.update_postprocess_config("pixels", {"delay": 0})
    assert number_of(client.infer(number_picture(5), "pixels")) == 5, "the model is free again"


def test_deadlines(client: InferenceClient) -> None:
    """What is late is given up, by its own deadline, and does not hold up what comes after it."""
    client.update_postprocess_config("pixels", {"delay": 1.2})
    with pytest.raises(RequestTimeoutError, match=r"no answer within|Inference timeout"):
        client.infer(number_picture(1), "pixels", timeout_ms=60)
    client.update_postprocess_config("pixels", {"delay": 0})
    assert number_of(client.infer(number_picture(2), "pixels")) == 2


def test_priorities_and_a_full_queue(client: InferenceClient, gate: Path) -> None:
    """While the model is busy, a higher priority overtakes; above the limit the queue is full."""
    client.register_model(f"{held_numbers.__file__}:HeldBatches", "one", batch_size=1)
    client.update_postprocess_config("one", {"hold_while": str(gate)})
    done: list[int] = []
    busy = [client.infer_async(number_picture(0), "one", 60_000)]  # in the model's hands
    until(held_numbers.mark(gate).exists, "the worker")
    busy.append(client.infer_async(number_picture(0), "one", 60_000))  # and one ahead
    client.infer(number_picture(0), "pixels")  # by its answer that was read
    until(lambda: _queued(client) == 0, "its place")
    waiting = []
    for priority in (0, 3, 7, 5, 7, 1, 2, 6):
        future = client.infer_async(number_picture(priority), "one", 60_000, priority=priority)
        future.add_done_callback(lambda done_one: done.append(number_of(done_one.result())))
        waiting.append(future)
    until(lambda: _queued(client) == 8, "the queue")
    with pytest.raises(RefusedError, match="Scheduler queue full"):
        client.infer(number_picture(1), "one")
    client.update_postprocess_config("one", {"hold_while": ""})
    gate.unlink()
    for future in [*busy, *waiting]:
        future.result(60)
    until(lambda: len(done) == 8, "the callbacks")
    # They are one batch, answered in its order.
    assert done == [7, 7, 6, 5, 3, 2, 1, 0]
    client.unregister_model("one")


def _queued(client: InferenceClient) -> int:
    """Return how many pictures wait for the second model."""
    return client.get_stats(sampling_window_ms=1)["model_stats"][1]["queue_depth"]


def test_together_with_jobs(client: InferenceClient, server: Server) -> None:
    """While a job of HTTP runs, pictures that come by gRPC are answered between its batches; none is lost."""
    pictures = [number_picture(number) for number in range(400)]
    with PredictionSession(server.url, pictures, delay=0.002) as session:
        predictions = iter(session)
        first = next(predictions)
        asked = [number_of(client.infer(number_picture(number), "pixels")) for number in range(5)]
        rest = list(predictions)
    assert asked == list(range(5))
    assert [box_number(one.boxes[0]) for one in [first, *rest]] == list(range(400))


def test_models(client: InferenceClient, tmp_path: Path) -> None:
    """A model is registered, described, used and let go; the same again is no error, another one is."""
    assert client.register_model(f"{MODELS}:Masks", "masks", owner_id="me") == "masks"
    assert client.register_model(f"{MODELS}:Masks", "masks", owner_id="me") == "masks"
    with pytest.raises(RefusedError, match="Model already registered: masks"):
        client.register_model(f"{MODELS}:Points", "masks", owner_id="me")
    info = client.get_model_info("masks")
    assert info is not None
    assert (info.model_id, info.owner_id, info.model_path) == ("masks", "me", f"{MODELS}:Masks")
    assert info.inputs[0]["layout"] == "HWC"
    assert [each.model_id for each in client.list_models()] == ["pixels", "masks"]
    for owner in ("you", None):
        if owner is None:
            client.unregister_model("masks")
        else:
            with pytest.raises(RefusedError, match="Failed to unregister: masks is not you's"):
                client.unregister_model("masks", owner_id=owner)
    assert client.get_model_info("masks") is None
    for name, text in (("masks", "no model"), ("pixels", "came with the server")):
        with pytest.raises(RefusedError, match=f"Failed to unregister: .*{text}"):
            client.unregister_model(name)
    for path, text in (
        (f"{MODELS}:Nothing", "has no Nothing"),
        (str(tmp_path / "none.toml"), "cannot read"),
        (str(tmp_path / "net.onnx"), "needs a description beside it, net.toml"),
    ):
        with pytest.raises(RefusedError, match=f"Failed to load: .*{text}"):
            client.register_model(path, "other")
    with pytest.raises(NotFoundError, match="Model not found"):
        client.infer(number_picture(1), "other")


@pytest.mark.parametrize("name", ["net.toml", "net.onnx"])
def test_a_network_by_its_description(client: InferenceClient, tmp_path: Path, name: str) -> None:
    """A network is registered by its description, or by its own file where the description lies beside it."""
    described(tmp_path, {"out": YOLOV8.T})
    assert client.register_model(str(tmp_path / name), "net") == "net"
    (found,) = client.infer(np.zeros((64, 128, 3), np.uint8), "net").objects
    assert (found.label, found.bbox.to_xyxy(128, 64)) == ("cat", (16, 8, 48, 24))
    client.update_postprocess_config("net", {"detection_threshold": 0.05, "max_boxes": 10})
    assert len(client.infer(np.zeros((64, 128, 3), np.uint8), "net").objects) == 2
    client.unregister_model("net")


def test_a_registration_that_is_given_up(server: Server, tmp_path: Path) -> None:
    """A caller that does not wait for a model leaves no process, and the name is free again."""
    import grpc

    slow = tmp_path / "slow.py"
    slow.write_text("import time\nclass Slow:\n    classes = ('a',)\n    def load(self): time.sleep(600)\n")
    workers = server.workers()
    with grpc.insecure_channel(server.grpc[0]) as channel:
        register = channel.unary_unary(
            "/aipc.inference.InferenceService/RegisterModel",
            request_serializer=M.ModelRegisterRequest.SerializeToString,
            response_deserializer=M.ModelRegisterResponse.FromString,
        )
        request = M.ModelRegisterRequest(model_id="slow", model_path=f"{slow}:Slow")
        call = register.future(request)
        until(lambda: len(server.workers()) > len(workers), "its process")
        call.cancel()
        until(lambda: server.workers() == workers, "its end")
        request.model_path = "pixels"
        assert register(request).status.success
    with InferenceClient(server.grpc[0]) as client:
        client.unregister_model("slow")


def test_masks_and_landmarks(client: InferenceClient) -> None:
    """Masks come over the whole picture, landmarks with their confidence, tags as classes of the picture."""
    client.register_model(f"{MODELS}:Masks", "masks")
    picture = np.zeros((40, 60, 3), np.uint8)
    result = client.infer(picture, "masks")
    half, corner = (mask.to_numpy_mask() for mask in result.masks)
    assert half.shape == (40, 60)
    assert half[:, 30:].all()
    assert not half[:, :30].any()
    assert corner[:10, :15].all()
    assert corner.sum() == 150
    prediction = result.to_prediction(60, 40)
    assert list(prediction.classes) == ["half", "corner"]
    np.testing.assert_array_equal(prediction.boxes, [[30, 0, 60, 40], [0, 0, 15, 10]])
    client.unregister_model("masks")
    client.register_model(f"{MODELS}:Points", "points")
    result = client.infer(picture, "points")
    assert result.landmarks[0].type == "thing"
    assert [tuple(point) for point in result.landmarks[0].points] == [(0.5, 0.25, 1.0), (0.0, 0.0, 0.0)]
    assert [each.label for each in result.classifications] == ["outdoors"]
    assert result.raw_outputs is not None
    assert result.raw_outputs[3].shape == (1, 2, 3)
    client.unregister_model("points")
    client.register_model(f"{MODELS}:Wrong", "wrong", raw_output_only=True)
    with pytest.raises(RefusedError, match=r"Postprocess failed: .*a box ends before it begins"):
        client.infer(picture, "wrong")
    client.unregister_model("wrong")


def test_settings(client: InferenceClient) -> None:
    """Settings change while the server runs, under the runtimes' names, too; what is none changes nothing."""
    picture = number_picture(1)  # its score is 0.501
    assert len(client.infer(picture, "pixels").objects) == 1
    client.update_postprocess_config("pixels", {"detection_threshold": 0.9})
    assert client.infer(picture, "pixels").objects == ()
    client.update_postprocess_config("pixels", json.dumps({"conf": 0.5, "classes": ["ends in 1"]}))
    assert len(client.infer(picture, "pixels").objects) == 1
    assert client.infer(number_picture(2), "pixels").objects == ()
    client.update_postprocess_config("pixels", {"classes": "all"})
    for config, text in (
        ({"unknown": 1}, "no setting 'unknown'"),
        ({"conf": "high"}, "must be a number"),
        ({"conf": 0.9, "classes": ["zebra"]}, "no class 'zebra'"),
    ):
        with pytest.raises(RefusedError, match=f"Failed to update config: .*{text}"):
            client.update_postprocess_config("pixels", config)
    with pytest.raises(RefusedError, match=r"Failed to update config: -1"):
        client.update_postprocess_config("none", {"conf": 0.5})
    assert len(client.infer(number_picture(2), "pixels").objects) == 1


def test_stats(client: InferenceClient, server: Server) -> None:
    """Counters count what happened, failed pictures and those of HTTP included."""

    def stats() -> dict[str, float]:
        (found,) = client.get_stats(sampling_window_ms=1)["model_stats"]
        return dict(found)

    client.infer(number_picture(0), "pixels")  # what a test before has given up is counted by its answer
    before = stats()
    for number in range(5):
        client.infer(number_picture(number), "pixels")
    client.update_postprocess_config("pixels", {"fail_at": 3})
    with pytest.raises(RefusedError):
        client.infer(number_picture(3), "pixels")
    with PredictionSession(server.url, [number_picture(9)]) as session:
        assert len(list(session)) == 1
    after = stats()
    assert after["total_inferences"] - before["total_inferences"] == 7
    assert after["total_errors"] - before["total_errors"] == 1
    assert after["avg_latency_us"] > 0
    client.update_postprocess_config("pixels", {"delay": 0.02})
    futures = [client.infer_async(number_picture(0), "pixels", 20_000) for _ in range(8)]
    busy = client.get_stats(sampling_window_ms=100)
    assert 0 < busy["device_utilization"] <= 1 or busy["model_stats"][0]["queue_depth"] > 0
    assert busy["ram_total_kib"] > busy["ram_used_kib"] > 0
    assert busy["used_memory_bytes"] > 10_000_000
    for future in futures:
        future.result(20)


def test_quotas(client: InferenceClient, gate: Path) -> None:
    """A session's models, rate and number at once are enforced; without a session there are no limits."""
    with client.edge_session("mine", "app", allowed_models=["pixels"], max_qps=3) as name:
        assert name == "mine"
        with pytest.raises(RefusedError, match="Session already exists: mine"):
            client.create_session("mine")
        began = time.monotonic()
        asked = [client.infer_async(number_picture(1), "pixels", session_id=name) for _ in range(9)]
        outcomes = [future.exception(20) for future in asked]
        # Three, where the machine did not stand still between them.
        assert 3 <= sum(error is None for error in outcomes) <= 3 * (1 + int(time.monotonic() - began))
        refused = [error for error in outcomes if error is not None]
        assert all(isinstance(error, RateLimitError) and "max_qps" in str(error) for error in refused)
        until(lambda: _is_answered(client, name), "the next second")
    with pytest.raises(NotFoundError, match="Session not found"):
        client.infer(number_picture(1), "pixels", session_id="mine")
    with pytest.raises(NotFoundError, match="Session not found"):
        client.destroy_session("mine")
    client.register_model(f"{held_numbers.__file__}:HeldBatches", "held")
    client.update_postprocess_config("held", {"hold_while": str(gate)})
    with client.edge_session(allowed_models=["other"]) as other, client.edge_session(max_concurrent=2) as two:
        with pytest.raises(AuthError, match="Model not allowed in this session: pixels"):
            client.infer(number_picture(1), "pixels", session_id=other)
        with pytest.raises(AuthError):
            list(client.subscribe("pictures", "pixels", session_id=other))
        asked = [client.infer_async(number_picture(1), "held", 60_000, session_id=two) for _ in range(5)]
        until(lambda: sum(future.done() for future in asked) == 3, "those that are refused")
        gate.unlink()
        outcomes = [future.exception(60) for future in asked]
        assert sum(error is None for error in outcomes) == 2
        third = client.create_session()
        with pytest.raises(RefusedError, match="Too many sessions: 3 are open"):
            client.create_session()
        client.destroy_session(third)
    client.unregister_model("held")


def _is_answered(client: InferenceClient, session: str) -> bool:
    """Whether the session lets a call through."""
    try:
        return number_of(client.infer(number_picture(4), "pixels", session_id=session)) == 4
    except RateLimitError:
        return False


def test_what_it_does_not_have(client: InferenceClient, server: Server) -> None:
    """What needs a device, or a model of another kind, says that it is not offered, and why."""
    calls = (
        lambda: client.encode_text("a cat"),
        lambda: client.genai_create_session("x.hef"),
        lambda: client.genai_destroy_session("x"),
        lambda: list(client.genai_generate("x", ['{"role": "user", "content": "hi"}'])),
        lambda: client.genai_abort("x"),
    )
    for call in calls:
        with pytest.raises(
            NotFoundError, match=r"no (text encoder|generative models).*UNIMPLEMENTED"
        ) as raised:
            call()
        assert raised.value.status == 501
    import grpc

    with grpc.insecure_channel(server.grpc[0]) as channel:
        infer = channel.unary_unary(
            "/aipc.inference.InferenceService/Infer",
            request_serializer=M.InferRequest.SerializeToString,
            response_deserializer=M.InferResponse.FromString,
        )
        for tensor in (M.Tensor(shape=[720, 640], buffer_id=7), M.Tensor(shape=[720, 640], dma_fd=5)):
            with pytest.raises(grpc.RpcError) as failed:
                infer(M.InferRequest(model_id="pixels", inputs=[tensor]))
            assert failed.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_both_doors_are_open(server: Server) -> None:
    """HTTP is served beside, with the same model."""
    assert requests.post(f"{server.url}/is_ready", json={}, timeout=20).status_code == 200
    assert len(server.grpc) == 2
