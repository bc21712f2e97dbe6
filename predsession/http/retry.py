"""When to try again, and after how long. A value: it never sleeps itself.

Formula: the delay before try n + 1 is drawn evenly from ``[0, min(cap, base * 2**n)]`` seconds ("full
jitter"), or is what the server asked for with ``Retry-After``, at most ``retry_after_cap``.

References
----------
RFC 9110, section 10.2.3 (Retry-After); AWS Architecture Blog, "Exponential Backoff And Jitter" (2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum

from predsession.wire.calls import Repeat


class Failure(Enum):
    """Why a try failed, as far as it matters for the next one."""

    CONNECT = "connect"
    """Nothing was sent."""
    TIMEOUT = "timeout"
    """No answer in time; it may have been acted on."""
    BROKEN = "broken"
    """The connection broke, or the answer did; it may have been acted on."""
    BUSY = "busy"
    """429, 503 or 507: refused before it was acted on."""
    FAULT = "fault"
    """Another 5xx: it may have been acted on."""
    GARBLED = "garbled"
    """A status 2xx, and a body that is no JSON; it may have been acted on."""


UNTOUCHED = frozenset({Failure.CONNECT, Failure.BUSY})
"""Failures after which the server has certainly not acted."""


def failure_of(status: int) -> Failure | None:
    """Return which failure a status stands for, None if the answer is to be taken as it is."""
    if status in (429, 503, 507):  # 507: the server's disk is full; what is cleared makes room
        return Failure.BUSY
    return Failure.FAULT if status in (500, 502, 504) else None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently to try.

    Parameters
    ----------
    tries : int
        Tries in all, the first included, for failures other than a refused connection.
    base : float
        Seconds; the first delay is drawn from ``[0, base]``. Below 0.05 a server that is restarting is
        stormed.
    cap : float
        Seconds; the longest delay.
    retry_after_cap : float
        Seconds; the longest that ``Retry-After`` is obeyed.
    connect_for : float
        Seconds that a server which cannot be reached is tried again once it has answered in this run.
    first_connect_for : float
        Seconds for one that has never answered: a wrong address should be told soon.
    first_garbled : int
        Tries in all for one that has answered nothing but pages so far: that is a login page, or the wrong
        address.
    bounded_connect : bool
        Whether `tries` also bounds refused connections, as the ancestor's ``api.retry_count`` does.
    """

    tries: int = 8
    base: float = 0.2
    cap: float = 10.0
    retry_after_cap: float = 60.0
    connect_for: float = 60.0
    first_connect_for: float = 5.0
    first_garbled: int = 3
    bounded_connect: bool = False

    def delay(
        self,
        failure: Failure,
        repeat: Repeat,
        *,
        attempt: int,
        elapsed: float,
        draw: float,
        known: bool = True,
        retry_after: float | None = None,
    ) -> float | None:
        """Say how long to wait before the next try.

        Parameters
        ----------
        failure : Failure
            What just happened.
        repeat : Repeat
            What a second sending may do.
        attempt : int
            Tries so far, from 1.
        elapsed : float
            Seconds since the first try.
        draw : float
            A random number in [0, 1).
        known : bool
            Whether the server has answered anything in this run.
        retry_after : float or None
            Seconds the server asked for.

        Returns
        -------
        float or None
            Seconds, or None to give up.
        """
        if repeat is Repeat.REFUSED and failure not in UNTOUCHED:
            return None
        patient = failure is Failure.CONNECT and not self.bounded_connect
        if patient and elapsed >= (self.connect_for if known else self.first_connect_for):
            return None
        if not patient and attempt >= self.tries:
            return None
        if failure is Failure.GARBLED and not known and attempt >= self.first_garbled:
            return None
        if retry_after is not None:
            return min(max(0.0, retry_after), self.retry_after_cap)
        ceiling = min(2.0 if patient else self.cap, self.base * 2.0 ** min(attempt - 1, 30))
        return draw * ceiling


def parse_retry_after(text: str, now: datetime | None = None) -> float | None:
    """Read a ``Retry-After`` header.

    Parameters
    ----------
    text : str
        Seconds (``2``, also ``1.5``) or an HTTP date.
    now : datetime, optional
        The time that a date is counted from; the present by default.

    Returns
    -------
    float or None
        Seconds, 0 or more; None where the header says nothing usable.
    """
    try:
        seconds = float(text)
    except ValueError:
        try:
            then = parsedate_to_datetime(text)
        except (ValueError, OverflowError):  # a year of twenty digits
            return None
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        return max(0.0, (then - (now or datetime.now(UTC))).total_seconds())
    return seconds if 0 <= seconds < float("inf") else None
