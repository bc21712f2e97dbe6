"""The protocol's calls, answered in values: what goes in and comes out is the same over gRPC and HTTP.

Neither gRPC nor starlette is known here; `door` and `routes` have them. Answers that are no inference are
JSON objects with the protocol's own field names, which are those of its messages too. What cannot be answered
is a `CallError`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence

import predsession
from predsession.clock import Clock, SystemClock
from predsession.server.config import Limits, OipDoor
from predsession.server.oip.checking import Output, check_inputs, check_outputs, kept_inputs
from predsession.server.oip.facts import config_of, metadata_of
from predsession.server.oip.keeping import Session, Sessions, Tally
from predsession.server.oip.models import VERSION, Entry, Models
from predsession.server.oip.orders import LoadOrder, Said
from predsession.server.oip.running import Order, Ran, Served
from predsession.server.runner import Runner
from predsession.server.statuses import CallError
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.oip import residency, rest
from predsession.wire.oip.messages import InferReply, InferRequest, Parameter, Tensor
from predsession.wire.oip.residency import ABSENT, INFER_NS, POST_NS, PRE_NS, QUEUE_NS, SESSION, TIMINGS

EXTENSIONS = (
    rest.BINARY,
    "model_repository",
    "model_configuration",
    "statistics",
    "parameters",
    residency.EXTENSION,
)
"""Of the protocol, that this server has."""
FINAL = "triton_final_response"
EMPTY_FINAL = "triton_enable_empty_final_response"
_log = logging.getLogger("predsession.server")


class Calls:
    """Answers calls. Make it in the server's loop.

    Parameters
    ----------
    config : OipDoor
        With the models.
    limits : Limits
        What is refused.
    clock : Clock, optional
        Of the leases.
    """

    def __init__(self, config: OipDoor, limits: Limits, clock: Clock | None = None) -> None:
        self.limits = limits
        self.models = Models(config, limits)
        self.sessions = Sessions(limits, clock or SystemClock())
        self.closing = asyncio.Event()
        """Set when the server ends: no stream would, by itself."""
        self._started = False
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self, runners: Mapping[str, Runner]) -> None:
        """Load the models, and begin to answer.

        Parameters
        ----------
        runners : mapping of str to Runner
            The server's models of pictures, started.

        Raises
        ------
        ModelLoadError
            If a model of the command line cannot be loaded.
        """
        await self.models.start(runners)
        self._started = True
        self._sweeper = asyncio.create_task(self._sweep())

    async def close(self) -> None:
        """Let calls under way finish, within the grace, and free everything."""
        self.closing.set()
        self._started = False
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        await self.models.close()

    async def _sweep(self) -> None:
        """Look again and again for sessions whose lease is over, until cancelled."""
        while True:
            await asyncio.sleep(self.limits.sweep)
            with contextlib.suppress(CallError):
                await self.sweep()

    async def sweep(self) -> None:
        """End the sessions whose lease is over."""
        for session in self.sessions.over():
            _log.info("session %s has not been heard of for %g s: ended", session.id, session.lease)
            await self._end(session)

    # -- the server ------------------------------------------------------------------------------------

    def ready(self) -> bool:
        """Whether models answer."""
        return self._started and not self.closing.is_set()

    @staticmethod
    def server_metadata() -> JSONObject:
        """Say who this is, and what it can."""
        return {"name": "predsession", "version": predsession.__version__, "extensions": list(EXTENSIONS)}

    # -- models ----------------------------------------------------------------------------------------

    def model_ready(self, name: str, version: str) -> bool:
        """Whether a model answers; raises `CallError` where there is no such model."""
        self._check_open()
        try:
            self.models.get(name, version)
        except CallError as error:
            if any(entry.name == name for entry in self.models) and version in {"", VERSION}:
                return False
            raise error from None
        return True

    def model_metadata(self, name: str, version: str) -> JSONObject:
        """Describe a model."""
        entry, model = self._get(name, version)
        return metadata_of(entry.name, model.facts)

    def model_config(self, name: str, version: str) -> JSONObject:
        """Return a model's configuration, in Triton's form."""
        entry, model = self._get(name, version)
        return config_of(entry.name, model.facts)

    def statistics(self, name: str = "", version: str = "") -> JSONObject:
        """Return what one model has done, or all that are ready."""
        self._check_open()
        chosen = [self._get(name, version)[0]] if name else [each for each in self.models if each.model]
        return {"model_stats": [each.statistics.to_json(each.name, VERSION) for each in chosen]}

    def index(self, *, ready: bool) -> list[JSONObject]:
        """List the models."""
        self._check_open()
        return self.models.index(ready=ready)

    async def load(self, name: str, said: Said) -> None:
        """Load a model.

        Parameters
        ----------
        name : str
            Which.
        said : mapping
            The parameters; a file as bytes.

        Raises
        ------
        CallError
            If it cannot be.
        """
        self._check_open()
        order = LoadOrder.read(name, said)
        with self._session(order.session) as session:
            await self.models.load(name, order, session)

    async def unload(self, name: str, said: Said) -> None:
        """Let a model go; only as far as the session is concerned where one is named."""
        self._check_open()
        session = said.get(SESSION, "")
        if not isinstance(session, str):
            raise CallError("INVALID_ARGUMENT", f"{SESSION} must be a text")
        with self._session(session):
            await self.models.unload(name, session)

    # -- sessions --------------------------------------------------------------------------------------

    def renew(self, name: str, lease: float | None) -> JSONObject:
        """Renew a session's lease, or open it."""
        self._check_open()
        session = self.sessions.renew(name, lease)
        return {**self._told(session.tally), "models": self.models.of(name), "lease_s": session.lease}

    async def end(self, name: str) -> JSONObject:
        """End a session; one that is not there has nothing."""
        session = self.sessions.get(name)
        if session is None:
            return {**self._told(Tally(0, 0)), "models": []}
        tally, models = await self._end(session)
        return {**self._told(tally), "models": models}

    def forget(self, name: str, keys: Sequence[str]) -> JSONObject:
        """Forget tensors of a session; those that are not there are none."""
        self._check_open()
        session = self.sessions.renew(name)
        return self._told(self.sessions.forget(session, keys))

    def list_sessions(self) -> list[JSONObject]:
        """List the sessions: what they have, and how long still."""
        return [
            {
                "session": each.id,
                **self._told(each.tally),
                "models": self.models.of(each.id),
                "lease_s": each.lease,
                "left_s": self.sessions.left(each),
            }
            for each in self.sessions
        ]

    @staticmethod
    def _told(tally: Tally) -> dict[str, JSON]:
        """Return what a session has."""
        return {"tensors": tally.tensors, "bytes": tally.bytes}

    async def _end(self, session: Session) -> tuple[Tally, list[str]]:
        """End a session and let its models go."""
        tally = self.sessions.end(session)
        return tally, await self.models.end(session.id)

    @contextlib.contextmanager
    def _session(self, name: Parameter) -> Iterator[Session | None]:
        """Hold the session that a call names, if any."""
        if name == "":
            yield None
            return
        if not isinstance(name, str):
            raise CallError("INVALID_ARGUMENT", f"{SESSION} must be a text")
        with self.sessions.used(name) as session:
            yield session

    # -- inference -------------------------------------------------------------------------------------

    async def infer(self, request: InferRequest) -> InferReply:
        """Answer a request, once.

        Parameters
        ----------
        request : InferRequest
            As it came.

        Returns
        -------
        InferReply
            The outputs that were asked for, in that order.

        Raises
        ------
        CallError
            If it cannot be answered.
        """
        entry, model = self._get(request.model, request.version)
        if model.facts.decoupled:
            text = (
                f"model {entry.name} is decoupled: it has any number of answers, and needs ModelStreamInfer"
            )
            raise CallError("UNIMPLEMENTED", text)
        with self._counted(entry), self._session(request.parameters.get(SESSION, "")) as session:
            order, outputs = self._order(request, model, session)
            ran = await model.run(order)
            self._keep(request, model, session, outputs, ran)
            entry.statistics.succeeded(ran.times)
            return self._reply(request, model, outputs, ran)

    async def stream(self, request: InferRequest) -> AsyncGenerator[InferReply, None]:
        """Answer a request as often as its model does.

        Parameters
        ----------
        request : InferRequest
            As it came.

        Yields
        ------
        InferReply
            Each says whether it is the last; where a decoupled model is asked to, an empty one is.

        Raises
        ------
        CallError
            If it cannot be answered.
        """
        entry, model = self._get(request.model, request.version)
        if not model.facts.decoupled:
            yield _finally(await self.infer(request), final=True)
            return
        with self._counted(entry), self._session(request.parameters.get(SESSION, "")) as session:
            order, outputs = self._order(request, model, session)
            async with contextlib.aclosing(model.stream(order)) as answers:
                async for ran in answers:
                    self._keep(request, model, session, outputs, ran)
                    entry.statistics.succeeded(ran.times)
                    yield _finally(self._reply(request, model, outputs, ran), final=False)
        if request.parameters.get(EMPTY_FINAL):
            yield _finally(InferReply(request.model, (), VERSION, request.id), final=True)

    def _get(self, name: str, version: str) -> tuple[Entry, Served]:
        """Return a model that is ready."""
        self._check_open()
        return self.models.get(name, version)

    def _check_open(self) -> None:
        """Refuse calls before the models are loaded, and at the end."""
        if not self.ready():
            text = (
                "the server is ending" if self.closing.is_set() else "the models are being loaded; try again"
            )
            raise CallError("UNAVAILABLE", text)

    @contextlib.contextmanager
    def _counted(self, entry: Entry) -> Iterator[None]:
        """Count a call that fails."""
        began = time.monotonic_ns()
        try:
            yield
        except CallError:
            entry.statistics.failed(time.monotonic_ns() - began)
            raise

    @staticmethod
    def _order(
        request: InferRequest, model: Served, session: Session | None
    ) -> tuple[Order, tuple[Output, ...]]:
        """Check a request."""
        inputs = check_inputs(request, model.facts, session)
        outputs = check_outputs(request.outputs, model.facts, session)
        kept_inputs(request)
        wanted = tuple(one.name for one in outputs)
        return Order(inputs, wanted, frozenset(one.name for one in outputs if one.sent)), outputs

    def _keep(
        self,
        request: InferRequest,
        model: Served,
        session: Session | None,
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

    @staticmethod
    def _reply(request: InferRequest, model: Served, outputs: Sequence[Output], ran: Ran) -> InferReply:
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
