"""The calls that bring pictures."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import Response

from predsession.server.choice import chosen
from predsession.server.disk import RETRY_S, no_room
from predsession.server.job import Job, JobFacts
from predsession.server.refusal import Fault, Refusal, detail, explained
from predsession.server.runner import Runner
from predsession.server.service import Service
from predsession.server.submit import LONGEST_WORD, Submit, read_state, read_submit
from predsession.server.upload import Form, Intake
from predsession.wire.jsontypes import JSON

_STOCK_FORMATS = (
    ".jpg", ".jpeg", ".mpo", ".bmp", ".png", ".webp", ".tiff", ".tif", ".nrrd", ".jfif",
)  # fmt: skip
_LOOK_S = 1.0


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
        self._limits = service.config.limits

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
                await job.news(_LOOK_S)
                if await request.is_disconnected():
                    break
            if job.exception is not None:
                raise Fault(f"{job.exception['type']}({job.exception['message']!r})")
            if not job.ended:
                raise Refusal(503, detail("The server is ending."), retry_after=5)
            return await self._jobs.pop(job)
        finally:
            await self._jobs.stop(job)
            await self._service.take_back()
            await self._jobs.remove(job)

    async def _submit(self, request: Request, *, single: bool = False) -> Job:
        """Take in an upload, check it, and start a job on it."""
        key = None if self._service.stock or single else request.headers.get("idempotency-key")
        if key is not None and len(key) > LONGEST_WORD:
            await Intake(request.stream(), self._limits).drain()
            raise Refusal(400, explained(f"Idempotency-Key is longer than {LONGEST_WORD} characters"))
        if key is not None and (known := self._jobs.by_key(key)) is not None:
            await Intake(request.stream(), self._limits).drain()
            return known
        uuid = self._jobs.new_uuid()
        upload = self._jobs.upload(uuid)
        try:
            job = await self._take_in(request, uuid, key, single=single)
        except BaseException:
            upload.unlink(missing_ok=True)
            raise
        if job.uuid != uuid:
            upload.unlink(missing_ok=True)
        self._service.runners[job.facts.model].wake()
        return job

    async def _take_in(self, request: Request, uuid: str, key: str | None, *, single: bool) -> Job:
        """Receive, check and store."""
        client = request.client.host if request.client is not None else ""
        form = await self._receive(request, uuid, client)
        state = read_state(form.fields)
        runner = chosen(self._service, request, state)
        submit = read_submit(state, runner.card, stock=self._service.stock, keyed=key is not None)
        if single and len(form.names) != 1:
            raise Refusal(400, f"Only one file expected but got {len(form.names)}")
        self._check_queue(runner, len(form.names))
        if not submit.item_errors:
            await self._look(form)
        if self._service.cache is not None:
            for name, picture in zip(form.names, form.pictures, strict=True):
                self._service.cache.put(name, picture)
        names = form.names if self._service.stock else ()  # nothing else ever looks at them
        facts = _facts(form, submit, names=tuple(names), model=runner.spec.name, client=client)
        try:
            return await self._jobs.add(uuid, facts, key)
        except sqlite3.Error as error:
            raise Refusal(507, no_room(error), retry_after=RETRY_S) from error

    async def _receive(self, request: Request, uuid: str, client: str) -> Form:
        """Receive the files, if there is room for them."""
        intake = Intake(request.stream(), self._limits)
        try:
            with self._a_seat(client), self._service.disk.reserve(_announced(request)) as keep:
                kind = request.headers.get("content-type", "")
                return await intake.form(kind, self._jobs.upload(uuid), keep=keep)
        except Refusal:
            # Its sender reads the answer only once it has sent its body.
            await intake.drain()
            raise

    @contextlib.contextmanager
    def _a_seat(self, client: str) -> Iterator[None]:
        """Count an upload, unless there are too many, or too many jobs of this client."""
        if self._service.closing:
            raise Refusal(503, explained("The server is ending."), retry_after=5)
        if self._service.stock:
            yield
            return
        if self._service.uploads >= self._limits.uploads:
            text = f"{self._limits.uploads} uploads are being received; try again."
            raise Refusal(429, explained(text), retry_after=1)
        mine = sum(1 for job in self._jobs if job.facts.client == client and not job.ended)
        if mine >= self._limits.jobs:
            text = f"{client} has {mine} unfinished jobs; the limit is {self._limits.jobs}. Try again later."
            raise Refusal(429, explained(text), retry_after=2)
        self._service.uploads += 1
        try:
            yield
        finally:
            self._service.uploads -= 1

    def _check_queue(self, runner: Runner, count: int) -> None:
        """Refuse what would wait for too long, or for nothing."""
        if not runner.ready and runner.problem:
            raise Refusal(503, explained(runner.problem), retry_after=10)
        waiting = runner.schedule.waiting()
        if waiting + count > self._limits.queue:
            text = f"{waiting} pictures wait for model {runner.spec.name}; the limit is {self._limits.queue}."
            raise Refusal(429, explained(text), retry_after=5)

    async def _look(self, form: Form) -> None:
        """Refuse an upload with a bad picture, for callers that know no item errors."""
        for name in form.names if self._service.stock else ():
            _check_stock_name(name)
        problem = await self._service.bad_image(form)
        if problem is not None:
            raise Fault(f"BadImageError({problem!r})")


def _announced(request: Request) -> int:
    """Return the size of the body, 0 where nobody said."""
    text = request.headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _facts(form: Form, submit: Submit, *, names: tuple[str, ...], model: str, client: str) -> JobFacts:
    """Return what a job is asked."""
    return JobFacts(
        model=model,
        sizes=tuple(form.sizes),
        settings=submit.settings,
        batch_size=submit.batch_size,
        names=names,
        client=client,
        extension=submit.extension,
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
