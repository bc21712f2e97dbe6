"""The vendor's own client, as it is; run by their interpreter. Tasks and answers are lines of JSON."""

from __future__ import annotations

import base64
import json
import sys
import threading
import time
from importlib.metadata import version
from typing import Any

import grpc
import numpy as np
from neoruntime_ipc_sdk.inference import BatchInferItem, InferenceClient
from neoruntime_ipc_sdk.proto import inference_pb2


def about(task: dict[str, Any]) -> Any:
    """Their version, and their interface's description."""
    return {
        "version": version("neoruntime-ipc-sdk"),
        "descriptor": base64.b64encode(inference_pb2.DESCRIPTOR.serialized_pb).decode(),
    }


def infer(task: dict[str, Any]) -> Any:
    """One picture, at once or by a future."""
    picture = np.load(task["picture"])
    with InferenceClient(task["endpoint"]) as client:
        keywords = task.get("keywords", {})
        if task.get("later"):
            futures = [client.infer_async(picture, task["model"], **keywords) for _ in range(task["later"])]
            return [described(future.result(30)) for future in futures]
        return described(client.infer(picture, task["model"], **keywords))


def batch(task: dict[str, Any]) -> Any:
    """Several pictures, at once or by a future."""
    items = [BatchInferItem(np.load(path), model) for path, model in task["items"]]
    with InferenceClient(task["endpoint"]) as client:
        found = client.infer_batch_async(items).result(30) if task.get("later") else client.infer_batch(items)
        return [described(one) for one in found]


def tensors(task: dict[str, Any]) -> Any:
    """A model's own outputs."""
    with InferenceClient(task["endpoint"]) as client:
        arrays = client.infer_with_tensors(task["model"], [np.load(task["picture"])])
        return [[str(array.dtype), array.tolist()] for array in arrays]


def subscribe(task: dict[str, Any]) -> Any:
    """Some frames of a camera, then the end of it."""
    frames = []
    with InferenceClient(task["endpoint"]) as client:
        stream = client.subscribe(**task["keywords"])
        for number, result in stream:
            frames.append([number, described(result)])
            if len(frames) == task["count"]:
                break
        began = time.monotonic()
        stream.close()
        return {"frames": frames, "closing": time.monotonic() - began}


def call(task: dict[str, Any]) -> Any:
    """Any other method, by its name."""
    with InferenceClient(task["endpoint"]) as client:
        value = getattr(client, task["method"])(*task.get("arguments", []), **task.get("keywords", {}))
        if isinstance(value, list):
            return [vars(one) if hasattr(one, "__dict__") else one for one in value]
        if hasattr(value, "__next__"):
            return list(value)
        return vars(value) if hasattr(value, "__dict__") else value


def speed(task: dict[str, Any]) -> Any:
    """Calls a second and processor time, one at a time and several in flight."""
    picture = np.load(task["picture"])
    with InferenceClient(task["endpoint"]) as client:
        client.infer(picture, task["model"])
        began, cpu = time.perf_counter(), time.process_time()
        if task["depth"] == 1:
            for _ in range(task["count"]):
                client.infer(picture, task["model"])
        else:
            _in_flight(client, picture, task)
        return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}


def _in_flight(client: InferenceClient, picture: np.ndarray, task: dict[str, Any]) -> None:
    """Keep several requests on their way."""
    free = threading.Semaphore(task["depth"])
    futures = []
    for _ in range(task["count"]):
        free.acquire()
        future = client.infer_async(picture, task["model"])
        future.add_done_callback(lambda _: free.release())
        futures.append(future)
    for future in futures:
        future.result(30)


def described(result: Any) -> dict[str, Any]:
    """What their result says, as plain values."""
    return {
        "objects": [
            {
                "label": one.label,
                "class_id": one.class_id,
                "score": one.score,
                "box": [one.bbox.x, one.bbox.y, one.bbox.width, one.bbox.height],
            }
            for one in result.objects
        ],
        "masks": [one.to_numpy_mask().tolist() for one in result.masks],
        "landmarks": [
            [[point.x, point.y, point.confidence] for point in one.points] for one in result.landmarks
        ],
        "classifications": [one.label for one in result.classifications],
        "outputs": None if result.raw_outputs is None else [array.tolist() for array in result.raw_outputs],
        "status": result.status_message,
        "times": [result.infer_time_us, result.queue_time_us, result.hw_infer_time_us],
        "number": result.frame_sequence,
        "stamp": result.timestamp_ns,
    }


def told(error: Exception) -> str:
    """Return an error's type, its status if it is gRPC's, and its text."""
    if isinstance(error, grpc.RpcError):
        return f"{type(error).__name__} {error.code().name}: {error.details()}"
    return f"{type(error).__name__}: {error}"


def main() -> None:
    """Do task after task."""
    sink, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        task = json.loads(line)
        try:
            answer = globals()[task["do"]](task)
        except Exception as error:
            answer = {"error": told(error)}
        sink.write(json.dumps(answer) + "\n")
        sink.flush()


if __name__ == "__main__":
    main()
