"""The ancestor's way with arrays: each encoded as PNG by OpenCV, one by one, then all sent at once.

Its own session cannot be iterated over arrays, so its steps are done here: its own encoder, then one
request. The task has ``url`` and ``input``, a file of arrays. The answer: seconds until all are ``encoded``,
until they are ``sent``, and until the ``last`` result is there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Do the task."""
    import numpy as np
    import requests
    from supervisely.imaging.image import write_bytes

    arrays = list(np.load(task["input"]))
    began = time.monotonic()
    pictures = [write_bytes(array, ".png") for array in arrays]
    encoded = time.monotonic() - began
    files: list[Any] = [
        ("files", (f"image_{number}.png", picture, "image/png")) for number, picture in enumerate(pictures)
    ]
    files.append(("state", (None, "{}", "text/plain")))
    job = requests.post(f"{task['url']}/inference_batch_async", files=files, timeout=600).json()
    sent = time.monotonic() - began
    state = {"state": {"inference_request_uuid": job["inference_request_uuid"]}}
    count, finished = 0, False
    while not finished:
        got = requests.post(f"{task['url']}/pop_inference_results", json=state, timeout=600).json()
        count, finished = count + len(got["pending_results"]), got["finished"]
        time.sleep(0.0 if finished else 0.005)
    last = time.monotonic() - began
    megabytes = sum(map(len, pictures)) / 1e6
    return {"count": count, "encoded": encoded, "sent": sent, "last": last, "megabytes": megabytes}


if __name__ == "__main__":
    found = run(json.loads(sys.argv[1]))
    sys.stdout.write("FIGURES " + json.dumps(found) + "\n")
    sys.stdout.flush()
    os._exit(0)
