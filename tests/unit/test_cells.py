"""Cells of a notebook that end by an interrupt: what is closed with them, and what is not.

The shell does what IPython's does; a real kernel is elsewhere.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import os
import signal
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator

import pytest

from predsession import cells


class Bar:
    """A bar that counts how often it was closed."""

    def __init__(self) -> None:
        self.closed = 0

    def update(self, progress: object) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Count."""
        self.closed += 1


class Session:
    """What is iterated; something may happen while it closes."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.bar = Bar()
        self.error: BaseException | None = None
        self._meanwhile = meanwhile

    def iterate(self) -> None:
        """Do what each step of an iteration does."""
        cells.iterating(self.close, self.bar)

    def close(self, error: BaseException) -> None:
        """Close, as a session that has a job on the server does."""
        self._meanwhile()
        self.error = error


class Events:
    """Calls those who want to be told, as IPython does."""

    def __init__(self) -> None:
        self.functions: dict[str, list[Callable[..., None]]] = {"pre_run_cell": [], "post_run_cell": []}

    def register(self, event: str, function: Callable[..., None]) -> None:
        """Have a function called."""
        self.functions[event].append(function)

    def trigger(self, event: str, *args: object) -> None:
        """Call them."""
        for function in self.functions[event]:
            function(*args)


class Shell:
    """Runs cells: functions, or coroutine functions, which get a task of their own."""

    def __init__(self) -> None:
        self.events = Events()
        self.result = types.SimpleNamespace(error_in_exec=None)

    def run_code(self, cell: Callable[[], object]) -> None:
        """Run a cell; its error is in the result, not raised."""
        try:
            cell()
        except BaseException as error:
            self.result.error_in_exec = error

    def run_cell(self, cell: Callable[[], object]) -> None:
        """Run a cell, and tell of it."""
        self.result = types.SimpleNamespace(error_in_exec=None)
        self.events.trigger("pre_run_cell", None)
        self.run_code(cell)
        self.events.trigger("post_run_cell", self.result)

    async def await_cell(self, cell: Callable[[], object], *, interrupt: bool) -> None:
        """Run a cell that awaits; interrupt it as a kernel does, by cancelling its task."""
        result = types.SimpleNamespace(error_in_exec=None)

        async def run_code(self: Shell) -> None:
            try:
                await cell()
            except BaseException as error:
                result.error_in_exec = error

        async def run() -> None:
            self.events.trigger("pre_run_cell", None)
            await run_code(self)

        task = asyncio.ensure_future(run())
        await asyncio.sleep(0.01)
        if interrupt:
            task.cancel()
        await task
        self.events.trigger("post_run_cell", result)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """A shell that is IPython's while the test runs, and is followed from before its first cell."""
    made = Shell()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: made))
    monkeypatch.delattr(sys, "last_value", raising=False)
    assert cells._watch() is not None
    yield made
    cells._present.set(None)


def interrupted() -> None:
    """End as a cell that is interrupted does."""
    raise KeyboardInterrupt


def test_an_interrupted_cell_closes_what_it_iterated(shell: Shell) -> None:
    """Sessions and their bars; a session that is gone leaves a bar, which is closed as well."""
    session, gone, bar = Session(), Session(), Bar()

    def cell() -> None:
        session.iterate()
        cells.iterating(gone.close, bar)
        session.iterate()
        interrupted()

    shell.run_cell(cell)
    assert isinstance(session.error, KeyboardInterrupt)
    assert (session.bar.closed, bar.closed) == (1, 1)
    lost = Session()
    lost_bar = lost.bar

    def other() -> None:
        nonlocal lost
        lost.iterate()
        del lost
        gc.collect()
        interrupted()

    shell.run_cell(other)
    assert lost_bar.closed == 1


@pytest.mark.parametrize("error", [None, ValueError(), concurrent.futures.CancelledError()])
def test_a_cell_that_ends_otherwise_closes_nothing(shell: Shell, error: BaseException | None) -> None:
    """Neither its end nor an error does, whatever it is called."""
    session = Session()

    def cell() -> None:
        session.iterate()
        if error is not None:
            raise error

    shell.run_cell(cell)
    assert session.error is None
    shell.run_cell(interrupted)
    assert session.error is None, "it belongs to the cell before"


def test_the_cell_in_which_the_package_is_imported_counts(shell: Shell) -> None:
    """Nobody has told of its beginning; a shell that is there and runs no cell is no cell."""
    del cells._watches[shell]
    shell.events = Events()
    session, outside = Session(), Session()

    def cell() -> None:
        session.iterate()
        interrupted()

    shell.run_code(cell)
    shell.events.trigger("post_run_cell", shell.result)
    assert session.error is not None
    outside.iterate()
    watch = cells._watches[shell]
    assert watch.cell is None
    bar = weakref.ref(outside.bar)
    del outside
    gc.collect()
    assert bar() is None, "nothing is kept where no cell runs"


def test_a_cell_within_a_cell(shell: Shell) -> None:
    """As %%capture runs one: each has its own, and the outer one goes on with what it had."""
    inner, outer = Session(), Session()

    def cell() -> None:
        outer.iterate()
        shell.run_cell(inner.iterate)
        outer.iterate()
        interrupted()

    shell.run_cell(cell)
    assert inner.error is None
    assert outer.error is not None


def test_an_interrupt_that_was_only_shown(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """%run shows the error of its script, and the cell has none: it counts, once."""
    session, later = Session(), Session()

    def cell() -> None:
        session.iterate()
        monkeypatch.setattr(sys, "last_value", KeyboardInterrupt(), raising=False)

    shell.run_cell(cell)
    assert session.error is not None
    shell.run_cell(later.iterate)
    assert later.error is None


def test_tasks_belong_to_the_cell_that_made_them(shell: Shell) -> None:
    """One of a cell before is left alone by an interrupt; those of the cell itself are closed with it."""
    before, own = Session(), Session()

    async def consume(session: Session) -> None:
        while True:
            session.iterate()
            await asyncio.sleep(0)

    async def notebook() -> None:
        tasks = []

        async def first() -> None:
            tasks.append(asyncio.create_task(consume(before)))
            await asyncio.sleep(0)

        async def second() -> None:
            await asyncio.gather(consume(own))

        await shell.await_cell(first, interrupt=False)
        await shell.await_cell(second, interrupt=True)
        tasks[0].cancel()

    asyncio.run(notebook())
    assert before.error is None
    assert own.error is not None


def test_a_task_that_the_cell_cancelled_itself(shell: Shell) -> None:
    """Awaiting it ends the cell with an error of the same name as an interrupt has; nothing is closed."""
    session = Session()

    async def consume() -> None:
        session.iterate()
        await asyncio.sleep(10)

    async def cell() -> None:
        task = asyncio.create_task(consume())
        await asyncio.sleep(0)
        task.cancel()
        await task

    asyncio.run(shell.await_cell(cell, interrupt=False))
    assert session.error is None


def test_a_second_interrupt_leaves_nothing_open(shell: Shell) -> None:
    """Pressed again while sessions are being closed, all are closed all the same, and at one time."""
    pressed: list[int] = []
    at_one_time = threading.Barrier(5, lambda: os.kill(os.getpid(), signal.SIGINT))
    sessions = [Session(lambda: at_one_time.wait(30)) for _ in range(5)]

    def cell() -> None:
        for session in sessions:
            session.iterate()
        interrupted()

    def note(number: int, _: object) -> None:  # in place of an error, which would end all tests
        pressed.append(number)

    signal.signal(signal.SIGINT, note)
    shell.run_cell(cell)
    assert all(isinstance(session.error, KeyboardInterrupt) for session in sessions)
    assert signal.getsignal(signal.SIGINT) is note
    assert pressed == []


def test_a_bar_that_fails_keeps_nothing_open(shell: Shell) -> None:
    """The others are closed."""

    class Broken(Bar):
        def close(self) -> None:
            raise RuntimeError

    first, second = Session(), Session()
    first.bar = Broken()

    def cell() -> None:
        first.iterate()
        second.iterate()
        interrupted()

    shell.run_cell(cell)
    assert first.error is not None
    assert second.error is not None
    assert second.bar.closed == 1


def test_other_threads_are_not_the_cell(shell: Shell) -> None:
    """What a thread iterates is not what an interrupt is meant for."""
    session = Session()

    def cell() -> None:
        thread = threading.Thread(target=session.iterate)
        thread.start()
        thread.join()
        interrupted()

    shell.run_cell(cell)
    assert session.error is None


def broken() -> None:
    """Stand in for a module that is no IPython."""
    raise RuntimeError("no shell")


@pytest.mark.parametrize(
    "module", [None, types.ModuleType("IPython"), types.SimpleNamespace(get_ipython=broken), 5]
)
def test_a_module_of_that_name_changes_nothing(monkeypatch: pytest.MonkeyPatch, module: object) -> None:
    """One that is being imported by another thread, or is another: iterating goes on."""
    monkeypatch.setitem(sys.modules, "IPython", module)
    Session().iterate()
