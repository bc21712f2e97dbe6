"""Subscriptions and generated text, against a real gRPC server built from the interface's table."""

from __future__ import annotations

import gc
import inspect
import itertools
import logging
import threading
import time
from collections.abc import Iterator

import grpc
import numpy as np
import pytest
from edge_kit import OK, M, Runtime, abort, endless, frames, slow_link
from server_kit import until

from predsession import (
    NotFoundError,
    ProtocolError,
    RefusedError,
    RequestTimeoutError,
    ServerFaultError,
    SessionClosedError,
    TransportError,
)
from predsession.edge import FinishReason, InferenceClient
from predsession.edge.generation import _give_up
from predsession.rpc import channel


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    """A runtime with a camera that never ends."""
    with Runtime(StreamInfer=endless) as made:
        yield made


@pytest.fixture
def client(runtime: Runtime) -> Iterator[InferenceClient]:
    """A client of it."""
    with InferenceClient(runtime.endpoint) as made:
        yield made


def test_frames_come_in_order(runtime: Runtime, client: InferenceClient) -> None:
    """Frames come with their numbers and results; what was asked is on the wire."""
    tensor = M.Tensor(shape=[2], dtype=0, data=b"\1\2")

    def answer(_request: object, _context: object) -> Iterator[object]:
        found = M.PostResult(detections=[M.Detection(label="cat", confidence=0.5)])
        yield M.StreamInferResponse(
            frame_sequence=5, timestamp_ns=9, status=OK, post_result=found, skew_us=-3
        )
        yield M.StreamInferResponse(frame_sequence=8, status=OK, outputs=[tensor])

    runtime.answers["StreamInfer"] = answer
    got = list(client.subscribe("cam0", "m", fps=7, session_id="s", raw_output_only=True))
    assert [number for number, _ in got] == [5, 8]
    first, second = (result for _, result in got)
    assert [each.label for each in first.objects] == ["cat"]
    assert (first.timestamp_ns, first.skew_us, first.raw_outputs) == (9, -3, None)
    assert second.raw_outputs[0].tolist() == [1, 2]
    assert runtime.last("StreamInfer") == M.StreamInferRequest(
        model_id="m", stream_id="cam0", fps_limit=7, session_id="s", raw_output_only=True
    )


@pytest.mark.parametrize("how", ["close", "cancel", "block", "forgotten", "client"])
def test_the_runtime_sees_the_end(runtime: Runtime, client: InferenceClient, how: str) -> None:
    """Whichever way a subscription is left, its call ends on the runtime, and its thread here."""
    subscription = client.subscribe("cam", "m")
    next(subscription)
    thread = subscription._thread
    if how == "block":
        with subscription:
            next(subscription)
    elif how == "forgotten":
        del subscription
        gc.collect()
    elif how == "client":
        client.close()
    else:
        getattr(subscription, how)()
    assert runtime.cancelled.wait(10)
    thread.join(10)
    assert not thread.is_alive()


def test_a_cancel_lets_the_waiting_go(runtime: Runtime, client: InferenceClient) -> None:
    """Another thread may cancel; who waits for a frame is let go without an error, also afterwards."""
    asked, quiet = threading.Event(), threading.Event()

    def silent(_request: object, context: grpc.ServicerContext) -> Iterator[object]:
        context.add_callback(quiet.set)
        asked.set()
        quiet.wait(10)
        yield from ()

    runtime.answers["StreamInfer"] = silent
    subscription = client.subscribe("cam", "m")
    ended = []
    waiting = threading.Thread(target=lambda: ended.extend([list(subscription), True]))
    waiting.start()
    until(lambda: subscription._queue._changed._waiters and asked.is_set(), "it to wait")
    subscription.cancel()
    waiting.join(10)
    assert ended == [[], True]
    assert list(subscription) == []
    assert quiet.wait(10)


def test_a_slow_caller_gets_the_newest(runtime: Runtime, client: InferenceClient) -> None:
    """The queue is bounded: the oldest frames are dropped and counted, the last and the end never."""
    runtime.answers["StreamInfer"] = frames(*[True] * 50)
    subscription = client.subscribe("cam", "m", queue_size=3)
    subscription._thread.join(10)
    assert subscription.dropped == 47
    assert [number for number, _ in subscription] == [47, 48, 49]
    runtime.answers["StreamInfer"] = frames(*[True] * 5, then=grpc.StatusCode.INTERNAL)
    subscription = client.subscribe("cam", "m", queue_size=1)
    subscription._thread.join(10)
    assert next(subscription)[0] == 4
    with pytest.raises(ServerFaultError, match="the camera left"):
        next(subscription)
    assert list(subscription) == []


def test_failed_frames_are_skipped_and_logged(
    runtime: Runtime, client: InferenceClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Failed frames are left out with a warning; a good one starts the count again."""
    runtime.answers["StreamInfer"] = frames(True, False, False, True, False, False, True)
    with caplog.at_level(logging.WARNING, "predsession.edge"):
        got = [number for number, _ in client.subscribe("cam", "m", max_consecutive_failures=3)]
    assert got == [0, 3, 6]
    assert [each.getMessage().partition(": ")[2] for each in caplog.records] == [
        f"frame {number} failed: StreamInfer of cam with m at {client.endpoint}: frame {number} is bad"
        for number in (1, 4)
    ]


def test_failures_in_a_row_raise(runtime: Runtime, client: InferenceClient) -> None:
    """So many failed frames in a row raise, after the good ones; the note says which."""
    runtime.answers["StreamInfer"] = frames(True, False, True, False, False, False, True)
    subscription = client.subscribe("cam", "m", max_consecutive_failures=3)
    assert [next(subscription)[0], next(subscription)[0]] == [0, 2]
    with pytest.raises(RefusedError, match="frame 5 is bad") as caught:
        next(subscription)
    assert "failure 3 in a row" in caught.value.__notes__[0]
    assert runtime.cancelled.wait(10)


@pytest.mark.parametrize("limit", [0, None])
def test_without_a_limit_failures_never_raise(
    runtime: Runtime, client: InferenceClient, limit: int | None
) -> None:
    """0 or None: a hundred failures are a hundred skipped frames."""
    runtime.answers["StreamInfer"] = frames(*[False] * 100, True)
    assert [number for number, _ in client.subscribe("cam", "m", max_consecutive_failures=limit)] == [100]


def test_how_a_stream_can_end(runtime: Runtime, client: InferenceClient) -> None:
    """An unknown model, unreadable frames, a camera that says nothing: each its own error."""
    runtime.answers["StreamInfer"] = abort(grpc.StatusCode.NOT_FOUND, "no model m")
    with pytest.raises(NotFoundError, match="no model m"):
        next(client.subscribe("cam", "m"))
    bad = M.StreamInferResponse(status=OK, outputs=[M.Tensor(shape=[3], data=b"1")])
    runtime.answers["StreamInfer"] = lambda *_: iter([bad] * 3)
    with pytest.raises(ProtocolError, match="has 1 bytes"):
        next(client.subscribe("cam", "m", max_consecutive_failures=3))
    runtime.answers["StreamInfer"] = endless
    with client.subscribe("cam", "m", idle_timeout=10) as subscription:
        next(subscription)
    release = threading.Event()
    runtime.answers["StreamInfer"] = lambda *_: iter(lambda: release.wait(10), True)
    with pytest.raises(RequestTimeoutError, match=r"no frame within 0.05 s"):
        next(client.subscribe("cam", "m", idle_timeout=0.05))
    release.set()


def test_a_runtime_that_dies(runtime: Runtime, client: InferenceClient) -> None:
    """The connection breaks in the middle: the frames that came, then a TransportError."""
    subscription = client.subscribe("cam", "m")
    next(subscription)
    runtime.stop()
    with pytest.raises(TransportError, match="StreamInfer"):
        for _ in itertools.islice(subscription, 10_000):
            pass
    assert len(runtime.asked) == 1


@pytest.mark.parametrize(
    ("clock", "known"), [(time.time_ns, True), (time.monotonic_ns, True), (lambda: 5, None)]
)
def test_latency_on_either_clock(
    runtime: Runtime, client: InferenceClient, clock: object, known: bool | None
) -> None:
    """A frame's age is told where its clock is one of this machine's, else None."""
    stamp = clock()
    runtime.answers["StreamInfer"] = lambda *_: iter([M.StreamInferResponse(status=OK, timestamp_ns=stamp)])
    subscription = client.subscribe("cam", "m")
    assert subscription.last_latency_ms is None
    next(subscription)
    if known:
        assert 0 < subscription.last_latency_ms < 60_000
    elif (
        time.monotonic_ns() > 3600 * 10**9 + 5
    ):  # within an hour of the start, 5 would be a time of this machine
        assert subscription.last_latency_ms is None


def _tokens(*texts: str, finish: int | None = 0) -> object:
    """Answer with tokens, and a reason."""

    def answer(_request: object, _context: object) -> Iterator[object]:
        for text in texts:
            yield M.GenaiGenerateResponse(token=text)
        if finish is not None:
            yield M.GenaiGenerateResponse(finish=finish)

    return answer


def test_text(runtime: Runtime, client: InferenceClient) -> None:
    """Tokens come as written, empty ones too; then the stream knows why it ended."""
    runtime.answers["GenaiGenerate"] = _tokens("a", "", "ß", finish=2)
    picture = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    messages = [{"role": "user", "content": "hello"}, '{"role": "system"}']
    stream = client.genai_generate("s", messages, images=[picture, b"xyz"], stop_tokens=["."], top_k=3)
    assert stream.finish_reason is None
    assert list(stream) == ["a", "", "ß"]
    assert stream.finish_reason is FinishReason.MAX_TOKENS
    asked = runtime.last("GenaiGenerate")
    assert list(asked.messages_json) == ['{"role": "user", "content": "hello"}', '{"role": "system"}']
    assert list(asked.image_frames) == [picture.tobytes(), b"xyz"]
    assert list(asked.stop_tokens) == ["."]
    assert (asked.params.top_k, asked.params.top_p, asked.params.max_generated_tokens) == (3, 1, 512)
    list(client.genai_generate("s", messages))
    assert not runtime.last("GenaiGenerate").HasField("params")


def test_text_that_ends_badly(runtime: Runtime, client: InferenceClient) -> None:
    """An error, no reason, an unknown reason: each raises after the tokens that came; an abort does not."""
    for finish, error in ((3, ServerFaultError), (None, ProtocolError), (9, ProtocolError)):
        runtime.answers["GenaiGenerate"] = _tokens("a", finish=finish)
        stream = client.genai_generate("s", [])
        assert next(stream) == "a"
        with pytest.raises(error):
            next(stream)
    runtime.answers["GenaiGenerate"] = _tokens("a", finish=1)
    stream = client.genai_generate("s", [])
    assert list(stream) == ["a"]
    assert stream.finish_reason is FinishReason.ABORTED


def test_generative_sessions(runtime: Runtime, client: InferenceClient) -> None:
    """`code` counts, not `success`; destroying sends the id where the wire wants it."""
    runtime.answers.update(
        GenaiCreateSession=lambda *_: M.GenaiCreateSessionResponse(session_id="genai_1", status=M.Status()),
        GenaiDestroySession=lambda *_: M.Status(),
        GenaiAbort=lambda request, _: M.Status(success=request.session_id == "genai_1"),
        GenaiGenerate=lambda *_: (
            M.GenaiGenerateResponse(token="x") for _ in iter(lambda: time.sleep(0.005), 1)
        ),
    )
    session = client.genai_create_session(
        "/m.hef", "vlm", lora_name="l", optimize_memory=True, session_id="s"
    )
    assert session == "genai_1"
    assert runtime.last("GenaiCreateSession") == M.GenaiCreateSessionRequest(
        hef_path="/m.hef", kind=1, lora_name="l", optimize_memory=True, session_id="s"
    )
    with client.genai_generate(session, []) as stream:
        assert next(stream) == "x"
    assert runtime.cancelled.wait(10)
    assert list(stream) == []
    assert (client.genai_abort("genai_1"), client.genai_abort("other")) == (True, False)
    client.genai_destroy_session(session)
    assert runtime.last("GenaiDestroySession").hef_path == "genai_1"


def test_a_closed_client_ends_its_streams(runtime: Runtime, client: InferenceClient) -> None:
    """After `close` a subscription raises or ends, and a new one is refused."""
    subscription = client.subscribe("cam", "m")
    next(subscription)
    client.close()
    with pytest.raises(TransportError):
        for _ in itertools.islice(subscription, 10_000):
            pass
    with pytest.raises(SessionClosedError):
        client.genai_generate("s", [])


def test_one_garbled_frame_is_a_failed_frame(
    runtime: Runtime, client: InferenceClient, caplog: pytest.LogCaptureFixture
) -> None:
    """A frame that contradicts itself is skipped and logged like any that failed; the others come."""
    wrong = M.Tensor(shape=[9], dtype=5, data=b"x" * 8)
    runtime.answers["StreamInfer"] = lambda *_: (
        M.StreamInferResponse(frame_sequence=number, status=OK, outputs=[wrong] if number == 2 else [])
        for number in range(6)
    )
    with caplog.at_level(logging.WARNING, "predsession.edge"):
        assert [number for number, _ in client.subscribe("cam", "m")] == [0, 1, 3, 4, 5]
    assert "frame 2 failed" in caplog.text


def _silence(_request: object, context: grpc.ServicerContext) -> Iterator[object]:
    """Say nothing, as long as somebody listens."""
    ended = threading.Event()
    context.add_callback(ended.set)
    ended.wait(20)
    yield from ()


def test_a_silent_model_is_given_up(runtime: Runtime, client: InferenceClient) -> None:
    """Without a token for so long the stream raises, and the call ends on the runtime."""

    def stops(request: object, context: grpc.ServicerContext) -> Iterator[object]:
        yield M.GenaiGenerateResponse(token="a")
        yield from _silence(request, context)

    runtime.answers["GenaiGenerate"] = stops
    stream = client.genai_generate("s", [], idle_timeout=1.2)
    assert next(stream) == "a"
    with pytest.raises(RequestTimeoutError, match=r"no token within 1\.2 s"):
        next(stream)
    assert list(stream) == []
    assert runtime.cancelled.wait(10)


def test_a_time_that_is_over_as_a_token_comes(runtime: Runtime, client: InferenceClient) -> None:
    """The token is given, and the next call says that the time was over: no text ends in silence."""

    def stops(request: object, context: grpc.ServicerContext) -> Iterator[object]:
        yield M.GenaiGenerateResponse(token="a")
        yield from _silence(request, context)

    runtime.answers["GenaiGenerate"] = stops
    stream = client.genai_generate("s", [], idle_timeout=30)
    assert next(stream) == "a"
    _give_up(stream._stream, stream._late)
    with pytest.raises(RequestTimeoutError, match="no token within 30 s"):
        next(stream)
    assert list(stream) == []


def test_a_silent_link_is_noticed(runtime: Runtime) -> None:
    """A link that hands on nothing more, and stays open, ends a subscription when its time is over."""
    silent = threading.Event()
    with slow_link(runtime.endpoint, 0, silent) as endpoint, InferenceClient(endpoint) as client:
        subscription = client.subscribe("cam", "m", idle_timeout=0.3)
        until(lambda: subscription._queue._frames, "the first, which is not what is to be late")
        next(subscription)
        silent.set()
        with pytest.raises(RequestTimeoutError, match=r"no frame within 0\.3 s"):
            for _ in subscription:
                pass


def test_signs_of_life_are_asked_for() -> None:
    """GRPC is told to ask a silent runtime for a sign of life, more seldom than servers take amiss."""
    options = dict(channel.Channel("10.0.0.1:1", channel.Manner(1 << 20))._options())
    assert options["grpc.keepalive_time_ms"] >= 10_000
    assert 0 < options["grpc.keepalive_timeout_ms"] <= 20_000
    assert "grpc.http2.max_pings_without_data" not in options


def test_streams_are_not_waited_for_without_end() -> None:
    """Whoever says nothing about it waits a minute for a frame, and two for a token."""
    for method, seconds in ((InferenceClient.subscribe, 60), (InferenceClient.genai_generate, 120)):
        assert inspect.signature(method).parameters["idle_timeout"].default == seconds


def test_one_frame_that_is_no_message_is_a_failed_frame(runtime: Runtime, client: InferenceClient) -> None:
    """A label that is no UTF-8 makes a message that nothing can read: those behind it come all the same."""
    label = M.Detection(label="Xy").SerializeToString().replace(b"Xy", b"\xe9y")
    post = b"\x0a" + bytes([len(label)]) + label
    unreadable = M.StreamInferResponse(frame_sequence=1, status=OK).SerializeToString()
    unreadable += b"\x2a" + bytes([len(post)]) + post
    good = [M.StreamInferResponse(frame_sequence=number, status=OK) for number in (0, 2)]
    runtime.answers["StreamInfer"] = lambda *_: iter([good[0], unreadable, good[1]])
    assert [number for number, _ in client.subscribe("cam", "m")] == [0, 2]
    runtime.answers["StreamInfer"] = lambda *_: iter([unreadable] * 3)
    with pytest.raises(ProtocolError, match="cannot be read"):
        next(client.subscribe("cam", "m", max_consecutive_failures=2))
