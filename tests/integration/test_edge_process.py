"""The edge client and its process: what is left behind, what a fork does, a runtime that is killed."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from edge_kit import Runtime, endless, slowly

from predsession import TransportError
from predsession.edge import InferenceClient

PICTURE = np.zeros((48, 64, 3), np.uint8)
TESTS = Path(__file__).parent.parent


def _python(text: str, *arguments: str) -> subprocess.Popen[str]:
    """Run a script of ours in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    return subprocess.Popen(
        [sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip


USE = """
import numpy as np, os, sys
from predsession.edge import InferenceClient
client = InferenceClient(sys.argv[1])
array = np.arange(4, dtype=np.uint8)
def ask(): return client.infer_with_tensors("m", [array])[0].tolist() == [0, 1, 2, 3]
def ask_async(): return client.infer_async(array, "m").result(10).ok
"""

FORKS = """
subscription = client.subscribe("cam", "m") if sys.argv[2] == "busy" else None
good = ask() and ask_async()
if subscription is not None:
    next(subscription)
results = []
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        try:
            fine = ask() and ask_async()
        except Exception as error:
            fine = type(error).__name__ == "ConnectError" and "was forked while calls" in str(error)
            fine = fine and sys.argv[2] == "busy"
        os._exit(0 if fine else 1)
    results.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(good, results, ask() and ask_async())
"""


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_forks_after_the_first_use(state: str) -> None:
    """A child uses the client as its parent did; if a call was on its way, that is a clear error."""
    with Runtime(StreamInfer=endless) as runtime:
        out, errors = _python(USE + FORKS, runtime.endpoint, state).communicate(timeout=60)
    assert out == "True [0, 0, 0, 0, 0] True\n", errors


WAITS = """
import concurrent.futures, signal
future = client.infer_async(array, "m", 20_000)
called = []
future.add_done_callback(called.append)
pid = os.fork()
if pid == 0:
    signal.alarm(20)
    good = concurrent.futures.wait([future], 10).done == {future} and called == []
    error = future.exception(10)
    good = good and type(error).__name__ == "SessionClosedError" and "process that was forked" in str(error)
    os._exit(0 if good else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), future.result(20).ok, len(called))
"""


def test_a_future_of_the_parent_ends_in_the_child() -> None:
    """In the child of a fork it says whose it is; in the parent it goes on, and is called back there only."""
    with Runtime(Infer=slowly(0.5)) as runtime:
        out, errors = _python(USE + WAITS, runtime.endpoint).communicate(timeout=60)
    assert out == "0 True 1\n", errors


def test_a_process_that_never_closes_ends() -> None:
    """A script that leaves a client, a future and a subscription open ends at once, without a word."""
    left = USE + "subscription = client.subscribe('cam', 'm'); next(subscription)\n"
    left += "future = client.infer_async(array, 'm')\nprint(ask())\n"
    with Runtime(StreamInfer=endless) as runtime:
        process = _python(left, runtime.endpoint)
        out, errors = process.communicate(timeout=30)
        assert (out, errors, process.returncode) == ("True\n", "", 0)
        assert runtime.cancelled.wait(10)


def test_without_the_extra() -> None:
    """Without grpc or protobuf the error names the extra; the rest of the package does not need them."""
    text = """
import sys
sys.modules["grpc"] = sys.modules["google.protobuf"] = None
import predsession, predsession.session, predsession.cli
from predsession import MissingExtraError
try:
    from predsession.edge import InferenceClient
except MissingExtraError as error:
    print(error)
print(predsession.cli.main(["edge", "models", "--endpoint", "127.0.0.1:1"]))
"""
    out, errors = _python(text).communicate(timeout=60)
    assert "pip install 'predsession[edge]'" in out, errors
    assert out.endswith("\n2\n")


SERVE = """
import sys, time
from edge_kit import Runtime, endless, slowly
runtime = Runtime(sys.argv[1], StreamInfer=endless, Infer=slowly(float(sys.argv[2])))
print(runtime.endpoint, flush=True)
while True:
    runtime.asked.clear()
    time.sleep(0.2)
"""


@contextmanager
def _runtime(address: str, seconds: float = 0.0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A runtime in a process of its own, and its address; it waits so long before each answer."""
    process = _python(SERVE, address, str(seconds))
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def test_a_runtime_that_is_killed(tmp_path: Path) -> None:
    """Killed in the middle: what was on its way raises; the client goes on with the next runtime."""
    socket = f"unix://{tmp_path}/runtime.sock"
    with InferenceClient(socket) as client:
        with _runtime(socket, 30) as (process, _):
            futures = [client.infer_async(PICTURE, "m", timeout_ms=20_000) for _ in range(4)]
            subscription = client.subscribe("cam", "m")
            next(subscription)
            process.kill()
            for future in futures:
                with pytest.raises(TransportError, match="Infer"):
                    future.result(10)
            with pytest.raises(TransportError, match="StreamInfer"):
                list(subscription)
            assert not client.connected
        with _runtime(socket):
            assert client.infer(PICTURE, "m", timeout_ms=20_000).ok


def _count() -> tuple[int, int, int]:
    """Threads of Python, threads of the process, open files."""
    gc.collect()
    own = Path("/proc/self")
    return threading.active_count(), len([*own.glob("task/*")]), len([*own.glob("fd/*")])


def _grown(before: tuple[int, int, int]) -> bool:
    """Whether there is more than before; gRPC's own pool of threads breathes by some."""
    python, process, files = _count()
    return python > before[0] or process > before[1] + 8 or files > before[2]


def _use_all(client: InferenceClient, rounds: int) -> None:
    """Make some hundred calls of each kind, subscriptions that are left and futures that are cancelled."""
    for _ in range(rounds):
        client.infer(PICTURE, "m")
        client.infer_async(PICTURE, "m").result(10)
        client.infer_async(PICTURE, "m").cancel()
        sum(1 for _ in client.infer_many([PICTURE] * 5, "m"))
        with client.subscribe("cam", "m") as subscription:
            next(subscription)
        next(client.subscribe("cam", "m"))


def _settles(look: Callable[[], bool]) -> bool:
    """Whether something becomes true; what gRPC ends in the background takes a moment."""
    done = threading.Event()
    return any(look() or done.wait(0.05) for _ in range(600))


def test_nothing_is_left_behind() -> None:
    """Hundreds of calls leave no thread and no open file behind, and neither does a closed client."""
    with _runtime("127.0.0.1:0") as (_, endpoint):
        with InferenceClient(endpoint) as client:
            _use_all(client, 3)
            before = _count()
            _use_all(client, 20)
            assert _settles(lambda: not _grown(before)), (before, _count())
        after = _count()
        for _ in range(30):
            with InferenceClient(endpoint) as client:
                client.infer(PICTURE, "m")
        assert _settles(lambda: not _grown(after)), (after, _count())


def _resident_kib() -> int:
    """Memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_ten_thousand(kind: str, tmp_path: Path) -> None:
    """10,000 frames with depth 4 come back in order, and threads, files and memory stay where they were."""
    address = "127.0.0.1:0" if kind == "tcp" else f"unix://{tmp_path}/runtime.sock"
    with _runtime(address) as (_, endpoint), InferenceClient(endpoint) as client:

        def run(count: int) -> None:
            pictures = (np.full((120, 160, 3), number % 251, np.uint8) for number in range(count))
            for number, result in enumerate(client.infer_many(pictures, "m", depth=4)):
                assert int(result.raw_outputs[0][0, 0, 0]) == number % 251

        run(1000)
        before, memory = _count(), _resident_kib()
        run(10_000)
        _use_all(client, 100)
        assert _settles(lambda: not _grown(before)), (before, _count())
        assert _resident_kib() - memory < 20_000
