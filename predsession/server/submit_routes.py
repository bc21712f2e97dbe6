"""The calls that bring pictures."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import Response

from predsession.server.job import Job, JobFacts
from predsession.server.refusal import Fault, Refusal
from predsession.server.service import Service
from predsession.server.submit import Submit, read_state, read_submit
from predsession.server.upload import Form, receive_form
from predsession.wire.jsontypes import JSON

_STOCK_FORMATS = (
    ".jpg", ".jpeg", ".mpo", ".bmp", ".png", ".webp", ".tiff", ".tif", ".nrrd", ".jfif",
)  # fmt: skip


class SubmitRoutes:
    """One method a call.

    Parameters
    ----------
    service : Service
        What answers.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._jobs = service.jobs

    async def inference_batch_async(self, request: Request) -> JSON:
        """Start a job."""
        job = await self._submit(request)
        return {"message": "Scheduled inference task.", "inference_request_uuid": job.uuid}

    async def inference_image(self, request: Request) -> Response:
        """Answer with the one picture's item."""
        items = await self._answer_now(request, single=True)
        return Response(items[0], media_type="application/json")

    async def inference_batch(self, request: Request) -> Response:
        """Answer with the items of all pictures."""
        items = await self._answer_now(request, single=False)
        return Response(b"[" + b",".join(items) + b"]", media_type="application/json")

    async def _answer_now(self, request: Request, *, single: bool) -> Sequence[bytes]:
        """Run a job to its end and take its results."""
        job = await self._submit(request, single=single)
        try:
            while not job.ended and not self._service.closing:
                await job.news(1.0)
                if await request.is_disconnected():
                    break
            if job.exception is not None:
                raise Fault(f"{job.exception['type']}({job.exception['message']!r})")
            if not job.ended:
                raise Refusal(503, {"detail": "The server is ending."}, retry_after=5)
            return await self._jobs.pop(job)
        finally:
            await self._jobs.stop(job)
            await self._jobs.remove(job)

    async def _submit(self, request: Request, *, single: bool = False) -> Job:
        """Take in an upload, check it, and start a job on it."""
        key = None if self._service.stock else request.headers.get("idempotency-key")
        if key is not None and (known := self._jobs.by_key(key)) is not None:
            async for _ in request.stream():
                pass
            return known
        uuid = self._jobs.new_uuid()
        folder = self._jobs.folder(uuid)
        try:
            job = await self._take_in(request, uuid, key, single=single)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if job.uuid != uuid:
            shutil.rmtree(folder, ignore_errors=True)
        self._service.runner.wake()
        return job

    async def _take_in(self, request: Request, uuid: str, key: str | None, *, single: bool) -> Job:
        """Receive, check and store."""
        form = await receive_form(
            request.stream(),
            request.headers.get("content-type", ""),
            self._jobs.folder(uuid),
            limits=self._service.config.limits,
        )
        submit = read_submit(read_state(form.fields), self._service.card, stock=self._service.stock)
        if single and len(form.names) != 1:
            raise Refusal(400, f"Only one file expected but got {len(form.names)}")
        if not submit.item_errors:
            await self._look(form)
        if self._service.cache is not None:
            for name, path in zip(form.names, form.paths, strict=True):
                self._service.cache.put(name, path)
        return await self._jobs.add(uuid, _facts(form, submit, keyed=key is not None), key)

    async def _look(self, form: Form) -> None:
        """Refuse an upload with a bad picture, for callers that know no item errors."""
        for name in form.names if self._service.stock else ():
            _check_stock_name(name)
        problem = await self._service.bad_image(form)
        if problem is not None:
            raise Fault(f"BadImageError({problem!r})")


def _facts(form: Form, submit: Submit, *, keyed: bool) -> JobFacts:
    """Return what a job is asked."""
    return JobFacts(
        total=len(form.names),
        size=form.size,
        settings=submit.settings,
        batch_size=submit.batch_size,
        names=tuple(form.names),
        extension=submit.extension or keyed,
        item_errors=submit.item_errors,
        session=submit.session,
        first_index=submit.first_index,
    )


def _check_stock_name(name: str) -> None:
    """Refuse the names that a stock server cannot take."""
    if "/" in name:
        raise Fault(f"FileNotFoundError({name!r})")
    suffix = PurePosixPath(name).suffix.lower()
    if suffix == ".gif":
        text = f"File has unsupported format. Supported formats: {list(_STOCK_FORMATS)}"
        raise Refusal(400, text)
