"""Deadlines: each can be set, says which it is, and ends the jobs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from server_kit import until

from predsession import JobTimeoutError, PredictionSession, errors
from predsession.server.models.pixels import box_number
from predsession.testing import Fault, FaultyServer

Numbered = Callable[..., list[Path]]
POP, SUBMIT = "pop_inference_results", "inference_batch_async"


def check_ended(faulty: FaultyServer, session: PredictionSession) -> None:
    """Check that no job is left."""
    assert session.status().jobs == ()
    assert len(faulty.calls("clear_inference_request")) >= session.report().jobs


def still(stage: str) -> bytes:
    """Return the answer to a pop of a job that stands where it is."""
    job = {"uuid": "x", "stage": stage, "pending_results": [], "finished": False, "exception": None}
    return json.dumps({**job, "progress": {"current": 0, "total": 1}}).encode()


class OneTry:
    """An api that wants one try of each call."""

    token = None
    retry_count = 1


def test_connect(numbered: Numbered) -> None:
    """A port where nobody listens."""
    with (
        PredictionSession("http://127.0.0.1:9", numbered(1), api=OneTry(), connect_timeout=0.2) as session,
        pytest.raises(errors.ConnectError, match=r"127\.0\.0\.1:9"),
    ):
        next(session)


def test_read(either: str, numbered: Numbered) -> None:
    """A server that takes a call and never answers; the keyword is in the message."""
    with (
        FaultyServer(either, [Fault("stall", POP, times=99, seconds=5.0)]) as faulty,
        PredictionSession(faulty.url, numbered(2), api=OneTry(), timeout=1.2) as session,
    ):
        with pytest.raises(errors.RequestTimeoutError, match="timeout="):
            next(session)
        check_ended(faulty, session)


def test_start_of_a_server_that_never_begins(either: str, numbered: Numbered) -> None:
    """The stage stays where it was: start_timeout, not idle_timeout, is what is named."""
    body = still("Preparing model for inference...")
    with (
        FaultyServer(either, [Fault("answer", POP, times=999, body=body)]) as faulty,
        PredictionSession(faulty.url, numbered(2), start_timeout=0.3) as session,
    ):
        with pytest.raises(
            JobTimeoutError, match=r"has not begun to run after start_timeout=0\.3 s"
        ) as caught:
            next(session)
        check_ended(faulty, session)
    assert caught.value.stage == "Preparing model for inference..."


@pytest.mark.parametrize("name", ["start_timeout", "idle_timeout"])
def test_no_answer_is_held_longer_than_a_deadline_allows(ours: str, numbered: Numbered, name: str) -> None:
    """A server with ``wait`` is asked to hold its answers for half of the deadline at most."""
    with FaultyServer(ours) as seen:
        limits = {name: 4.0}
        with PredictionSession(seen.url, numbered(2), settings={}, **limits) as session:
            list(session)
        held = [json.loads(call.body)["state"]["wait"] for call in seen.calls(POP)]
    assert held
    assert max(held) == 2.0


def test_idle(either: str, numbered: Numbered) -> None:
    """No result for too long."""
    with (
        FaultyServer(either, [Fault("answer", POP, times=999, body=still("Running inference..."))]) as faulty,
        PredictionSession(faulty.url, numbered(2), idle_timeout=0.3) as session,
    ):
        with pytest.raises(JobTimeoutError, match="idle_timeout"):
            next(session)
        check_ended(faulty, session)


def test_total(either: str, numbered: Numbered) -> None:
    """What came before it is yielded; then the run is over, and its jobs are ended."""
    got = []
    with (
        FaultyServer(either) as faulty,
        PredictionSession(faulty.url, numbered(60), total_timeout=2.5, delay=0.1) as session,
    ):
        with pytest.raises(JobTimeoutError, match=r"not over after total_timeout=2\.5 s; \d+ results"):
            for prediction in session:
                got.append(box_number(prediction.boxes[0]))
        check_ended(faulty, session)
    assert 0 < len(got) < 60
    assert got == list(range(len(got)))


def test_total_while_the_server_is_silent(either: str, numbered: Numbered) -> None:
    """The read timeout is cut short."""
    with (
        FaultyServer(either, [Fault("stall", SUBMIT, times=99, seconds=3.0)]) as faulty,
        PredictionSession(faulty.url, numbered(2), total_timeout=0.5) as session,
        pytest.raises(JobTimeoutError, match="total_timeout"),
    ):
        next(session)


def test_total_while_the_source_is_silent(ours: str) -> None:
    """A source that takes its time does not stop the clock."""
    done = threading.Event()

    def slow() -> Iterator[object]:
        yield from ()
        done.wait(10.0)

    session = PredictionSession(ours, slow(), total_timeout=0.3)
    try:
        with pytest.raises(JobTimeoutError, match="total_timeout"):
            next(session)
    finally:
        done.set()
    until(lambda: all(each.name != "predsession-send" for each in threading.enumerate()), "the caller's code")


@pytest.mark.parametrize(
    "name", ["start_timeout", "total_timeout", "idle_timeout", "timeout", "connect_timeout"]
)
def test_what_is_no_time(name: str) -> None:
    """Refused by its name."""
    with pytest.raises(ValueError, match=name):
        PredictionSession("http://127.0.0.1:9", b"x", **{name: 0})
