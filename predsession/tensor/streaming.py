"""Many answers to one request: a decoupled model's."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Self

from predsession.errors import ProtocolError, RequestTimeoutError, SourceError
from predsession.tensor.answers import check_output, placed
from predsession.tensor.containers import Data
from predsession.tensor.door import Door, Replies
from predsession.tensor.plan import Plan
from predsession.tensor.residency import bytes_of
from predsession.wire.oip.facts import ServerFacts
from predsession.wire.oip.messages import InferReply, InferRequest, Tensor
from predsession.wire.oip.packing import unpack

BARE = "mlserver"
"""The server whose stream has replies as they are; Triton's, and ours, have an envelope around each."""
WITH_END = "triton_enable_empty_final_response"
FINAL = "triton_final_response"
_LONGEST = 1e6


class TensorStream:
    """Answers as they come, each a dict; it may be cancelled from any thread.

    Parameters
    ----------
    replies : Replies
        From the door.
    plan : Plan
        What was asked.
    idle : float
        Seconds between two answers.
    where : str
        For messages.
    """

    def __init__(self, replies: Replies, plan: Plan, *, idle: float, where: str) -> None:
        self._replies = replies
        self._plan = plan
        self._idle = idle
        self._where = where
        self._late = False
        self._ended = False

    @classmethod
    def opened(cls, door: Door, plan: Plan, facts: ServerFacts, *, idle: float) -> TensorStream:
        """Send a request whose answers are streamed.

        Parameters
        ----------
        door : Door
            The server.
        plan : Plan
            What is asked.
        facts : ServerFacts
            Who is asked: servers differ in how they write a stream.
        idle : float
            Seconds between two answers.

        Returns
        -------
        TensorStream
            Of them.

        Raises
        ------
        SourceError
            If an input is kept on the server, or `idle` is no time.
        """
        if not 0 < idle < _LONGEST:
            raise SourceError(f"idle_timeout is {idle!r}; wanted seconds above 0")
        if any(given.tensor is not None for given in plan.given):
            raise SourceError("a stream takes arrays: no HTensor that lives on the server")
        inputs = tuple(
            Tensor(given.name, given.datatype, given.shape, bytes_of(given)) for given in plan.given
        )
        bare = facts.name == BARE
        parameters = {} if bare else {WITH_END: True}
        request = InferRequest(plan.model.name, inputs, id="1", parameters=parameters)
        return cls(door.stream(request, bare=bare), plan, idle=idle, where=door.shown)

    def __iter__(self) -> Iterator[Mapping[str, Data]]:
        """Return itself."""
        return self

    def __next__(self) -> dict[str, Data]:
        """Return the next answer; end after the last one."""
        if self._ended:
            raise StopIteration
        try:
            reply = self._next()
        except StopIteration:
            self._ended = True
            if self._late:
                raise RequestTimeoutError(
                    f"{self._plan.model.name!r} at {self._where}: no answer within {self._idle:g} s"
                ) from None
            raise
        except BaseException as error:
            self._fail(error)
            raise
        if reply.parameters.get(FINAL) is True and not reply.outputs:
            self.cancel()  # nothing follows; it lets go of the connection
            raise StopIteration
        try:
            return {each.name: self._read(each) for each in reply.outputs}
        except ProtocolError as error:
            self._fail(error)
            raise

    def _fail(self, error: BaseException) -> None:
        """End it because of an error; raise what says more of it, where there is such."""
        self.cancel()
        if isinstance(error, ProtocolError):
            better = placed(error, self._plan.model.name, self._where)
            if better is not error:
                raise better from error

    def _next(self) -> InferReply:
        """Wait for the next reply."""
        timer = threading.Timer(self._idle, self._give_up)
        timer.daemon = True
        timer.start()
        try:
            return next(self._replies)
        finally:
            timer.cancel()

    def _give_up(self) -> None:
        """End it because nothing came."""
        self._late = True
        self._replies.cancel()

    def _read(self, tensor: Tensor) -> Data:
        """Return one output."""
        if tensor.data is None:
            raise ProtocolError(f"output {tensor.name!r} came without its bytes")
        told = {facts.name: facts.datatype for facts in self._plan.model.outputs}
        check_output(tensor, told.get(tensor.name))
        return self._plan.container.of(unpack(tensor.data, tensor.datatype, tensor.shape).copy())

    def cancel(self) -> None:
        """End it, here and on the server; it may be done twice."""
        self._ended = True
        self._replies.cancel()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel."""
        self.cancel()

    def __del__(self) -> None:
        """Cancel what nobody reads any more."""
        self.cancel()
