"""The models of the real MLServer: names and meanings as in `triton_server`; run by their interpreter."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse, RequestInput, ResponseOutput

BLOCK = 8
DTYPES = {
    "FP16": np.float16, "FP32": np.float32, "FP64": np.float64, "INT8": np.int8, "INT16": np.int16,
    "INT32": np.int32, "INT64": np.int64, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32,
    "UINT64": np.uint64, "BOOL": np.bool_, "BYTES": np.object_,
}  # fmt: skip
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def array_of(tensor: RequestInput) -> np.ndarray:
    """Read a tensor as it was sent; MLServer's own reader makes one text of several BYTES."""
    data = getattr(tensor.data, "root", tensor.data)
    return np.array(data, DTYPES[str(tensor.datatype)]).reshape(tensor.shape)


def output_of(name: str, array: np.ndarray) -> ResponseOutput:
    """Write a tensor with its own shape; MLServer's own writer makes two sides of one."""
    return ResponseOutput(
        name=name, shape=list(array.shape), datatype=NAMES[array.dtype], data=array.reshape(-1).tolist()
    )


class Model(MLModel):
    """Arrays in, arrays out."""

    async def load(self) -> bool:
        """Be ready at once."""
        return True

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Do the work."""
        raise NotImplementedError

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Answer one request; whatever outputs it asks for, as MLServer leaves that to the model."""
        outputs = self.run({each.name: array_of(each) for each in payload.inputs})
        return self.answer([output_of(name, array) for name, array in outputs.items()], payload.id)

    def answer(self, outputs: list[ResponseOutput], number: str | None) -> InferenceResponse:
        """Return a response."""
        return InferenceResponse(model_name=self.name, model_version=self.version, id=number, outputs=outputs)


class Scale(Model):
    """Blocks' means, and the sum of all."""

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Do the work."""
        frame = inputs["frame"]
        high, wide = (side // BLOCK for side in frame.shape[:2])
        blocks = frame[: high * BLOCK, : wide * BLOCK].reshape(high, BLOCK, wide, BLOCK, 3)
        return {"small": blocks.mean((1, 3), np.float32), "total": np.array([frame.sum(dtype=np.int64)])}


class Sums(Model):
    """The sum and the mean."""

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Do the work."""
        small = inputs["small"]
        return {"sum": np.array([small.sum()], np.float32), "mean": np.array([small.mean()], np.float32)}


class Echo(Model):
    """Each input as an output."""

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Do the work."""
        return {f"{name}_out": array for name, array in inputs.items()}


class Add(Model):
    """The sum, and the difference."""

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Do the work."""
        return {"c": inputs["a"] + inputs["b"], "d": inputs["a"] - inputs["b"]}


class Slow(Model):
    """Sleep the seconds that were asked for."""

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Let others go on meanwhile."""
        seconds = array_of(payload.inputs[0])
        await asyncio.sleep(float(seconds[0]))
        return self.answer([output_of("slept", seconds)], payload.id)


class Fail(Model):
    """Never answer."""

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Raise."""
        raise ValueError("this model always fails")


class Codec(Model):
    """An input of one side, by MLServer's own codec."""

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Decode and encode."""
        array = NumpyCodec.decode_input(payload.inputs[0])
        return self.answer([NumpyCodec.encode_output("b", array)], payload.id)


class Counter(Model):
    """As many answers as were asked for, to each request; unary calls are refused, as on Triton."""

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Refuse."""
        raise ValueError("this model streams")

    async def predict_stream(
        self, payloads: AsyncIterator[InferenceRequest]
    ) -> AsyncIterator[InferenceResponse]:
        """Answer each in its turn."""
        async for payload in payloads:
            inputs: dict[str, Any] = {each.name: array_of(each) for each in payload.inputs}
            for number in range(int(inputs["n"][0])):
                await asyncio.sleep(float(inputs["pause"][0]) if "pause" in inputs else 0)
                sys.stderr.write(f"counter {number}\n")
                sys.stderr.flush()
                yield self.answer([output_of("i", np.array([number], np.int64))], payload.id)
