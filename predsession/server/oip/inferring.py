"""Requests for models, answered: checked, run, kept, counted."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from predsession.server.oip.checking import Output, check_inputs, check_outputs, kept_inputs
from predsession.server.oip.keeping import Session, Sessions
from predsession.server.oip.models import Entry
from predsession.server.oip.repository import VERSION
from predsession.server.oip.served import Order, Ran, Served
from predsession.server.statuses import CallError
from predsession.wire.oip.messages import InferReply, InferRequest, Parameter, Tensor
from predsession.wire.oip.residency import ABSENT, INFER_NS, POST_NS, PRE_NS, QUEUE_NS, SESSION, TIMINGS

FINAL = "triton_final_response"
EMPTY_FINAL = "triton_enable_empty_final_response"


@dataclass(frozen=True, slots=True)
class Inferring:
    """Answers requests.

    Parameters
    ----------
    sessions : Sessions
        With what is kept.
    """

    sessions: Sessions

    async def infer(self, request: InferRequest, entry: Entry, model: Served) -> InferReply:
        """Answer a request, once.

        Parameters
        ----------
        request : InferRequest
            As it came.
        entry : Entry
            The model's.
        model : Served
            What it names.

        Returns
        -------
        InferReply
            The outputs that were asked for, in that order.

        Raises
        ------
        CallError
            If it cannot be answered.
        """
        if model.facts.decoupled:
            text = (
                f"model {entry.name} is decoupled: it has any number of answers, and needs ModelStreamInfer"
            )
            raise CallError("UNIMPLEMENTED", text)
        with _counted(entry), self._session(request) as session:
            order, outputs = _order(request, model, session)
            ran = await model.run(order)
            self._keep(request, model, session, outputs=outputs, ran=ran)
            entry.statistics.succeeded(ran.times)
            return _reply(request, model, outputs, ran=ran)

    async def stream(
        self, request: InferRequest, entry: Entry, model: Served
    ) -> AsyncGenerator[InferReply, None]:
        """Answer a request as often as its model does.

        Parameters
        ----------
        request : InferRequest
            As it came.
        entry : Entry
            The model's.
        model : Served
            What it names.

        Yields
        ------
        InferReply
            Each says whether it is the last; where a decoupled model is asked to, an empty one is.

        Raises
        ------
        CallError
            If it cannot be answered.
        """
        if not model.facts.decoupled:
            yield _finally(await self.infer(request, entry, model), final=True)
            return
        with _counted(entry), self._session(request) as session:
            order, outputs = _order(request, model, session)
            async with contextlib.aclosing(model.stream(order)) as answers:
                async for ran in answers:
                    self._keep(request, model, session, outputs=outputs, ran=ran)
                    entry.statistics.succeeded(ran.times)
                    yield _finally(_reply(request, model, outputs, ran=ran), final=False)
        if request.parameters.get(EMPTY_FINAL):
            yield _finally(InferReply(request.model, (), VERSION, request.id), final=True)

    def _session(self, request: InferRequest) -> AbstractContextManager[Session | None]:
        """Hold the session that a request names, if any."""
        return self.sessions.named(request.parameters.get(SESSION, ""))

    def _keep(
        self,
        request: InferRequest,
        model: Served,
        session: Session | None,
        *,
        outputs: Sequence[Output],
        ran: Ran,
    ) -> None:
        """Keep what is to be kept."""
        taken = {spec.name: spec.datatype for spec in model.facts.inputs}
        given = {spec.name: spec.datatype for spec in model.facts.outputs}
        kept = {key: (ran.inputs[name], taken[name]) for key, name in kept_inputs(request).items()}
        kept |= {one.key: (ran.outputs[one.name], given[one.name]) for one in outputs if one.key}
        if kept and session is not None:
            self.sessions.keep(session, kept)


@contextlib.contextmanager
def _counted(entry: Entry) -> Iterator[None]:
    """Count a call that fails."""
    began = time.monotonic_ns()
    try:
        yield
    except CallError:
        entry.statistics.failed(time.monotonic_ns() - began)
        raise


def _order(request: InferRequest, model: Served, session: Session | None) -> tuple[Order, tuple[Output, ...]]:
    """Check a request."""
    inputs = check_inputs(request, model.facts, session)
    outputs = check_outputs(request.outputs, model.facts, session)
    kept_inputs(request)
    wanted = tuple(one.name for one in outputs)
    return Order(inputs, wanted, frozenset(one.name for one in outputs if one.sent)), outputs


def _reply(request: InferRequest, model: Served, outputs: Sequence[Output], *, ran: Ran) -> InferReply:
    """Put a reply together."""
    kinds = {spec.name: spec.datatype for spec in model.facts.outputs}
    tensors = tuple(
        Tensor(
            one.name,
            kinds[one.name],
            tuple(ran.outputs[one.name].shape),
            ran.data[one.name] if one.sent else None,
            {} if one.sent else {ABSENT: True},
        )
        for one in outputs
    )
    times = ran.times
    timings: Mapping[str, Parameter] = (
        {QUEUE_NS: times.queue, PRE_NS: times.pre, INFER_NS: times.infer, POST_NS: times.post}
        if request.parameters.get(TIMINGS)
        else {}
    )
    return InferReply(request.model, tensors, VERSION, request.id, timings)


def _finally(reply: InferReply, *, final: bool) -> InferReply:
    """Say whether a reply is the last to its request."""
    return InferReply(reply.model, reply.outputs, reply.version, reply.id, {**reply.parameters, FINAL: final})
