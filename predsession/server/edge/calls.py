"""The interface's calls, answered: messages in, messages out. No gRPC here; `door` has it.

What the interface answers with a status of its own is a reply that says ``success=false``; what it answers
with one of gRPC's is a `CallError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from google.protobuf.message import Message

from predsession.errors import PredSessionError
from predsession.server.config import EdgeDoor, Limits
from predsession.server.edge.answer import input_specs, output_specs
from predsession.server.edge.cameras import Camera, open_camera
from predsession.server.edge.inferring import NEEDS_DEVICE, DeviceNeededError, Inferring
from predsession.server.edge.models import EdgeModel, ModelError, Models
from predsession.server.edge.sessions import QuotaError, Reason, Session, SessionError, Sessions
from predsession.server.edge.stats import system_stats
from predsession.server.edge.streaming import HIGHEST_FPS, USUAL_FPS, Watching, Wish, Write
from predsession.server.shots import PRIORITIES
from predsession.server.statuses import CallError
from predsession.server.texts import encodable, named, shortened
from predsession.wire.edge import inference_pb2 as pb

ABSENT: Mapping[str, str] = MappingProxyType({
    "EncodeText": "this server has no text encoder",
    **dict.fromkeys(
        ("GenaiCreateSession", "GenaiDestroySession", "GenaiGenerate", "GenaiAbort"),
        "this server has no generative models",
    ),
})  # fmt: skip
"""Calls that need a model of a kind that the server does not have, and what is said to them."""
Unary = Callable[..., Awaitable[Message | bytes]]
_STATUS = {Reason.UNKNOWN: "NOT_FOUND", Reason.MODEL: "PERMISSION_DENIED"}
_OK = pb.Status(success=True)


def _no(text: object) -> pb.Status:
    """Return the interface's "no"."""
    return pb.Status(success=False, message=shortened(str(text)))


class Calls:
    """Answers calls.

    Parameters
    ----------
    models : Models
        Which there are.
    config : EdgeDoor
        With the cameras.
    limits : Limits
        What is refused.
    """

    def __init__(self, models: Models, config: EdgeDoor, limits: Limits) -> None:
        self._models = models
        self._config = config
        self._limits = limits
        self._sessions = Sessions(limits.sessions)
        self._inferring = Inferring(models, self._sessions, limits)
        self._watchers = 0
        self.closing = asyncio.Event()
        """Set when the server ends: no stream would, by itself."""

    def by_name(self) -> dict[str, Unary]:
        """Return what answers each call that answers once, by its name; `ABSENT` has the rest."""
        return {
            "RegisterModel": self.register_model,
            "UnregisterModel": self.unregister_model,
            "ListModels": self.list_models,
            "GetModelInfo": self.get_model_info,
            "Infer": self.infer,
            "InferBatch": self.infer_batch,
            "CreateSession": self.create_session,
            "DestroySession": self.destroy_session,
            "GetStats": self.get_stats,
            "UpdatePostprocessConfig": self.update_postprocess_config,
        }

    # -- models ----------------------------------------------------------------------------------------

    async def register_model(self, request: pb.ModelRegisterRequest) -> pb.ModelRegisterResponse:
        """Load a model."""
        try:
            model = await self._models.register(
                request.model_id,
                request.model_path,
                owner=request.owner_id,
                raw_only=request.raw_output_only,
                transient=request.transient,
            )
        except ModelError as error:
            return pb.ModelRegisterResponse(status=_no(error))
        return pb.ModelRegisterResponse(model_id=model.id, status=_OK)

    async def unregister_model(self, request: pb.ModelInfo) -> pb.Status:
        """Let a model go."""
        try:
            await self._models.unregister(request.model_id, request.owner_id)
        except ModelError as error:
            return _no(error)
        return _OK

    async def list_models(self, _: pb.Empty) -> pb.ModelListResponse:
        """Describe all models."""
        return pb.ModelListResponse(models=[_info(model) for model in self._models])

    async def get_model_info(self, request: pb.ModelInfo) -> pb.ModelInfo:
        """Describe one model."""
        return _info(self._model(request.model_id))

    async def update_postprocess_config(
        self, request: pb.UpdatePostprocessConfigRequest
    ) -> pb.UpdatePostprocessConfigResponse:
        """Change a model's settings."""
        try:
            self._models.configure(request.model_id, request.config_json)
        except ModelError as error:
            return pb.UpdatePostprocessConfigResponse(status=_no(error))
        return pb.UpdatePostprocessConfigResponse(status=_OK)

    async def get_stats(self, request: pb.GetStatsRequest) -> pb.SystemStats:
        """Tell what happens."""
        return await system_stats(self._models, request.sampling_window_ms)

    def _model(self, name: str) -> EdgeModel:
        """Return a model, or end the call."""
        model = self._models.get(name)
        if model is None:
            raise CallError("NOT_FOUND", f"Model not found: {name}")
        return model

    # -- sessions --------------------------------------------------------------------------------------

    async def create_session(self, request: pb.SessionConfig) -> pb.SessionCreateResponse:
        """Open a session, under the name that was asked for."""
        try:
            session = self._sessions.create(
                request.session_id,
                request.app_id,
                allowed=request.allowed_models,
                max_qps=request.max_qps,
                max_concurrent=request.max_concurrent,
                priority=min(request.priority, PRIORITIES - 1),
            )
        except SessionError as error:
            return pb.SessionCreateResponse(status=_no(error))
        return pb.SessionCreateResponse(session_id=session.id, status=_OK)

    async def destroy_session(self, request: pb.SessionConfig) -> pb.Status:
        """End a session."""
        return _OK if self._sessions.destroy(request.session_id) else _no("Session not found")

    # -- pictures --------------------------------------------------------------------------------------

    async def infer(self, request: pb.InferRequest) -> bytes:
        """Run a picture through a model."""
        try:
            return await self._inferring.infer(request)
        except DeviceNeededError:
            raise CallError("UNIMPLEMENTED", NEEDS_DEVICE) from None

    async def infer_batch(self, request: pb.InferBatchRequest, *, left: float | None = None) -> bytes:
        """Run several pictures, each through its model, within the seconds that are left to the caller."""
        return await self._inferring.infer_batch(request, left=left)

    async def stream_infer(self, request: pb.StreamInferRequest, write: Write) -> None:
        """Run a camera's frames through a model until the caller has enough.

        Parameters
        ----------
        request : StreamInferRequest
            As it came.
        write : callable
            Sends a message.

        Raises
        ------
        CallError
            If it cannot begin, or ends by itself.
        """
        model = self._model(request.model_id)
        if request.stream_id not in self._config.streams:
            known = named(self._config.streams) or "it has none; see --stream NAME=PATH"
            raise CallError(
                "NOT_FOUND", f"Stream not found: {request.stream_id!r} is none of this server's: {known}"
            )
        if self._watchers >= self._limits.streams:
            raise CallError(
                "RESOURCE_EXHAUSTED", f"{self._watchers} streams are running; see --limit-streams"
            )
        self._watchers += 1
        try:
            with self._sessions.enter(request.session_id, model.id, counts=False) as session, model.used():
                await self._watch(request, model, session, write)
        except QuotaError as error:
            raise CallError(_STATUS.get(error.reason, "RESOURCE_EXHAUSTED"), str(error)) from None
        finally:
            self._watchers -= 1
        raise CallError("NOT_FOUND", f"Session not found: {request.session_id} was destroyed")

    async def _watch(
        self, request: pb.StreamInferRequest, model: EdgeModel, session: Session | None, write: Write
    ) -> None:
        """Watch a camera until the session ends."""
        wish = Wish(
            min(request.fps_limit or USUAL_FPS, HIGHEST_FPS),
            outputs=request.raw_output_only or model.raw_only,
            priority=4 if session is None else session.priority,
        )
        camera = await self._open(request.stream_id)
        watching = asyncio.create_task(Watching(camera, model, session, wish=wish, write=write).run())
        closing = asyncio.create_task(self.closing.wait())
        try:
            await asyncio.wait([watching, closing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (watching, closing):
                task.cancel()
            await asyncio.gather(watching, closing, return_exceptions=True)
        if watching.cancelled():
            raise CallError("UNAVAILABLE", "the server is ending")
        watching.result()

    async def _open(self, name: str) -> Camera:
        """Open what stands in for a camera."""
        path = self._config.streams[name]
        try:
            return await asyncio.to_thread(open_camera, path, max_pixels=self._limits.pixels)
        except (PredSessionError, OSError) as error:
            raise CallError("FAILED_PRECONDITION", f"the camera {name} cannot be opened: {error}") from None


def _info(model: EdgeModel) -> pb.ModelInfo:
    """Describe a model."""
    card = model.runner.card
    return pb.ModelInfo(
        model_id=model.id,
        name=model.id,
        model_path=encodable(model.target),
        version=card.digest,
        inputs=input_specs(),
        outputs=output_specs(card),
        load_timestamp=int(model.loaded),
        owner_id=model.owner,
        transient=model.transient,
        batch_size=1,
    )
