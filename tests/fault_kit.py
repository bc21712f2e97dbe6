"""Faults that lie beside a faulty server: names that are not found, an answer that is changed once."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from server_kit import PATIENCE, until

from predsession.testing import FaultyServer

SUBMIT, CLEAR = "inference_batch_async", "clear_inference_request"
ENDED = re.compile('stage="(finished|cancelled|error)"')


class Names:
    """A name server that can fail: it knows one host, which is this machine.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch
        Puts it in place of the system's.
    """

    host = "inference.test"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._until, self._least = 0.0, 0
        self._system = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._look_up)

    def fail_for(self, seconds: float, *, least: int = 0) -> None:
        """Know no name for some seconds, and until it was asked for so often."""
        self._until, self._least = time.monotonic() + seconds, least

    def _look_up(self, host: Any, *arguments: Any, **keywords: Any) -> Any:
        if host != self.host:
            return self._system(host, *arguments, **keywords)
        self._least -= 1
        if self._least >= 0 or time.monotonic() < self._until:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return self._system("127.0.0.1", *arguments, **keywords)


class Gate:
    """Faults for a `FaultyServer`: calls to an endpoint are held until the gate is opened.

    Parameters
    ----------
    endpoint : str
        The last part of the URL.
    nth : int
        Which call to it is the first to be held, counted from 1.
    """

    def __init__(self, endpoint: str, *, nth: int = 1) -> None:
        self._endpoint, self._nth = endpoint, nth
        self._open = threading.Event()
        self.held = threading.Event()
        """Set once a call is held."""

    def __call__(self, endpoint: str, count: int) -> None:
        """Hold a call, if it is one of those; nothing is wrong with it otherwise."""
        if endpoint == self._endpoint and count >= self._nth and not self._open.is_set():
            self.held.set()
            self._open.wait(PATIENCE)

    def open(self) -> None:
        """Let all go on."""
        self._open.set()


@contextmanager
def own_port() -> Iterator[int]:
    """A port of this machine that nobody else gets meanwhile.

    It is bound, and not listening: connections are refused, until a server of ours listens there.

    Yields
    ------
    int
        The port, on 127.0.0.1.
    """
    with socket.socket() as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(("127.0.0.1", 0))
        yield int(place.getsockname()[1])


def once(rewrite: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Return what changes the first answer that the change makes another, and no later one."""
    done: list[bytes] = []

    def change(body: bytes) -> bytes:
        changed = body if done else rewrite(body)
        if changed != body:
            done.append(body)
        return changed

    return change


def live_jobs(url: str) -> int:
    """Return how many jobs have not ended on a server, by its own figures."""
    live = [line for line in _figures(url) if line.startswith("predsession_jobs{") and not ENDED.search(line)]
    return sum(int(float(line.rpartition(" ")[2])) for line in live)


def ended_early(url: str) -> bool:
    """Whether a server has ended a job, by its own figures, before all of it was done."""
    return any(
        'stage="Cancelled"' in line for line in _figures(url) if line.startswith("predsession_jobs_total")
    )


def _figures(url: str) -> list[str]:
    with urllib.request.urlopen(f"{url}/metrics", timeout=PATIENCE) as answer:
        return answer.read().decode().splitlines()


INTERRUPTED = """
import gc, os, signal, sys, threading
from predsession import PredictionSession
from tqdm import tqdm
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as our own command does
print("ready", flush=True)
try:
    with PredictionSession(sys.argv[1], sys.argv[2], delay=0.01, show_progress=True) as session:
        for prediction in session:
            pass
except (KeyboardInterrupt, SystemExit):
    pass
gc.collect()  # a bar whose making was interrupted is no bar
ours = [each.name for each in threading.enumerate() if each.name.startswith("predsession-")]
links = [os.readlink(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd") if int(each) > 2
         and os.path.islink(f"/proc/self/fd/{each}")]
print(ours, [link for link in links if "socket" in link or "deleted" in link], len(tqdm._instances))
"""


def interrupt_after(seconds: float, url: str, folder: Path, number: int = signal.SIGINT) -> None:
    """Interrupt a run, so long after its imports: check that nothing is left, here or on the server.

    Parameters
    ----------
    seconds : float
        After which the signal is sent; later than its end if the run is that quick.
    url : str
        A server.
    folder : Path
        What to run.
    number : int
        The signal.
    """
    with FaultyServer(url) as faulty:
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, faulty.url, str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(seconds)
        process.send_signal(number)
        out, words = process.communicate(timeout=60)
        until(lambda: not live_jobs(url), f"jobs left after {seconds:.3f} s to end: {words[-500:]}")
    # Before its first line, or after its last, the script itself is interrupted: then nothing is printed.
    assert out in ("[] [] 0\n", ""), f"after {seconds:.3f} s: {out} {words[-500:]}"
    ended = [json.loads(call.body)["state"]["inference_request_uuid"] for call in faulty.calls(CLEAR)]
    submits = faulty.calls(SUBMIT)
    whole = [call for call in submits if len(call.body) == int(call.headers["content-length"])]
    assert len(set(ended)) == len(whole), (
        f"after {seconds:.3f} s: {len(whole)} jobs, {len(set(ended))} cleared"
    )
