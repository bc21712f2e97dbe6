"""What this program is reading, so that it does not write over it: what was not read yet would be gone."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

Key = tuple[int, int]
_read = Counter[Key]()
_guard = threading.Lock()


def _in_a_fork() -> None:
    """Begin anew: another thread of the parent may have held the guard."""
    global _guard  # noqa: PLW0603 - a lock is of one process
    _guard = threading.Lock()


os.register_at_fork(after_in_child=_in_a_fork)


def _key(path: Path) -> Key | None:
    """Return the device and inode of a file or folder, None where it cannot be looked at."""
    try:
        place = path.stat()
    except (OSError, ValueError):
        return None
    return place.st_dev, place.st_ino


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Note that a file or folder is read as long.

    Parameters
    ----------
    path : Path
        Which.

    Yields
    ------
    None
        Once.
    """
    key = _key(path)
    with _guard:
        if key is not None:
            _read[key] += 1
    try:
        yield
    finally:
        with _guard:
            if key is not None:
                _read[key] -= 1


def is_read(path: Path) -> bool:
    """Return whether this program is reading a file or folder, and has not come to its end.

    Parameters
    ----------
    path : Path
        Which.

    Returns
    -------
    bool
        False also where there is none.
    """
    key = _key(path)
    with _guard:
        return key is not None and _read[key] > 0
