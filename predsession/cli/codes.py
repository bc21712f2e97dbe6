"""Exit codes, and the way to speak to the user beside the result."""

from __future__ import annotations

import codecs
import os
import signal
import sys
from pathlib import Path

OK, SOME_FAILED, USAGE, SERVER = 0, 1, 2, 3
HUNG_UP, INTERRUPTED, TERMINATED = 129, 130, 143
MEANINGS = {
    OK: "all went well",
    SOME_FAILED: "some inputs failed",
    USAGE: "wrong usage, source or place",
    SERVER: "the server or the model failed, or refused",
    HUNG_UP: "the terminal was closed (SIGHUP)",
    INTERRUPTED: "interrupted (Ctrl-C)",
    TERMINATED: "told to end (SIGTERM)",
}
"""What the help says of them, and docs/commands.md."""


def leave_on_signals() -> None:
    """Leave by everybody's way out: a batch system ends a job with SIGTERM, a closed terminal with SIGHUP."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(HUNG_UP))


def say(text: str) -> None:
    """Tell the user something, beside the result."""
    write_error(f"predsession: {text}\n")


def write_error(text: str) -> None:
    """Write to standard error; where that cannot be done, go on without one.

    What is lost there must not change the result, its place or the exit code.
    """
    try:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
            return
    except OSError:
        pass
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the process


def print_line(text: str) -> None:
    """Print a line for people; what servers and files say must not reach the terminal as a command."""
    from predsession.inputs.items import printable

    print(printable(text), flush=True)


def print_json(value: object) -> None:
    """Print a line of JSON; what is no number in it becomes null, for JSON has no NaN."""
    from predsession.export.validjson import valid_json

    print(valid_json(value, ascii_only=not speaks_utf8())[0], flush=True)


def speaks_utf8() -> bool:
    """Whether standard output takes every character."""
    return codecs.lookup(getattr(sys.stdout, "encoding", None) or "ascii").name == "utf-8"
