"""The calls that bring a clip."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

from starlette.requests import Request

from predsession.errors import SourceError
from predsession.inputs.video import Clip, probe
from predsession.server.choice import chosen
from predsession.server.clips import clip_work, frames_of, stock_frames_of
from predsession.server.job import JobFacts
from predsession.server.refusal import Fault, Refusal, explained
from predsession.server.service import Service
from predsession.server.submit import read_state, read_submit
from predsession.server.taking import Taking, client_of
from predsession.server.tracking import read_tracking
from predsession.wire.jsontypes import JSON


class VideoRoutes:
    """One method a call.

    Parameters
    ----------
    service : Service
        What answers.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._taking = Taking(service)

    async def inference_video_async(self, request: Request) -> JSON:
        """Start a job on the frames of a clip that is sent along."""
        job = await self._taking.start(request, self._take_in)
        return {"message": "Scheduled inference task.", "inference_request_uuid": job.uuid}

    async def _take_in(self, request: Request, uuid: str) -> JobFacts:
        """Receive and check a clip."""
        stock, client = self._service.stock, client_of(request)
        form = await self._taking.receive(request, uuid, client)
        state = read_state(form.fields)
        runner = chosen(self._service, request, state)
        keyed = self._taking.key(request) is not None
        submit = read_submit(state, runner.card, stock=stock, keyed=keyed)
        tracking = read_tracking(state.get("tracker"), state.get("tracker_settings"))
        self._taking.check_queue(runner, 0)
        if len(form.names) > 1 and not stock:
            raise Refusal(400, explained(f"Only one file expected but got {len(form.names)}"))
        if len(form.names) > 1:
            os.truncate(form.path, form.sizes[0])  # a stock server looks at the first alone
        name = form.names[0]
        clip = await look_into(str(form.path), name, max_pixels=self._service.config.limits.pixels)
        frames = stock_frames_of(state, clip) if stock else frames_of(state, clip, name=name)
        facts = JobFacts(
            model=runner.spec.name,
            sizes=(form.sizes[0],),
            settings=submit.settings,
            batch_size=submit.batch_size,
            names=(),
            client=client,
            extension=submit.extension,
            item_errors=submit.item_errors,
            session=submit.session,
            first_index=submit.first_index,
            indexes=submit.indexes,
            clip=clip_work(frames, clip, name=name),
        )
        return replace(facts, tracking=tracking)


async def look_into(path: str, name: str, *, max_pixels: int) -> Clip:
    """Look into a clip, in a thread.

    Parameters
    ----------
    path : str
        The file.
    name : str
        What the caller calls it.
    max_pixels : int
        The largest picture.

    Returns
    -------
    Clip
        What is known of it.

    Raises
    ------
    Fault
        If it is none; names it as the caller does.
    """
    try:
        return await asyncio.to_thread(probe, path, max_pixels=max_pixels)
    except SourceError as error:
        text = str(error).replace(path, repr(name))
        raise Fault(f"BadVideoError({text!r})") from None
