"""What operators and their tools ask: whether it lives, whether it is ready, how it fares."""

from __future__ import annotations

from collections import Counter

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from predsession.server.memory import resident
from predsession.server.metrics import Sample
from predsession.server.refusal import Refusal
from predsession.server.service import Service
from predsession.wire.jsontypes import JSON

_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


class OperateRoutes:
    """One method a path, all of them GET.

    Parameters
    ----------
    service : Service
        What answers.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def healthz(self, _: Request) -> JSON:
        """Say that the process lives."""
        return {"status": "ok"}

    async def readyz(self, _: Request) -> JSON:
        """Say whether work is taken: models, by name, and the disk."""
        service = self._service
        models: dict[str, JSON] = {name: runner.ready for name, runner in service.runners.items()}
        answer: dict[str, JSON] = {"ready": service.ready, "models": models, "disk": not service.jobs.failing}
        if not service.ready:
            raise Refusal(503, answer, retry_after=1)
        return answer

    async def metrics(self, _: Request) -> Response:
        """Write the metrics down for Prometheus."""
        service = self._service
        stages = Counter(job.stage.name.lower() for job in service.jobs)
        gauges = {
            "jobs": [Sample(count, {"stage": stage}) for stage, count in stages.items()],
            "queue_items": [
                Sample(runner.schedule.waiting(), {"model": name}) for name, runner in service.runners.items()
            ],
            "model_ready": [
                Sample(float(runner.ready), {"model": name}) for name, runner in service.runners.items()
            ],
            "upload_bytes": [Sample(service.jobs.held, {})],
            "database_bytes": [Sample(service.store.bytes_used, {})],
            "resident_bytes": [Sample(resident() or 0, {})],
        }
        return PlainTextResponse(service.metrics.render(gauges), media_type=_FORMAT)
