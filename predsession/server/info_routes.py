"""The calls that ask what the server is and has."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request

from predsession.server.choice import asked
from predsession.server.refusal import Refusal
from predsession.server.runner import Runner
from predsession.server.service import FEATURES, Service
from predsession.server.tracking import STOCK, tracker_names, tracker_settings
from predsession.wire.jsontypes import JSON, JSONObject


class InfoRoutes:
    """One method a call; the answers need no state.

    Parameters
    ----------
    service : Service
        What answers.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def get_session_info(self, request: Request) -> JSON:
        """Say what the server is and can do."""
        card = (await self._runner(request)).card
        info: dict[str, JSON] = {
            "app_name": "Neural Network Serving" if self._service.stock else "predsession",
            "session_id": None,
            "number_of_classes": len(card.classes),
            "sliding_window_support": "none",
            "videos_support": True,
            "async_video_inference_support": True,
            "tracking_on_videos_support": True,
            "async_image_inference_support": True,
            "tracking_algorithms": [STOCK] if self._service.stock else tracker_names(),
            "batch_inference_support": True,
            "max_batch_size": card.max_batch_size,
            "task type": card.task,
        }
        if not self._service.stock:
            info["predsession"] = {
                "version": 1,
                "features": list(FEATURES),
                "lease_s": self._service.config.limits.lease,
                "models": list(self._service.runners),
                "digest": card.digest,
            }
        return info

    async def get_model_meta(self, request: Request) -> JSON:
        """Say what the model finds."""
        return (await self._runner(request)).card.meta.to_json()

    async def get_custom_inference_settings(self, request: Request) -> JSON:
        """Say what can be set, with the defaults."""
        return {"settings": (await self._runner(request)).card.settings}

    async def get_tracking_settings(self, _: Request) -> JSON:
        """Say what can be set for tracking, with the defaults."""
        settings = tracker_settings()
        return {STOCK: settings[STOCK]} if self._service.stock else settings

    async def get_status(self, request: Request) -> JSON:
        """Say whether the model is there, and how much memory is used."""
        runner = await self._runner(request)
        message = "Ready" if runner.ready else runner.problem or "Starting again"
        progress: JSONObject = {"message": message, "current": 0, "total": 1}
        return {"is_deployed": runner.ready, "progress": progress, **memory()}

    async def is_deployed(self, request: Request) -> JSON:
        """Say whether the model is there."""
        ready = (await self._runner(request)).ready
        text = "Model is ready to receive requests" if ready else "Model is not ready to receive requests"
        return {"deployed": ready, "description:": text}

    async def is_ready(self, request: Request) -> JSON:
        """Say whether the model is there, in one word."""
        if not (await self._runner(request)).ready:
            raise Refusal(503, {"status": "not ready"}, retry_after=1)
        return {"status": "ready"}

    async def _runner(self, request: Request) -> Runner:
        """Return the model that is meant."""
        runner, _ = await asked(self._service, request)
        return runner


def memory() -> JSONObject:
    """Return the machine's memory as a stock server shows it, in bytes.

    Returns
    -------
    JSONObject
        ``gpu_memory`` and ``ram_memory``; None where the system does not say.
    """
    nothing: JSONObject = {"allocated": None, "total": None}
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        total, free = (int(lines[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return {"gpu_memory": nothing, "ram_memory": nothing}
    return {"gpu_memory": nothing, "ram_memory": {"allocated": total - free, "total": total}}
