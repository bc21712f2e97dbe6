"""What a running server consists of, put together once and handed to the routes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from predsession.server.aftermath import Aftermath
from predsession.server.config import ModelSpec, ServerConfig
from predsession.server.decode import BadImageError, check, tolerate_truncation
from predsession.server.disk import Disk
from predsession.server.jobs import Jobs
from predsession.server.keeping import Keeping
from predsession.server.library import Library
from predsession.server.metrics import Metrics
from predsession.server.recent import RecentErrors
from predsession.server.runner import Runner
from predsession.server.schedule import Schedule
from predsession.server.seats import Seats
from predsession.server.sources import Sources
from predsession.server.stock import NameCache
from predsession.server.store import Store
from predsession.server.tracks import Tracks
from predsession.server.upload import Form
from predsession.server.writing import Writing

if TYPE_CHECKING:
    from predsession.server.oip.calls import Calls

FEATURES = ("ack", "after", "wait", "idempotency", "item_errors", "lease", "list", "float_boxes")


@dataclass(slots=True)
class Service:
    """The parts of a server.

    Parameters
    ----------
    config : ServerConfig
        How it is set up.
    store : Store
        The database.
    disk : Disk
        How much may be kept.
    jobs : Jobs
        All jobs.
    aftermath : Aftermath
        What is done with results beside storing them.
    runners : mapping of str to Runner
        The models at work; the first is the one meant where a call names none.
    metrics : Metrics
        Counts what happens.
    errors : RecentErrors
        What went wrong lately.
    cache : NameCache or None
        On a server that imitates a stock one.
    library : Library or None
        Pictures and videos by id.
    """

    config: ServerConfig
    store: Store
    disk: Disk
    jobs: Jobs
    aftermath: Aftermath
    runners: Mapping[str, Runner]
    metrics: Metrics
    errors: RecentErrors
    cache: NameCache | None
    library: Library | None = None
    seats: Seats = field(default_factory=lambda: Seats(None))
    """Of the uploads that are being received."""
    oip: Calls | None = None
    """What answers the calls of the Open Inference Protocol."""
    make_runner: Callable[[ModelSpec, Schedule], Runner] | None = None
    """Makes one for a model that comes while the server runs."""
    closing: bool = False
    started: bool = False
    """Whether every model has been loaded, and the jobs of the server before are known."""
    _checkers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "check"))
    _keeper: asyncio.Task[None] | None = None
    _resuming: asyncio.Task[None] | None = None

    @classmethod
    def build(cls, config: ServerConfig) -> Service:
        """Put the parts together; nothing runs yet. Raises `StoreVersionError` for a folder of another."""
        library = None if config.library is None else Library(config.library)
        store = Store(config.folder, ephemeral=config.ephemeral)
        schedules = {spec.name: Schedule(one_at_a_time=config.stock) for spec in config.models}
        writing = None if library is None else Writing(library)
        aftermath = Aftermath(store, Tracks(store, stock=config.stock), writing)
        jobs = Jobs(store, schedules, stock=config.stock, aftermath=aftermath)
        disk = Disk(config.folder, config.limits, lambda: jobs.held + store.bytes_used)
        metrics = Metrics()
        cache = NameCache() if config.stock else None
        if config.stock:
            tolerate_truncation()
        make = partial(
            Runner,
            jobs=jobs,
            sources=Sources(jobs, library, cache),
            limits=config.limits,
            metrics=metrics,
            workers=1 if config.stock else config.workers,
            cache=cache,
            edge=config.edge is not None,
        )
        runners = {spec.name: make(spec, schedules[spec.name]) for spec in config.models}
        errors = RecentErrors(config.door.token)
        seats = Seats(None if config.stock else config.limits.uploads)
        parts = (config, store, disk, jobs, aftermath, runners, metrics, errors, cache, library, seats)
        return cls(*parts, make_runner=make)

    @property
    def stock(self) -> bool:
        """Whether this server imitates a stock one."""
        return self.config.stock

    @property
    def first(self) -> Runner:
        """The model that is meant where a call names none."""
        return next(iter(self.runners.values()))

    @property
    def ready(self) -> bool:
        """Whether every model has a worker, and results can be stored."""
        return (
            self.started
            and all(runner.ready for runner in self.runners.values())
            and not self.jobs.failing
            and not self.closing
        )

    async def start(self) -> None:
        """Load the models and take up the jobs of the server before.

        Raises
        ------
        ModelLoadError
            If a model cannot be loaded.
        """
        self.errors.open()
        if self.library is not None:
            await asyncio.to_thread(self.library.refresh, now=True)
        self.jobs.restore()
        await asyncio.gather(*(runner.start() for runner in self.runners.values()))
        keeping = Keeping(self.jobs, self.config.limits, stock=self.stock)
        self.started = True
        self._keeper = asyncio.create_task(keeping.run())
        self._resuming = asyncio.create_task(self._resume())

    async def _resume(self) -> None:
        """Take up the restored jobs that need more than a queue."""
        await self.jobs.resume()
        for runner in self.runners.values():
            runner.wake()

    async def close(self) -> None:
        """End everything that was started; what is stored stays."""
        for task in (self._keeper, self._resuming):
            if task is not None:
                task.cancel()
        await asyncio.gather(*(runner.close() for runner in self.runners.values()))
        await self.aftermath.close()
        self._checkers.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self.store.close)
        if self.library is not None:
            self.library.close()
        self.errors.close()

    def release(self) -> None:
        """Let held calls answer, because the server is about to end."""
        self.closing = True
        for runner in self.runners.values():
            runner.release()
        self.jobs.release()

    async def take_back(self) -> None:
        """Take back work that nobody needs any more."""
        await asyncio.gather(*(runner.take_back() for runner in self.runners.values()))

    async def bad_image(self, form: Form) -> str | None:
        """Look at every picture of an upload; return what is wrong with the first bad one."""
        loop = asyncio.get_running_loop()
        look = partial(check, max_pixels=self.config.limits.pixels)
        checks = [loop.run_in_executor(self._checkers, look, picture) for picture in form.pictures]
        outcomes = await asyncio.gather(*checks, return_exceptions=True)
        for name, outcome in zip(form.names, outcomes, strict=True):
            if isinstance(outcome, BadImageError):
                return str(outcome) if self.stock else f"{name!r}: {outcome}"
            if isinstance(outcome, BaseException):
                raise outcome
        return None
