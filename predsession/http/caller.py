"""A call with its retries: the loop around a transport, by a policy and a clock."""

from __future__ import annotations

import logging
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from predsession import errors
from predsession.clock import Clock, SystemClock
from predsession.http.auth import show_url
from predsession.http.retry import Failure, RetryPolicy, failure_of
from predsession.http.transport import Transport
from predsession.inputs.uploads import Part
from predsession.wire.calls import Call, Repeat
from predsession.wire.httpreply import (
    Reply,
    check_status,
    error_of,
    is_garbled,
    is_own_fault,
    is_unknown_job,
    not_json,
)

log = logging.getLogger(__name__)


@dataclass
class Caller:
    """Sends calls, again where that is safe and of use.

    Parameters
    ----------
    transport : Transport
        One try.
    policy : RetryPolicy
        Whether and when to try again.
    clock : Clock
        Time.
    cancel : threading.Event
        Once set, nothing is tried again.
    retries : Counter
        Tries beyond the first, by `Failure` value.
    known : bool
        Whether the server has answered anything yet, pages aside.
    lost : callable or None
        Returns the last words of a server that is known to have ended, None while it runs.
    ends : float or None
        The time on the clock after which nothing is waited for.
    """

    transport: Transport
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    clock: Clock = field(default_factory=SystemClock)
    cancel: threading.Event = field(default_factory=threading.Event)
    retries: Counter[str] = field(default_factory=Counter)
    known: bool = False
    lost: Callable[[], str | None] | None = None
    ends: float | None = None

    def call(
        self,
        call: Call,
        parts: Sequence[Part] = (),
        *,
        on_bytes: Callable[[int], None] | None = None,
        give_up_at: float | None = None,
    ) -> Reply:
        """Send a call until it is answered, refused, or the policy gives up.

        Parameters
        ----------
        call : Call
            What to say.
        parts : sequence of Part
            Files to send along.
        on_bytes : callable, optional
            Called with the number of file bytes, as they are sent.
        give_up_at : float, optional
            The time on the clock after which no answer is waited for.

        Returns
        -------
        Reply
            An answer with a 2xx status and JSON, or one that says that the job is unknown.

        Raises
        ------
        TransportError
            If no usable answer came back; a `ProtocolError` if what came was no JSON.
        ResponseError
            If the answer is an error that the policy does not try again.
        """

        def send(read_timeout: float | None) -> Reply:
            reply = self.transport.send(call, parts, on_bytes=on_bytes, read_timeout=read_timeout)
            if 200 <= reply.status < 300 and is_garbled(reply):
                raise not_json(reply)
            return reply

        return self._repeat(send, call.endpoint, call.repeat, give_up_at)

    def fetch(self, url: str, *, max_bytes: int) -> bytes:
        """Get what is at another URL, again where that is of use.

        Parameters
        ----------
        url : str
            http or https.
        max_bytes : int
            More is refused.

        Returns
        -------
        bytes
            The body.

        Raises
        ------
        TransportError
            If it cannot be reached, or is too large.
        ResponseError
            If the answer is an error.
        """

        def get(_: float | None) -> Reply:
            return self.transport.fetch(url, max_bytes=max_bytes, cancelled=self.cancel.is_set)

        return self._repeat(get, show_url(url), Repeat.SAFE, None).body

    def _repeat(
        self, send: Callable[[float | None], Reply], name: str, repeat: Repeat, give_up_at: float | None
    ) -> Reply:
        """Try until there is an answer to be taken as it is, or the policy gives up."""
        began = self.clock.now()
        times = [time for time in (give_up_at, self.ends) if time is not None]
        give_up_at = min(times, default=None)
        attempt = 0
        while True:
            attempt += 1
            left = None if give_up_at is None else max(0.05, give_up_at - self.clock.now())
            outcome = self._try(send, left)
            if isinstance(outcome, Reply) and failure_of(outcome.status) is None:
                check_status(outcome)
                return outcome
            if isinstance(outcome, Reply) and is_unknown_job(outcome):
                return outcome
            delay = self._delay(outcome, repeat, attempt, self.clock.now() - began)
            too_late = give_up_at is not None and self.clock.now() + (delay or 0.0) >= give_up_at
            if delay is None or too_late or self.clock.wait(self.cancel, self._counted(name, outcome, delay)):
                error = _as_error(outcome)
                raise error

    def _try(
        self, send: Callable[[float | None], Reply], read_timeout: float | None
    ) -> Reply | errors.TransportError:
        """Send once; a transport's error is a value here."""
        try:
            reply = send(read_timeout)
        except errors.ConnectError as error:
            words = self.lost() if self.lost is not None else None
            if words is None:
                return error
            return errors.ConnectError(f"the server has ended: {words}", url=error.url, permanent=True)
        except errors.TransportError as error:
            return error
        self.known = True
        return reply

    def _delay(
        self, outcome: Reply | errors.TransportError, repeat: Repeat, attempt: int, elapsed: float
    ) -> float | None:
        """Ask the policy."""
        if isinstance(outcome, errors.ConnectError) and outcome.permanent:
            return None
        if (
            repeat is Repeat.KEYED
            and isinstance(outcome, Reply)
            and is_own_fault(outcome.status, outcome.head)
        ):
            return None
        return self.policy.delay(
            _failure(outcome),
            repeat,
            attempt=attempt,
            elapsed=elapsed,
            draw=random.random(),  # noqa: S311 - spreads retries, guards nothing
            known=self.known,
            retry_after=error_of(outcome).retry_after if isinstance(outcome, Reply) else None,
        )

    def _counted(self, name: str, outcome: Reply | errors.TransportError, delay: float) -> float:
        """Count the try to come, and return the delay before it."""
        failure = _failure(outcome)
        self.retries[failure.value] += 1
        log.info("%s failed (%s), trying again in %.2f s", name, failure.value, delay)
        return delay


def _failure(outcome: Reply | errors.TransportError) -> Failure:
    """Name the failure for the policy."""
    if isinstance(outcome, Reply):
        return failure_of(outcome.status) or Failure.FAULT
    if isinstance(outcome, errors.ConnectError):
        return Failure.CONNECT
    if isinstance(outcome, errors.ProtocolError):
        return Failure.GARBLED
    return Failure.TIMEOUT if isinstance(outcome, errors.RequestTimeoutError) else Failure.BROKEN


def _as_error(outcome: Reply | errors.TransportError) -> errors.TransportError | errors.ResponseError:
    """Return the error that a failed try stands for."""
    return error_of(outcome) if isinstance(outcome, Reply) else outcome
