"""The models of `triton_server` as a user of ours writes them, for NVIDIA's client of our server."""

# ruff: noqa: RUF012 - written as a user would write them

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

BLOCK = 8
DATATYPES = (
    "FP16", "FP32", "FP64", "INT8", "INT16", "INT32", "INT64",
    "UINT8", "UINT16", "UINT32", "UINT64", "BOOL", "BYTES",
)  # fmt: skip

Arrays = dict[str, np.ndarray]


class Scale:
    """Blocks' means, and the sum of all."""

    inputs = {"frame": ("UINT8", (-1, -1, 3))}
    outputs = {"small": ("FP32", (-1, -1, 3)), "total": ("INT64", (1,))}
    quantization = {"small": {"scale": [0.5], "zero_point": [0]}}

    def infer(self, inputs: Arrays) -> Arrays:
        """Do the work."""
        frame = inputs["frame"]
        high, wide = (side // BLOCK for side in frame.shape[:2])
        blocks = frame[: high * BLOCK, : wide * BLOCK].reshape(high, BLOCK, wide, BLOCK, 3)
        return {"small": blocks.mean((1, 3), np.float32), "total": np.array([frame.sum(dtype=np.int64)])}


class Sums:
    """The sum and the mean."""

    inputs = {"small": ("FP32", (-1, -1, 3))}
    outputs = {"sum": ("FP32", (1,)), "mean": ("FP32", (1,))}

    def infer(self, inputs: Arrays) -> Arrays:
        """Do the work."""
        small = inputs["small"]
        return {"sum": np.array([small.sum()], np.float32), "mean": np.array([small.mean()], np.float32)}


class Echo:
    """Each input as an output."""

    inputs = {name.lower(): (name, (-1,)) for name in DATATYPES}
    outputs = {f"{name.lower()}_out": (name, (-1,)) for name in DATATYPES}

    def infer(self, inputs: Arrays) -> Arrays:
        """Do the work."""
        return {f"{name}_out": array for name, array in inputs.items()}


class Add:
    """The sum, and the difference."""

    inputs = {"a": ("FP32", (-1, 4)), "b": ("FP32", (-1, 4))}
    outputs = {"c": ("FP32", (-1, 4)), "d": ("FP32", (-1, 4))}

    def infer(self, inputs: Arrays) -> Arrays:
        """Do the work."""
        return {"c": inputs["a"] + inputs["b"], "d": inputs["a"] - inputs["b"]}


class Slow:
    """Sleep the seconds that were asked for."""

    inputs = {"seconds": ("FP32", (1,))}
    outputs = {"slept": ("FP32", (1,))}

    def infer(self, inputs: Arrays) -> Arrays:
        """Do the work."""
        time.sleep(float(inputs["seconds"][0]))
        return {"slept": inputs["seconds"]}


class Fail:
    """Never answer."""

    inputs = {"a": ("FP32", (1,))}
    outputs = {"b": ("FP32", (1,))}

    def infer(self, inputs: Arrays) -> Arrays:
        """Raise."""
        raise ValueError("this model always fails")


class Counter:
    """As many answers as were asked for."""

    inputs = {"n": ("INT64", (1,))}
    outputs = {"i": ("INT64", (1,))}
    decoupled = True

    def stream(self, inputs: Arrays) -> Iterator[Arrays]:
        """Count."""
        for number in range(int(inputs["n"][0])):
            yield {"i": np.array([number])}
