"""What tests of the tensor client share: a server with tensor models, and a proxy that counts bytes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import numpy as np
import tensor_models
from interop.oip import our_models
from server_kit import Server

TESTS = Path(__file__).parent
BOTH = (("scale", "Scale"), ("sums", "Sums"), ("add", "Add"), ("slow", "Slow"), ("fail", "Fail"))


class Endless:
    """Decoupled: goes on until nobody listens, and says so.

    Less than no seconds between two answers: until `tensor_models.leave` names the number without its sign.
    """

    inputs: ClassVar[dict[str, Any]] = {"pause": ("FP32", [1])}
    outputs: ClassVar[dict[str, Any]] = {"i": ("INT64", [1])}
    decoupled = True

    def stream(self, inputs: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Count."""
        number = 0
        try:
            while True:
                yield {"i": np.array([number])}
                number += 1
                pause = float(inputs["pause"][0])
                time.sleep(max(0, pause))
                if pause < 0:
                    tensor_models.wait_to_leave(round(-pause))
        finally:
            sys.stderr.write(f"endless ended after {number >= 0}\n")
            sys.stderr.flush()


class Signed:
    """Answers its input; its scales go along the second side."""

    inputs: ClassVar[dict[str, Any]] = {"x": ("INT8", [-1, 3])}
    outputs: ClassVar[dict[str, Any]] = {"y": ("INT8", [-1, 3])}
    quantization: ClassVar[dict[str, Any]] = {
        "x": {"scale": [0.5, 0.25, 2.0], "zero_point": [0, 3, -5], "axis": 1},
        "y": {"scale": [0.5], "zero_point": [1]},
    }

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Answer."""
        return {"y": inputs["x"]}


@contextmanager
def tensor_server(*more: str, port: int = 0, grpc: str = "127.0.0.1:0") -> Iterator[Server]:
    """Run a server with the models of `our_models`, `tensor_models` and this file."""
    arguments = ["pixels", "--oip-grpc", grpc, "--ephemeral"]
    for name, kind in (*BOTH, ("echo", "Echo")):
        arguments += ["--tensor-model", f"{name}={our_models.__file__}:{kind}"]
    for name in ("Mixed", "Told", "Count"):
        arguments += ["--tensor-model", f"{name.lower()}={tensor_models.__file__}:{name}"]
    for name in ("Endless", "Signed"):
        arguments += ["--tensor-model", f"{name.lower()}={__file__}:{name}"]
    with Server(*arguments, *more, port=port) as server:
        yield server


@dataclass
class Bytes:
    """How many went up (to the server) and down."""

    up: int = 0
    down: int = 0


class Proxy:
    """Forwards TCP, and counts; a context manager.

    Parameters
    ----------
    target : str
        The server's ``host:port``, with a scheme or without.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition("//")[2].rpartition(":")
        self._target = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.total = Bytes()
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, work: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True, name="proxy")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target)
            except OSError:
                near.close()
                continue
            for each in (near, far):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets += [near, far]
            self._start(self._pump, near, far, "up")
            self._start(self._pump, far, near, "down")

    def _pump(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        try:
            while data := source.recv(1 << 18):
                with self._lock:
                    setattr(self.total, way, getattr(self.total, way) + len(data))
                sink.sendall(data)
        except OSError:
            pass
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def counted(self) -> Iterator[Bytes]:
        """Count what travels during the block."""
        with self._lock:
            before = Bytes(self.total.up, self.total.down)
        found = Bytes()
        yield found
        with self._lock:
            found.up, found.down = self.total.up - before.up, self.total.down - before.down

    def close(self) -> None:
        """End it."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def python(text: str, *arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a Python of our own."""
    return subprocess.Popen(
        [sys.executable, "-c", text, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{TESTS.parent}:{TESTS}", **(env or {})},
    )
