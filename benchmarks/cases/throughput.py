"""The embedded server's own throughput: 5,000 images of 20 kB through a model that takes no time.

First our session against the bare loop, both on our server: what is lost to checking and to order. Then the
bare loop on our server against the bare loop on Supervisely's: what the servers themselves reach. Two more
rows look at what a server should do besides: decode while the model works, and fill a batch from many small
jobs.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from uuid import uuid4

import requests

from benchmarks import sessions
from benchmarks.bench import Bench, Figures
from benchmarks.pictures import PHOTO, SMALL, folder, picture
from benchmarks.row import Row, at_least
from benchmarks.servers import our_server, stock_server

NAME = "throughput"
POLL = 0.005
AHEAD = 2
"""Jobs that the bare loop has sent before it reads the first: so that no server waits for it."""
DELAY = 0.01
CALLERS = 8


def measure(bench: Bench) -> Iterator[Row]:
    """Yield rows for the client, for the servers, and for what overlaps."""
    count = bench.count(5000, 100)
    small = folder(SMALL, count)

    def bare(url: str) -> Figures:
        return _rate(sessions.bare(url, small, expect=count, poll=POLL, ahead=AHEAD))

    with our_server("Idle") as url:
        pairs = bench.measured(lambda: _rate(sessions.ours(url, small, expect=count)), lambda: bare(url))
        what = f"{count:,} of 20 kB, our server; bare loop on it"
        yield pairs.row(NAME, what, "rate", unit="images/s", target=at_least(0.9))
        yield _overlap(bench, url)
        yield _batches(bench, url)
        if bench.theirs is None:
            return
        with stock_server(bench.theirs, "idle") as server:
            pairs = bench.measured(lambda: bare(url), lambda: bare(server.url))
        what = f"{count:,} of 20 kB, bare loop, our server; the same on Supervisely's"
        yield pairs.row(NAME, what, "rate", unit="images/s", target=at_least(2.0))


def _rate(found: Figures) -> Figures:
    """Add the images per second."""
    return {**found, "rate": found["count"] / found["last"]}


def _overlap(bench: Bench, url: str) -> Row:
    """Return the row for photos, which take long to decode, under a model that takes as long."""
    count = bench.count(500, 20)
    photos = folder(PHOTO, count)
    pairs = bench.measured(
        lambda: sessions.ours(url, photos, expect=count, keywords={"settings": {"delay": DELAY}})
    )
    times = [seconds / (count * DELAY) for seconds in pairs.ours("last")]
    return Row(NAME, f"{count} photos, model of 10 ms: the run, in the model's own time", "×", times)


def _batches(bench: Bench, url: str) -> Row:
    """Return the row for how full batches are when many callers send jobs of one image each."""
    times = bench.count(25, 2)
    means = [_mean_batch(url, times) for _ in range(bench.runs)]
    return Row(NAME, f"mean batch, {CALLERS * times} jobs of one image each, at most 16", "images", means)


def _mean_batch(url: str, times: int) -> float:
    """Let callers send jobs of one image at the same time; return the mean batch meanwhile."""
    photo = picture(SMALL).read_bytes()
    before = _batches_so_far(url)

    def call() -> None:
        with requests.Session() as http:
            jobs = [_submit(http, url, photo) for _ in range(times)]
            for job in jobs:
                _wait(http, url, job)

    callers = [threading.Thread(target=call) for _ in range(CALLERS)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    after = _batches_so_far(url)
    return (after[0] - before[0]) / (after[1] - before[1])


def _submit(http: requests.Session, url: str, photo: bytes) -> str:
    """Start a job of one image."""
    files, state = [("files", (f"{uuid4().hex}.jpg", photo))], f'{{"settings": {{"delay": {DELAY}}}}}'
    answer = http.post(f"{url}/inference_batch_async", files=files, data={"state": state}, timeout=60)
    return str(answer.json()["inference_request_uuid"])


def _wait(http: requests.Session, url: str, job: str) -> None:
    """Wait until a job is over."""
    body = {"state": {"inference_request_uuid": job}}
    while not http.post(f"{url}/pop_inference_results", json=body, timeout=60).json()["finished"]:
        time.sleep(POLL)
    http.post(f"{url}/clear_inference_request", json=body, timeout=60)


def _batches_so_far(url: str) -> Sequence[float]:
    """Return the pictures that were in batches, and the number of batches, from the server's own metrics."""
    text = requests.get(f"{url}/metrics", timeout=60).text
    return [_sum_of(text, f"predsession_batch_size_{part}") for part in ("sum", "count")]


def _sum_of(text: str, name: str) -> float:
    """Return a metric, over all its labels."""
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))
