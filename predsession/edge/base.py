"""The part of the client that all its calls share: one connection, deadlines, the runtime's "no"."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar

from google.protobuf.message import Message

from predsession.edge.endpoint import find_endpoint
from predsession.edge.refusals import from_refusal
from predsession.errors import PredSessionError, SourceError
from predsession.rpc.channel import Channel, Manner
from predsession.rpc.flight import Ask
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.methods import MAX_MESSAGE_BYTES, METHODS

R = TypeVar("R", bound=Message)

USUAL_SECONDS = 30.0
"""The deadline of calls that have none of their own."""

MAX_SECONDS = 2**32 / 1000
"""No time is longer: it is as much as the wire's milliseconds hold."""


class Connected:
    """A connection to a runtime, made when it is first used; any thread may use it.

    Parameters
    ----------
    endpoint : str or None
        ``"127.0.0.1:50051"``, ``"unix:///run/x.sock"``; without one what ``AI_RUNTIME_ENDPOINT`` says, else
        ``unix:///run/aipc/ai-runtime.sock``.
    """

    def __init__(self, endpoint: str | None = None) -> None:
        self.endpoint: str = find_endpoint(endpoint)
        self._channel = Channel(self.endpoint, Manner(MAX_MESSAGE_BYTES))

    def connect(self, timeout: float = 5.0) -> Self:
        """Make sure that the runtime is there, and speaks this interface; calls do without.

        Parameters
        ----------
        timeout : float
            Seconds for which it is tried, whoever refuses or says nothing.

        Returns
        -------
        InferenceClient
            Itself.

        Raises
        ------
        PredSessionError
            `ConnectError` if nobody is there, `RequestTimeoutError` if nobody says anything; else what the
            runtime answered.
        SourceError
            If `timeout` is no time that can be waited.
        SessionClosedError
            If the client was closed.
        """
        if not 0 < timeout <= MAX_SECONDS:
            raise SourceError(f"timeout is {timeout}; wanted seconds above 0")
        ask = Ask(METHODS["ListModels"].path, b"", pb.ModelListResponse.FromString, timeout)
        self._channel.call(ask, patience=timeout)
        return self

    @property
    def connected(self) -> bool:
        """Whether the runtime answered the last call; it may have gone since."""
        return self._channel.reached

    def close(self) -> None:
        """End all calls, and the connection. It may be done twice; the client cannot be used any more."""
        self._channel.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        """Return where it connects to."""
        return f"<{type(self).__name__} {self.endpoint}>"

    def _ask(self, method: str, request: Message, reply: type[R], seconds: float = USUAL_SECONDS) -> R:
        """Make a call."""
        return self._channel.call(
            Ask(METHODS[method].path, request.SerializeToString(), reply.FromString, seconds)
        )

    def _refused(self, status: pb.Status, what: str) -> PredSessionError:
        """Return the runtime's "no"."""
        return from_refusal(status.message, what=what, endpoint=self.endpoint)


def seconds_of(timeout_ms: float) -> float:
    """Return a deadline in seconds.

    Parameters
    ----------
    timeout_ms : float
        Milliseconds, 1 or more: the wire has no parts of one, and 0 would be no deadline at all.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    SourceError
        If it is no time that can be waited.
    """
    if not 1 <= timeout_ms < 2**32:
        raise SourceError(f"timeout_ms is {timeout_ms}; wanted milliseconds, 1 or more, below 2**32")
    return timeout_ms / 1000


def check_idle(seconds: float | None) -> None:
    """Check how long a stream may be silent.

    Parameters
    ----------
    seconds : float or None
        None for ever.

    Raises
    ------
    SourceError
        If it is no time that can be waited.
    """
    if seconds is not None and not 0 < seconds <= MAX_SECONDS:
        raise SourceError(f"idle_timeout is {seconds}; wanted seconds above 0, or None")


def check_priority(priority: int) -> int:
    """Return a priority.

    Parameters
    ----------
    priority : int
        0 to 7, 7 first.

    Returns
    -------
    int
        The same.

    Raises
    ------
    SourceError
        If it is another.
    """
    if not 0 <= priority <= 7:
        raise SourceError(f"priority is {priority}; wanted 0 to 7, 7 first")
    return priority
