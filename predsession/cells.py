"""Cells of a notebook that are interrupted: what they were iterating is closed with them.

An interrupt that comes while a session waits is raised there, and closes it. One that comes in the body of
the loop, or while ``async for`` waits, reaches no code of ours: the session would go on, job and all, with a
bar that stands still. IPython tells how each cell ended; outside of it nothing here does anything.

Invariant: a session is closed with the cell that iterates it, never with another: what runs for an earlier
cell, as a task of the notebook's event loop, belongs to that one.

Invariant: nothing here raises where a session is iterated.
"""

from __future__ import annotations

import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import FrameType
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


class _Cell:
    """What one cell has iterated: sessions, which may be gone when it ends, and their bars."""

    def __init__(self, outer: _Cell | None = None) -> None:
        self.outer = outer
        self._task = _task()
        self._shown = _shown()
        self._used: dict[int, tuple[weakref.WeakMethod[Close], Progress]] = {}

    def note(self, close: Close, bar: Progress) -> None:
        """Remember a session, in the order in which they are first iterated."""
        place = id(getattr(close, "__self__", close))
        known = self._used.get(place)
        if known is None or known[0]() is None:
            self._used[place] = weakref.WeakMethod(close), bar

    def was_interrupted(self, error: BaseException | None) -> bool:
        """Whether it ended by an interrupt; what IPython gives as its error, or nothing, if it showed one."""
        if isinstance(error, KeyboardInterrupt):
            return True
        # A cell with `await` is cancelled, as its event loop goes on. Errors of that name have other reasons
        # as well: a task that the cell cancelled itself, and then awaited.
        if type(error).__name__ == "CancelledError" and self._task is not None:
            return self._task.cancelling() > 0
        shown = _shown()  # by %run, whose cell has no error then, or while a second interrupt came
        return error is None and isinstance(shown, KeyboardInterrupt) and shown is not self._shown

    def close(self) -> None:
        """Close what was iterated: all at once, so that none waits for a server that hangs with another."""
        for _, bar in self._used.values():
            with suppress(Exception):  # a bar may be the caller's own
                bar.close()
        closes = [close for each, _ in self._used.values() if (close := each())]
        threads = [threading.Thread(target=_interrupt, args=(close,)) for close in closes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


_present: ContextVar[_Cell | None] = ContextVar("_present", default=None)
"""The cell that the running code belongs to; tasks that a cell makes take it along."""


class _Watch:
    """Follows the cells of a shell."""

    def __init__(self, shell: _Shell) -> None:
        self._shell = weakref.ref(shell)
        self.cell: _Cell | None = None
        if _runs_cell(shell):
            self.begin()
        shell.events.register("pre_run_cell", self.begin)
        shell.events.register("post_run_cell", self.end)

    def begin(self, *_: object) -> None:
        """Begin with a cell; one that runs within another, as of %%capture, has that one around it."""
        if _on_main_thread():  # subshells have threads of their own, where no interrupt comes
            self.cell = _Cell(self.cell if _runs_cell(self._shell()) else None)
            _present.set(self.cell)

    def end(self, result: object = None) -> None:
        """Close what the cell was iterating, if it was interrupted."""
        cell = self.cell
        if cell is None or not _on_main_thread():
            return
        with _undisturbed():
            self.cell = cell.outer
            _present.set(self.cell)
            if cell.was_interrupted(getattr(result, "error_in_exec", None)):
                cell.close()


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
    # A thread of the caller's own is not what an interrupt is meant for.
    if "IPython" not in sys.modules or not _on_main_thread():
        return
    with suppress(Exception):  # a module of that name that is none, or is being imported
        watch = _watch()
        if watch is not None and watch.cell is not None and _present.get() is watch.cell:
            watch.cell.note(close, bar)


def _watch() -> _Watch | None:
    """Return who follows the cells; None where there is no shell."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell: _Shell | None = get_shell() if callable(get_shell) else None
    if shell is None:
        return None
    watch = _watches.get(shell)
    if watch is None:
        watch = _watches[shell] = _Watch(shell)
    return watch


def _runs_cell(shell: _Shell | None) -> bool:
    """Whether a cell's code is what has called; a shell that is there may run none, as in a script."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "run_code" and frame.f_locals.get("self") is shell:
            return True
        frame = frame.f_back
    return False


def _on_main_thread() -> bool:
    """Whether this is the thread that interrupts come to."""
    return threading.current_thread() is threading.main_thread()


def _task() -> _Task | None:
    """Return the task that is running, if an event loop is."""
    asyncio = sys.modules.get("asyncio")
    with suppress(RuntimeError):  # no loop is running
        return asyncio.current_task() if asyncio is not None else None
    return None


class _Task(Protocol):
    """The part of asyncio's task that is used here."""

    def cancelling(self) -> int:
        """Return how often it was asked to end."""


def _shown() -> BaseException | None:
    """Return the error that was shown last."""
    return getattr(sys, "last_value", None)


def _interrupt(close: Close) -> None:
    """Close a session; its own method notes on the error what goes wrong."""
    with suppress(Exception):
        close(KeyboardInterrupt("the notebook's cell was interrupted"))


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let further interrupts wait for nothing: half a cleaning leaves jobs on the server."""
    before = signal.getsignal(signal.SIGINT)
    if before is None:  # set by another language: it cannot be put back
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


with suppress(Exception):  # the cell that imports this is the first that may make tasks
    if "IPython" in sys.modules and _on_main_thread():
        _watch()
