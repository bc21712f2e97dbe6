"""The edge client against a real gRPC server whose messages are built from the interface's table."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import grpc
import numpy as np
import pytest
from edge_kit import OK, M, Runtime, abort, echo, slow_link, slowly

from predsession import (
    AuthError,
    ConnectError,
    InvalidRequestError,
    NotFoundError,
    PredSessionError,
    ProtocolError,
    RateLimitError,
    RefusedError,
    RequestTimeoutError,
    ServerFaultError,
    SessionClosedError,
    SourceError,
    TransportError,
    UploadTooLargeError,
)
from predsession.edge import BatchInferItem, InferenceClient, ModelInfo

PICTURE = np.arange(48 * 64 * 3, dtype=np.uint8).reshape(48, 64, 3)


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    """A runtime that echoes."""
    with Runtime() as made:
        yield made


@pytest.fixture
def client(runtime: Runtime) -> Iterator[InferenceClient]:
    """A client of it."""
    with InferenceClient(runtime.endpoint) as made:
        yield made


@pytest.mark.parametrize("kind", ["tcp", "unix", "path"])
def test_one_picture(kind: str, tmp_path: Path) -> None:
    """A picture arrives as it is, over TCP and a unix socket, with what was asked beside it."""
    socket = tmp_path / "runtime.sock"
    with Runtime("127.0.0.1:0" if kind == "tcp" else f"unix://{socket}") as runtime:
        endpoint = str(socket) if kind == "path" else runtime.endpoint
        with InferenceClient(endpoint) as client:
            assert not client.connected
            result = client.infer(PICTURE, "m", timeout_ms=1234, priority=7, session_id="s")
            assert client.connected
        assert not client.connected
        asked = runtime.last("Infer")
    assert (asked.model_id, asked.timeout_ms, asked.priority, asked.session_id) == ("m", 1234, 7, "s")
    assert list(asked.inputs[0].shape) == [48, 64, 3]
    assert asked.inputs[0].dtype == 0
    assert asked.inputs[0].data == PICTURE.tobytes()
    np.testing.assert_array_equal(result.raw_outputs[0], PICTURE)
    assert (result.infer_time_us, result.queue_time_us, result.hw_infer_time_us) == (7, 3, 2)


def test_the_default_endpoint(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an endpoint the environment's is taken, and without that the platform's own socket."""
    monkeypatch.setenv("AI_RUNTIME_ENDPOINT", runtime.endpoint)
    with InferenceClient() as client:
        assert client.connect() is client
        assert client.connected
    monkeypatch.delenv("AI_RUNTIME_ENDPOINT")
    assert InferenceClient().endpoint == "unix:///run/aipc/ai-runtime.sock"
    for wrong in ("http://host:1/path", "host", "ftp://host:1", "", "host:99999"):
        with pytest.raises(SourceError, match="no address"):
            InferenceClient(wrong)


def test_the_largest_messages(client: InferenceClient) -> None:
    """32 MiB go and come, beyond gRPC's own limit; what no peer takes is refused before it is sent."""
    array = np.arange(8 << 20, dtype=np.float32)
    (back,) = client.infer_with_tensors("m", [array])
    np.testing.assert_array_equal(back, array)
    with pytest.raises(UploadTooLargeError, match="67,108,864"):
        client.infer(np.zeros(64 << 20, np.uint8), "m")
    with pytest.raises(UploadTooLargeError, match="67,108,864"):
        client.infer_async(np.zeros(64 << 20, np.uint8), "m")


def test_tensors_by_position(client: InferenceClient) -> None:
    """Inputs of any shape and dtype go in their order, and outputs come in theirs."""
    inputs = [np.float16([1.5]), np.zeros((0, 3), np.int8), np.arange(6).reshape(2, 3), PICTURE[:, ::2]]
    outputs = client.infer_with_tensors("m", inputs, input_names=["a", "b", "c", "d"])
    for there, back in zip(inputs, outputs, strict=True):
        np.testing.assert_array_equal(there, back)
    assert [each.dtype.name for each in outputs] == ["float16", "int8", "int32", "uint8"]
    with pytest.raises(SourceError, match="3 input_names for 4 inputs"):
        client.infer_with_tensors("m", inputs, input_names=["a", "b", "c"])


def test_wrong_arguments_are_errors_before_anything_is_sent(
    runtime: Runtime, client: InferenceClient
) -> None:
    """The caller's mistakes raise SourceError, and the runtime hears of none."""
    for wrong in (
        lambda: client.infer(np.array([0.1]), "m"),
        lambda: client.infer("a.jpg", "m"),
        lambda: client.infer(PICTURE, "m", timeout_ms=0),
        lambda: client.infer(PICTURE, "m", priority=8),
        lambda: client.infer(PICTURE, ""),
        lambda: client.infer_async(np.array([2**40]), "m"),
        lambda: client.infer_batch([BatchInferItem(PICTURE, "m"), BatchInferItem(np.array([0.1]), "m")]),
        lambda: list(client.infer_many([PICTURE], "m", depth=0)),
        lambda: client.subscribe("cam", "m", fps=-1),
        lambda: client.update_postprocess_config("m", "not JSON"),
        lambda: client.update_postprocess_config("m", "[1]"),
        lambda: client.update_postprocess_config("m", {"threshold": float("nan")}),
        lambda: client.register_model("/x.hef", inputs=[{"shape": [1], "dtype": "int64"}]),
        lambda: client.register_model("/x.hef", inputs=[{"shape": [1]}]),
        lambda: client.create_session(allowed_models="abc"),
        lambda: client.genai_generate("s", "hello"),
        lambda: client.genai_generate("s", [], images=[np.zeros((2, 2), np.uint8)]),
        lambda: client.genai_create_session("/x.hef", "llama"),
        lambda: client.create_session(max_qps=-1),
        lambda: client.create_session(max_concurrent=2**32),
        lambda: client.create_session(max_qps=2.5),
        lambda: client.create_session(priority=99),
        lambda: client.create_session(allowed_models=["a", 5]),
        lambda: client.create_session("\ud800"),
        lambda: client.get_stats(sampling_window_ms=-1),
        lambda: client.register_model("/x.hef", batch_size=-1),
        lambda: client.register_model("/x.hef", inputs=[{"shape": [1], "dtype": "uint8", "nmae": "x"}]),
        lambda: client.register_model("/x.hef", inputs=[{"shape": [1.5], "dtype": "uint8"}]),
        lambda: client.register_model("/x.hef", inputs=[{"shape": [-2], "dtype": "uint8"}]),
        lambda: client.genai_generate("s", [], max_tokens=-1),
        lambda: client.genai_generate("s", {"role": "user"}),
        lambda: list(client.infer_many([PICTURE], "m", depth=1.5)),
        lambda: client.genai_generate("s", [], idle_timeout=0),
        lambda: client.genai_generate("s", [{"role": {1, 2}}]),
        lambda: client.genai_generate("s", [], images=[[[1], [1, 2]]]),
        lambda: client.infer([[1], [1, 2]], "m"),
        lambda: client.infer(np.ma.array([1, 2], mask=[0, 1]), "m"),
        lambda: client.infer(PICTURE, "\ud800"),
        lambda: client.infer(PICTURE, "m", session_id=5),
        lambda: client.infer(PICTURE, "m", priority=1.5),
        lambda: client.infer(PICTURE, "m", timeout_ms=0.5),
        lambda: client.infer(PICTURE, "m", timeout_ms=float("nan")),
        lambda: client.subscribe("\ud800", "m"),
        lambda: client.subscribe("cam", "m", fps=1.5),
        lambda: client.subscribe("cam", "m", idle_timeout=float("nan")),
        lambda: client.subscribe("cam", "m", max_consecutive_failures=-1),
        lambda: client.connect(timeout=float("inf")),
        lambda: client.connect(timeout=-1),
        lambda: client.encode_text("\ud800"),
        lambda: client.get_model_info("\ud800"),
        lambda: client.unregister_model("\ud800"),
        lambda: client.destroy_session("\ud800"),
        lambda: client.genai_abort("\ud800"),
        lambda: client.genai_destroy_session("\ud800"),
    ):
        with pytest.raises(SourceError):
            wrong()
    assert runtime.asked == []


def test_in_the_background(runtime: Runtime, client: InferenceClient) -> None:
    """Futures are on their way at once, and give results or raise."""
    together = threading.Barrier(4, timeout=10)

    def answer(request: object, context: grpc.ServicerContext) -> object:
        together.wait()
        return echo(request, context)

    runtime.answers["Infer"] = answer
    futures = [client.infer_async(np.full((2, 2), n, np.uint8), "none" if n == 3 else "m") for n in range(4)]
    assert [int(each.result(10).raw_outputs[0][0, 0]) for each in futures[:3]] == [0, 1, 2]
    with pytest.raises(NotFoundError, match="Model not found"):
        futures[3].result(10)


def test_a_cancelled_future_cancels_the_call(runtime: Runtime, client: InferenceClient) -> None:
    """The runtime sees the cancel, and the future is cancelled."""
    arrived, cancelled = threading.Event(), threading.Event()

    def answer(request: object, context: grpc.ServicerContext) -> object:
        context.add_callback(cancelled.set)
        arrived.set()
        assert cancelled.wait(10)
        return echo(request, context)

    runtime.answers["Infer"] = answer
    future = client.infer_async(PICTURE, "m")
    assert arrived.wait(10)
    assert future.cancel()
    assert cancelled.wait(10)
    assert future.cancelled()


def _batch(request: object, _context: object) -> object:
    """Answer each entry."""
    responses = [echo(each) for each in request.requests]
    good = sum(each.status.success for each in responses)
    status = M.Status(success=good == len(responses), message=f"{good}/{len(responses)} succeeded")
    return M.InferBatchResponse(responses=responses, status=status)


def test_batches(runtime: Runtime, client: InferenceClient) -> None:
    """Answers come in order; one that failed is false, and raises as soon as it is asked what was found."""
    runtime.answers["InferBatch"] = _batch
    items = [
        BatchInferItem(np.full((1,), 1, np.uint8), "a", timeout_ms=77, priority=1),
        BatchInferItem(np.full((1,), 2, np.uint8), "none"),
        BatchInferItem(np.full((1,), 3, np.uint8), "b"),
    ]
    for results in (client.infer_batch(items), client.infer_batch_async(items).result(10)):
        assert [bool(each) for each in results] == [True, False, True]
        assert [each.ok for each in results] == [True, False, True]
        assert [int(results[at].raw_outputs[0][0]) for at in (0, 2)] == [1, 3]
        assert results[0].objects == ()
        for ask in (lambda bad: bad.objects, lambda bad: bad.has_person(), lambda bad: bad.raise_for_status(),
                    lambda bad: bad.to_prediction(4, 4)):  # fmt: skip
            with pytest.raises(NotFoundError, match=r"'none'.*Model not found"):
                ask(results[1])
    asked = runtime.last("InferBatch")
    assert asked.timeout_ms == 10000
    assert [(each.model_id, each.timeout_ms, each.priority) for each in asked.requests] == [
        ("a", 77, 1), ("none", 5000, 4), ("b", 5000, 4)]  # fmt: skip
    assert client.infer_batch([]) == []
    assert client.infer_batch_async([]).result(0) == []


def test_batches_that_do_not_add_up(runtime: Runtime, client: InferenceClient) -> None:
    """A count that does not match is an error, and so is an answer that cannot be read, in its place."""
    item = BatchInferItem(PICTURE, "m")
    runtime.answers["InferBatch"] = lambda *_: M.InferBatchResponse(
        responses=[M.InferResponse(status=OK)] * 3
    )
    with pytest.raises(ProtocolError, match="3 answers to 2 pictures"):
        client.infer_batch([item, item])
    runtime.answers["InferBatch"] = lambda *_: M.InferBatchResponse(status=M.Status(message="Too hot"))
    with pytest.raises(RefusedError, match="Too hot"):
        client.infer_batch([item])
    bad = M.InferResponse(status=OK, outputs=[M.Tensor(shape=[9], dtype=5, data=b"12345678")])
    runtime.answers["InferBatch"] = lambda *_: M.InferBatchResponse(
        responses=[M.InferResponse(status=OK), bad]
    )
    good, unread = client.infer_batch([item, item])
    assert good.ok
    with pytest.raises(ProtocolError, match=r"\(9,\) float32, and has 8 bytes"):
        unread.raise_for_status()


def test_many_in_order(runtime: Runtime, client: InferenceClient) -> None:
    """Four are on their way, never more; results come in order, a refused one in its place."""
    going, most, lock = 0, 0, threading.Lock()
    together = threading.Barrier(4, timeout=10)  # breaks, and fails the test, unless four are there at once

    def answer(request: object, context: grpc.ServicerContext) -> object:
        nonlocal going, most
        with lock:
            going += 1
            most = max(most, going)
        number = request.inputs[0].data[0]
        if number < 4:
            together.wait()
        slowly(0.002 * (number % 4))(request, context)  # the first of four would come last
        with lock:
            going -= 1
        return echo(request) if number != 17 else M.InferResponse(status=M.Status(message="no"))

    runtime.answers["Infer"] = answer
    results = list(client.infer_many((np.full((1,), n, np.uint8) for n in range(40)), "m", depth=4))
    assert [each.ok for each in results] == [n != 17 for n in range(40)]
    assert [int(each.raw_outputs[0][0]) for each in results if each] == [n for n in range(40) if n != 17]
    assert most == 4


def test_many_takes_no_more_than_it_needs(runtime: Runtime, client: InferenceClient) -> None:
    """The source is read `depth` ahead; leaving the loop reads no more, and cancels what is on its way."""
    runtime.answers["Infer"] = slowly(0.01)
    taken = []

    def source() -> Iterator[np.ndarray]:
        for number in range(100):
            taken.append(number)
            yield np.full((1,), number, np.uint8)

    results = client.infer_many(source(), "m", depth=3)
    next(results)
    next(results)
    deadline = threading.Event()
    for _ in range(500):
        if len(taken) == 5:
            break
        deadline.wait(0.01)
    results.close()
    assert taken == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("code", "kind", "status"),
    [
        ("CANCELLED", TransportError, None),
        ("UNKNOWN", ServerFaultError, 500),
        ("INVALID_ARGUMENT", InvalidRequestError, 400),
        ("DEADLINE_EXCEEDED", RequestTimeoutError, None),
        ("NOT_FOUND", NotFoundError, 404),
        ("ALREADY_EXISTS", RefusedError, 409),
        ("PERMISSION_DENIED", AuthError, 403),
        ("RESOURCE_EXHAUSTED", RateLimitError, 429),
        ("FAILED_PRECONDITION", RefusedError, 400),
        ("ABORTED", RefusedError, 409),
        ("OUT_OF_RANGE", InvalidRequestError, 400),
        ("UNIMPLEMENTED", NotFoundError, 501),
        ("INTERNAL", ServerFaultError, 500),
        ("UNAVAILABLE", TransportError, None),
        ("DATA_LOSS", ProtocolError, None),
        ("UNAUTHENTICATED", AuthError, 401),
    ],
)
def test_every_status_is_an_error_of_ours(
    runtime: Runtime, client: InferenceClient, code: str, kind: type, status: int | None
) -> None:
    """Each of gRPC's statuses has its error, with the runtime's words, and is asked for once only."""
    runtime.answers["Infer"] = abort(grpc.StatusCode[code], "the lens is dirty")
    with pytest.raises(PredSessionError) as caught:
        client.infer(PICTURE, "m")
    assert type(caught.value) is kind
    assert getattr(caught.value, "status", None) == status
    assert "Infer" in str(caught.value)
    assert code == "DEADLINE_EXCEEDED" or "the lens is dirty" in str(caught.value)
    with pytest.raises(kind):
        client.infer_async(PICTURE, "m").result(10)
    assert len(runtime.asked) == 2
    assert len(grpc.StatusCode) == 17


def test_deadlines_are_ours(runtime: Runtime, client: InferenceClient) -> None:
    """A runtime that does not answer in time is a RequestTimeoutError, which is a TimeoutError, too."""
    runtime.answers["Infer"] = slowly(0.5)
    with pytest.raises(TimeoutError, match=r"no answer within 0.05 s"):
        client.infer(PICTURE, "m", timeout_ms=50)
    with pytest.raises(RequestTimeoutError):
        client.infer_async(PICTURE, "m", timeout_ms=50).result(10)


def test_what_cannot_be_read(runtime: Runtime, client: InferenceClient) -> None:
    """An answer that contradicts itself, or is larger than agreed, is a ProtocolError."""
    short = M.Tensor(shape=[9], dtype=5, data=b"12345678")
    runtime.answers["Infer"] = lambda *_: M.InferResponse(status=OK, outputs=[short])
    with pytest.raises(ProtocolError, match=r"tensor 0 says \(9,\) float32, and has 8 bytes"):
        client.infer(PICTURE, "m")
    with pytest.raises(ProtocolError):
        client.infer_async(PICTURE, "m").result(10)


def test_nobody_there(tmp_path: Path) -> None:
    """Without a runtime all calls say so, as a ConnectError that names the address; a later one finds it."""
    socket = f"unix://{tmp_path}/runtime.sock"
    with InferenceClient(socket) as client:
        for ask in (
            lambda: client.infer(PICTURE, "m"),
            lambda: client.infer_async(PICTURE, "m").result(10),
            lambda: client.connect(timeout=0.2),
            lambda: list(client.infer_many([PICTURE], "m")),
            lambda: next(client.subscribe("cam", "m")),
        ):
            with pytest.raises(ConnectError, match=r"runtime.sock.*nothing was sent"):
                ask()
        assert not client.connected
        with Runtime(socket):
            assert client.infer(PICTURE, "m").ok


def test_a_call_that_never_left_is_sent_again(tmp_path: Path) -> None:
    """A runtime that comes up a moment later gets each call, once."""
    socket = f"unix://{tmp_path}/runtime.sock"
    with InferenceClient(socket) as client:
        future = client.infer_async(PICTURE, "m")
        with Runtime(socket) as runtime:
            assert future.result(10).ok
            assert len(runtime.asked) == 1


def test_a_closed_client(runtime: Runtime) -> None:
    """A closed client says so, and closing it twice does nothing."""
    client = InferenceClient(runtime.endpoint)
    client.infer(PICTURE, "m")
    client.close()
    client.close()
    for ask in (lambda: client.infer(PICTURE, "m"), lambda: client.infer_async(PICTURE, "m"), client.connect,
                lambda: client.subscribe("cam", "m")):  # fmt: skip
        with pytest.raises(SessionClosedError, match="closed"):
            ask()


def test_closing_ends_what_is_on_its_way(runtime: Runtime) -> None:
    """A future that was not answered when the client was closed raises."""
    arrived, release = threading.Event(), threading.Event()

    def answer(request: object, context: grpc.ServicerContext) -> object:
        arrived.set()
        release.wait(10)
        return echo(request, context)

    runtime.answers["Infer"] = answer
    client = InferenceClient(runtime.endpoint)
    future = client.infer_async(PICTURE, "m")
    assert arrived.wait(10)
    client.close()
    with pytest.raises(TransportError, match="closed"):
        future.result(10)
    release.set()


def test_models(runtime: Runtime, client: InferenceClient) -> None:
    """Registering, listing, describing and unregistering say what they mean on the wire."""
    told = M.ModelInfo(
        model_id="m", name="Model", model_path="/m.hef", version="2", load_timestamp=5, batch_size=3
    )
    told.inputs.add(shape=[1, 640, 640, 3], dtype=0, name="images", layout="NHWC", byte_size=1228800)
    told.outputs.add(shape=[1, -1], dtype=5)
    runtime.answers.update(
        RegisterModel=lambda request, _: M.ModelRegisterResponse(model_id=request.model_id, status=OK),
        UnregisterModel=lambda *_: OK,
        ListModels=lambda *_: M.ModelListResponse(models=[told, M.ModelInfo(model_id="n")]),
        GetModelInfo=lambda *_: told,
    )
    named = client.register_model(
        "/opt/aipc/models/yolo.v8.hef", owner_id="me", model_type="detection", model_variant="yolov8",
        inputs=[{"shape": [1, 2], "dtype": "uint8", "name": "x", "layout": "NHWC"}],
        outputs=[{"shape": [3], "dtype": "float16"}], batch_size=2, transient=True, raw_output_only=True,
    )  # fmt: skip
    asked = runtime.last("RegisterModel")
    assert named == asked.model_id == "yolo.v8"
    assert asked.model_path == "/data/aipc/models/yolo.v8.hef"
    assert (asked.owner_id, asked.model_type, asked.model_variant) == ("me", "detection", "yolov8")
    assert (asked.batch_size, asked.transient, asked.raw_output_only) == (2, True, True)
    assert list(asked.inputs) == [M.TensorSpec(shape=[1, 2], dtype=0, name="x", layout="NHWC")]
    assert list(asked.outputs) == [M.TensorSpec(shape=[3], dtype=4)]
    info = client.get_model_info("m")
    assert isinstance(info, ModelInfo)
    assert info.inputs == ({"shape": (1, 640, 640, 3), "dtype": "uint8", "name": "images", "layout": "NHWC",
                            "byte_size": 1228800},)  # fmt: skip
    assert (info.version, info.load_timestamp, info.batch_size) == ("2", 5, 3)
    assert client.list_models() == [info, ModelInfo("n")]
    client.unregister_model("m", owner_id="me")
    assert runtime.last("UnregisterModel") == M.ModelInfo(model_id="m", owner_id="me")


def test_unknown_models(runtime: Runtime, client: InferenceClient) -> None:
    """A model that is not there is None, whichever way the runtime says so; other errors stay errors."""
    runtime.answers["GetModelInfo"] = abort(grpc.StatusCode.NOT_FOUND)
    assert client.get_model_info("m") is None
    runtime.answers["GetModelInfo"] = lambda *_: M.ModelInfo()
    assert client.get_model_info("m") is None
    del runtime.answers["GetModelInfo"]
    with pytest.raises(NotFoundError, match="does not offer"):
        client.get_model_info("m")


def test_paths_in_containers(
    runtime: Runtime, client: InferenceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths become the host's by the environment or an explicit map, by whole names."""
    runtime.answers["RegisterModel"] = lambda *_: M.ModelRegisterResponse(status=OK)

    def sent(path: str, **keywords: object) -> str:
        client.register_model(path, "m", **keywords)
        return runtime.last("RegisterModel").model_path

    assert sent("/opt/aipc2/m.hef") == "/opt/aipc2/m.hef"
    assert sent("models/m.hef") == "models/m.hef"
    monkeypatch.setenv("AIPC_HOST_PREFIX", "/srv/aipc")
    assert sent("/opt/aipc/m.hef") == "/srv/aipc/m.hef"
    assert sent("/data/aipc/a/m.hef") == "/srv/aipc/a/m.hef"
    folders = {"/models": "/mnt/disk", "/models/big": "/mnt/large"}
    assert sent("/models/m.hef", path_map=folders) == "/mnt/disk/m.hef"
    assert sent("/models/big/m.hef", path_map=folders) == "/mnt/large/m.hef"
    assert sent("/opt/aipc/m.hef", path_map={}) == "/opt/aipc/m.hef"


def test_every_no_is_an_error(runtime: Runtime, client: InferenceClient) -> None:
    """`success=false` is an error with the runtime's words, whatever was asked."""
    no = M.Status(success=False, message="ref_count is 2", code=4)
    runtime.answers.update(
        Infer=lambda *_: M.InferResponse(status=no),
        RegisterModel=lambda *_: M.ModelRegisterResponse(status=no),
        UnregisterModel=lambda *_: no,
        CreateSession=lambda *_: M.SessionCreateResponse(status=no),
        DestroySession=lambda *_: no,
        UpdatePostprocessConfig=lambda *_: M.UpdatePostprocessConfigResponse(status=no),
        EncodeText=lambda *_: M.EncodeTextResponse(status=no),
        GenaiCreateSession=lambda *_: M.GenaiCreateSessionResponse(status=no),
        GenaiDestroySession=lambda *_: no,
    )
    for ask in (
        lambda: client.infer(PICTURE, "m"),
        lambda: client.infer_async(PICTURE, "m").result(10),
        lambda: client.infer_with_tensors("m", [PICTURE]),
        lambda: client.register_model("/m.hef"),
        lambda: client.unregister_model("m"),
        lambda: client.create_session("s"),
        lambda: client.destroy_session("s"),
        lambda: client.update_postprocess_config("m", {}),
        lambda: client.encode_text("a cat"),
        lambda: client.genai_create_session("/m.hef"),
        lambda: client.genai_destroy_session("s"),
    ):
        with pytest.raises(RefusedError, match="ref_count is 2"):
            ask()


def test_sessions(runtime: Runtime, client: InferenceClient) -> None:
    """The runtime's own id is used, and the session closed at the end of the block, whichever it is."""
    runtime.answers.update(
        CreateSession=lambda *_: M.SessionCreateResponse(session_id="app-1", status=OK),
        DestroySession=lambda *_: OK,
    )
    limits = {"allowed_models": ["a", "b"], "max_qps": 5, "max_concurrent": 2, "priority": 6}
    with client.edge_session("mine", "app", **limits) as session:
        assert session == "app-1"
    assert runtime.last("CreateSession") == M.SessionConfig(session_id="mine", app_id="app", **limits)
    with pytest.raises(ZeroDivisionError), client.edge_session("mine"):
        raise ZeroDivisionError
    destroyed = [message.session_id for name, message in runtime.asked if name == "DestroySession"]
    assert destroyed == ["app-1", "app-1"]
    runtime.answers["DestroySession"] = lambda *_: M.Status(message="Session not found")
    with pytest.raises(ZeroDivisionError) as caught, client.edge_session("mine"):
        raise ZeroDivisionError
    assert "Session not found" in caught.value.__notes__[0]
    with pytest.raises(NotFoundError, match="Session not found"), client.edge_session("mine"):
        pass


def test_settings_counters_and_texts(runtime: Runtime, client: InferenceClient) -> None:
    """Settings travel as JSON, counters come as they are, a text becomes a vector."""
    stats = M.SystemStats(cpu_utilization=-1, ram_total_kib=1 << 40, device_temperature=61.5)
    stats.model_stats.add(model_id="m", total_inferences=2**63, total_errors=1, max_skew_us=9)
    vector = M.Embedding(data=[0.5, -1], dim=2)
    runtime.answers.update(
        UpdatePostprocessConfig=lambda *_: M.UpdatePostprocessConfigResponse(status=OK),
        GetStats=lambda *_: stats,
        EncodeText=lambda *_: M.EncodeTextResponse(embedding=vector, status=M.Status()),  # as runtimes do
    )
    client.update_postprocess_config("m", {"detection_threshold": 0.5})
    client.update_postprocess_config("m", '{"a": [1]}')
    sent = [message.config_json for name, message in runtime.asked if name == "UpdatePostprocessConfig"]
    assert sent == ['{"detection_threshold": 0.5}', '{"a": [1]}']
    told = client.get_stats(sampling_window_ms=100)
    assert runtime.last("GetStats").sampling_window_ms == 100
    assert (told["cpu_utilization"], told["ram_total_kib"]) == (-1, 1 << 40)
    assert told["model_stats"][0]["total_inferences"] == 2**63
    assert told["model_stats"][0]["max_skew_us"] == 9
    assert client.encode_text("Straße").tolist() == [0.5, -1]
    assert runtime.last("EncodeText").text == "Straße"


def test_many_threads_share_a_client(client: InferenceClient) -> None:
    """Each thread gets the answers to its own questions."""
    wrong = []

    def work(number: int) -> None:
        for step in range(20):
            array = np.array([number, step], np.int32)
            if client.infer_with_tensors("m", [array])[0].tolist() != [number, step]:
                wrong.append((number, step))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_failure_that_the_runtime_hands_on_is_not_sent_again(
    runtime: Runtime, client: InferenceClient
) -> None:
    """Whoever forwards gRPC's "failed to connect" of its own has received the call: it is made once."""
    for words in ("failed to connect to all addresses; last error: x", "DNS resolution failed for y"):
        runtime.answers["Infer"] = runtime.answers["CreateSession"] = abort(
            grpc.StatusCode.UNAVAILABLE, words
        )
        for ask in (
            lambda: client.infer(PICTURE, "m"),
            lambda: client.infer_async(PICTURE, "m").result(10),
            lambda: client.create_session("s"),
        ):
            runtime.asked.clear()
            with pytest.raises(TransportError, match="the call broke off") as caught:
                ask()
            assert type(caught.value) is TransportError
            assert len(runtime.asked) == 1


def test_a_runtime_far_away_is_reached(runtime: Runtime) -> None:
    """A link that takes a third of a second each way delays the first call; it does not prevent it."""
    with slow_link(runtime.endpoint, 0.3) as endpoint, InferenceClient(endpoint) as client:
        assert client.infer(PICTURE, "m").ok
    with slow_link(runtime.endpoint, 0.3) as endpoint, InferenceClient(endpoint) as client:
        assert client.connect(timeout=10).connected


def test_a_no_is_read_first(runtime: Runtime, client: InferenceClient) -> None:
    """What is wrong with the rest of an answer that says no does not hide the runtime's words."""
    odd = M.PostResult(depth_maps=[M.DepthMap(width=3, height=3)])
    no = M.InferResponse(status=M.Status(message="Postprocess failed: x"), post_result=odd)
    runtime.answers["Infer"] = lambda *_: no
    runtime.answers["InferBatch"] = lambda *_: M.InferBatchResponse(responses=[no])
    with pytest.raises(RefusedError, match="Postprocess failed: x"):
        client.infer(PICTURE, "m")
    (result,) = client.infer_batch([BatchInferItem(PICTURE, "m")])
    with pytest.raises(RefusedError, match="Postprocess failed: x"):
        result.raise_for_status()


def _numbers(count: int) -> Iterator[np.ndarray]:
    """Pictures that say which they are."""
    return (np.full((1,), number, np.uint8) for number in range(count))


def _fails_at(runtime: Runtime, number: int, answer: Callable[..., object]) -> None:
    """Have the runtime answer one picture differently."""
    runtime.answers["Infer"] = lambda request, context: (
        answer(request, context) if request.inputs[0].data[0] == number else echo(request)
    )


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (abort(grpc.StatusCode.NOT_FOUND), NotFoundError),
        (abort(grpc.StatusCode.RESOURCE_EXHAUSTED), RateLimitError),
        (abort(grpc.StatusCode.INTERNAL), ServerFaultError),
        (abort(grpc.StatusCode.DEADLINE_EXCEEDED), RequestTimeoutError),
        (lambda *_: M.InferResponse(status=OK, outputs=[M.Tensor(shape=[9], data=b"x")]), ProtocolError),
    ],
)
def test_many_go_on_after_one_that_failed(
    runtime: Runtime, client: InferenceClient, answer: Callable[..., object], kind: type
) -> None:
    """What is wrong with one picture is that picture's result, in its place; all others come."""
    _fails_at(runtime, 5, answer)
    results = list(client.infer_many(_numbers(12), "m"))
    assert [each.ok for each in results] == [number != 5 for number in range(12)]
    assert type(results[5].error) is kind
    with pytest.raises(kind):
        results[5].objects  # noqa: B018


@pytest.mark.parametrize(
    ("code", "kind"),
    [("UNAVAILABLE", TransportError), ("UNAUTHENTICATED", AuthError), ("UNIMPLEMENTED", NotFoundError)],
)
def test_many_end_with_what_concerns_all(
    runtime: Runtime, client: InferenceClient, code: str, kind: type
) -> None:
    """A broken connection, a refused caller, a call that is not there end it, after the results before."""
    _fails_at(runtime, 5, abort(grpc.StatusCode[code]))
    got = []
    with pytest.raises(kind):
        got.extend(client.infer_many(_numbers(12), "m"))  # keeps what came
    assert len(got) == 5


def test_a_source_that_fails_fails_last(client: InferenceClient) -> None:
    """What was sent before the source failed, or gave what cannot be sent, comes first; then the error."""

    def broken() -> Iterator[np.ndarray]:
        yield from _numbers(6)
        raise OSError("the camera is gone")

    for source, kind in ((broken(), OSError), ([*_numbers(6), np.array([0.1]), *_numbers(1)], SourceError)):
        got = []
        with pytest.raises(kind):
            got.extend(client.infer_many(source, "m"))  # keeps what came
        assert [int(each.raw_outputs[0][0]) for each in got] == list(range(6))


def test_a_slow_source_keeps_no_result_back(client: InferenceClient) -> None:
    """A result comes while the source still waits, even for that very result."""
    came = threading.Event()

    def source() -> Iterator[np.ndarray]:
        for picture in _numbers(3):
            yield picture
            assert came.wait(10)
            came.clear()

    count = 0
    for result in client.infer_many(source(), "m"):
        assert result.ok
        count += 1
        came.set()
    assert count == 3


def test_many_interrupted_leave_nothing_on_its_way(
    runtime: Runtime, client: InferenceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the oldest is waited for cancels it as well as those behind it."""
    ended = threading.Semaphore(0)
    release = threading.Event()

    def answer(request: object, context: grpc.ServicerContext) -> object:
        context.add_callback(ended.release)
        release.wait(20)
        return echo(request)

    runtime.answers["Infer"] = answer

    def interrupt(*_: object) -> None:
        for _ in range(500):
            if len(runtime.asked) == 4:
                break
            release.wait(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupt)
    with pytest.raises(KeyboardInterrupt):
        next(client.infer_many(_numbers(9), "m", timeout_ms=20_000))
    try:
        assert all(ended.acquire(timeout=10) for _ in range(4))
    finally:
        release.set()


def test_the_order_of_parameters(runtime: Runtime, client: InferenceClient) -> None:
    """Calls written by position, for the platform's own client, mean here what they mean there."""
    runtime.answers.update(
        RegisterModel=lambda *_: M.ModelRegisterResponse(status=OK),
        CreateSession=lambda *_: M.SessionCreateResponse(session_id="s", status=OK),
        StreamInfer=lambda *_: iter(()),
    )
    for result in (
        client.infer(PICTURE, "m", 900, 7, "s"),
        client.infer_async(PICTURE, "m", 900, 7, "s").result(),
    ):
        assert result.ok
        asked = runtime.last("Infer")
        assert (asked.timeout_ms, asked.priority, asked.session_id) == (900, 7, "s")
    assert len(list(client.infer_many([PICTURE] * 3, "m", 2))) == 3
    assert list(client.subscribe("cam", "m", 5, "s", True, 3)) == []
    assert runtime.last("StreamInfer") == M.StreamInferRequest(
        model_id="m", stream_id="cam", fps_limit=5, session_id="s", raw_output_only=True
    )
    spec = [{"shape": [1], "dtype": "uint8"}]
    client.register_model("/m.hef", "m", "me", "detection", "v8", spec, spec)
    asked = runtime.last("RegisterModel")
    assert (asked.owner_id, asked.model_type, asked.model_variant) == ("me", "detection", "v8")
    assert len(asked.inputs) == len(asked.outputs) == 1
    client.create_session("s", "app", ["a"], 5, 2, 6)
    assert runtime.last("CreateSession") == M.SessionConfig(
        session_id="s", app_id="app", allowed_models=["a"], max_qps=5, max_concurrent=2, priority=6
    )
