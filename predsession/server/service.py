"""What a running server consists of, put together once and handed to the routes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from predsession.server.config import ServerConfig
from predsession.server.decode import BadImageError, check, tolerate_truncation
from predsession.server.disk import Disk
from predsession.server.jobs import Jobs
from predsession.server.keeping import Keeping
from predsession.server.metrics import Metrics
from predsession.server.recent import RecentErrors
from predsession.server.runner import Runner
from predsession.server.schedule import Schedule
from predsession.server.stock import NameCache
from predsession.server.store import Store
from predsession.server.upload import Form

FEATURES = ("ack", "wait", "idempotency", "item_errors", "lease", "list", "float_boxes")


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
    runners : mapping of str to Runner
        The models at work; the first is the one meant where a call names none.
    metrics : Metrics
        Counts what happens.
    errors : RecentErrors
        What went wrong lately.
    cache : NameCache or None
        On a server that imitates a stock one.
    """

    config: ServerConfig
    store: Store
    disk: Disk
    jobs: Jobs
    runners: Mapping[str, Runner]
    metrics: Metrics
    errors: RecentErrors
    cache: NameCache | None
    uploads: int = 0
    """Uploads that are being received."""
    closing: bool = False
    _checkers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "check"))
    _keeper: asyncio.Task[None] | None = None

    @classmethod
    def build(cls, config: ServerConfig) -> Service:
        """Put the parts together; nothing runs yet. Raises `StoreVersionError` for a folder of another."""
        store = Store(config.folder, ephemeral=config.ephemeral)
        schedules = {spec.name: Schedule(one_at_a_time=config.stock) for spec in config.models}
        jobs = Jobs(store, schedules, stock=config.stock)
        disk = Disk(config.folder, config.limits, lambda: jobs.held + store.bytes_used)
        metrics = Metrics()
        cache = NameCache() if config.stock else None
        if config.stock:
            tolerate_truncation()
        make = partial(
            Runner,
            jobs=jobs,
            limits=config.limits,
            metrics=metrics,
            workers=1 if config.stock else config.workers,
            cache=cache,
        )
        runners = {spec.name: make(spec, schedules[spec.name]) for spec in config.models}
        return cls(config, store, disk, jobs, runners, metrics, RecentErrors(config.door.token), cache)

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
            all(runner.ready for runner in self.runners.values())
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
        self.jobs.restore()
        await asyncio.gather(*(runner.start() for runner in self.runners.values()))
        keeping = Keeping(self.jobs, self.config.limits, stock=self.stock)
        self._keeper = asyncio.create_task(keeping.run())

    async def close(self) -> None:
        """End everything that was started; what is stored stays."""
        if self._keeper is not None:
            self._keeper.cancel()
        await asyncio.gather(*(runner.close() for runner in self.runners.values()))
        self._checkers.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self.store.close)
        self.errors.close()

    def release(self) -> None:
        """Let held calls answer, because the server is about to end."""
        self.closing = True
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
