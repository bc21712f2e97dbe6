"""Models of tensors for tests, and networks made byte by byte."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from onnx_maker import field

ONNX = {
    "FP32": 1,
    "UINT8": 2,
    "INT64": 7,
    "BYTES": 8,
    "BOOL": 9,
    "FP16": 10,
    "BF16": 16,
    "UINT4": 21,
    "INT4": 22,
}


def _value(name: str, datatype: str, shape: tuple[int | str, ...]) -> bytes:
    """Encode a ValueInfoProto."""
    dims = b"".join(field(1, field(1, s) if isinstance(s, int) else field(2, s.encode())) for s in shape)
    return field(1, name.encode()) + field(2, field(1, field(1, ONNX[datatype]) + field(2, dims)))


def _network(nodes: bytes, values: bytes) -> bytes:
    """Encode a ModelProto."""
    return field(1, 10) + field(7, nodes + field(2, b"g") + values) + field(8, field(1, b"") + field(2, 21))


def identity(datatype: str = "FP32", shape: tuple[int | str, ...] = ("n", 3)) -> bytes:
    """Encode a network whose output y is its input x."""
    node = field(1, field(1, b"x") + field(2, b"y") + field(4, b"Identity"))
    return _network(node, field(11, _value("x", datatype, shape)) + field(12, _value("y", datatype, shape)))


def arithmetic() -> bytes:
    """Encode a network of a and b, FP32 [n], whose outputs are sum and product."""
    nodes = b"".join(
        field(1, field(1, b"a") + field(1, b"b") + field(2, name) + field(4, operation))
        for name, operation in ((b"sum", b"Add"), (b"product", b"Mul"))
    )
    shape = ("n",)
    inputs = b"".join(field(11, _value(name, "FP32", shape)) for name in ("a", "b"))
    outputs = b"".join(field(12, _value(name, "FP32", shape)) for name in ("sum", "product"))
    return _network(nodes, inputs + outputs)


def elsewhere() -> bytes:
    """Encode a network whose numbers are in a file of the server's."""
    entry = field(1, b"location") + field(2, b"../../etc/hostname")
    constant = field(1, 2) + field(2, 1) + field(8, b"c") + field(13, entry) + field(14, 1)
    node = field(1, field(1, b"c") + field(2, b"y") + field(4, b"Identity"))
    return _network(node, field(5, constant) + field(12, _value("y", "FP32", (2,))))


class Mixed:
    """Of every kind of datatype one output, which is the input of that name."""

    inputs: ClassVar[dict[str, Any]] = {
        "half": ("FP16", [-1]),
        "brain": ("BF16", [-1]),
        "nibbles": ("INT4", [-1]),
        "words": ("BYTES", [-1]),
        "flags": ("BOOL", [-1, 2]),
        "big": ("UINT64", []),
    }
    outputs = inputs
    quantization: ClassVar[dict[str, Any]] = {"nibbles": {"scale": [0.5], "zero_point": [1]}}

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the outputs."""
        return dict(inputs)


class Odd:
    """Misbehaves as it is told, by a word."""

    inputs: ClassVar[dict[str, Any]] = {"how": ("BYTES", [1])}
    outputs: ClassVar[dict[str, Any]] = {"y": ("FP32", [2])}

    def infer(self, inputs: dict[str, Any]) -> Any:
        """Return the outputs."""
        how = inputs["how"][0].decode()
        good = np.zeros(2, np.float32)
        if how == "raise":
            raise RuntimeError("told to")
        if how == "half":
            raise RuntimeError("half a \ud800 character" + 5000 * "x")
        if how == "exit":
            raise SystemExit(3)
        answers: dict[str, Any] = {
            "none": None,
            "name": {"z": good},
            "dtype": {"y": good.astype(np.float64)},
            "shape": {"y": np.zeros(3, np.float32)},
            "more": {"y": good, "z": good},
            "stop": {"y": good},
        }
        if how == "stop":
            raise StopIteration
        return answers.get(how, {"y": good})


def runs(number: int) -> str:
    """Return what stands in the server's log once `Slow` runs a call."""
    return f"call {number} runs"


def leave(number: int) -> None:
    """Let a call of `Slow` that waits for it go on."""
    _leave(number).touch()


def wait_to_leave(number: int) -> None:
    """Wait until `leave` says so."""
    while not _leave(number).exists():
        time.sleep(0.01)
    _leave(number).unlink()


def _leave(number: int) -> Path:
    return Path(tempfile.gettempdir()) / f"predsession-leave-{number}"


class Slow:
    """Says which call it is answering, as long as it is told; one buffer for all its answers.

    Less than no seconds: until `leave` says so.
    """

    inputs: ClassVar[dict[str, Any]] = {"number": ("INT64", []), "seconds": ("FP32", [])}
    outputs: ClassVar[dict[str, Any]] = {"number": ("INT64", [1]), "calls": ("INT64", [])}

    def load(self) -> None:
        """Get ready."""
        sys.stdout.write("what a model prints " * 10_000)  # more than a pipe holds
        sys.stdout.flush()
        self._buffer = np.zeros(1, np.int64)
        self._calls = 0

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the outputs."""
        number, seconds = int(inputs["number"]), float(inputs["seconds"])
        sys.stdout.write(f"{runs(number)}\n")
        sys.stdout.flush()
        time.sleep(max(0, seconds))
        if seconds < 0:
            wait_to_leave(number)
        self._buffer[0] = number
        self._calls += 1
        return {"number": self._buffer, "calls": np.array(self._calls)}


class Count:
    """Decoupled: counts up to n, and fails at a number if that is on the way."""

    decoupled = True
    inputs: ClassVar[dict[str, Any]] = {"n": ("INT64", []), "fail_at": ("INT64", [])}
    outputs: ClassVar[dict[str, Any]] = {"i": ("INT64", [1])}

    def stream(self, inputs: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield one number after the other."""
        for number in range(int(inputs["n"])):
            if number == inputs["fail_at"]:
                raise ValueError(f"told to fail at {number}")
            yield {"i": np.array([number])}


class Flood:
    """Decoupled: a megabyte, for ever."""

    decoupled = True
    inputs: ClassVar[dict[str, Any]] = {}
    outputs: ClassVar[dict[str, Any]] = {"y": ("UINT8", [-1])}

    def stream(self, inputs: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield zeros."""
        while True:
            yield {"y": np.zeros(1 << 20, np.uint8)}


class Pose:
    """A model of pictures that finds the same in each."""

    classes = ("person",)
    shape = "graph"
    keypoint_names = ("head", "foot")

    def predict(self, images: list[Any], settings: Any) -> list[dict[str, Any]]:
        """Find one."""
        found = {"boxes": [[0, 0, 5, 5]], "scores": [0.5], "class_ids": [0], "keypoints": [[[1, 2], [3, 4]]]}
        return [{name: np.array(value) for name, value in found.items()} for _ in images]


class Told:
    """Answers what it was told when it was loaded, and on which processors it runs."""

    inputs: ClassVar[dict[str, Any]] = {"name": ("BYTES", [1])}
    outputs: ClassVar[dict[str, Any]] = {
        "value": ("BYTES", [1]),
        "cores": ("INT64", [-1]),
        "thread": ("BYTES", [1]),
    }
    environment: ClassVar[dict[str, str]] = {}

    def load(self) -> None:
        """Get ready."""
        self._seen = dict(self.environment)

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the outputs."""
        value = self._seen.get(inputs["name"][0].decode(), "")
        return {
            "value": np.array([value], object),
            "cores": np.array(sorted(os.sched_getaffinity(0))),
            "thread": np.array([threading.current_thread().name], object),
        }
