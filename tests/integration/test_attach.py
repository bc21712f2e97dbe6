"""Going on with jobs from another process: what the first had not dealt with comes, nothing else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import held_numbers
import pytest
from number_clips import write_numbers
from server_kit import until

from predsession import (
    JobExpiredError,
    Prediction,
    PredictionSession,
    ResultsGoneWarning,
    SourceError,
)
from predsession.server.models.pixels import box_number
from predsession.testing import FaultyServer, RunningServer
from predsession.wire import calls
from predsession.wire.calls import Call

Numbered = Callable[..., list[Path]]
Ask = Callable[[str, Call], dict[str, list[dict[str, object]]]]

LEFT = """
import os, signal, sys
from predsession import PredictionSession
session = PredictionSession(sys.argv[1], sys.argv[2], delay=0.01)
print(session.session_id, flush=True)
for one in session:
    print(one.index, flush=True)
    if one.index == 4:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def live(ask: Ask, url: str, session_id: str) -> list[dict[str, object]]:
    """Return the jobs of a session that the server lists."""
    return ask(url, calls.list_jobs(session_id))["requests"]


@pytest.fixture
def killed(ours: str, numbered: Numbered) -> tuple[str, list[int]]:
    """A session whose process was killed, and the indexes it had shown."""
    command = [sys.executable, "-c", LEFT, ours, str(numbered(20)[0].parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        session_id = next(running.stdout).strip()
        shown = [int(line) for line in running.stdout]
    assert running.returncode == -signal.SIGKILL
    return session_id, shown


def begun(session: PredictionSession) -> PredictionSession:
    """Take the first, and wait for the job behind it, of which nothing is taken."""
    assert next(session).index == 0
    until(lambda: session.report().jobs >= 2, "the second job")
    return session


def test_after_a_kill(ours: str, killed: tuple[str, list[int]], ask: Ask) -> None:
    """All that was sent and not dealt with comes, each with its index, and the jobs end."""
    session_id, shown = killed
    with PredictionSession.attach(ours, session_id) as session:
        assert session.session_id == session_id
        got = [(one.index, box_number(one.boxes[0])) for one in session]
    assert all(index == number for index, number in got)
    indexes = [index for index, _ in got]
    assert indexes == list(range(indexes[0], indexes[-1] + 1))
    # What was dealt with after the last poll comes again; nothing is left out.
    assert indexes[0] <= shown[-1] + 1
    assert live(ask, ours, session_id) == []


def test_a_session_that_is_left_on_purpose(ours: str, numbered: Numbered, ask: Ask) -> None:
    """`detach` ends no job; what was not taken here comes there, whatever had arrived."""
    first = PredictionSession(ours, numbered(12), delay=0.01)
    got = [next(first).index for _ in range(3)]
    session_id = first.detach()
    assert live(ask, ours, session_id), "the jobs go on"
    with PredictionSession.attach(ours, session_id) as session:
        rest = [one.index for one in session]
    assert rest == list(range(3, rest[-1] + 1))
    assert got == [0, 1, 2]
    assert live(ask, ours, session_id) == []
    with pytest.raises(JobExpiredError, match="knows no session"):
        next(PredictionSession.attach(ours, session_id))


def test_after_a_pause_longer_than_the_lease(numbered: Numbered, ask: Ask) -> None:
    """Jobs that have ended live on while their results wait here: they can still be left to another."""
    limits = ["--limit-lease", "3.0", "--limit-sweep", "0.2"]
    with RunningServer("pixels", arguments=limits) as server:
        first = PredictionSession(server.url, numbered(20))
        assert next(first).index == 0
        until(first.is_done, "the last result")
        time.sleep(4.0)
        with PredictionSession.attach(server.url, first.detach()) as session:
            assert [one.index for one in session] == list(range(1, 20))


def test_indexes_around_bad_inputs(ours: str, numbered: Numbered) -> None:
    """An input that was never sent leaves a gap, and the others keep their places."""
    paths = numbered(9)
    paths[4].write_bytes(b"")
    first = PredictionSession(ours, paths, on_error="yield", delay=0.01)
    session_id = begun(first).detach()
    with PredictionSession.attach(ours, session_id) as session:
        got = [(one.index, box_number(one.boxes[0])) for one in session]
    assert got
    assert all(index == number for index, number in got)
    assert 4 not in [index for index, _ in got]


def test_one_job(ours: str, numbered: Numbered) -> None:
    """By its uuid; the others of its session are left alone."""
    first = begun(PredictionSession(ours, numbered(12), delay=0.01))
    uuid = first.status().jobs[-1]
    first.detach()
    with PredictionSession.attach(ours, uuid=uuid) as session:
        got = [(one.index, box_number(one.boxes[0])) for one in session]
    assert got
    assert all(index == number for index, number in got)


def test_a_clip(ours: str, tmp_path: Path) -> None:
    """Frames come by their numbers, from the first that was not dealt with."""
    clip = write_numbers(tmp_path / "clip.mp4")
    first = PredictionSession(ours, clip, delay=0.005)
    for _ in range(6):
        next(first)
    session_id = first.detach()
    with PredictionSession.attach(ours, session_id) as session:
        rest = list(session)
        assert len(session) == len(rest)
    assert [one.frame_index for one in rest] == list(range(6, 40))
    assert [box_number(one.boxes[0]) for one in rest] == list(range(6, 40))
    assert [one.index for one in rest] == list(range(6, 40))


def test_a_tracked_clip(ours: str, tmp_path: Path) -> None:
    """Its tracks are gathered, too, of what came here."""
    first = PredictionSession(ours, write_numbers(tmp_path / "clip.mp4"), tracking=True, delay=0.005)
    next(first)
    with PredictionSession.attach(ours, first.detach()) as session:
        rest = list(session)
        assert sum(map(len, session.tracks)) == sum(int((one.track_ids > 0).sum()) for one in rest)


def test_a_session_with_its_own_server(numbered: Numbered, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could attach to it: `detach` says so, and the session goes on."""
    monkeypatch.delenv("PREDSESSION_URL", raising=False)
    with PredictionSession(input=numbered(1)) as session:
        with pytest.raises(SourceError, match="a server of its own"):
            session.detach()
        assert len(list(session)) == 1


@pytest.fixture(scope="module")
def stock() -> Iterator[str]:
    """A stock server that a test can hold up: what was popped there is gone, and so is a job at its end."""
    with RunningServer(f"{held_numbers.__file__}:HeldNumbers", stock=True) as server:
        yield server.url


def left(url: str, paths: list[Path], gate: Path) -> str:
    """Begin a session, and leave it with a job of which some is computed, and some is not yet."""
    gate.touch()
    settings = {"hold_while": str(gate), "hold_from": 5}
    first = begun(PredictionSession(url, paths, settings=settings))
    uuid = first.status().jobs[-1]
    first.detach()
    gate.unlink()
    return uuid


def test_a_stock_server(stock: str, numbered: Numbered, tmp_path: Path) -> None:
    """One job by its uuid: what was popped is gone, and said to be; a session cannot be found."""
    uuid = left(stock, numbered(9), tmp_path / "gate")
    with PredictionSession.attach(stock, uuid=uuid) as session, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResultsGoneWarning)
        got = list(session)
    assert [box_number(one.boxes[0]) - one.index for one in got] == [1] * len(got)
    with pytest.raises(SourceError, match="cannot list the jobs of a session"):
        next(PredictionSession.attach(stock, session_id="0" * 32))


def test_what_is_gone_is_warned_of(stock: str, numbered: Numbered, ask: Ask, tmp_path: Path) -> None:
    """Results that somebody popped cannot be had again."""
    uuid = left(stock, numbered(9), tmp_path / "gate")
    until(lambda: ask(stock, calls.pop(uuid))["pending_results"], "some to be popped")
    with (
        PredictionSession.attach(stock, uuid=uuid) as session,
        pytest.warns(ResultsGoneWarning, match="results of job"),
    ):
        assert len(list(session)) < 8


@pytest.mark.parametrize(
    ("kind", "by", "expected"),
    [
        ("ours", "uuid", JobExpiredError),
        ("ours", "session_id", JobExpiredError),
        ("stock", "uuid", JobExpiredError),
        ("stock", "session_id", SourceError),
    ],
)
def test_an_unknown_one(
    kind: str, by: str, expected: type[Exception], request: pytest.FixtureRequest
) -> None:
    """At once, in one call, without retries."""
    with FaultyServer(request.getfixturevalue(kind)) as seen:
        session = PredictionSession.attach(seen.url, **{by: "f" * 32})
        with pytest.raises(expected):
            next(session)
    assert [call.endpoint for call in seen.seen].count("get_inference_progress") <= 1
    assert session.report().retries == {}


@pytest.mark.parametrize("given", [{}, {"session_id": "a", "uuid": "b"}])
def test_one_of_the_two(ours: str, given: dict[str, str]) -> None:
    """Session or job, not both, not neither."""
    with pytest.raises(SourceError, match="pass one"):
        PredictionSession.attach(ours, **given)


def test_the_command_line(ours: str, numbered: Numbered) -> None:
    """``predsession jobs URL --attach`` prints JSON lines of a session, or of a job."""
    session_id = begun(PredictionSession(ours, numbered(9), delay=0.02)).detach()
    listed = subprocess.run(command(ours), capture_output=True, text=True, check=True, timeout=60).stdout
    assert session_id in listed
    done = subprocess.run(
        command(ours, "--attach", session_id), capture_output=True, text=True, check=True, timeout=60
    )
    got = [Prediction.from_json(json.loads(line)) for line in done.stdout.splitlines()]
    assert got
    assert all(one.index == box_number(one.boxes[0]) for one in got)
    again = subprocess.run(command(ours, "--attach", session_id), capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout) == (3, "")
    assert "knows no job" in again.stderr


def command(url: str, *more: str) -> list[str]:
    """Return a command."""
    return [sys.executable, "-m", "predsession", "jobs", url, *more]
