"""The protocol's calls, answered in values: what goes in and comes out is the same over gRPC and HTTP.

Neither gRPC nor starlette is known here; `door` and `routes` have them. Answers that are no inference are
JSON objects with the protocol's own field names, which are those of its messages too. What cannot be answered
is a `CallError`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence

import predsession
from predsession.clock import Clock, SystemClock
from predsession.server.config import Limits, OipDoor
from predsession.server.oip.facts import config_of, metadata_of
from predsession.server.oip.inferring import Inferring
from predsession.server.oip.keeping import Session, Sessions, Tally
from predsession.server.oip.models import Entry, Models
from predsession.server.oip.orders import LoadOrder, Said
from predsession.server.oip.repository import VERSION
from predsession.server.oip.served import Served
from predsession.server.runner import Runner
from predsession.server.statuses import CallError
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.oip import residency, rest
from predsession.wire.oip.messages import InferReply, InferRequest
from predsession.wire.oip.residency import SESSION

EXTENSIONS = (
    rest.BINARY,
    "model_repository",
    "model_configuration",
    "statistics",
    "parameters",
    residency.EXTENSION,
)
"""Of the protocol, that this server has."""
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
        self._inferring = Inferring(self.sessions)
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
        with self.sessions.named(order.session) as session:
            await self.models.load(name, order, session)

    async def unload(self, name: str, said: Said) -> None:
        """Let a model go; only as far as the session is concerned where one is named."""
        self._check_open()
        with self.sessions.named(said.get(SESSION, "")) as session:
            await self.models.unload(name, "" if session is None else session.id)

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

    # -- inference -------------------------------------------------------------------------------------

    async def infer(self, request: InferRequest) -> InferReply:
        """Answer a request, once; raises `CallError` if that cannot be."""
        return await self._inferring.infer(request, *self._get(request.model, request.version))

    async def stream(self, request: InferRequest) -> AsyncGenerator[InferReply, None]:
        """Answer a request as often as its model does; raises `CallError` if that cannot be."""
        found = self._get(request.model, request.version)
        async with contextlib.aclosing(self._inferring.stream(request, *found)) as replies:
            async for reply in replies:
                yield reply

    def _get(self, name: str, version: str) -> tuple[Entry, Served]:
        """Return a model that is ready."""
        self._check_open()
        return self.models.get(name, version)

    def _check_open(self) -> None:
        """Refuse calls before the models are loaded, and at the end."""
        if not self.ready():
            ending = self.closing.is_set()
            text = "the server is ending" if ending else "the models are being loaded; try again"
            raise CallError("UNAVAILABLE", text)
