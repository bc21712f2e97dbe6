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
from predsession.http.retry import Failure, RetryPolicy, failure_of
from predsession.http.transport import Transport
from predsession.inputs.uploads import Part
from predsession.wire.calls import Call
from predsession.wire.httpreply import Reply, check_status, error_of, is_unknown_job

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
    """

    transport: Transport
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    clock: Clock = field(default_factory=SystemClock)
    cancel: threading.Event = field(default_factory=threading.Event)
    retries: Counter[str] = field(default_factory=Counter)
    known: bool = False
    """Whether the server has answered anything yet."""

    def call(
        self, call: Call, parts: Sequence[Part] = (), *, on_bytes: Callable[[int], None] | None = None
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

        Returns
        -------
        Reply
            An answer with a 2xx status, or one that says that the job is unknown.

        Raises
        ------
        TransportError
            If no usable answer came back.
        ResponseError
            If the answer is an error that the policy does not try again.
        """
        began = self.clock.now()
        attempt = 0
        while True:
            attempt += 1
            outcome = self._try(call, parts, on_bytes)
            if isinstance(outcome, Reply) and failure_of(outcome.status) is None:
                check_status(outcome)
                return outcome
            if isinstance(outcome, Reply) and is_unknown_job(outcome):
                return outcome
            delay = self._delay(call, outcome, attempt, self.clock.now() - began)
            if delay is None or self.clock.wait(self.cancel, delay):
                error = _as_error(outcome)
                raise error

    def _try(
        self, call: Call, parts: Sequence[Part], on_bytes: Callable[[int], None] | None
    ) -> Reply | errors.TransportError:
        """Send once; a transport's error is a value here."""
        try:
            reply = self.transport.send(call, parts, on_bytes=on_bytes)
        except errors.TransportError as error:
            return error
        self.known = True
        return reply

    def _delay(
        self, call: Call, outcome: Reply | errors.TransportError, attempt: int, elapsed: float
    ) -> float | None:
        """Ask the policy, and count the try to come."""
        if isinstance(outcome, errors.ConnectError) and outcome.permanent:
            return None
        failure = _failure(outcome)
        asked = error_of(outcome).retry_after if isinstance(outcome, Reply) else None
        delay = self.policy.delay(
            failure,
            call.repeat,
            attempt=attempt,
            elapsed=elapsed,
            draw=random.random(),  # noqa: S311 - spreads retries, guards nothing
            known=self.known,
            retry_after=asked,
        )
        if delay is not None:
            self.retries[failure.value] += 1
            log.info("%s failed (%s), trying again in %.2f s", call.endpoint, failure.value, delay)
        return delay


def _failure(outcome: Reply | errors.TransportError) -> Failure:
    """Name the failure for the policy."""
    if isinstance(outcome, Reply):
        return failure_of(outcome.status) or Failure.FAULT
    if isinstance(outcome, errors.ConnectError):
        return Failure.CONNECT
    return Failure.TIMEOUT if isinstance(outcome, errors.RequestTimeoutError) else Failure.BROKEN


def _as_error(outcome: Reply | errors.TransportError) -> errors.TransportError | errors.ResponseError:
    """Return the error that a failed try stands for."""
    return error_of(outcome) if isinstance(outcome, Reply) else outcome
