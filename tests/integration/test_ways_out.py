"""Every way out of a session: each live job gets one stop and one clear, a finished one only its clear."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fault_kit import ended_early, interrupt_after, live_jobs
from server_kit import until
from tqdm import tqdm

from predsession import ConnectError, JobTimeoutError, PredictionSession
from predsession.jobs.receiver import Receiver
from predsession.jobs.submit import Submitter
from predsession.launch import EmbeddedServer
from predsession.server.models.pixels import box_number
from predsession.testing import Fault, FaultyServer, RunningServer

Numbered = Callable[..., list[Path]]

MANY = 200
"""Pictures of a run that is to be left: more than wait here to be taken, so that it is not over before."""
SUBMIT, POP = "inference_batch_async", "pop_inference_results"
STOP, CLEAR = "stop_inference", "clear_inference_request"


def calls_by_job(faulty: FaultyServer, endpoint: str) -> Counter[str]:
    """Return how often each job was named in calls to an endpoint."""
    bodies = [json.loads(call.body) for call in faulty.calls(endpoint)]
    return Counter(body["state"]["inference_request_uuid"] for body in bodies)


def check_ended(faulty: FaultyServer) -> None:
    """Check that every job that was started got what it should, once."""
    stops, clears = calls_by_job(faulty, STOP), calls_by_job(faulty, CLEAR)
    # An upload that was broken off on the way out started nothing.
    whole = [call for call in faulty.calls(SUBMIT) if len(call.body) == int(call.headers["content-length"])]
    started = len(whole)
    assert sum(clears.values()) == len(clears) == started, "each job one clear"
    assert set(stops) <= set(clears)
    assert all(count == 1 for count in stops.values()), "no job two stops"
    assert len(stops) >= 1, "the run was to end before its time"
    until(lambda: not live_jobs(faulty.target), "the server's last job to end")


class Left:
    """What this process holds: checked to be what it was, once a session is over."""

    def __init__(self) -> None:
        gc.collect()
        self._before = self._held()

    @staticmethod
    def _held() -> Counter[str]:
        """Return open sockets and deleted files (temporary ones), and our threads and bars."""
        links = []
        for each in Path("/proc/self/fd").iterdir():
            with suppress(FileNotFoundError):  # closed since it was listed
                links.append(str(each.readlink()))
        held = Counter(link.partition(":")[0] for link in links if "socket" in link or "deleted" in link)
        held["threads"] = sum(each.name.startswith("predsession-") for each in threading.enumerate())
        held["bars"] = len(tqdm._instances)
        return held

    def check(self) -> None:
        """Wait until everything is as it was: the other end's sockets close a moment later."""
        until(lambda: self._held() <= self._before, f"{self._held() - self._before} to be let go of")


def leave(way: str, session: PredictionSession) -> None:
    """Leave a session that has only begun."""
    if way == "with":
        with session:
            next(session)
    elif way == "exception":
        with pytest.raises(ZeroDivisionError), session:
            for _ in session:
                raise ZeroDivisionError
    elif way == "break":
        for _ in session:
            break
        session.close()
    else:
        next(session)
        session.stop()


@pytest.mark.parametrize("way", ["with", "break", "exception", "stop"])
def test_a_session_that_is_left(either: str, numbered: Numbered, way: str) -> None:
    """By the end of its block, by close, by an exception, by stop."""
    with FaultyServer(either) as faulty:
        session = PredictionSession(faulty.url, numbered(MANY), delay=0.03)
        leave(way, session)
        check_ended(faulty)
        assert session.report().cleanup_failures == 0
        session.close()


def test_a_session_that_is_forgotten(either: str, numbered: Numbered) -> None:
    """`del` is enough: nothing else holds it."""
    with FaultyServer(either) as faulty:
        session = PredictionSession(faulty.url, numbered(MANY), delay=0.03)
        next(session)
        del session
        gc.collect()
        check_ended(faulty)


def test_a_finished_session_gets_only_clears(either: str, numbered: Numbered) -> None:
    """There is nothing left to stop."""
    with FaultyServer(either) as faulty:
        assert len(list(PredictionSession(faulty.url, numbered(40)))) == 40
        assert not faulty.calls(STOP)
        assert len(faulty.calls(CLEAR)) == len(faulty.calls(SUBMIT)) > 1


class BrokenBar(tqdm):
    """A bar that fails when it moves, or when it is closed."""

    fails = "update"

    def update(self, n: float | None = 1) -> bool | None:
        """Move."""
        if self.fails == "update":
            raise ZeroDivisionError("the bar")
        return super().update(n)

    def close(self) -> None:
        """End."""
        super().close()
        if self.fails == "close" and not self.__dict__.setdefault("told", False):
            self.told = True
            raise ZeroDivisionError("the bar's end")


class BarThatWillNotClose(BrokenBar):
    """Fails when it is closed."""

    fails = "close"


def _no_bar(**_: object) -> tqdm:
    raise ZeroDivisionError("no bar")


@pytest.mark.parametrize("bar", [BrokenBar, _no_bar], ids=["moving", "making"])
def test_a_callback_that_raises(either: str, numbered: Numbered, bar: Any) -> None:
    """The caller's own bar fails: its error is raised, and everything is ended."""
    paths = numbered(MANY)
    with FaultyServer(either) as faulty:
        left = Left()
        with (
            pytest.raises(ZeroDivisionError),
            PredictionSession(faulty.url, paths, delay=0.03, show_progress=True, tqdm=bar) as session,
        ):
            list(session)
        left.check()
        check_ended(faulty)


def test_the_first_error_stays_the_one_that_is_raised(ours: str, numbered: Numbered) -> None:
    """What goes wrong while closing, here and on the server, is a note on it."""
    faults = [Fault("status", STOP, times=99, status=400, body=b'{"detail": "no stopping"}')]
    with FaultyServer(ours, faults) as faulty:
        left = Left()
        with (
            pytest.raises(KeyError, match="mine") as caught,
            PredictionSession(
                faulty.url, numbered(MANY), delay=0.03, show_progress=True, tqdm=BarThatWillNotClose
            ) as session,
        ):
            for _ in session:
                raise KeyError("mine")
        left.check()
    notes = " ".join(caught.value.__notes__)
    assert "the bar's end" in notes
    assert "no stopping" in notes
    assert session.report().cleanup_failures == len(faulty.calls(STOP)) >= 1


@pytest.mark.parametrize("error", [MemoryError, SystemExit])
@pytest.mark.parametrize("where", [(Receiver, "_settle_slot"), (Submitter, "send")], ids=["receive", "send"])
def test_a_thread_that_dies(
    either: str,
    numbered: Numbered,
    monkeypatch: pytest.MonkeyPatch,
    where: tuple[type, str],
    error: type[BaseException],
) -> None:
    """Whatever ends a thread of ours is raised to the caller, and everything is ended."""
    kind, name = where
    original, calls = getattr(kind, name), iter(range(1000))

    def dying(*arguments: Any, **keywords: Any) -> Any:
        if next(calls) == 2:
            raise error("injected")
        return original(*arguments, **keywords)

    monkeypatch.setattr(kind, name, dying)
    paths = numbered(MANY)
    with FaultyServer(either) as faulty:
        left = Left()
        with (
            pytest.raises(error, match="injected"),
            PredictionSession(faulty.url, paths, delay=0.01) as session,
        ):
            list(session)
        left.check()
        clears = calls_by_job(faulty, CLEAR)
        assert sum(clears.values()) == len(clears) == session.report().jobs
        until(lambda: not live_jobs(either), "the server's last job to end")


def test_a_process_that_is_killed(numbered: Numbered) -> None:
    """SIGKILL leaves nobody to clean up: the server's lease ends the jobs."""
    folder = numbered(60)[0].parent
    limits = ["--limit-lease", "1.5", "--limit-sweep", "0.1"]
    with RunningServer("pixels", arguments=limits) as server:
        # The second job has eight pictures, and so takes longer than the lease lasts.
        script = f"""
import os, time
from predsession import PredictionSession
session = PredictionSession({server.url!r}, {str(folder)!r}, delay=0.5, batch_size=1)
next(session)
while session.report().jobs < 2:
    time.sleep(0.01)
os.kill(os.getpid(), 9)
"""
        done = subprocess.run([sys.executable, "-c", script], timeout=60, check=False)
        assert done.returncode == -signal.SIGKILL
        until(lambda: ended_early(server.url), "the lease to end the job")
        assert not live_jobs(server.url)


@pytest.mark.parametrize("seconds", [0.0, 0.3])
def test_ctrl_c_at_any_moment(either: str, numbered: Numbered, seconds: float) -> None:
    """While it opens, runs or closes; tests/soak has fifty moments."""
    interrupt_after(seconds, either, numbered(30)[0].parent)


@pytest.mark.parametrize("when", ["exit", "exception", "fork"])
def test_a_process_that_ends(either: str, numbered: Numbered, when: str) -> None:
    """The interpreter ends with a session open; a forked child that ends leaves its parent's alone."""
    folder = numbered(MANY)[0].parent
    last_words = {
        "exit": "",
        "exception": "raise SystemExit(0)",
        "fork": "import os\nif not os.fork():\n    raise SystemExit(0)\nos.wait()\nnext(session)",
    }[when]
    with FaultyServer(either) as faulty:
        script = f"""
from predsession import PredictionSession
session = PredictionSession({faulty.url!r}, {str(folder)!r}, delay=0.03)
next(session)
{last_words}
"""
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        check_ended(faulty)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_command(either: str, numbered: Numbered, number: signal.Signals) -> None:
    """Ctrl-C, SIGTERM, SIGHUP: 130, 143, 129; the server's job ended, no traceback."""
    folder = numbered(MANY)[0].parent
    with FaultyServer(either) as faulty:
        command = [sys.executable, "-m", "predsession", "predict", str(folder), "--url", faulty.url, "--json"]
        process = subprocess.Popen(
            [*command, "--set", "delay=0.05"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        _, words = process.communicate(timeout=30)
        check_ended(faulty)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}[number]
    assert b"Traceback" not in words


def test_ctrl_c_with_an_embedded_server(numbered: Numbered) -> None:
    """A terminal interrupts the whole group; the server is not in it, and is there to end the job."""
    environment = {name: value for name, value in os.environ.items() if name != "PREDSESSION_URL"}
    command = [sys.executable, "-m", "predsession", "predict", str(numbered(400)[0].parent), "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, words = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"failed" not in words
    assert b"ended" not in words


@pytest.mark.parametrize("where", ["submit", "pop", "loop"])
def test_ctrl_c_in_a_script(either: str, numbered: Numbered, where: str) -> None:
    """In the submit, in a poll, in the loop's body: the job is ended, the interrupt is seen."""
    faults = {
        "submit": [Fault("stall", SUBMIT, seconds=1.0)],
        "pop": [Fault("stall", POP, seconds=1.0, times=99)],
        "loop": [],
    }[where]
    with FaultyServer(either, faults) as faulty:
        script = f"""
import threading, time
from predsession import PredictionSession
try:
    with PredictionSession({faulty.url!r}, {str(numbered(MANY)[0].parent)!r}, delay=0.05) as session:
        print("open", flush=True)
        for prediction in session:
            print(prediction.index, flush=True)
            time.sleep(0.1)
except KeyboardInterrupt:
    print("interrupted", threading.active_count())
"""
        process = subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        if where == "loop":
            assert process.stdout.readline() == "0\n"
        else:
            until(lambda: faulty.calls(SUBMIT if where == "submit" else POP), f"the {where}")
        process.send_signal(signal.SIGINT)
        out, words = process.communicate(timeout=60)
        assert out.splitlines()[-1:] == ["interrupted 1"], out + words
        check_ended(faulty)


def test_a_server_that_is_gone_for_a_while(ours: str, numbered: Numbered) -> None:
    """Connections are refused in the middle of the run: tried again, nothing lost."""
    first = FaultyServer(ours)
    # More than wait here to be taken: the run cannot be over before the server goes.
    with PredictionSession(first.url, numbered(MANY)) as session, socket.socket() as place:
        got = [box_number(session.next().boxes[0])]
        first.close()
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(("127.0.0.1", first.port))  # and not listening: no other may have it meanwhile
        seconds: list[FaultyServer] = []

        def come_back() -> None:
            until(lambda: session.report().retries.get("connect"), "the refusal")
            seconds.append(FaultyServer(ours, port=first.port))

        coming = threading.Thread(target=come_back)
        coming.start()
        got += [box_number(one.boxes[0]) for one in session]
        coming.join()
        assert session.report().retries["connect"] > 0
    assert got == list(range(MANY))
    seconds[0].close()


def test_a_server_that_does_not_come_back(
    ours: str, numbered: Numbered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is the connection's, not that of the clean-up, which is a note on it."""

    class Api:
        token = None
        retry_count = 3

    faulty = FaultyServer(ours)
    with PredictionSession(faulty.url, numbered(MANY), api=Api()) as session:
        next(session)
        faulty.close()
        with pytest.raises(ConnectError) as caught:
            list(session)
    assert any("while cleaning up" in note for note in caught.value.__notes__)


def test_no_file_or_socket_is_left(ours: str, numbered: Numbered) -> None:
    """After many sessions the process has as many open descriptors as after one."""
    paths = numbered(3)

    def run() -> int:
        with PredictionSession(ours, paths) as session:
            list(session)
        return len(list(Path("/proc/self/fd").iterdir()))

    first = run()
    assert [run() for _ in range(5)][-1] <= first


def test_a_frozen_server_holds_nobody_up(numbered: Numbered) -> None:
    """It is stopped (SIGSTOP) in the middle: our deadline passes, and closing takes seconds, not minutes."""
    server = EmbeddedServer(["--model", "pixels"])
    try:
        with PredictionSession(server.url, numbered(60), delay=0.05, idle_timeout=2.0) as session:
            next(session)
            os.kill(server.pid, signal.SIGSTOP)
            with pytest.raises(JobTimeoutError, match="idle_timeout"):
                list(session)
        assert session.report().cleanup_failures > 0
    finally:
        os.kill(server.pid, signal.SIGCONT)
        server.stop()
    # An upload under way is not waited for while the server is silent; it ends with the server.
    for thread in threading.enumerate():
        if thread.name.startswith("predsession-"):
            thread.join(10.0)
            assert not thread.is_alive()


def test_a_pause_longer_than_the_lease(numbered: Numbered) -> None:
    """A notebook between two cells: the session keeps its jobs alive, and goes on where it stood."""
    with (
        RunningServer("pixels", arguments=["--limit-lease", "3.0", "--limit-sweep", "0.2"]) as server,
        PredictionSession(server.url, numbered(MANY)) as session,
    ):
        got = [box_number(next(session).boxes[0])]
        time.sleep(4.0)
        got += [box_number(one.boxes[0]) for one in session]
        assert session.report().resent_items == 0
    assert got == list(range(MANY))
