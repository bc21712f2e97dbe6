"""How a stream ends: stop(), close(), with; from threads, from signal handlers, within itself, forgotten."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from server_kit import until
from stream_kit import KINDS, Recorded, double, drain, ids, named, numbered, samples

from predsession.errors import (
    SessionBusyError,
    SessionClosedError,
)
from predsession.stream import StreamSession


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where results go: the quicker kind."""
    return tmp_path / "results.parquet"


def test_one_thread_in_process(store: Path) -> None:
    """process() from a second thread is refused; the first is not disturbed."""
    inside, leave = threading.Event(), threading.Event()

    def model(batch: Any) -> Any:
        inside.set()
        assert leave.wait(10)
        return double(batch)

    one = {"object_id": ["a"], "x": np.ones((1, 3), np.float32)}
    with StreamSession(model, store=store) as session:
        first = threading.Thread(target=session.process, args=(one,))
        first.start()
        assert inside.wait(10)
        with pytest.raises(SessionBusyError, match="another thread"):
            session.process(one)
        leave.set()
        first.join()
    assert ids(store) == ["a"]


def test_close_within(store: Path) -> None:
    """close() from within the model is refused, and says that stop() is for that; stop() works."""

    def model(batch: Any) -> Any:
        with pytest.raises(SessionBusyError, match=r"stop\(\)"):
            session.close()
        session.stop()
        return double(batch)

    with StreamSession(model, numbered(10), store, batch_size=2) as session:
        assert drain(session) == named(2)


def test_close_finishes_the_batch(store: Path) -> None:
    """close() from another thread waits for the batch in hand, which is stored; the loop then ends."""
    inside, leave = threading.Event(), threading.Event()

    def model(batch: Any) -> Any:
        inside.set()
        assert leave.wait(10)
        return double(batch)

    source = Recorded(samples(10))
    session = StreamSession(model, source, store, batch_size=2)
    came: list[str] = []
    loop = threading.Thread(target=lambda: came.extend(drain(session)))
    loop.start()
    assert inside.wait(10)
    closing = threading.Thread(target=session.close)
    closing.start()
    time.sleep(0.1)
    assert closing.is_alive()
    leave.set()
    closing.join()
    loop.join()
    assert came == ids(store) == named(2)
    assert (len(source.positions), source.closes) == (2, 1)


def test_close_while_waiting(store: Path) -> None:
    """close() and stop() from another thread end a loop that waits for samples."""
    for end in (StreamSession.close, StreamSession.stop):
        source = Recorded(ends=False)
        session = StreamSession(double, source, store)
        loop = threading.Thread(target=drain, args=(session,))
        loop.start()
        assert source.waited_for.wait(10)
        end(session)
        loop.join(10)
        assert not loop.is_alive()
        session.close()


def test_one_thread_asks(store: Path) -> None:
    """Two loops at once over one session are refused."""
    source = Recorded(ends=False)
    session = StreamSession(double, source, store)
    loop = threading.Thread(target=drain, args=(session,))
    loop.start()
    assert source.waited_for.wait(10)
    with pytest.raises(SessionBusyError, match="asking the source"):
        next(iter(session))
    session.close()
    loop.join(10)


def test_stop_in_a_signal_handler(store: Path) -> None:
    """stop() in a signal handler, again and again, wherever it breaks in: the batch in hand is finished."""

    def model(batch: Any) -> Any:
        os.kill(os.getpid(), signal.SIGUSR1)
        return double(batch)

    with StreamSession(model, numbered(100), store, batch_size=3) as session:
        before = signal.signal(signal.SIGUSR1, lambda *_: session.stop())
        try:
            assert drain(session) == named(3)
        finally:
            signal.signal(signal.SIGUSR1, before)
    assert ids(store) == named(3)


def test_stop_before_and_between(store: Path) -> None:
    """After stop() nothing more is taken, also before the first batch; process() still works."""
    source = Recorded(samples(4))
    with StreamSession(double, source, store, batch_size=2) as session:
        session.peek()
        session.stop()
        session.stop()
        assert drain(session) == []
        session.process({"object_id": ["z"], "x": np.ones((1, 3), np.float32)})
    assert ids(store) == ["z"]
    assert source.positions == []


def test_stop_gives_what_waits(store: Path) -> None:
    """A batch that is not full yet when stop() comes is processed: nothing that was taken is left lying."""
    source = Recorded(samples(2), ends=False)
    session = StreamSession(double, source, store, flush_after=100)

    def stop() -> None:
        source.waited_for.wait(30)
        session.stop()

    stopping = threading.Thread(target=stop)
    stopping.start()
    assert drain(session) == named(2)
    stopping.join()
    assert session.close().ids() == named(2)


def test_close_with_a_suspended_iterator(store: Path) -> None:
    """close() ends all although an iterator is not at its end; going on with that ends it."""
    source = Recorded(samples(6))
    session = StreamSession(double, source, store, batch_size=2)
    loop = iter(session)
    next(loop)
    assert session.close().ids() == named(2)
    assert source.closes == 1
    assert list(loop) == []
    assert session.close() is session.dataset
    with pytest.raises(SessionClosedError):
        iter(session)
    with pytest.raises(SessionClosedError, match="open another"):
        session.process({"object_id": ["a"]})


def test_iterators(store: Path) -> None:
    """A second iterator goes on where the first was left; nothing is doubled."""
    with StreamSession(double, numbered(6), store, batch_size=2) as session:
        next(iter(session))
        assert drain(session) == named(4, 2)
        assert drain(session) == []


class Closing(Recorded):
    """A source that cannot be closed."""

    def close(self) -> None:
        """Fail."""
        super().close()
        raise OSError("cannot be closed")


def test_first_error_is_kept(store: Path) -> None:
    """If closing fails too, the first error is the one that is seen; alone, it is seen itself."""
    with pytest.raises(ZeroDivisionError), StreamSession(double, Closing(samples(2)), store) as session:
        for _ in session:
            1 / 0  # noqa: B018
    assert session.close().ids() == named(2), "everything else was closed"
    with pytest.raises(OSError, match="cannot be closed"), StreamSession(double, Closing(), store):
        pass


def test_close_within_close(store: Path) -> None:
    """close() in a signal handler that breaks into close() is refused; it is no deadlock."""

    class Signalled(Recorded):
        def close(self) -> None:
            super().close()
            os.kill(os.getpid(), signal.SIGUSR1)

    session = StreamSession(double, Signalled(samples(2)), store)
    refused = []

    def handler(*_: object) -> None:
        with pytest.raises(SessionBusyError):
            session.close()
        refused.append(1)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        drain(session)
        assert session.close().ids() == named(2)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert refused


def test_sources_of_the_session_in_threads(tmp_path: Path) -> None:
    """Two sessions in two threads of one process may write to one store: each object is there once."""
    for kind in KINDS:
        store = tmp_path / f"both.{kind}"
        sessions = [StreamSession(double, numbered(40, first), store, batch_size=3) for first in (0, 20)]
        threads = [threading.Thread(target=drain, args=(each,)) for each in sessions]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for session in sessions:
            session.close()
        assert sorted(ids(store)) == sorted(named(60))


def test_forgotten(store: Path) -> None:
    """A session that is forgotten closes its source, and leaves no thread and no open file."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    source = Recorded(samples(9))
    session = StreamSession(double, source, store, batch_size=2)
    next(iter(session))
    other = StreamSession(double, numbered(10**6), store)
    next(iter(other))
    del session, other
    gc.collect()
    assert source.closes == 1
    until(lambda: not [each for each in threading.enumerate() if "predsession" in each.name], "no thread")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


class Signalled:
    """A lock; a signal comes right after it was taken for the n-th time, and before it is given back."""

    def __init__(self, lock: Any, late: int) -> None:
        self._lock, self._left = lock, late

    def acquire(self, *args: Any, **keywords: Any) -> bool:
        """Take it."""
        got = bool(self._lock.acquire(*args, **keywords))
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGUSR1)
        return got

    def release(self) -> None:
        """Give it back."""
        if self._left == 0:
            self._left -= 1
            os.kill(os.getpid(), signal.SIGUSR1)
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


@pytest.mark.parametrize("late", range(1, 10))
def test_close_in_a_signal_handler_anywhere(store: Path, late: int) -> None:
    """close() in a signal handler that breaks in wherever it likes ends, or is refused; it is no deadlock."""
    session = StreamSession(double, numbered(12), store, batch_size=2)
    session._lock = Signalled(session._lock, late)
    calls = []

    def handler(*_: object) -> None:
        calls.append(1)
        session.close()

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with contextlib.suppress(SessionClosedError):
            drain(session)
        dataset = session.close()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert dataset.ids() == named(min(2 * (late - 1), 12))
    assert bool(calls) == (late < 8)
