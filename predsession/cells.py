"""Cells of a notebook that are interrupted: what they were iterating is closed with them.

An interrupt that comes while a session waits is raised there, and closes it. One that comes in the body of
the loop, or while ``async for`` waits, reaches no code of ours: the session would go on, job and all, with a
bar that stands still. IPython tells how each cell ended; outside of it nothing here does anything.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from typing import Protocol

from predsession.progress import Progress

Close = Callable[[BaseException], None]
"""A session's method that closes it because of an error."""


class _Shell(Protocol):
    """The part of IPython's shell that is used here."""

    events: _Events


class _Events(Protocol):
    """IPython's list of those who want to be told."""

    def register(self, event: str, function: object) -> None:
        """Have a function called."""


class _Watch:
    """What the present cell has iterated: sessions, which may be gone when it ends, and their bars."""

    def __init__(self, shell: _Shell) -> None:
        self.used: set[weakref.WeakMethod[Close]] = set()
        self.bars: dict[int, Progress] = {}
        shell.events.register("pre_run_cell", self.begin)
        shell.events.register("post_run_cell", self.end)

    def begin(self, *_: object) -> None:
        """Forget what the cell before has iterated."""
        self.used.clear()
        self.bars.clear()

    def end(self, result: object = None) -> None:
        """Close what was being iterated, if the cell was interrupted."""
        error = getattr(result, "error_in_exec", None)
        # A cell with `async for` is cancelled, as its event loop goes on.
        if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "CancelledError":
            for close in filter(None, [each() for each in self.used]):
                close(KeyboardInterrupt("the notebook's cell was interrupted"))
            for bar in self.bars.values():
                bar.close()
        self.begin()


_watches = weakref.WeakKeyDictionary[_Shell, _Watch]()


def iterating(close: Close, bar: Progress) -> None:
    """Note that a session is being iterated by the present cell, if there is one.

    Parameters
    ----------
    close : method
        Of the session, which is held weakly.
    bar : Progress
        The session's.
    """
    ipython = sys.modules.get("IPython")
    # A thread of the caller's own is not what an interrupt is meant for.
    if ipython is None or threading.current_thread() is not threading.main_thread():
        return
    shell: _Shell | None = ipython.get_ipython()
    if shell is None:
        return
    watch = _watches.get(shell)
    if watch is None:
        watch = _watches[shell] = _Watch(shell)
    watch.used.add(weakref.WeakMethod(close))
    watch.bars[id(bar)] = bar
