"""The gRPC door for long: 10,000 frames, four in flight; streams that come and go; nothing is left."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from server_kit import Server

from predsession import RefusedError
from predsession.edge import InferenceClient, InferenceResult
from predsession.server.models.pixels import box_number, number_picture

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]
COUNT = 10_000
WARM = 500
ROOM_KB = 24_000
"""By how much a process may grow: allocators keep some of what they had at their fullest."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with a camera."""
    for number in range(20):
        Image.fromarray(number_picture(number)).save(tmp_path / f"{number:02}.png")
    doors = ("--grpc", "127.0.0.1:0", "--grpc", f"unix:{tmp_path}/door.sock")
    with Server("pixels", *doors, "--stream", f"cam={tmp_path}") as running:
        yield running


def held(pid: int) -> tuple[int, int, int]:
    """Return a process's threads, open files and resident kilobytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    values = {line.split(":")[0]: line.split(":")[1].split() for line in lines}
    return (
        int(values["Threads"][0]),
        sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
        int(values["VmRSS"][0]),
    )


def number_of(result: InferenceResult) -> int:
    """Read the number off what was found."""
    return box_number(np.array(result.objects[0].bbox.to_xyxy(320, 240)))


def run(client: InferenceClient, count: int) -> None:
    """Send pictures with four in flight; each gets its own answer, in order."""
    pictures = (number_picture(number, (320, 240)) for number in range(count))
    numbers = (number_of(result) for result in client.infer_many(pictures, "pixels", depth=4))
    assert all(got == wanted for got, wanted in zip(numbers, range(count), strict=True))


def watch(client: InferenceClient, times: int) -> list[float]:
    """Watch a camera again and again, and leave; return when the server had noticed, in seconds."""
    noticed = []
    for _ in range(times):
        client.register_model("pixels", "watched")
        frames = client.subscribe("cam", "watched", fps=100)
        list(itertools.islice(frames, 2))
        frames.cancel()
        began = time.monotonic()
        while True:
            left = time.monotonic()
            try:
                client.unregister_model("watched")
            except RefusedError:
                assert time.monotonic() - began < 10
            else:
                break
        noticed.append(left - began)
    return noticed


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_ten_thousand_frames(server: Server, kind: str) -> None:
    """None is lost, swapped or doubled; server, worker and client hold no more than before."""
    pids = [server.process.pid, *server.workers(), os.getpid()]
    with InferenceClient(server.grpc[kind == "unix"]) as client:
        run(client, WARM)
        before = [held(pid) for pid in pids]
        began = time.monotonic()
        run(client, COUNT)
        seconds = time.monotonic() - began
        after = [held(pid) for pid in pids]
        (stats,) = client.get_stats()["model_stats"]
    assert (stats["total_inferences"], stats["total_errors"]) == (WARM + COUNT, 0)
    sys.stdout.write(f"{kind}: {COUNT} frames in {seconds:.0f} s; threads, files, kB: {before} -> {after}\n")
    for old, new in zip(before, after, strict=True):
        assert new[0] <= old[0] + 1
        assert new[1] <= old[1] + 1
        assert new[2] <= old[2] + ROOM_KB


def test_streams_that_come_and_go(server: Server) -> None:
    """The server notices a cancel within 100 ms, and keeps no thread, file or worker of it."""
    with InferenceClient(server.grpc[1]) as client:
        watch(client, 5)
        before = held(server.process.pid)
        noticed = watch(client, 40)
        after = held(server.process.pid)
    sys.stdout.write(f"cancel noticed within {1000 * max(noticed):.0f} ms; {before} -> {after}\n")
    assert max(noticed) < 0.1
    assert len(server.workers()) == 1
    assert after[0] <= before[0] + 1
    assert after[1] <= before[1] + 1
    assert after[2] <= before[2] + ROOM_KB
