"""NVIDIA's tritonclient by hand, under its own interpreter; the task and the answer are ``clients.tensor``'s.

By hand is: send the frame, take the output, send it to the next model.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

WARM = 5
SIDES = (3, 720, 1280)


def main() -> None:
    """Do the task."""
    import numpy as np
    from tritonclient import grpc

    task = json.loads(sys.argv[1])
    count = task["count"]
    soften, summary = task["models"]
    frames = [np.full(SIDES, shade, np.uint8) for shade in range(8)]
    with grpc.InferenceServerClient(task["address"].removeprefix("grpc://")) as client:

        def run(times: int) -> None:
            for number in range(times):
                soft = ask(client, soften, "frame", frames[number % 8], "soft")
                first = ask(client, summary, "soft", soft, "first")
                assert first[0] == number % 8

        def ask(client: Any, model: str, name: str, array: Any, wanted: str) -> Any:
            given = grpc.InferInput(name, array.shape, "UINT8" if array.dtype == np.uint8 else "FP32")
            given.set_data_from_numpy(array)
            return client.infer(model, [given], headers=task["headers"]).as_numpy(wanted)

        run(WARM)
        began, cpu = time.perf_counter(), time.process_time()
        run(count)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    print("FIGURES " + json.dumps({"rate": count / seconds, "cpu": 1000 * cpu / count}), flush=True)


if __name__ == "__main__":
    main()
