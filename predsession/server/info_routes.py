"""The calls that ask what the server is and has."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request

from predsession.server.service import FEATURES, Service
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.meta import ModelMeta


class InfoRoutes:
    """One method a call; the answers need no state.

    Parameters
    ----------
    service : Service
        What answers.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def get_session_info(self, _: Request) -> JSON:
        """Say what the server is and can do."""
        card = self._service.card
        info: dict[str, JSON] = {
            "app_name": "Neural Network Serving" if self._service.stock else "predsession",
            "session_id": None,
            "number_of_classes": len(card.classes),
            "sliding_window_support": "none",
            "videos_support": False,
            "async_video_inference_support": False,
            "tracking_on_videos_support": False,
            "async_image_inference_support": True,
            "tracking_algorithms": [],
            "batch_inference_support": True,
            "max_batch_size": card.max_batch_size,
            "task type": card.task,
        }
        if not self._service.stock:
            lease = self._service.config.limits.lease_s
            info["predsession"] = {"version": 1, "features": list(FEATURES), "lease_s": lease}
        return info

    async def get_model_meta(self, _: Request) -> JSON:
        """Say what the model finds."""
        card = self._service.card
        return ModelMeta.from_names(card.classes, card.shape).to_json()

    async def get_custom_inference_settings(self, _: Request) -> JSON:
        """Say what can be set, with the defaults."""
        return {"settings": self._service.card.settings}

    async def get_tracking_settings(self, _: Request) -> JSON:
        """Say what can be set for tracking."""
        return {}

    async def get_status(self, _: Request) -> JSON:
        """Say whether the model is there, and how much memory is used."""
        progress: JSONObject = {"message": "Ready", "current": 0, "total": 1}
        return {"is_deployed": True, "progress": progress, **memory()}

    async def is_deployed(self, _: Request) -> JSON:
        """Say whether the model is there."""
        return {"deployed": True, "description:": "Model is ready to receive requests"}

    async def is_ready(self, _: Request) -> JSON:
        """Say whether the model is there, in one word."""
        return {"status": "ready"}


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
