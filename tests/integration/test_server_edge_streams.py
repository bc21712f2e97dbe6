"""Streams of the embedded server's gRPC door, and how they end; a server that is killed."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from edge_server_kit import FRAMES, edge_server, is_let_go, number_of, restoring
from PIL import Image
from server_kit import Server, until

from predsession import (
    NotFoundError,
    RateLimitError,
    RefusedError,
    TransportError,
)
from predsession.edge import InferenceClient
from predsession.server.models.pixels import box_number, number_picture


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


@pytest.mark.parametrize("camera", ["pictures", "clip.mp4"])
def test_a_stream(either: InferenceClient, camera: str) -> None:
    """Frames come with their own results, in order, and the camera begins again at its end."""
    with either.subscribe(camera, "pixels", fps=100) as frames:
        size = (64, 32) if camera == "pictures" else (128, 96)
        some = list(itertools.islice(frames, 20 if camera == "pictures" else 5))
    numbers = [number for number, _ in some]
    assert numbers == sorted(set(numbers))
    assert [number_of(result, size) for _, result in some] == [number % FRAMES for number in numbers]
    assert all(result.raw_outputs is None and result.timestamp_ns for _, result in some)
    assert all(result.skew_us > 0 for _, result in some)
    (counted,) = either.get_stats(sampling_window_ms=1)["model_stats"]
    assert counted["skew_samples"] >= len(some)
    assert counted["max_skew_us"] >= counted["avg_skew_us"] > 0


def test_a_stream_of_raw_outputs(client: InferenceClient) -> None:
    """Raw outputs come alone."""
    with client.subscribe("pictures", "pixels", fps=100, raw_output_only=True) as frames:
        number, result = next(frames)
    assert result.raw_outputs is not None
    assert box_number(result.raw_outputs[0][0]) == number % FRAMES
    assert result.objects == ()


def test_the_newest_frame_wins(client: InferenceClient) -> None:
    """A model slower than the camera leaves frames out."""
    client.update_postprocess_config("pixels", {"delay": 0.05})
    with client.subscribe("pictures", "pixels", fps=200) as frames:
        numbers = [number for number, _ in itertools.islice(frames, 8)]
    assert max(after - before for before, after in itertools.pairwise(numbers)) > 3


def test_streams_that_cannot_be(client: InferenceClient) -> None:
    """An unknown model or camera, a picture that cannot be read, and too many streams are errors."""
    for stream, model in (("pictures", "none"), ("none", "pixels")):
        with pytest.raises(NotFoundError, match="not found"):
            next(client.subscribe(stream, model))
    with pytest.raises(RefusedError, match="Frame not read"):
        next(client.subscribe("damaged", "pixels", fps=100, max_consecutive_failures=3))
    with client.subscribe("pictures", "pixels") as one, client.subscribe("pictures", "pixels") as two:
        next(one)
        next(two)
        with pytest.raises(RateLimitError, match="2 streams are running"):
            next(client.subscribe("pictures", "pixels"))


def test_a_cancelled_stream_is_over_on_the_server(client: InferenceClient) -> None:
    """A model cannot be let go while it is watched; as soon as the watcher leaves, it can."""
    client.register_model("pixels", "watched")
    frames = client.subscribe("pictures", "watched", fps=50)
    next(frames)
    with pytest.raises(RefusedError, match="watched is in use by 1"):
        client.unregister_model("watched")
    frames.cancel()
    until(lambda: is_let_go(client, "watched"), "the end of the stream")


def test_a_destroyed_session_ends_its_stream(client: InferenceClient) -> None:
    """A stream's frames count for its session's rate, and its session's end is its own."""
    session = client.create_session(max_qps=4)
    frames = client.subscribe("pictures", "pixels", fps=100, session_id=session)
    numbers = [number for number, _ in itertools.islice(frames, 5)]
    assert numbers[4] - numbers[0] > 50
    client.destroy_session(session)
    with pytest.raises(NotFoundError, match="was destroyed"):
        for _ in frames:
            pass


def test_a_server_that_is_killed(tmp_path: Path) -> None:
    """Calls on their way and streams end with an error; one that comes back on its socket is found again."""
    door = f"unix:{tmp_path}/door.sock"
    arguments = ("pixels", "--grpc", door, "--stream", f"cam={tmp_path}")
    Image.fromarray(number_picture(1)).save(tmp_path / "1.png")
    with InferenceClient(door) as client:
        with Server(*arguments) as first:
            client.update_postprocess_config("pixels", {"delay": 5})
            frames = client.subscribe("cam", "pixels")
            asked = client.infer_async(number_picture(1), "pixels", 20_000)
            threading.Timer(0.3, first.kill).start()
            with pytest.raises(TransportError):
                asked.result(20)
            with pytest.raises(TransportError):
                next(frames)
            first.wait()
        with Server(*arguments) as second:
            assert number_of(client.infer(number_picture(1), "pixels")) == 1
            frames = client.subscribe("cam", "pixels")
            next(frames)
            assert second.terminate() == 0
            with pytest.raises(TransportError, match=r"UNAVAILABLE|CANCELLED"):
                for _ in frames:
                    pass
        assert not (tmp_path / "door.sock").exists()


def test_a_server_that_cannot_start(tmp_path: Path) -> None:
    """A model that does not load ends the server, and its socket goes; a taken address is said to be so."""
    door = tmp_path / "door.sock"
    with pytest.raises(RuntimeError, match=r"ended with 2: .*cannot import no_such_module"):
        Server("no_such_module:Model", "--grpc", f"unix:{door}")
    assert not door.exists()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(RuntimeError, match=rf"ended with 3: .*cannot listen on {address}: it is taken"):
            Server("pixels", "--grpc", address)
