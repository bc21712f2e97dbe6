"""NVIDIA's own client, as it is; run by their interpreter. Tasks and answers are lines of JSON.

An array is ``[datatype, shape, elements]``; an element of BYTES is its text in Latin-1.
"""

from __future__ import annotations

import base64
import json
import queue
import sys
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException, np_to_triton_dtype, triton_to_np_dtype

DOORS = {"grpc": tritonclient.grpc, "http": tritonclient.http}
PATIENCE = 30.0


def client_of(task: dict[str, Any]) -> Any:
    """Open their client."""
    return DOORS[task["door"]].InferenceServerClient(url=task["url"])


def read(value: list[Any]) -> np.ndarray:
    """Read an array."""
    datatype, shape, elements = value
    if datatype == "BYTES":
        elements = [each.encode("latin-1") for each in elements]
    return np.array(elements, triton_to_np_dtype(datatype)).reshape(shape)


def write(array: np.ndarray) -> list[Any]:
    """Write an array."""
    flat = array.reshape(-1).tolist()
    if array.dtype.kind in "OS":
        flat = [(each if isinstance(each, bytes) else each.encode()).decode("latin-1") for each in flat]
    return [np_to_triton_dtype(array.dtype), list(array.shape), flat]


def answer_of(result: Any, door: str) -> dict[str, Any]:
    """Write an answer: its outputs in the order in which they came."""
    response = result.get_response(as_json=True) if door == "grpc" else result.get_response()
    names = [each["name"] for each in response.get("outputs", [])]
    outputs = {name: write(result.as_numpy(name)) for name in names}
    return {"id": response.get("id", ""), "outputs": outputs, "parameters": response.get("parameters", {})}


def arguments_of(task: dict[str, Any]) -> dict[str, Any]:
    """Return what their client's methods for inference are given."""
    module = DOORS[task["door"]]
    inputs = []
    for name, value in task["inputs"].items():
        array = read(value)
        one = module.InferInput(name, array.shape, value[0])
        binary = {"binary_data": task.get("binary", True)} if task["door"] == "http" else {}
        one.set_data_from_numpy(array, **binary)
        inputs.append(one)
    outputs = None
    if task.get("outputs") is not None:
        binary = {"binary_data": task.get("binary_outputs", True)} if task["door"] == "http" else {}
        outputs = [module.InferRequestedOutput(name, **binary) for name in task["outputs"]]
    return {
        "model_name": task["model"], "inputs": inputs, "outputs": outputs,
        "request_id": task.get("id", ""), **task.get("keywords", {}),
    }  # fmt: skip


def call(task: dict[str, Any]) -> Any:
    """One of their client's methods."""
    client = client_of(task)
    try:
        result = getattr(client, task["method"])(*task["arguments"], **task["keywords"])
        if hasattr(result, "DESCRIPTOR"):
            raise TypeError("ask for it as JSON")
        return result
    finally:
        client.close()


def load(task: dict[str, Any]) -> Any:
    """Load a model with files."""
    client = client_of(task)
    files = {name: base64.b64decode(text) for name, text in task["files"].items()}
    try:
        return client.load_model(task["name"], config=task["config"], files=files, headers=task["headers"])
    finally:
        client.close()


def infer(task: dict[str, Any]) -> Any:
    """One inference, or several that are on their way at once."""
    client = client_of(task)
    try:
        if not task.get("later"):
            return answer_of(client.infer(**arguments_of(task)), task["door"])
        if task["door"] == "http":
            under_way = [client.async_infer(**arguments_of(task)) for _ in range(task["later"])]
            return [answer_of(each.get_result(), "http") for each in under_way]
        done: queue.Queue[Any] = queue.Queue()
        for _ in range(task["later"]):
            client.async_infer(callback=lambda result, error: done.put((result, error)), **arguments_of(task))
        found = [done.get(timeout=PATIENCE) for _ in range(task["later"])]
        return [answer_of(result, "grpc") if error is None else str(error) for result, error in found]
    finally:
        client.close()


def stream(task: dict[str, Any]) -> Any:
    """Requests on one stream, and so many answers."""
    client = client_of(task)
    done: queue.Queue[Any] = queue.Queue()
    try:
        client.start_stream(callback=lambda result, error: done.put((result, error)))
        for each in task["requests"]:
            client.async_stream_infer(**arguments_of({"door": "grpc", **each}))
        found = [done.get(timeout=PATIENCE) for _ in range(task["count"])]
        client.stop_stream(cancel_requests=task.get("cancel", False))
        if not task.get("cancel"):
            assert done.empty(), "there were more"
        return [
            {"error": error.message()} if error is not None else answer_of(result, "grpc")
            for result, error in found
        ]
    finally:
        client.close()


TASKS = {"call": call, "load": load, "infer": infer, "stream": stream}


def main() -> None:
    """Do one task after the other."""
    for line in sys.stdin:
        task = json.loads(line)
        try:
            value = TASKS[task["do"]](task)
        except InferenceServerException as error:
            value = {"error": error.message(), "status": str(error.status())}
        except Exception as error:
            value = {"error": f"{type(error).__name__}: {error}", "status": ""}
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
