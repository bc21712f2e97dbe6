"""What a process holds in memory, and the most it ever held, as Linux counts it."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterable
from pathlib import Path

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


def held() -> float:
    """Return the megabytes that are held now."""
    return _read("VmRSS")


def most() -> float:
    """Return the most megabytes that were held since the last `forget_most`."""
    return _read("VmHWM")


def forget_most() -> None:
    """Let `most` begin anew."""
    _RESET.write_text("5")


def import_all(names: Iterable[str]) -> None:
    """Import what another process had imported at its end: what is then held is not what a run takes."""
    for name in names:
        with contextlib.suppress(ImportError, AttributeError):
            importlib.import_module(name)


def _read(name: str) -> float:
    """Return a line of the status, in megabytes of 1024 KiB."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024
