"""What processes use, from Linux's ``/proc``; elsewhere nothing is known."""

from __future__ import annotations

import ctypes
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
_KEPT, _LARGE = 64 << 20, 16 << 20


def keep_freed() -> None:
    """Have this process keep the memory of frames that it is done with, for the next ones.

    Otherwise glibc gives a frame's megabytes back to the system, and every page of the next one is a fault:
    with one frame of 640 x 480 at a time that is half of all the time. Other allocators are left alone.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version"):
        library.mallopt(_TRIM_THRESHOLD, _KEPT)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)


def resident(pid: int | None = None) -> int | None:
    """Return a process's resident memory.

    Parameters
    ----------
    pid : int or None
        Its id; this process for None.

    Returns
    -------
    int or None
        Bytes; None where the process is gone, or the system does not say.
    """
    try:
        lines = Path(f"/proc/{'self' if pid is None else pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))
    except (OSError, StopIteration, IndexError, ValueError):
        return None
