"""The gRPC door where callers give up, ask for too much, or say what is none; and models that do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import grpc
import held_numbers
import numpy as np
import pytest
from edge_kit import M
from edge_server_kit import MODELS, edge_server, is_let_go, number_of, restoring
from server_kit import Server, until

from predsession import AuthError, NotFoundError, RefusedError, RequestTimeoutError
from predsession.edge import BatchInferItem, InferenceClient, InferenceResult
from predsession.server.models.pixels import number_picture
from predsession.wire.edge.methods import METHODS

SLOW = """\
import time

class Slow:
    classes = ("a",)

    def load(self):
        time.sleep(1)

    def predict(self, images, settings):
        return [{"boxes": [], "scores": []} for _ in images]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests of this file."""
    with edge_server(tmp_path_factory.mktemp("edge")) as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[InferenceClient]:
    """A client that leaves the settings as they were."""
    with restoring(server) as made:
        yield made


@contextmanager
def bare(server: Server, name: str) -> Iterator[grpc.UnaryUnaryMultiCallable]:
    """One call as gRPC itself makes it; a request may be bytes."""
    method = METHODS[name]
    with grpc.insecure_channel(server.grpc[0]) as channel:
        yield channel.unary_unary(
            method.path,
            request_serializer=lambda each: each if isinstance(each, bytes) else each.SerializeToString(),
            response_deserializer=method.reply.FromString,
        )


def tensor(number: int) -> M.Tensor:
    """Return a picture of a number as the wire has it."""
    picture = number_picture(number)
    return M.Tensor(shape=picture.shape, data=picture.tobytes())


def test_an_unregistration_that_is_given_up(client: InferenceClient, server: Server, tmp_path: Path) -> None:
    """The worker ends even if nobody waits for it; until then it counts as one of the registered models."""
    before = server.workers()
    gate = tmp_path / "gate"
    gate.touch()
    client.register_model(f"{held_numbers.__file__}:HeldNumbers", "busy")
    client.update_postprocess_config("busy", {"hold_while": str(gate)})

    def busy() -> bool:
        with pytest.raises(RequestTimeoutError):
            client.infer(number_picture(1), "busy", timeout_ms=100)
        return held_numbers.mark(gate).exists()

    until(busy, "a worker with a picture that nobody waits for")
    with bare(server, "UnregisterModel") as unregister:
        given_up = unregister.future(M.ModelInfo(model_id="busy"))
        until(lambda: client.get_model_info("busy") is None, "the server to begin with it")
        given_up.cancel()
    client.register_model("pixels", "second")
    assert len(server.workers()) == len(before) + 2
    with pytest.raises(RefusedError, match=r"Too many models: 1 are registered, 1 are ending; see --limit"):
        client.register_model("pixels", "third")
    gate.unlink()
    until(lambda: len(server.workers()) == len(before) + 1, "the end of the first")
    client.unregister_model("second")
    assert server.workers() == before


def test_registrations_of_one_name(client: InferenceClient, server: Server, tmp_path: Path) -> None:
    """Of two at once the second waits for the first, though that is given up; another wish is refused."""
    file = tmp_path / "slow.py"
    file.write_text(SLOW)
    request = M.ModelRegisterRequest(model_id="slow", model_path=f"{file}:Slow", owner_id="me")
    before = server.workers()
    with bare(server, "RegisterModel") as register:
        first = register.future(request)
        until(lambda: len(server.workers()) > len(before), "its process")
        second, third = register.future(request), register.future(request)
        request.transient = True
        other = register(request)
        first.cancel()
        assert [each.result(20).status.message for each in (second, third)] == ["", ""]
    assert other.status.message == "Model already registered: slow; its transient is False, not True"
    assert len(server.workers()) == len(before) + 1
    for wish, text in (
        ({"raw_output_only": True, "owner_id": "me"}, "its raw_output_only is False, not True"),
        ({"owner_id": "you"}, "its owner_id is 'me', not 'you'"),
    ):
        with pytest.raises(RefusedError, match=f"Model already registered: slow; {text}"):
            client.register_model(f"{file}:Slow", "slow", **wish)
    with pytest.raises(RefusedError, match="Model already registered: pixels; it came with the server"):
        client.register_model("pixels", "pixels")
    client.unregister_model("slow")


def test_paths_that_are_none(client: InferenceClient) -> None:
    """A path that no file can have is refused as one that is not there; the answer stays short."""
    for path in ("/" + "a" * 5000 + ".onnx", "a" * 300 + ".onnx"):
        with pytest.raises(RefusedError, match=r"Failed to load: .*") as raised:
            client.register_model(path, "long")
        assert len(str(raised.value)) < 7000
    with pytest.raises(RefusedError, match="owner_id has 256 characters at most"):
        client.register_model("pixels", "long", owner_id="o" * 257)


def test_one_late_item_of_a_batch(client: InferenceClient, server: Server) -> None:
    """The finished ones arrive, whether the caller waits a little longer than it says, or not."""
    client.register_model("pixels", "quick")
    client.update_postprocess_config("pixels", {"delay": 3.5})
    items = [BatchInferItem(number_picture(3), name) for name in ("quick", "pixels")]

    def ask() -> list[InferenceResult] | None:
        with suppress(RequestTimeoutError):  # a machine that stands still at that moment: again
            return client.infer_batch(items, timeout_ms=3000)
        return None

    good, late = until(ask, "an answer in time")
    assert (number_of(good), late.status_message) == (3, "Batch timeout")
    assert isinstance(late.error, RequestTimeoutError)
    client.update_postprocess_config("pixels", {"delay": 3.5})
    requests = [M.InferRequest(model_id=name, inputs=[tensor(4)]) for name in ("quick", "pixels")]

    def ask_barely() -> M.InferBatchResponse | None:
        with bare(server, "InferBatch") as batch, suppress(grpc.RpcError):
            return batch(M.InferBatchRequest(requests=requests, timeout_ms=3000), timeout=3.0)
        return None

    reply = until(ask_barely, "an answer in time")
    assert [each.status.message for each in reply.responses] == ["", "Batch timeout"]
    client.update_postprocess_config("pixels", {"delay": 0})
    client.unregister_model("quick")


def test_a_batch_of_too_many(server: Server, client: InferenceClient) -> None:
    """More items than may wait are refused as a whole, whatever is in them."""
    with bare(server, "InferBatch") as batch:
        reply = batch(M.InferBatchRequest(requests=[M.InferRequest()] * 100_000))
    assert reply.status.message == "More than 8 items; see --limit-frames"
    assert not reply.responses
    with pytest.raises(RefusedError, match="More than 8 items"):
        client.infer_batch([BatchInferItem(number_picture(1), "pixels")] * 9)


def test_texts_that_are_none(client: InferenceClient) -> None:
    """Half a character in a class's name or in an error costs nobody's answer, and errors stay short."""
    client.register_model(f"{MODELS}:Odd", "odd")
    picture = number_picture(1)
    assert client.infer(picture, "odd").objects[0].label == r"half \ud83d of one"
    client.update_postprocess_config("odd", {"raises": True})
    good, bad = client.infer_batch([BatchInferItem(picture, name) for name in ("pixels", "odd")])
    assert number_of(good) == 1
    assert bad.status_message.startswith("Inference failed: model odd: no \\ud83d \0xxx")
    assert len(bad.status_message) < 1100
    with pytest.raises(RefusedError, match=r"model odd: no \\ud83d"):
        list(client.subscribe("pictures", "odd", fps=50, max_consecutive_failures=1))
    until(lambda: is_let_go(client, "odd"), "the end of the stream")


def test_long_names(client: InferenceClient, server: Server) -> None:
    """What is asked for is named in a status as far as it fits; a huge shape is not told again."""
    for name in ("\U0001f600" * 1000, "é" * 100_000, "%" * 3000, "a" * 100_000):
        assert client.get_model_info(name) is None
        with pytest.raises(NotFoundError, match="Stream not found"):
            list(client.subscribe(name, "pixels"))
    with bare(server, "Infer") as infer:
        many = M.Tensor(shape=[1] * 100_000, data=b"x")
        reply = infer(M.InferRequest(model_id="pixels", inputs=[many]))
    assert "the tensor is of 100000 dimensions, UINT8; wanted" in reply.status.message
    for wish in ({"session_id": "s" * 257}, {"app_id": "a" * 257}, {"allowed_models": ["m" * 257]}):
        with pytest.raises(RefusedError, match="256 characters at most"):
            client.create_session(**wish)


def test_what_is_no_message(server: Server) -> None:
    """Bytes that are no message are the caller's mistake, told as such, and no bug in the log."""
    for name in ("Infer", "InferBatch", "RegisterModel", "GetStats"):
        with bare(server, name) as call, pytest.raises(grpc.RpcError) as raised:
            call(b"\xff\xff\xff")
        assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "no " in raised.value.details()
    assert "Traceback" not in server.log


def test_settings_that_make_no_sense(client: InferenceClient) -> None:
    """A share beyond 1, and a setting under two names, are refused, and nothing is changed."""
    for config, text in (
        ({"conf": 1.5}, "'conf' is 1.5; it must be 0 to 1"),
        ({"detection_threshold": -1}, "'conf' is -1; it must be 0 to 1"),
        ({"conf": 0.2, "detection_threshold": 0.9}, "conf and detection_threshold are one setting"),
        ({"confidence": 0.2, "score_threshold": 0.2}, "confidence and score_threshold are one setting"),
    ):
        with pytest.raises(RefusedError, match=f"Failed to update config: .*{text}"):
            client.update_postprocess_config("pixels", config)
    client.update_postprocess_config("pixels", {"confidence": 0.9})
    assert client.infer(number_picture(1), "pixels").objects == ()


def test_a_batch_that_is_under_way_counts(client: InferenceClient) -> None:
    """The device is busy while a batch is computed, not only once it is done."""
    client.update_postprocess_config("pixels", {"delay": 2.0})
    future = client.infer_async(number_picture(1), "pixels", 20_000)
    until(lambda: client.get_stats(sampling_window_ms=50)["device_utilization"] > 0.5, "the worker")
    assert not future.done()
    future.result(20)


def test_a_damaged_frame_is_named(client: InferenceClient) -> None:
    """A frame that cannot be read says which file it was."""
    with pytest.raises(RefusedError, match=r"Frame not read: 0\.png: "):
        list(client.subscribe("damaged", "pixels", fps=50, max_consecutive_failures=1))


def test_quotas_have_one_error(client: InferenceClient) -> None:
    """A picture and a camera are refused alike."""
    picture = np.zeros((32, 64, 3), np.uint8)
    with client.edge_session(allowed_models=[f"m{number}" for number in range(1000)]) as session:
        for ask in (
            lambda: client.infer(picture, "pixels", session_id=session),
            lambda: list(client.subscribe("pictures", "pixels", session_id=session)),
        ):
            with pytest.raises(AuthError, match=r"Model not allowed.* and 990 more") as raised:
                ask()
            assert raised.value.status == 403
    with pytest.raises(RefusedError, match="1001 allowed_models; a session takes 1000 at most"):
        client.create_session(allowed_models=[f"m{number}" for number in range(1001)])
