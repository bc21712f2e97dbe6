"""A server as a session sees it: one set of calls, over gRPC (`grpcdoor`) or HTTP (`httpdoor`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Protocol, TypeVar

from predsession.wire.oip.facts import Counters, ModelConfig, ModelFacts, ModelState, ServerFacts
from predsession.wire.oip.messages import InferReply, InferRequest

T = TypeVar("T")
END_SECONDS = 10.0
"""For which the end of a session waits for a server that does not answer."""
LoadParameter = str | bytes
"""Text, or a file's content."""


class Replies(Protocol):
    """Many answers to one request; they may be cancelled from any thread."""

    def __iter__(self) -> Iterator[InferReply]:
        """Return itself."""

    def __next__(self) -> InferReply:
        """Return the next."""

    def cancel(self) -> None:
        """End it, here and on the server."""


class Door(Protocol):
    """What can be asked of a server.

    Every call raises the package's own errors: `ConnectError` where nothing was sent, `RequestTimeoutError`,
    a `ResponseError` with the server's own words.
    """

    @property
    def shown(self) -> str:
        """The address, as it may be shown."""

    def server(self) -> ServerFacts:
        """Ask what the server is."""

    def ready(self) -> bool:
        """Ask whether the server answers calls."""

    def model_ready(self, name: str) -> bool:
        """Ask whether a model does."""

    def model(self, name: str) -> ModelFacts:
        """Ask what a model takes and gives."""

    def config(self, name: str) -> ModelConfig:
        """Ask how a model is configured; an empty answer where the server does not say."""

    def infer(self, request: InferRequest, seconds: float) -> InferReply:
        """Run a model, and wait."""

    def submit(self, request: InferRequest, seconds: float, then: Callable[[InferReply], T]) -> Future[T]:
        """Run a model, and go on; `then` makes what the future gives, and must not wait for anything."""

    def stream(self, request: InferRequest, *, bare: bool) -> Replies:
        """Run a model that answers many times; `bare` where replies come without Triton's envelope."""

    def index(self) -> Sequence[ModelState]:
        """Ask which models the server's repository has."""

    def load(self, name: str, parameters: Mapping[str, LoadParameter], seconds: float) -> None:
        """Have a model loaded."""

    def unload(self, name: str, seconds: float, session: str = "") -> None:
        """Have a model unloaded; as far as one session is concerned, where our server is told of one."""

    def counters(self, name: str) -> Counters | None:
        """Ask how often and how long a model ran; None where the server does not count."""

    def counted(self) -> list[str]:
        """Ask which models the server counts calls of."""

    def register(self, region: str, key: str, size: int) -> None:
        """Tell the server of a region of shared memory."""

    def knows(self, region: str) -> bool:
        """Ask whether the server knows a region of shared memory."""

    def unregister(self, region: str) -> None:
        """Tell the server to forget one."""

    def renew(self, session: str, lease: float) -> None:
        """Keep a session's tensors and models for so many seconds."""

    def end(self, session: str) -> None:
        """Let a session's tensors and models go."""

    def forget(self, session: str, keys: Sequence[str]) -> None:
        """Let some of a session's tensors go."""

    def close(self) -> None:
        """Close the connection; it may be done twice."""
