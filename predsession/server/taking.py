"""What every call that starts a job has in common: a key, a seat, room on the disk and in the queue."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request

from predsession.server.disk import BUSY_S
from predsession.server.job import Job, JobFacts
from predsession.server.jobs import BusyKeyError
from predsession.server.refusal import SLOW, Fault, Refusal, detail, explained
from predsession.server.runner import Runner
from predsession.server.service import Service
from predsession.server.submit import LONGEST_WORD
from predsession.server.upload import Form, Intake

TakeIn = Callable[[Request, str], Awaitable[JobFacts]]
"""Reads a request into what a job is asked; the second argument is the job's uuid."""
_LOOK_S = 1.0


class Taking:
    """Takes in submits.

    Parameters
    ----------
    service : Service
        What answers.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._jobs = service.jobs
        self._limits = service.config.limits

    async def start(self, request: Request, take_in: TakeIn, *, keyed: bool = True) -> Job:
        """Start the job that a request asks for, unless its key is known.

        Parameters
        ----------
        request : Request
            The submit.
        take_in : callable
            Reads it.
        keyed : bool
            Whether an ``Idempotency-Key`` counts.

        Returns
        -------
        Job
            New, or the one that was started with the same key.

        Raises
        ------
        Refusal
            If the key is too long, or the job cannot be stored.
        """
        key = self.key(request) if keyed else None
        if key is not None and len(key) > LONGEST_WORD:
            await Intake(request.stream(), self._limits).drain()
            raise Refusal(400, explained(f"Idempotency-Key is longer than {LONGEST_WORD} characters"))
        if key is not None and (known := self._jobs.by_key(key)) is not None:
            await Intake(request.stream(), self._limits).drain()
            return known
        uuid = self._jobs.new_uuid()
        upload = self._jobs.upload(uuid)
        try:
            facts = await take_in(request, uuid)
            job = await self._jobs.add(uuid, facts, key)
        except BusyKeyError as error:
            upload.unlink(missing_ok=True)
            text = "The job with this Idempotency-Key is being removed; try again."
            raise Refusal(503, explained(text), retry_after=BUSY_S) from error
        except BaseException:
            upload.unlink(missing_ok=True)
            raise
        if job.uuid != uuid:
            upload.unlink(missing_ok=True)
        self._service.runners[job.facts.model].wake()
        return job

    async def answer_now(self, request: Request, take_in: TakeIn) -> tuple[Sequence[bytes], bytes]:
        """Run a job to its end and take its results.

        Parameters
        ----------
        request : Request
            The call.
        take_in : callable
            Reads it.

        Returns
        -------
        tuple
            The JSON of each item, and the final result's, empty where there is none.

        Raises
        ------
        Fault
            With the job's exception.
        Refusal
            If the server ends meanwhile.
        """
        job = await self.start(request, take_in, keyed=False)
        try:
            while not job.ended and not self._service.closing:
                await job.news(_LOOK_S)
                if await request.is_disconnected():
                    break
            if job.exception is not None:
                raise Fault(f"{job.exception['type']}({job.exception['message']!r})")
            if not job.ended:
                raise Refusal(503, detail("The server is ending."), retry_after=5)
            return await self._jobs.pop(job), await asyncio.to_thread(self._final, job)
        finally:
            with contextlib.suppress(sqlite3.Error):  # it is removed later
                await self._jobs.remove(job)
            await self._service.take_back()

    def _final(self, job: Job) -> bytes:
        """Return the final result of a job."""
        path = self._service.store.finals / job.uuid
        return path.read_bytes() if path.exists() else b""

    def key(self, request: Request) -> str | None:
        """Return the key of a submit; a stock server knows none."""
        return None if self._service.stock else request.headers.get("idempotency-key")

    async def receive(self, request: Request, uuid: str, client: str) -> Form:
        """Receive files, if there is room for them.

        Parameters
        ----------
        request : Request
            The upload.
        uuid : str
            The job to be.
        client : str
            The caller's address.

        Returns
        -------
        Form
            Complete.

        Raises
        ------
        Refusal
            If there is no room, or the form is no good.
        """
        announced = _announced(request)
        if announced > self._limits.body:
            # At once, and without reading on: it may be far more than anybody wants to read.
            raise Refusal(413, explained(f"The upload is larger than {self._limits.body} bytes."))
        seats, intake = self._service.seats, Intake(request.stream(), self._limits)
        try:
            self.check_client(client)
            with seats.take() as intake.seat, self._service.disk.reserve(announced) as keep:
                kind = request.headers.get("content-type", "")
                return await intake.form(kind, self._jobs.upload(uuid), keep=keep)
        except Refusal as refusal:
            if intake.seat.lost:
                raise seats.full() from None
            if refusal.status != SLOW:
                # Its sender reads the answer only once it has sent its body.
                await intake.drain()
            raise

    def check_client(self, client: str) -> None:
        """Refuse a job where the server is ending, or the caller has too many.

        Parameters
        ----------
        client : str
            The caller's address.

        Raises
        ------
        Refusal
            To be tried again later.
        """
        if self._service.closing:
            raise Refusal(503, explained("The server is ending."), retry_after=5)
        mine = sum(1 for job in self._jobs if job.facts.client == client and not job.ended)
        if mine >= self._limits.jobs and not self._service.stock:
            text = f"{client} has {mine} unfinished jobs; the limit is {self._limits.jobs}. Try again later."
            raise Refusal(429, explained(text), retry_after=2)

    def check_queue(self, runner: Runner, count: int) -> None:
        """Refuse what would wait for too long, or for nothing.

        Parameters
        ----------
        runner : Runner
            The model.
        count : int
            Pictures that were sent; frames and ids cost nothing while they wait.

        Raises
        ------
        Refusal
            To be tried again later.
        """
        if not runner.ready and runner.problem:
            raise Refusal(503, explained(runner.problem), retry_after=10)
        waiting = runner.schedule.waiting(sent=True)
        if waiting + count > self._limits.queue:
            text = f"{waiting} pictures wait for model {runner.spec.name}; the limit is {self._limits.queue}."
            raise Refusal(429, explained(text), retry_after=5)


def client_of(request: Request) -> str:
    """Return the caller's address."""
    return request.client.host if request.client is not None else ""


def _announced(request: Request) -> int:
    """Return the size of the body, 0 where nobody said."""
    text = request.headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() else 0
