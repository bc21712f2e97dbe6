"""The retry policy: whether, how long; the Retry-After header."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predsession.http.retry import Failure, RetryPolicy, failure_of, parse_retry_after
from predsession.wire.calls import Repeat

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2", 2.0),
        ("1.5", 1.5),
        ("0", 0.0),
        ("-1", None),
        ("nan", None),
        ("soon", None),
        ("Mon, 30 Nov 2026 12:00:07 GMT", 7.0),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0.0),
        ("Mon, 30 Nov 2026 12:00:07", 7.0),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(text: str, seconds: float | None) -> None:
    """Seconds, fractions and dates are understood, nonsense is ignored, nothing raises."""
    assert parse_retry_after(text, NOW) == seconds


@given(st.integers(1, 200), st.floats(0, 0.999), st.sampled_from(Failure))
def test_a_delay_is_within_the_cap(attempt: int, draw: float, failure: Failure) -> None:
    """Whatever happened and however often, a delay lies between 0 and the cap."""
    policy = RetryPolicy(tries=1000)
    delay = policy.delay(failure, Repeat.SAFE, attempt=attempt, elapsed=0.0, draw=draw)
    assert delay is not None
    assert 0 <= delay <= policy.cap


@pytest.mark.parametrize("failure", [Failure.TIMEOUT, Failure.BROKEN, Failure.FAULT])
def test_what_may_have_been_acted_on_is_not_repeated_blindly(failure: Failure) -> None:
    """A call that is not safe to repeat is not repeated once the server may have acted."""
    assert RetryPolicy().delay(failure, Repeat.REFUSED, attempt=1, elapsed=0.0, draw=0.5) is None


@pytest.mark.parametrize("failure", [Failure.CONNECT, Failure.BUSY])
def test_what_was_refused_is_repeated(failure: Failure) -> None:
    """A call that certainly had no effect is repeated, safe or not."""
    assert RetryPolicy().delay(failure, Repeat.REFUSED, attempt=1, elapsed=0.0, draw=0.5) is not None


@pytest.mark.parametrize(
    ("known", "elapsed", "again"),
    [(True, 59.0, True), (True, 61.0, False), (False, 4.0, True), (False, 6.0, False)],
)
def test_a_refused_connection_is_tried_for_a_minute_once_the_server_is_known(
    known: bool, elapsed: float, again: bool
) -> None:
    """In the middle of a run for 60 s, with an address that never answered for 5 s."""
    delay = RetryPolicy().delay(
        Failure.CONNECT, Repeat.SAFE, attempt=100, elapsed=elapsed, draw=0.5, known=known
    )
    assert (delay is not None) is again


def test_retry_after_is_obeyed_within_its_cap() -> None:
    """An hour is not waited for, two seconds are."""
    policy = RetryPolicy(retry_after_cap=60)
    for asked, waited in ((2.0, 2.0), (3600.0, 60.0)):
        delay = policy.delay(Failure.BUSY, Repeat.SAFE, attempt=1, elapsed=0.0, draw=0.0, retry_after=asked)
        assert delay == waited


def test_the_ancestors_retry_count_bounds_refused_connections_too() -> None:
    """With `api.retry_count` = 3 the third refused connection is the last."""
    policy = RetryPolicy(tries=3, bounded_connect=True)
    again = [
        policy.delay(Failure.CONNECT, Repeat.SAFE, attempt=n, elapsed=0.0, draw=0.5) is not None
        for n in (1, 2, 3)
    ]
    assert again == [True, True, False]


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (200, None),
        (404, None),
        (413, None),
        (429, Failure.BUSY),
        (503, Failure.BUSY),
        (507, Failure.BUSY),
        (502, Failure.FAULT),
    ],
)
def test_statuses_stand_for_failures(status: int, failure: Failure | None) -> None:
    """429, 503 and 507 were refused before they were acted on; another 5xx perhaps; the rest is an answer."""
    assert failure_of(status) is failure
