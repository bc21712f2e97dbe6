"""Faults that lie beside a faulty server: names that are not found, an answer that is changed once."""

from __future__ import annotations

import re
import socket
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

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
        self._until = 0.0
        self._system = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._look_up)

    def fail_for(self, seconds: float) -> None:
        """Know no name for some seconds."""
        self._until = time.monotonic() + seconds

    def _look_up(self, host: Any, *arguments: Any, **keywords: Any) -> Any:
        if host != self.host:
            return self._system(host, *arguments, **keywords)
        if time.monotonic() < self._until:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return self._system("127.0.0.1", *arguments, **keywords)


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
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    live = [line for line in lines if line.startswith("predsession_jobs{") and not ENDED.search(line)]
    return sum(int(float(line.rpartition(" ")[2])) for line in live)
