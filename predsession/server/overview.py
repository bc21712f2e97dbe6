"""What the page shows of a running server, as one JSON object."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable

import predsession
from predsession.server.info_routes import memory
from predsession.server.job import Job
from predsession.server.memory import resident
from predsession.server.runner import Runner
from predsession.server.service import Service
from predsession.wire.jsontypes import JSON, JSONObject, as_object

MOST_JOBS = 100
_RATE_WINDOW_S = 10.0


class Rates:
    """How fast jobs advance: items a second over the last seconds in which somebody looked."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, int]]] = {}

    def note(self, jobs: Iterable[Job], now: float) -> None:
        """Note where the jobs stand; those that are not among them are forgotten."""
        kept: dict[str, deque[tuple[float, int]]] = {}
        for job in jobs:
            if job.ended:
                continue
            points = self._seen.get(job.uuid, deque())
            while len(points) > 1 and now - points[0][0] > _RATE_WINDOW_S:
                points.popleft()
            points.append((now, job.done))
            kept[job.uuid] = points
        self._seen = kept

    def of(self, job: Job) -> float | None:
        """Return a job's rate.

        Parameters
        ----------
        job : Job
            One of those that were noted.

        Returns
        -------
        float or None
            Items a second; None before the second look, and once it has ended.
        """
        points = self._seen.get(job.uuid)
        if not points or points[-1][0] <= points[0][0]:
            return None
        (since, before), (now, done) = points[0], points[-1]
        return (done - before) / (now - since)


class Overview:
    """Takes snapshots of a server.

    Parameters
    ----------
    service : Service
        The server.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._began = time.monotonic()
        self._rates = Rates()

    def to_json(self) -> dict[str, JSON]:
        """Return a snapshot; looking at a job renews no lease, so a forgotten tab keeps nothing alive."""
        now = time.monotonic()
        service = self._service
        jobs = list(service.jobs)
        self._rates.note(jobs, now)
        live = [job for job in jobs if not job.ended]
        return {
            "version": predsession.__version__,
            "stock": service.stock,
            "uptime_s": now - self._began,
            "models": [self._model(runner) for runner in service.runners.values()],
            "queue": {
                "waiting": sum(job.waiting for job in live),
                "working": sum(job.in_flight for job in live),
            },
            "jobs": [self._job(job, now) for job in _in_order(jobs)[:MOST_JOBS]],
            "job_count": len(jobs),
            "memory": _memory(service.runners.values()),
            "errors": service.errors.to_json(),
        }

    def _model(self, runner: Runner) -> JSONObject:
        """Describe one model."""
        name, card = runner.spec.name, runner.card
        # A stock server's calls have no place for a model's name, so only its first can be asked.
        path = "" if runner is self._service.first else None if self._service.stock else f"{name}/"
        return {
            "name": name,
            "path": path,
            "state": "ready" if runner.ready else "starting",
            "problem": None if runner.ready else runner.problem or None,
            "task": card.task,
            "class_count": len(card.classes),
            "max_batch_size": card.max_batch_size,
            "settings": card.settings,
            "waiting": runner.schedule.waiting(),
        }

    def _job(self, job: Job, now: float) -> JSONObject:
        """Describe one job."""
        failure = job.exception
        return {
            "uuid": job.uuid,
            "session": job.facts.session,
            "model": job.facts.model,
            "stage": job.stage.name.lower(),
            "stopped": job.stopped,
            "done": job.done,
            "total": job.facts.total,
            "pending": max(0, job.pending),
            "rate": self._rates.of(job),
            "age_s": now - job.created,
            "error": None if failure is None else f"{failure['type']}: {failure['message']}",
        }


def _in_order(jobs: list[Job]) -> list[Job]:
    """Return those that go on first, as they came, then those that have ended, the latest first."""
    live = [job for job in jobs if not job.ended]
    return live + [job for job in reversed(jobs) if job.ended]


def _memory(runners: Iterable[Runner]) -> JSONObject:
    """Return what the processes and the machine use, in bytes."""
    workers: list[JSON] = [
        {"model": runner.spec.name, "bytes": resident(pid)} for runner in runners for pid in runner.pids
    ]
    ram = as_object(as_object(memory())["ram_memory"])
    machine: JSONObject = {"used": ram["allocated"], "total": ram["total"]}
    return {"server": resident(), "workers": workers, "machine": machine}
