"""The edge vendor's own client, under its own interpreter; the task and the answer are ``clients.edge``'s.

Its client has no way to keep several requests in flight but futures, so that is how it is done, with a
semaphore, as its users would.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

WARM = 20


def main() -> None:
    """Do the task."""
    import numpy as np
    from neoruntime_ipc_sdk.inference import InferenceClient

    task = json.loads(sys.argv[1])
    count, depth = task["count"], task["depth"]
    picture = np.zeros((task["height"], task["width"], 3), np.uint8)
    with InferenceClient(task["endpoint"]) as client:
        client.update_postprocess_config("Idle", json.dumps({"delay": task.get("delay", 0)}))
        run(client, picture, count=WARM, depth=depth)
        began, cpu = time.perf_counter(), time.process_time()
        run(client, picture, count=count, depth=depth)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    found = {"rate": count / seconds, "cpu": 1000 * cpu / count}
    print("FIGURES " + json.dumps(found), flush=True)


def run(client: Any, picture: Any, *, count: int, depth: int) -> None:
    """Make calls."""
    if depth == 1:
        for _ in range(count):
            client.infer(picture, "Idle")
        return
    free = threading.Semaphore(depth)
    futures = []
    for _ in range(count):
        free.acquire()
        future = client.infer_async(picture, "Idle")
        future.add_done_callback(lambda _: free.release())
        futures.append(future)
    for future in futures:
        future.result(60)


if __name__ == "__main__":
    main()
