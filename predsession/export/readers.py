"""What this program is reading, so that it does not write over it: what was not read yet would be gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from predsession.export.inuse import InUse, key_of

_read = InUse(in_forks=True)


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
    key = key_of(path)
    if key is None:
        yield
        return
    _read.add(key, 1)
    try:
        yield
    finally:
        _read.add(key, -1)


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
    return _read.has(path)
