"""Our tensor session: frames through a chain of two models, what is between them kept on the server or not.

The task: ``address``, ``headers``, ``models`` (two names), ``count``, ``kept``. The answer: ``rate``, frames
a second, and ``cpu``, this process's milliseconds a frame.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.process import answer, read_task
from benchmarks.tensors import SIDES
from predsession.tensor import TensorSession
from predsession.wire.jsontypes import as_list, as_object

WARM = 5


def main() -> None:
    """Do the task."""
    task = read_task()
    count, kept = int(str(task["count"])), bool(task["kept"])
    soften, summary = (str(name) for name in as_list(task["models"]))
    headers = {key: str(value) for key, value in as_object(task["headers"]).items()}
    frames = [np.full(SIDES, shade, np.uint8) for shade in range(8)]
    config = {"soft": {"device": "server", "key": "soft"}} if kept else None
    with TensorSession(str(task["address"]), models=[soften, summary], headers=headers) as session:

        def run(times: int) -> None:
            for number in range(times):
                soft = session({"frame": frames[number % 8]}, config, soften)["soft"]
                first = session({"soft": soft}, model_name=summary)["first"]
                assert np.asarray(first)[0] == number % 8

        run(WARM)
        began, cpu = time.perf_counter(), time.process_time()
        run(count)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    answer({"rate": count / seconds, "cpu": 1000 * cpu / count})


if __name__ == "__main__":
    main()
