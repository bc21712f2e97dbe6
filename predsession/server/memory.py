"""What processes use, from Linux's ``/proc``; elsewhere nothing is known."""

from __future__ import annotations

from pathlib import Path


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
