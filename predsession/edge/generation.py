"""Text as a generative model writes it: tokens, then why it stopped."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from predsession.errors import ProtocolError, RequestTimeoutError, ServerFaultError, SourceError
from predsession.rpc.flight import Stream
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.tensors import as_array
from predsession.wire.jsontypes import JSON


class FinishReason(Enum):
    """Why a model stopped writing."""

    DONE = pb.DONE
    ABORTED = pb.ABORTED
    MAX_TOKENS = pb.MAX_TOKENS
    ERROR = pb.ERROR


class TokenStream:
    """Iterates tokens. Made by `InferenceClient.genai_generate`.

    Leaving its ``with`` block, `close` and `cancel` end the call on the server.

    Parameters
    ----------
    stream : Stream
        The call.
    what : str
        For messages: which session.
    idle_timeout : float or None
        Seconds without a token that end it.

    Notes
    -----
    Iterating raises `RequestTimeoutError` after `idle_timeout`, `ServerFaultError` where the model failed
    while it wrote, `ProtocolError` where the text breaks off without a reason, `NotFoundError` where the
    runtime does not know the session, and any other error that `InferenceClient` lists.
    """

    def __init__(
        self, stream: Stream[pb.GenaiGenerateResponse], what: str, idle_timeout: float | None
    ) -> None:
        self._stream = stream
        self._idle_timeout = idle_timeout
        self._late = threading.Event()
        self._what = what
        self.finish_reason: FinishReason | None = None

    def __iter__(self) -> Iterator[str]:
        """Return itself."""
        return self

    def __next__(self) -> str:
        """Wait for the next token; after the last one `finish_reason` is known."""
        if self.finish_reason is not None:
            raise StopIteration
        while (message := self._next()) is not None:
            event = message.WhichOneof("event")
            if event == "token":
                return message.token
            if event == "finish":
                self._finish(message.finish)
                raise StopIteration
        if self._stream.cancelled:
            raise StopIteration
        raise ProtocolError(f"{self._what}: the text broke off, and no reason came")

    def _next(self) -> pb.GenaiGenerateResponse | None:
        """Wait for the next message, None after the last one; raise RequestTimeoutError if none comes."""
        if self._idle_timeout is None:
            return next(self._stream, None)
        timer = threading.Timer(self._idle_timeout, _give_up, (self._stream, self._late))
        timer.daemon = True
        timer.start()
        try:
            message = next(self._stream, None)
        finally:
            timer.cancel()
        # The time may have been over just as a token came: then it is the next one that is missing.
        if message is None and self._late.is_set():
            self._late.clear()
            raise RequestTimeoutError(f"{self._what}: no token within {self._idle_timeout:g} s")
        return message

    def _finish(self, reason: int) -> None:
        """Note why it ended; raise ServerFaultError if by an error."""
        self._stream.cancel()
        try:
            self.finish_reason = FinishReason(reason)
        except ValueError:
            raise ProtocolError(f"{self._what}: the finish reason {reason} is unknown") from None
        if self.finish_reason is FinishReason.ERROR:
            raise ServerFaultError(f"{self._what}: the model failed while it wrote", status=500)

    def cancel(self) -> None:
        """End it, from any thread."""
        self._stream.cancel()

    close = cancel

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.cancel()

    def __del__(self) -> None:
        """End it."""
        if "_stream" in self.__dict__:
            self._stream.cancel()


def _give_up(stream: Stream[pb.GenaiGenerateResponse], late: threading.Event) -> None:
    """End a call that says nothing."""
    late.set()
    stream.cancel()


def as_message(message: str | Mapping[str, JSON]) -> str:
    """Return a message of a conversation as the wire has it.

    Parameters
    ----------
    message : str or mapping
        ``{"role": ..., "content": ...}``, or the same as JSON.

    Returns
    -------
    str
        JSON.

    Raises
    ------
    SourceError
        If it cannot be written as JSON.
    """
    if isinstance(message, str):
        return message
    try:
        return json.dumps(message, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SourceError(f"a message cannot be written as JSON: {error}") from None


def as_frame(image: bytes | npt.ArrayLike) -> bytes:
    """Return a picture as the wire has it.

    Parameters
    ----------
    image : bytes or (H, W, 3) uint8 array-like
        RGB, at the size that the model wants: the wire does not carry it.

    Returns
    -------
    bytes
        Row by row.

    Raises
    ------
    SourceError
        If it is something else.
    """
    if isinstance(image, bytes):
        return image
    pixels = as_array(image, name="a picture")
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        raise SourceError(f"a picture is {pixels.shape} {pixels.dtype}; wanted (H, W, 3) uint8, RGB")
    return pixels.tobytes()


def as_messages(messages: Iterable[str | Mapping[str, JSON]]) -> list[str]:
    """Return a conversation as the wire has it.

    Parameters
    ----------
    messages : iterable of str or mapping
        In order.

    Returns
    -------
    list of str
        JSON.

    Raises
    ------
    SourceError
        If it is one text, which would be sent letter by letter.
    """
    if isinstance(messages, str):
        raise SourceError("messages is one text; wanted a list of messages")
    if isinstance(messages, Mapping):
        raise SourceError("messages is one message; wanted a list of messages")
    return [as_message(each) for each in messages]
