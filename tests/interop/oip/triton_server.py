"""A real Triton with models for the tests, on the CPU; run by their interpreter.

It prints one line of JSON once it is ready: addresses, the token for what PyTriton restricts, and the process
id of the tritonserver. It ends, and the tritonserver with it, on SIGTERM or when its stdin does.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import IO, Any

# The backend's processes are to load the interpreter's own library, not one of another patch release that the
# loader finds first: with that, the standard library does not fit.
os.environ["LD_LIBRARY_PATH"] = ":".join(
    filter(None, (sysconfig.get_config_var("LIBDIR"), os.environ.get("LD_LIBRARY_PATH")))
)

import numpy as np
from pytriton.model_config import ModelConfig, Tensor
from pytriton.model_config.common import DynamicBatcher
from pytriton.triton import Triton, TritonConfig, TritonSecurityConfig

TOKEN = "let-me-in"
BLOCK = 8
QUANTIZATION = {"small": {"scale": [0.5], "zero_point": [0]}}
"""What the model `scale` carries in its configuration, under `predsession_quantization`."""

ECHOED = {
    "fp16": np.float16, "fp32": np.float32, "fp64": np.float64, "int8": np.int8, "int16": np.int16,
    "int32": np.int32, "int64": np.int64, "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32,
    "uint64": np.uint64, "bool": np.bool_, "bytes": np.object_,
}  # fmt: skip

Arrays = dict[str, Any]


def scale(requests: list[Arrays]) -> list[Arrays]:
    """Blocks' means, and the sum of all."""
    return [scaled(each["frame"]) for each in requests]


def scaled(frame: np.ndarray) -> Arrays:
    """One frame's."""
    high, wide = (side // BLOCK for side in frame.shape[:2])
    blocks = frame[: high * BLOCK, : wide * BLOCK].reshape(high, BLOCK, wide, BLOCK, 3)
    return {"small": blocks.mean((1, 3), np.float32), "total": np.array([frame.sum(dtype=np.int64)])}


def sums(requests: list[Arrays]) -> list[Arrays]:
    """The sum and the mean."""
    return [
        {
            "sum": np.array([each["small"].sum()], np.float32),
            "mean": np.array([each["small"].mean()], np.float32),
        }
        for each in requests
    ]


def echo(requests: list[Any]) -> list[Arrays]:
    """Each input that came as an output."""
    return [{f"{name}_out": array for name, array in each.data.items()} for each in requests]


def add(requests: list[Arrays]) -> list[Arrays]:
    """The sum, and the difference."""
    return [{"c": each["a"] + each["b"], "d": each["a"] - each["b"]} for each in requests]


def slow(requests: list[Arrays]) -> list[Arrays]:
    """Sleep the seconds that were asked for."""
    for each in requests:
        sys.stderr.write("slow begins\n")
        sys.stderr.flush()
        time.sleep(float(each["seconds"][0]))
    return [{"slept": each["seconds"]} for each in requests]


def fail(requests: list[Arrays]) -> list[Arrays]:
    """Never answer."""
    raise ValueError("this model always fails")


def counter(requests: list[Arrays]) -> Iterator[list[Arrays]]:
    """As many answers as were asked for, each some seconds after the one before."""
    (asked,) = requests
    for number in range(int(asked["n"][0])):
        time.sleep(float(asked["pause"][0]) if "pause" in asked else 0)
        sys.stderr.write(f"counter {number}\n")
        sys.stderr.flush()
        yield [{"i": np.array([number], np.int64)}]


def bind(triton: Triton) -> None:
    """Tell Triton of the models."""
    real, whole, byte = np.float32, np.int64, np.uint8

    def one(function: Any, inputs: Any, outputs: Any, **config: Any) -> None:
        triton.bind(
            model_name=function.__name__, infer_func=function, inputs=inputs, outputs=outputs,
            config=ModelConfig(**{"batching": False, **config}), strict=False,
        )  # fmt: skip

    def tensor(name: str, dtype: Any, *shape: int, optional: bool = False) -> Tensor:
        return Tensor(name=name, dtype=dtype, shape=shape, optional=optional)

    one(scale, [tensor("frame", byte, -1, -1, 3)],
        [tensor("small", real, -1, -1, 3), tensor("total", whole, 1)])  # fmt: skip
    one(sums, [tensor("small", real, -1, -1, 3)], [tensor("sum", real, 1), tensor("mean", real, 1)])
    one(echo, [tensor(name, dtype, -1, optional=True) for name, dtype in ECHOED.items()],
        [tensor(f"{name}_out", dtype, -1) for name, dtype in ECHOED.items()])  # fmt: skip
    one(add, [tensor("a", real, 4), tensor("b", real, 4)], [tensor("c", real, 4), tensor("d", real, 4)],
        batching=True, max_batch_size=8, batcher=DynamicBatcher())  # fmt: skip
    one(slow, [tensor("seconds", real, 1)], [tensor("slept", real, 1)])
    one(fail, [tensor("a", real, 1)], [tensor("b", real, 1)])
    one(counter, [tensor("n", whole, 1), tensor("pause", real, 1, optional=True)], [tensor("i", whole, 1)],
        decoupled=True)  # fmt: skip
    # PyTriton has no public way to a configuration's parameters; its own go the same way.
    first = next(each for each in triton._model_manager.models if each.model_name == "scale")
    first._get_triton_model_config().backend_parameters["predsession_quantization"] = json.dumps(QUANTIZATION)


def free_ports(count: int) -> list[int]:
    """Find ports that nobody has."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def serve(config: TritonConfig, folder: str, line: IO[str], ended: threading.Event) -> None:
    """Run Triton, tell where, and wait for the end."""
    security = TritonSecurityConfig(access_token=TOKEN)
    triton = Triton(config=config, workspace=f"{folder}/work", security_config=security)
    bind(triton)  # before it runs: with that, their configurations are on their way
    triton.run()
    try:
        ready = {
            "http": f"http://127.0.0.1:{config.http_port}",
            "grpc": f"127.0.0.1:{config.grpc_port}",
            "token": TOKEN,
            "server": triton._triton_server._tritonserver_running_cmd.pid,
        }
        line.write(json.dumps(ready) + "\n")
        line.flush()
        ended.wait()
    finally:
        triton.stop()


def main() -> None:
    """Serve until told to end."""
    line = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Triton prints goes to the log
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    http, grpc, metrics = free_ports(3)
    config = TritonConfig(
        http_address="127.0.0.1", http_port=http, grpc_address="127.0.0.1", grpc_port=grpc,
        metrics_port=metrics, exit_timeout_secs=5, log_verbose=0,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="triton-") as folder:  # short: it holds unix sockets
        serve(config, folder, line, ended)


if __name__ == "__main__":
    main()
