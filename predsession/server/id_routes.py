"""The calls that name pictures and videos by their ids in the library."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from predsession.server.calls import read_json_state
from predsession.server.choice import chosen
from predsession.server.clips import clip_work, frames_of
from predsession.server.id_options import check_known, ids, image_ids, read_writing
from predsession.server.job import Job, JobFacts
from predsession.server.library import Library
from predsession.server.refusal import Fault, Refusal, explained
from predsession.server.service import Service
from predsession.server.submit import read_submit
from predsession.server.taking import TakeIn, Taking, client_of
from predsession.server.tracking import read_tracking
from predsession.server.video_routes import look_into
from predsession.wire.jsontypes import JSON, JSONObject

_Choose = Callable[[JSONObject, Library, JobFacts], Awaitable[JobFacts]]


class IdRoutes:
    """One method a call.

    Parameters
    ----------
    service : Service
        What answers.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._taking = Taking(service)

    async def inference_batch_ids_async(self, request: Request) -> JSON:
        """Start a job on images."""
        return await self._start(request, self._images)

    async def inference_project_id_async(self, request: Request) -> JSON:
        """Start a job on the images of a project, or of some of its datasets."""
        return await self._start(request, self._project)

    async def inference_video_id_async(self, request: Request) -> JSON:
        """Start a job on the frames of a video."""
        return await self._start(request, self._video)

    async def inference_image_id(self, request: Request) -> Response:
        """Answer with the item of one image."""
        items, _ = await self._now(request, self._one_image)
        return Response(items[0], media_type="application/json")

    async def inference_batch_ids(self, request: Request) -> Response:
        """Answer with the items of images."""
        items, _ = await self._now(request, self._images)
        return Response(b"[" + b",".join(items) + b"]", media_type="application/json")

    async def inference_video_id(self, request: Request) -> Response:
        """Answer with the items of a video's frames, and with its tracks."""
        items, final = await self._now(request, self._video)
        tail = final.partition(b'"video_ann":')[2] if final else b"null}"
        return Response(
            b'{"ann":[' + b",".join(items) + b'],"video_ann":' + tail, media_type="application/json"
        )

    async def _start(self, request: Request, choose: _Choose) -> JSON:
        """Start a job; without a library it ends at once, as on a server that no platform stands behind."""
        job = await self._taking.start(request, self._reading(choose))
        if self._service.library is None:
            await self._end_without_library(job)
        return {"message": "Scheduled inference task.", "inference_request_uuid": job.uuid}

    async def _now(self, request: Request, choose: _Choose) -> tuple[Sequence[bytes], bytes]:
        """Run a job to its end; without a library the call fails as the job would."""
        if self._service.library is None:
            await read_json_state(request, self._service.config.limits)
            kind, message = self._no_library()
            raise Fault(f"{kind}({message!r})")
        return await self._taking.answer_now(request, self._reading(choose))

    def _no_library(self) -> tuple[str, str]:
        """Return type and message of the exception where nobody can resolve an id."""
        if self._service.stock:
            return "AttributeError", "'NoneType' object has no attribute 'image'"
        return "NoLibraryError", "this server has no library; start it with --library DIR"

    async def _end_without_library(self, job: Job) -> None:
        """End a job whose ids nobody can resolve."""
        kind, message = self._no_library()
        trace = f"Traceback (most recent call last):\n{kind}: {message}"
        await self._service.jobs.fail(job, {"type": kind, "message": message, "traceback": trace})

    def _reading(self, choose: _Choose) -> TakeIn:
        """Return what reads a request into what a job is asked."""

        async def take_in(request: Request, _: str) -> JobFacts:
            service, client = self._service, client_of(request)
            self._taking.check_client(client)
            state = await read_json_state(request, service.config.limits)
            runner = chosen(service, request, state)
            keyed = self._taking.key(request) is not None
            submit = read_submit(state, runner.card, stock=service.stock, keyed=keyed)
            self._taking.check_queue(runner, 0)
            facts = JobFacts(
                model=runner.spec.name,
                sizes=(),
                settings=submit.settings,
                batch_size=submit.batch_size,
                names=(),
                client=client,
                extension=submit.extension,
                item_errors=submit.item_errors,
                session=submit.session,
                first_index=submit.first_index,
                indexes=submit.indexes,
                records=(0,),
            )
            if service.library is None:
                return facts
            await asyncio.to_thread(service.library.refresh)
            return await choose(state, service.library, facts)

        return take_in

    async def _images(self, state: JSONObject, library: Library, facts: JobFacts) -> JobFacts:
        """Choose images by their ids."""
        return _of_images(state, library, facts, image_ids(state))

    async def _one_image(self, state: JSONObject, library: Library, facts: JobFacts) -> JobFacts:
        """Choose one image by its id."""
        numbers = image_ids(state)
        if len(numbers) != 1:
            raise Refusal(400, explained(f"Only one id expected but got {len(numbers)}"))
        return _of_images(state, library, facts, numbers)

    async def _project(self, state: JSONObject, library: Library, facts: JobFacts) -> JobFacts:
        """Choose the images of a project."""
        (project,) = ids(state, "project_id", "projectId")[:1]
        named = any(state.get(name) is not None for name in ("dataset_ids", "datasetIds"))
        datasets = ids(state, "dataset_ids", "datasetIds") if named else None
        numbers = library.images(project=project, datasets=datasets)
        if not numbers:
            where = f"project {project}" if datasets is None else f"datasets {datasets} of project {project}"
            raise Refusal(404, explained(f"There are no images in {where} of the library."))
        return _of_images(state, library, facts, numbers)

    async def _video(self, state: JSONObject, library: Library, facts: JobFacts) -> JobFacts:
        """Choose frames of a video."""
        (number,) = ids(state, "video_id", "videoId")[:1]
        (record,) = check_known(library, "video", [number])
        path = library.file("video", number)
        if path is None:
            raise Refusal(404, explained(f"Video {number} is no longer in the library."))
        limit = self._service.config.limits.pixels
        clip = await look_into(str(path), record.name, max_pixels=limit)
        frames = frames_of(state, clip, name=record.name)
        known = {"video_id": number, "dataset_id": record.dataset_id, "project_id": record.project_id}
        work = clip_work(frames, clip, name=record.name, path=str(path), ids=known)
        tracking = read_tracking(state.get("tracker"), state.get("tracker_settings"))
        return replace(facts, records=None, clip=work, tracking=tracking)


def _of_images(state: JSONObject, library: Library, facts: JobFacts, numbers: list[int]) -> JobFacts:
    """Return what a job on these images is asked."""
    records = check_known(library, "image", numbers)
    projects = sorted({record.project for record in records})
    writing = read_writing(state, library, projects=projects)
    return replace(facts, records=tuple(numbers), writing=writing)
