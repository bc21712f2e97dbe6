"""The calls that read, stop and clear jobs."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from predsession.server import answers
from predsession.server.calls import named_job, read_json_state, seconds, whole_number
from predsession.server.final import UNTRACKED
from predsession.server.info_routes import memory
from predsession.server.job import Job
from predsession.server.refusal import Fault
from predsession.server.service import Service
from predsession.wire.jsontypes import JSON, JSONObject

_MOST = 1000  # results in one numbered answer, where the caller sets no limit


class JobRoutes:
    """One method a call.

    Parameters
    ----------
    service : Service
        What answers.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._jobs = service.jobs

    async def get_inference_progress(self, request: Request) -> JSON:
        """Say how far a job is; takes nothing."""
        return answers.progress_answer(named_job(await self._state(request), self._jobs))

    async def get_inference_status(self, request: Request) -> JSON:
        """Say where a job stands."""
        job = named_job(await self._state(request), self._jobs)
        tracker = {} if self._service.stock else answers.tracker_of(job)
        return {**answers.status_answer(job, memory()), **tracker}

    async def get_preparing_progress(self, request: Request) -> JSON:
        """Say how far a job is, and only that."""
        return answers.true_progress(named_job(await self._state(request), self._jobs))

    async def get_inference_result(self, request: Request) -> JSON | Response:
        """Return the final result: that of a clip which is done."""
        job = named_job(await self._state(request), self._jobs)
        if not job.has_final:
            return None
        path = self._service.store.finals / job.uuid
        return FileResponse(path, media_type="application/json") if path.exists() else UNTRACKED

    async def pop_inference_results(self, request: Request) -> Response:
        """Return results: those after ``ack``, which stay, or all, which then are gone."""
        state = await self._state(request)
        job = named_job(state, self._jobs)
        stock = self._service.stock
        ack = None if stock else whole_number(state, "ack")
        after = ack if stock else whole_number(state, "after")
        after = ack if after is None else after
        limit = None if stock else whole_number(state, "limit")
        wait = 0.0 if stock else seconds(state, "wait", most=self._service.config.limits.wait)
        await self._wait(job, after if ack is not None else None, wait)
        flags = answers.job_object(job, [])
        if ack is not None and after is not None:
            most = _MOST if limit is None else min(limit, _MOST)
            pairs = await self._jobs.read(job, ack=ack, after=after, limit=most)
            items = [answers.numbered(number, item) for number, item in pairs]
        elif wait and await request.is_disconnected():
            items = []  # nobody is there to read it, and what is popped is gone
        else:
            items = await self._jobs.pop(job)
        return Response(answers.pop_answer(flags, items), media_type="application/json")

    async def _wait(self, job: Job, after: int | None, wait: float) -> None:
        """Hold the answer until there is something to say, or the time is over."""
        until = time.monotonic() + wait
        while not self._service.closing and not job.ended and job.cleared_at is None:
            fresh = job.done > after if after is not None else job.pending > 0
            left = until - time.monotonic()
            if fresh or left <= 0:
                return
            await job.news(min(left, self._service.config.limits.lease / 3))
            self._jobs.renew(job)  # somebody waits for it

    async def stop_inference(self, request: Request) -> JSON:
        """Stop a job."""
        job = named_job(await self._state(request), self._jobs, success=True)
        await self._jobs.stop(job)
        await self._service.take_back()
        return {"message": "Inference will be stopped.", "success": True}

    async def clear_inference_request(self, request: Request) -> JSON:
        """Stop a job and let go of it; one that is not known is gone already."""
        state = await self._state(request)
        try:
            job = named_job(state, self._jobs, success=True)
        except Fault:
            return {"success": True}
        await self._jobs.clear(job)
        await self._service.take_back()
        return {"success": True}

    async def list_inference_requests(self, request: Request) -> JSON:
        """List the jobs of a session, or all."""
        session = (await self._state(request)).get("session")
        jobs = self._jobs.of_session(session if isinstance(session, str) else None)
        return {"requests": [answers.listed(job) for job in jobs if job.cleared_at is None]}

    async def _state(self, request: Request) -> JSONObject:
        """Read the call's state."""
        return await read_json_state(request, self._service.config.limits)
