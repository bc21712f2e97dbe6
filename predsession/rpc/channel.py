"""The connection: one call, one call in the background, one stream; gRPC's own errors end here.

gRPC's threads are the background loop: a call that blocks runs in the thread that made it, and one that does
not is finished by the channel's thread, which lives as long as such calls are on their way. (grpc.aio on a
loop of ours was tried: two changes of thread a call, and a process forked after its first use hangs for
good, because the poller that it needs is not forked along.)

Invariant: after a fork the child has a connection of its own, and never waits without end (see `process`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import grpc

from predsession.errors import (
    PredSessionError,
    RequestTimeoutError,
    SessionClosedError,
    TransportError,
    UploadTooLargeError,
)
from predsession.rpc.addresses import is_local
from predsession.rpc.faults import from_status
from predsession.rpc.flight import PAUSES, Ask, Flight, Metadata, Stream
from predsession.rpc.process import PROCESS

R = TypeVar("R")
T = TypeVar("T")

GRACE = 2.0
"""Seconds after its deadline at which a call of a forked process is given up, should gRPC not do it."""

_READY = 2  # the number of gRPC's own state

_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),  # a closed client's connection is closed, not kept for another
    ("grpc.initial_reconnect_backoff_ms", 50),  # as soon as the tries above; gRPC's own is a second
    # "min_reconnect_backoff" is left alone: it is also the time that one attempt to connect may take.
    ("grpc.max_reconnect_backoff_ms", 250),  # below the sum of the tries, to see who is back
)
KEEPALIVE_MS = (30_000, 10_000)
"""After so much silence the runtime is asked for a sign of life, and after so much more given up. A server
hangs up on whoever asks often without sending, so gRPC asks a stream's twice, then once a minute or never:
streams have their `idle_timeout` beside."""


def _itself(reply: R) -> R:
    """Return the answer as it is."""
    return reply


def _raised(error: Exception) -> NoReturn:
    """Have the future raise what went wrong."""
    raise error


def _untouched(payload: bytes) -> bytes:
    """Return the request as it is: it was written where the arrays are."""
    return payload


@dataclass(frozen=True, slots=True)
class Manner:
    """How a service is spoken with.

    Parameters
    ----------
    max_message_bytes : int
        No message is longer, in either direction.
    metadata : tuple of (str, str)
        Sent along with every call, a secret perhaps; in no message, and in no repr.
    compressed : bool
        Whether requests are, by gzip.
    secure : bool
        Whether TLS is spoken, with a server whose authority gRPC knows: of its own list, or of the file that
        ``GRPC_DEFAULT_SSL_ROOTS_FILE_PATH`` names.
    """

    max_message_bytes: int
    metadata: Metadata = field(default=(), repr=False)
    compressed: bool = False
    secure: bool = False


class Channel:
    """A connection that is made when it is first used.

    Parameters
    ----------
    endpoint : str
        In gRPC's own form.
    manner : Manner
        How the service is spoken with.
    """

    def __init__(self, endpoint: str, manner: Manner) -> None:
        self.endpoint = endpoint
        self._manner = manner
        self.reached: bool = False
        self._closed = False
        self._lock = threading.Lock()
        self._channel: grpc.Channel | None = None
        # By the path: to make one takes a tenth of a small call.
        self._known: dict[str, tuple[grpc.Channel, object, grpc.UnaryUnaryMultiCallable[Any, Any]]] = {}
        PROCESS.add(self)

    @property
    def metadata(self) -> Metadata:
        """What is sent along with every call."""
        return self._manner.metadata

    # -- one call --------------------------------------------------------------------------------------

    def call(self, ask: Ask[R], *, patience: float = sum(PAUSES)) -> R:
        """Ask, and wait for the answer.

        Parameters
        ----------
        ask : Ask
            What.
        patience : float
            Seconds for which a connection is tried.

        Returns
        -------
        Message
            The answer.

        Raises
        ------
        PredSessionError
            Whatever went wrong: see `predsession.rpc.faults`.
        SessionClosedError
            If the connection was closed.
        """
        if PROCESS.forked:
            return self._result_of(self.submit(ask, _itself), ask)
        flight = Flight(self, ask, _itself, _raised, patience=patience)
        while True:
            PROCESS.begin()
            try:
                reply = self.unary(ask)(ask.payload, timeout=flight.left(), metadata=self.metadata)
            except grpc.RpcError as error:
                failure = self.failure(error, ask)
            except ValueError:  # gRPC's word for a channel that was closed in between
                raise SessionClosedError("the client was closed") from None
            else:
                self.reached = True
                return reply
            finally:
                PROCESS.end()
            pause = flight.pause_after(failure)
            if pause is None:
                raise failure
            time.sleep(pause)

    def submit(
        self, ask: Ask[R], then: Callable[[R], T], instead: Callable[[Exception], T] = _raised
    ) -> Future[T]:
        """Ask, and go on.

        Parameters
        ----------
        ask : Ask
            What.
        then : callable
            From the answer to what the future gives.
        instead : callable
            From what went wrong to what the future gives instead, or it raises.

        Returns
        -------
        Future
            Cancelling it cancels the call.

        Raises
        ------
        SessionClosedError
            If the connection was closed.
        UploadTooLargeError
            If the request is larger than any peer takes.
        """
        flight = Flight(self, ask, then, instead)
        flight.start()
        return flight.future

    def _result_of(self, future: Future[R], ask: Ask[R]) -> R:
        """Wait for an answer in a forked process, where gRPC may be unable to give one."""
        try:
            return future.result(None if ask.seconds is None else ask.seconds + GRACE)
        except RequestTimeoutError:
            raise
        except TimeoutError:
            future.cancel()
            raise RequestTimeoutError(
                f"{ask.method} at {self.endpoint}: no answer, and no end by itself, in a process that was "
                "forked: start it by spawn",
                url=self.endpoint,
            ) from None

    def unary(self, ask: Ask[R]) -> grpc.UnaryUnaryMultiCallable[bytes, R]:
        """Return gRPC's own way to make a call.

        Parameters
        ----------
        ask : Ask
            What is to be asked.

        Returns
        -------
        callable
            gRPC's.

        Raises
        ------
        UploadTooLargeError
            If the request is larger than any peer takes.
        """
        if len(ask.payload) > self._manner.max_message_bytes:
            raise UploadTooLargeError(
                f"{ask.method}: {len(ask.payload):,} bytes are more than the "
                f"{self._manner.max_message_bytes:,} of a "
                "message; send less in one",
                status=413,
                url=self.endpoint,
            )
        channel = self._open()
        known = self._known.get(ask.path)
        if known is None or known[0] is not channel or known[1] != ask.read:
            made = channel.unary_unary(
                ask.path, request_serializer=_untouched, response_deserializer=ask.read
            )
            self._known[ask.path] = (channel, ask.read, made)
            return made
        found: grpc.UnaryUnaryMultiCallable[bytes, R] = known[2]
        return found

    # -- streams ---------------------------------------------------------------------------------------

    def stream(self, ask: Ask[R]) -> Stream[R]:
        """Ask for many answers.

        Parameters
        ----------
        ask : Ask
            What.

        Returns
        -------
        Stream
            Of the answers, until it is cancelled.

        Raises
        ------
        SessionClosedError
            If the connection was closed.
        """
        # gRPC would end the call at the first answer that its own deserializer cannot read.
        how = {"request_serializer": _untouched, "response_deserializer": _untouched}
        metadata = self.metadata
        try:
            if ask.many:
                asking = self._open().stream_stream(ask.path, **how)
                return Stream(self, ask, asking(iter((ask.payload,)), timeout=ask.seconds, metadata=metadata))
            telling = self._open().unary_stream(ask.path, **how)
            return Stream(self, ask, telling(ask.payload, timeout=ask.seconds, metadata=metadata))
        except ValueError:
            raise SessionClosedError("the client was closed") from None

    # -- opening and closing ---------------------------------------------------------------------------

    def _open(self) -> grpc.Channel:
        """Return the connection, made if there is none."""
        with self._lock:
            if self._closed:
                raise SessionClosedError("the client was closed")
            if self._channel is None:
                PROCESS.check(self.endpoint)
                pressed = grpc.Compression.Gzip if self._manner.compressed else None
                if self._manner.secure:
                    trusted = grpc.ssl_channel_credentials()
                    self._channel = grpc.secure_channel(self.endpoint, trusted, self._options(), pressed)
                else:
                    self._channel = grpc.insecure_channel(self.endpoint, self._options(), pressed)
            return self._channel

    def _options(self) -> list[tuple[str, int]]:
        """Return how gRPC is to connect."""
        interval, patience = KEEPALIVE_MS
        options = [
            *_OPTIONS,
            ("grpc.max_send_message_length", self._manner.max_message_bytes),
            ("grpc.max_receive_message_length", self._manner.max_message_bytes),
            ("grpc.keepalive_time_ms", interval),
            ("grpc.keepalive_timeout_ms", patience),
        ]
        return [*options, ("grpc.enable_http_proxy", 0)] if is_local(self.endpoint) else options

    def close(self) -> None:
        """End all calls, and the connection; it may be done twice."""
        with self._lock:
            channel, self._channel, self._closed = self._channel, None, True
        self.reached = False
        self._known.clear()
        if channel is not None:
            channel.close()

    def forget(self) -> grpc.Channel | None:
        """Start again after a fork: the connection and the lock are the parent's.

        Returns
        -------
        grpc.Channel or None
            The parent's connection.
        """
        self._lock = threading.Lock()
        parents, self._channel = self._channel, None
        self.reached = False
        return parents

    def failure(self, error: grpc.RpcError, ask: Ask[R]) -> PredSessionError:
        """Translate what gRPC raised.

        Parameters
        ----------
        error : RpcError
            As it came.
        ask : Ask
            What was asked.

        Returns
        -------
        PredSessionError
            Ours.
        """
        call: object = error
        told = isinstance(call, grpc.Call)
        failure = from_status(
            call.code().name if isinstance(call, grpc.Call) else "UNKNOWN",
            (call.details() or "") if isinstance(call, grpc.Call) else str(error),
            method=ask.method,
            endpoint=self.endpoint,
            seconds=ask.seconds,
            may_have_left=self._may_have_left,
        )
        self.reached = told and not isinstance(failure, TransportError)
        return failure

    def _may_have_left(self) -> bool:
        """Say whether there is a connection, on which a call that just failed can have been sent."""
        # gRPC's public way to the state starts a thread that wakes five times a second; the state itself is
        # at hand. Where it is not, the call counts as sent.
        inner: object = getattr(self._channel, "_channel", None)
        look: Callable[[bool], int] | None = getattr(inner, "check_connectivity_state", None)
        try:
            return look is None or look(False) == _READY
        except ValueError:  # closed in between
            return True
