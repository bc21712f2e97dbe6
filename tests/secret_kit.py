"""Two secrets of a run, and a look whether a text, or a file, shows one of them."""

from __future__ import annotations

import base64
import logging
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

TOKEN = "tk-0f3a9b7c5d1e-Secret"
"""What goes into the header."""
PATH_TOKEN = "8c1d5e7fa2b94c60_session"
"""What stands behind ``/net/`` in the endpoint's path."""


def leaks(text: str) -> list[str]:
    """Return the secrets that a text shows: as they are, quoted, packed, or only their greater part."""
    forms = {
        name: (secret[:12], secret[-12:], quote(secret), base64.b64encode(secret.encode()).decode()[:16])
        for name, secret in (("token", TOKEN), ("path", PATH_TOKEN))
    }
    return [name for name, shapes in forms.items() if any(shape in text for shape in shapes)]


def leaking_files(paths: Iterable[Path]) -> list[str]:
    """Return the files, whatever their kind, that hold a secret; folders are looked through."""
    files = (each for path in paths for each in (path.rglob("*") if path.is_dir() else [path]))
    return [str(file) for file in files if file.is_file() and leaks(file.read_bytes().decode("latin-1"))]


def told(error: BaseException) -> str:
    """Return all that an error says: itself, its fields, its notes, its causes and its traceback.

    With the values of the variables in our own frames, as crash reporters show them; the test's own frames
    hold the secrets, as a caller's do, and are left out.

    Returns
    -------
    str
        All of it.
    """
    texts = [repr(error), str(error), repr(vars(error)), "".join(traceback.format_exception(error))]
    waiting: list[BaseException | None] = [error]
    while waiting:
        if (one := waiting.pop()) is None:
            continue
        summary = traceback.TracebackException.from_exception(one, capture_locals=True)
        texts += [
            f"{frame.filename}:{frame.lineno} {frame.locals}"
            for frame in summary.stack
            if "/predsession/" in frame.filename
        ]
        waiting += [one.__cause__, None if one.__suppress_context__ else one.__context__]
    return "\n".join(texts)


class Lines(logging.Handler):
    """Keeps every line that is logged, by whomever, with the values it was made of."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(f"{record.name} {self.format(record)} {record.args!r}")


@contextmanager
def everything_logged() -> Iterator[Lines]:
    """Log at DEBUG, the libraries below us included."""
    root, handler = logging.getLogger(), Lines()
    before = {name: logging.getLogger(name).level for name in ("", "urllib3", "requests", "predsession")}
    root.addHandler(handler)
    for name in before:
        logging.getLogger(name).setLevel(logging.DEBUG)
    try:
        yield handler
    finally:
        root.removeHandler(handler)
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
