"""What goes wrong on the way: each item still gets exactly one outcome, its own. Real sockets throughout."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from predsession import ItemError, PredictionSession, errors
from predsession.server.models.pixels import box_number
from predsession.testing import Fault, FaultyServer

Numbered = Callable[..., list[Path]]
COUNT = 40

SUBMIT, POP = "inference_batch_async", "pop_inference_results"
STOP, CLEAR = "stop_inference", "clear_inference_request"
PAGE = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"

FAULTS = {
    "pop lost": [Fault("drop_after", POP, nth=2)],
    "every third pop lost": [Fault("drop_after", POP, nth=n) for n in range(2, 60, 3)],
    "pop reset": [Fault("drop_before", POP, nth=3)],
    "pop truncated": [Fault("truncate", POP, nth=2)],
    "pop 502": [Fault("status", POP, nth=2, times=2, status=502, body=PAGE)],
    "pop 500": [Fault("status", POP, nth=2, status=500, body=b"Internal Server Error")],
    "submit answer lost": [Fault("drop_after", SUBMIT, nth=2)],
    "submit 503 once": [Fault("status", SUBMIT, status=503)],
    "submit 429 with Retry-After": [Fault("status", SUBMIT, status=429, headers={"Retry-After": "0.2"})],
    "submit 504": [Fault("status", SUBMIT, nth=2, status=504, body=PAGE)],
    "upload reset in its first byte": [Fault("reset", SUBMIT, nth=2, after_bytes=1)],
    "upload reset in its middle": [Fault("reset", SUBMIT, nth=2, after_bytes=3000)],
    "upload 413": [Fault("status", SUBMIT, nth=2, status=413, body=PAGE)],
    "clear lost": [Fault("drop_after", CLEAR)],
    "info fails twice": [Fault("status", "get_session_info", times=2, status=503)],
    "everything fails once": [Fault("status", name, status=503) for name in (SUBMIT, POP, CLEAR)],
}


@pytest.mark.parametrize("name", FAULTS)
def test_nothing_is_lost_doubled_or_swapped(either: str, numbered: Numbered, name: str) -> None:
    """40 images in, 40 predictions out, in order, each its own; no job is left live."""
    with FaultyServer(either, FAULTS[name]) as faulty:
        with PredictionSession(faulty.url, numbered(COUNT), batch_size=4) as session:
            got = [box_number(prediction.boxes[0]) for prediction in session]
        report = session.report()
    assert got == list(range(COUNT))
    assert (report.predictions, report.item_errors, report.cleanup_failures) == (COUNT, 0, 0)
    assert [call.fault for call in faulty.seen if call.fault], "the fault was never made"
    assert session._pipeline.shared.ledger.live == ()


def test_a_repeated_upload_has_the_same_bytes(either: str, numbered: Numbered) -> None:
    """A 503 on the first submit: the second sends the files again from their first byte."""
    paths = numbered(1)
    with (
        FaultyServer(either, [Fault("status", SUBMIT, status=503)]) as faulty,
        PredictionSession(faulty.url, paths) as session,
    ):
        assert len(list(session)) == 1
        bodies = [call.body for call in faulty.calls(SUBMIT)]
    assert len(bodies) == 2
    sums = {hashlib.sha256(paths[0].read_bytes()).hexdigest()}
    for body in bodies:
        start = body.index(b"\xff\xd8")
        sums.add(hashlib.sha256(body[start : start + paths[0].stat().st_size]).hexdigest())
    assert len(sums) == 1


def test_one_logical_submit_has_one_key(ours: str, numbered: Numbered) -> None:
    """An answer lost after the job had started: the same key, and so the same job, again."""
    with FaultyServer(ours, [Fault("drop_after", SUBMIT)]) as faulty:
        with PredictionSession(faulty.url, numbered(1)) as session:
            assert len(list(session)) == 1
        keys = [call.headers["idempotency-key"] for call in faulty.calls(SUBMIT)]
        report = session.report()
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert report.unanswered_submits == 0
    assert report.jobs == 1


def test_a_stock_servers_orphan_is_counted(stock: str, numbered: Numbered) -> None:
    """Nobody can name the job of a submit that went unanswered: the report says that there is one."""
    with FaultyServer(stock, [Fault("drop_after", SUBMIT)]) as faulty:
        with PredictionSession(faulty.url, numbered(1)) as session:
            assert len(list(session)) == 1
        assert session.report().unanswered_submits == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_of_a_submit_names_its_target(ours: str, numbered: Numbered, status: int) -> None:
    """It never becomes a GET."""
    moved = Fault(
        "status", SUBMIT, status=status, headers={"Location": "https://elsewhere.example/x?t=s3cr3t"}
    )
    with (
        FaultyServer(ours, [moved]) as faulty,
        PredictionSession(faulty.url, numbered(1)) as session,
        pytest.raises(errors.ResponseError, match=r"https://elsewhere\.example/x") as caught,
    ):
        next(session)
    assert caught.value.status == status
    assert "s3cr3t" not in str(caught.value)


def test_a_login_page_is_told_as_one(ours: str, numbered: Numbered) -> None:
    """Status 200 and HTML: an error with URL, content type and first characters."""
    page = Fault(
        "answer", times=99, body=b"<html>Please log in</html>", headers={"Content-Type": "text/html"}
    )
    with (
        FaultyServer(ours, [page]) as faulty,
        PredictionSession(faulty.url, numbered(1)) as session,
        pytest.raises(errors.ProtocolError, match=r"text/html.*Please log in"),
    ):
        next(session)


@pytest.mark.parametrize("status", [401, 403])
def test_a_missing_token_is_an_auth_error(ours: str, numbered: Numbered, status: int) -> None:
    """It says how to pass one, and is not tried again."""
    with (
        FaultyServer(ours, [Fault("status", times=99, status=status)]) as faulty,
        PredictionSession(faulty.url, numbered(1)) as session,
        pytest.raises(errors.AuthError, match="PREDSESSION_TOKEN"),
    ):
        next(session)


def test_an_image_that_is_too_large_for_the_server(either: str, numbered: Numbered) -> None:
    """413 for one alone is an item error with its size; the others are predicted."""
    refuse_third = [Fault("status", SUBMIT, nth=2, status=413), Fault("status", SUBMIT, nth=3, status=413)]
    with (
        FaultyServer(either, refuse_third) as faulty,
        PredictionSession(faulty.url, numbered(3), on_error="yield") as session,
    ):
        outcomes = list(session)
    assert [bool(outcome) for outcome in outcomes] == [True, False, True]
    assert isinstance(outcomes[1], ItemError)
    assert "413" in outcomes[1].reason


def test_a_proxy_that_stays_broken_is_told_in_one_line(ours: str, numbered: Numbered) -> None:
    """Tried again, then an error with the status and the page's title."""

    class Api:
        token = None
        retry_count = 2

    broken = Fault("status", times=99, status=504, body=PAGE)
    with (
        FaultyServer(ours, [broken]) as faulty,
        PredictionSession(faulty.url, numbered(1), api=Api()) as session,
        pytest.raises(errors.ServerFaultError, match="502 Bad Gateway") as caught,
    ):
        next(session)
    assert "\n" not in str(caught.value)
    assert len(faulty.calls("get_session_info")) == 2


def test_a_late_pop_is_no_error(either: str, numbered: Numbered) -> None:
    """An answer later than the read timeout, once: nothing is lost."""
    with (
        FaultyServer(either, [Fault("stall", POP, nth=2, seconds=1.5)]) as faulty,
        PredictionSession(faulty.url, numbered(10), timeout=0.7, idle_timeout=30) as session,
    ):
        assert [box_number(one.boxes[0]) for one in session] == list(range(10))


def test_a_server_that_forgets_the_job(either: str, numbered: Numbered) -> None:
    """The images that had no answer are sent again, in a job of their own."""
    gone = b'{"detail":{"message":"RuntimeError(there is no such uuid in self._inference_requests)"}}'
    with (
        FaultyServer(either, [Fault("status", POP, nth=2, status=500, body=gone)]) as faulty,
        PredictionSession(faulty.url, numbered(20)) as session,
    ):
        assert [box_number(one.boxes[0]) for one in session] == list(range(20))
        assert session.report().resent_items > 0


def test_a_server_that_always_forgets_is_given_up(either: str, numbered: Numbered) -> None:
    """The error says that jobs are forgotten, and what is missing; each was asked for once, no more."""
    gone = b'{"detail":{"message":"RuntimeError(there is no such uuid in self._inference_requests)"}}'
    with (
        FaultyServer(either, [Fault("status", POP, times=99, status=500, body=gone)]) as faulty,
        PredictionSession(faulty.url, numbered(1)) as session,
        pytest.raises(
            errors.JobExpiredError, match=r"no longer knows job .* after 5 jobs: .*im_0\.jpg"
        ) as caught,
    ):
        next(session)
    assert len(caught.value.items) == 1
    assert session.report().retries == {}
    assert len({call.body for call in faulty.calls(POP)}) == len(faulty.calls(POP)) == 5


@pytest.mark.parametrize("status", [502, 503, 504])
def test_the_apis_retry_count_bounds_submits(ours: str, numbered: Numbered, status: int) -> None:
    """One try is one try; a 503 was not acted on, and counts as no unanswered submit."""

    class Api:
        token = None
        retry_count = 1

    with (
        FaultyServer(ours, [Fault("status", SUBMIT, times=99, status=status)]) as faulty,
        PredictionSession(faulty.url, numbered(1), api=Api()) as session,
    ):
        with pytest.raises(errors.ServerFaultError):
            next(session)
        assert len(faulty.calls(SUBMIT)) == 1
        assert session.report().unanswered_submits == 0


def test_a_short_timeout_and_a_slow_model(ours: str, numbered: Numbered) -> None:
    """The long poll is shorter than half the timeout, so that waiting is no fault."""
    with PredictionSession(ours, numbered(1), timeout=1.0, delay=2.5) as session:
        assert len(list(session)) == 1
        assert session.report().retries == {}
