"""Many answers to one request: as they come, cancelled from anywhere; and what is told of a call's times."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensor_models
from server_kit import Server, until

from predsession.errors import (
    PredSessionError,
    RequestTimeoutError,
    SessionClosedError,
    SourceError,
)
from predsession.tensor import HTensor, TensorSession

PARTS = {
    "frame_duration", "sd2rv_duration", "commu_duration", "board_duration", "prepr_duration",
    "infer_duration", "pospr_duration",
}  # fmt: skip


def _count(n: int, fail_at: int = -1) -> dict[str, Any]:
    return {"n": np.array(n), "fail_at": np.array(fail_at)}


def _pause(seconds: float) -> dict[str, Any]:
    return {"pause": np.array([seconds], np.float32)}


@pytest.fixture
def ended(tensors: Server) -> Callable[[], int]:
    """How many endless answers the server was told to end, since the test began."""
    before = tensors.log.count("endless ended")
    return lambda: tensors.log.count("endless ended") - before


@pytest.fixture
def grpc(tensors: Server) -> str:
    """The way on which streams go."""
    return f"grpc://{tensors.oip[0]}"


def test_answers_as_they_come(grpc: str) -> None:
    """A decoupled model's answers in order, writable; none; and a session with several streams at once."""
    with TensorSession(grpc, models=["count", "add"]) as session:
        answers = list(session.stream(_count(5), "count"))
        assert [each["i"].tolist() for each in answers] == [[0], [1], [2], [3], [4]]
        assert answers[0]["i"].flags.writeable
        assert list(session.stream(_count(0), "count")) == []
        streams = [session.stream(_count(20), "count") for _ in range(3)]
        assert [[int(each["i"][0]) for each in one] for one in streams] == [list(range(20))] * 3
        for one in streams:
            with pytest.raises(StopIteration):
                next(one)


def test_a_model_that_answers_once(grpc: str) -> None:
    """A model that is not decoupled gives a stream of one answer."""
    one = np.ones((1, 4), np.float32)
    with TensorSession(grpc, models=["add"]) as session:
        assert [each["c"].tolist() for each in session.stream({"a": one, "b": one})] == [[[2.0] * 4]]


def test_an_error_in_the_stream(grpc: str) -> None:
    """What came before is kept, the error is the package's own, and nothing follows."""
    with TensorSession(grpc, models=["count"]) as session:
        stream = session.stream(_count(5, fail_at=3))
        assert [int(next(stream)["i"][0]) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(PredSessionError, match="told to fail at 3"):
            next(stream)
        with pytest.raises(StopIteration):
            next(stream)
        assert len(list(session.stream(_count(2)))) == 2


def test_leaving(grpc: str, ended: Callable[[], int]) -> None:
    """A loop that is left by its block, a stream that is forgotten: the server is told."""
    with TensorSession(grpc, models=["endless"]) as session:
        with session.stream(_pause(0.01)) as stream:
            for answer in stream:
                if answer["i"][0] == 3:
                    break
        until(lambda: ended() == 1, "the server to see that it was left")
        forgotten = session.stream(_pause(0.01))
        next(forgotten)
        del forgotten, stream
        gc.collect()
        until(lambda: ended() == 2, "the server to see that it was forgotten")


def test_cancel_from_another_thread(grpc: str, ended: Callable[[], int]) -> None:
    """It ends the loop, without an error, here and on the server; it may be done twice."""
    with TensorSession(grpc, models=["endless"]) as session:
        stream = session.stream(_pause(0.01))
        first = threading.Event()

        def cancel() -> None:
            first.wait(30)
            stream.cancel()
            stream.cancel()

        thread = threading.Thread(target=cancel)
        thread.start()
        for _ in stream:
            first.set()
        thread.join(30)
        until(lambda: ended() == 1, "the server to see the cancel")


def test_silence(grpc: str, ended: Callable[[], int]) -> None:
    """An answer that does not come within `idle_timeout` is an error; the server is told."""
    with TensorSession(grpc, models=["endless"]) as session:
        number = os.getpid()  # of one process no two tests run at once
        stream = session.stream(_pause(-number), idle_timeout=1.2)
        assert next(stream)["i"][0] == 0
        with pytest.raises(RequestTimeoutError, match=r"no answer within 1\.2 s"):
            next(stream)
        with pytest.raises(StopIteration):
            next(stream)
        tensor_models.leave(number)
        until(lambda: ended() == 1, "the server to see that it was given up")


def test_a_session_that_closes_under_a_stream(grpc: str, ended: Callable[[], int]) -> None:
    """The stream ends with an error of the package's, and the server is told."""
    session = TensorSession(grpc, models=["endless"])
    stream = session.stream(_pause(0.01))
    next(stream)
    session.close_server()
    with pytest.raises((PredSessionError, SessionClosedError)):
        for _ in stream:
            pass
    until(lambda: ended() == 1, "the server to see the end")


def test_what_no_stream_takes(doors: str) -> None:
    """Tensors of the server, times that are none, and HTTP: the caller's mistake, said at once."""
    with TensorSession(doors, models=["endless"]) as session:
        kept = HTensor(np.zeros(1, np.float32), "server", "k")
        with pytest.raises(SourceError, match="a stream takes arrays"):
            session.stream({"pause": kept})
        for idle in (0, -1.0, float("nan")):
            with pytest.raises(SourceError, match="idle_timeout"):
                session.stream(_pause(0), idle_timeout=idle)
        if doors.startswith("http"):
            with pytest.raises(SourceError, match="takes gRPC"):
                session.stream(_pause(0))


# -- times -----------------------------------------------------------------------------------------


def test_times_add_up(doors: str) -> None:
    """Of each call and on average the parts make up the whole; the model's own is what it took."""
    with TensorSession(doors, models=["slow", "add"], with_profile=True) as session:
        assert (session.get_profile("slow"), session.get_profile_last_frame("slow")) == ({}, {})
        for seconds in (0.02, 0.05):
            session({"seconds": np.array([seconds], np.float32)}, model_name="slow")
            last = session.get_profile_last_frame("slow")
            assert set(last) == PARTS
            _add_up(last)
            assert last["infer_duration"] >= seconds * 1000
        every = session.get_profile("slow")
        _add_up({key: each["avg"] for key, each in every.items()})
        assert every["infer_duration"]["max"] >= 50 > 20 <= every["infer_duration"]["min"]
        assert all(each["min"] <= each["avg"] <= each["max"] for each in every.values())
        assert session.get_profile("add") == {}
        one = np.ones((1, 4), np.float32)
        for future in [session.submit({"a": one, "b": one}, model_name="add") for _ in range(8)]:
            future.result(30)
        _add_up({key: each["avg"] for key, each in session.get_profile("add").items()})
        with pytest.raises(SourceError, match="model_name is needed"):
            session.get_profile()


def _add_up(times: dict[str, float]) -> None:
    """Check a whole against its parts."""
    board = times["prepr_duration"] + times["infer_duration"] + times["pospr_duration"]
    assert times["board_duration"] == pytest.approx(board, rel=1e-9)
    assert times["sd2rv_duration"] == pytest.approx(
        times["commu_duration"] + times["board_duration"], rel=1e-9
    )
    assert times["frame_duration"] >= times["sd2rv_duration"]
    assert all(value >= 0 for value in times.values())


def test_times_that_were_not_taken(doors: str) -> None:
    """Without `with_profile` there are none, which is said."""
    with TensorSession(doors, models=["add"]) as session:
        for ask in (session.get_profile, session.get_profile_last_frame):
            with pytest.raises(SourceError, match="with_profile=True"):
                ask()
