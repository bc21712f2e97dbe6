"""What this program is reading, so that it does not write over it: what was not read yet would be gone.

A fork reads on what its parent does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from predsession.export.inuse import InUse, key_of, keys_around

_read = InUse()


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
    user = _read.add(() if key is None else (key,))
    try:
        yield
    finally:
        _read.remove(user)


def is_read(path: Path) -> bool:
    """Return whether this program is reading a file or folder, or what it lies in, and is not at its end.

    Parameters
    ----------
    path : Path
        Which; it need not be there.

    Returns
    -------
    bool
        Whether what is written there would be read, or gone before it is.
    """
    return _read.has(keys_around(path))
