"""Starting a job: submit until its uuid is known.

Rule: a submit without an answer, or with a page for an answer, may have started a job. With ``idempotency``
the same key finds it; a stock server cannot be asked, so the submit is made again under new upload names, and
counted. A 500 in JSON is the server's last word on what was sent, and so is any of a stock server; a 503 says
that it was not acted on, and has been tried again already.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence

from predsession import errors
from predsession.inputs.uploads import Part
from predsession.jobs.shared import Shared
from predsession.wire.calls import Call
from predsession.wire.httpreply import Reply, is_own_fault
from predsession.wire.replies import parse_submitted

UNANSWERED_TRIES = 4
"""Submits of the same items that may go unanswered by a stock server."""


class UploadCancelledError(errors.PredSessionError):
    """The session is being stopped in the middle of an upload; internal."""


class Starter:
    """Starts jobs and enters them in the ledger.

    Parameters
    ----------
    shared : Shared
        The pipeline's.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._lock = threading.Lock()
        self._submits = 0

    def start(
        self,
        call: Callable[[str, bool], Call],
        parts: Callable[[str], Sequence[Part]] = lambda _: (),
    ) -> str:
        """Submit until a job's uuid is known.

        Parameters
        ----------
        call : callable
            Makes the call of a key and of whether the server knows keys.
        parts : callable
            Makes the files of a prefix for their names, which is new for every sending.

        Returns
        -------
        str
            The uuid; it is in the ledger.

        Raises
        ------
        TransportError
            If the server cannot be reached, or does not answer.
        ResponseError
            If the server refuses.
        UploadCancelledError
            If the session was stopped meanwhile.
        """
        uuid = self._start(call, parts)
        if not self._shared.ledger.opened(uuid):
            raise UploadCancelledError("the session was stopped")
        return uuid

    def _start(self, call: Callable[[str, bool], Call], parts: Callable[[str], Sequence[Part]]) -> str:
        """Submit, again where an answer is lost, until the job has a name."""
        key = secrets.token_hex(16)
        tries = min(UNANSWERED_TRIES, self._shared.caller.policy.tries)
        for left in reversed(range(tries)):
            # The first upload does not wait for what the server says of itself.
            known = (left < tries - 1 or self._shared.facts.is_known()) and self._idempotent()
            try:
                reply = self._submit(call(key, known), parts(self._prefix()))
            except (errors.TransportError, errors.ServerFaultError) as error:
                if not self._may_have_started(error):
                    raise
                self._count_unanswered()
                # Where the key was known to be one, all tries of the policy have been made already.
                if known or not left or self._shared.cancel.is_set():
                    raise
                self._rest(error)
            else:
                return parse_submitted(reply)
        raise AssertionError("unreachable: the last try returns or raises")

    def _prefix(self) -> str:
        """Return the beginning of upload names that nobody has used: across jobs, sessions and machines."""
        with self._lock:
            self._submits += 1
            return f"{self._shared.options.submit.session}-{self._submits}"

    def _submit(self, call: Call, parts: Sequence[Part]) -> Reply:
        """Send one submit."""
        with self._shared.counters.timed("seconds_upload"):
            return self._shared.caller.call(call, parts, on_bytes=self._count_bytes)

    def _count_bytes(self, amount: int) -> None:
        """Count what is sent; break off if the session is being stopped."""
        if self._shared.cancel.is_set():
            raise UploadCancelledError("the session was stopped in the middle of an upload")
        self._shared.counters.add("bytes_sent", amount)

    def _idempotent(self) -> bool:
        """Whether the server knows a submit again by its key."""
        return "idempotency" in self._shared.facts.info().features

    def _count_unanswered(self) -> None:
        """Note a job that a stock server may have started, whether or not the submit is made again."""
        if not self._idempotent():
            self._shared.counters.add("unanswered_submits")

    def _rest(self, error: errors.PredSessionError) -> None:
        """Count the submit to come, and wait before it where the server is in trouble."""
        shared = self._shared
        shared.caller.retries["submit"] += 1
        if isinstance(error, errors.ResponseError | errors.ProtocolError):
            shared.clock.wait(shared.cancel, shared.caller.policy.base)

    def _may_have_started(self, error: errors.PredSessionError) -> bool:
        """Whether the server may have started a job, and only its answer is missing."""
        if isinstance(error, errors.ServerFaultError):
            by_proxy = error.status == 500 and not is_own_fault(500, error.body_head)
            return error.status in (502, 504) or (by_proxy and self._idempotent())
        return not isinstance(error, errors.ConnectError)
