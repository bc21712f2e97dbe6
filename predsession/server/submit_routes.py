"""The calls that bring pictures."""

from __future__ import annotations

from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import Response

from predsession.server.choice import chosen
from predsession.server.job import JobFacts
from predsession.server.refusal import Fault, Refusal
from predsession.server.service import Service
from predsession.server.submit import read_state, read_submit
from predsession.server.taking import Taking, client_of
from predsession.server.upload import Form
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
        self._taking = Taking(service)

    async def inference_batch_async(self, request: Request) -> JSON:
        """Start a job."""
        job = await self._taking.start(request, self._take_in)
        return {"message": "Scheduled inference task.", "inference_request_uuid": job.uuid}

    async def inference_image(self, request: Request) -> Response:
        """Answer with the one picture's item."""
        items, _ = await self._taking.answer_now(request, self._take_in_one)
        return Response(items[0], media_type="application/json")

    async def inference_batch(self, request: Request) -> Response:
        """Answer with the items of all pictures."""
        items, _ = await self._taking.answer_now(request, self._take_in_now)
        return Response(b"[" + b",".join(items) + b"]", media_type="application/json")

    async def _take_in(self, request: Request, uuid: str) -> JobFacts:
        """Receive and check the pictures of a job."""
        return await self._facts(request, uuid, keyed=self._taking.key(request) is not None)

    async def _take_in_now(self, request: Request, uuid: str) -> JobFacts:
        """Do the same for a call that waits for its answer, and so needs no key."""
        return await self._facts(request, uuid, keyed=False)

    async def _take_in_one(self, request: Request, uuid: str) -> JobFacts:
        """Do the same for a single picture."""
        facts = await self._facts(request, uuid, keyed=False)
        if facts.total != 1:
            raise Refusal(400, f"Only one file expected but got {facts.total}")
        return facts

    async def _facts(self, request: Request, uuid: str, *, keyed: bool) -> JobFacts:
        """Receive and check; return what the job is asked."""
        stock, client = self._service.stock, client_of(request)
        form = await self._taking.receive(request, uuid, client)
        state = read_state(form.fields)
        runner = chosen(self._service, request, state)
        submit = read_submit(state, runner.card, stock=stock, keyed=keyed)
        self._taking.check_queue(runner, len(form.names))
        if not submit.item_errors:
            await self._look(form)
        if self._service.cache is not None:
            for name, picture in zip(form.names, form.pictures, strict=True):
                self._service.cache.put(name, picture)
        return JobFacts(
            model=runner.spec.name,
            sizes=tuple(form.sizes),
            settings=submit.settings,
            batch_size=submit.batch_size,
            names=tuple(form.names) if stock else (),  # nothing else ever looks at them
            client=client,
            extension=submit.extension,
            item_errors=submit.item_errors,
            session=submit.session,
            first_index=submit.first_index,
            indexes=submit.indexes,
        )

    async def _look(self, form: Form) -> None:
        """Refuse an upload with a bad picture, for callers that know no item errors."""
        for name in form.names if self._service.stock else ():
            _check_stock_name(name)
        problem = await self._service.bad_image(form)
        if problem is not None:
            raise Fault(f"BadImageError({problem!r})")


def _check_stock_name(name: str) -> None:
    """Refuse the names that a stock server cannot take."""
    if "/" in name:
        raise Fault(f"FileNotFoundError({name!r})")
    suffix = PurePosixPath(name).suffix.lower()
    if suffix == ".gif":
        text = f"File has unsupported format. Supported formats: {list(_STOCK_FORMATS)}"
        raise Refusal(400, text)
