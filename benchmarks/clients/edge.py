"""Our edge client: pictures to a server, one at a time or several in flight.

The task: ``endpoint``, ``count``, ``depth``, ``width``, ``height``, and optionally ``delay``, the model's
time for a picture in seconds. The answer: ``rate``, calls a second, and ``cpu``, this process's milliseconds
a call.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from benchmarks.process import answer, read_task
from predsession.edge import InferenceClient

WARM = 20


def main() -> None:
    """Do the task."""
    task = read_task()
    count, depth = int(str(task["count"])), int(str(task["depth"]))
    picture = np.zeros((int(str(task["height"])), int(str(task["width"])), 3), np.uint8)
    with InferenceClient(str(task["endpoint"])) as client:
        client.update_postprocess_config("Idle", {"delay": task.get("delay", 0)})
        _run(client, picture, count=WARM, depth=depth)
        began, cpu = time.perf_counter(), time.process_time()
        _run(client, picture, count=count, depth=depth)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    answer({"rate": count / seconds, "cpu": 1000 * cpu / count})


def _run(client: InferenceClient, picture: npt.NDArray[np.uint8], *, count: int, depth: int) -> None:
    """Make calls."""
    if depth == 1:
        for _ in range(count):
            assert client.infer(picture, "Idle").ok
        return
    pictures: Iterator[npt.NDArray[np.uint8]] = (picture for _ in range(count))
    assert sum(result.ok for result in client.infer_many(pictures, "Idle", depth=depth)) == count


if __name__ == "__main__":
    main()
