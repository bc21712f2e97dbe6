"""Two models of named tensors, to be served side by side and chained.

predsession serve --oip-grpc 127.0.0.1:8001 \
    --tensor-model shrink=examples/serve_tensors.py:Shrink \
    --tensor-model brightness=examples/serve_tensors.py:Brightness
"""

import numpy as np


class Shrink:
    """A frame to means over blocks of eight by eight pixels."""

    inputs = {"frame": ("UINT8", [-1, -1, 3])}
    outputs = {"small": ("FP32", [-1, -1, 3])}

    def infer(self, inputs):
        """Return a dict of arrays, output name to array."""
        frame = inputs["frame"]
        rows, columns = frame.shape[0] // 8, frame.shape[1] // 8
        blocks = frame[: rows * 8, : columns * 8].reshape(rows, 8, columns, 8, 3)
        return {"small": blocks.mean((1, 3), np.float32)}


class Brightness:
    """A picture to one number a channel."""

    inputs = {"small": ("FP32", [-1, -1, 3])}
    outputs = {"mean": ("FP32", [3])}

    def infer(self, inputs):
        """Return a dict of arrays, output name to array."""
        return {"mean": inputs["small"].mean((0, 1))}
