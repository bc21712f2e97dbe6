"""What a running server consists of, put together once and handed to the routes."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from predsession.server.config import ServerConfig
from predsession.server.decode import BadImageError, check, tolerate_truncation
from predsession.server.jobs import Jobs
from predsession.server.models.card import ModelCard
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
        The disk.
    jobs : Jobs
        All jobs.
    runner : Runner
        The model at work.
    cache : NameCache or None
        On a server that imitates a stock one.
    """

    config: ServerConfig
    store: Store
    jobs: Jobs
    runner: Runner
    cache: NameCache | None
    closing: bool = False
    _checkers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "check"))
    _sweeper: asyncio.Task[None] | None = None

    @classmethod
    def build(cls, config: ServerConfig) -> Service:
        """Put the parts together; nothing runs yet."""
        store = Store(config.folder, ephemeral=config.ephemeral)
        schedule = Schedule(one_at_a_time=config.stock)
        jobs = Jobs(store, schedule, limits=config.limits, stock=config.stock)
        cache = NameCache() if config.stock else None
        if config.stock:
            tolerate_truncation()
        runner = Runner(
            config.model, jobs=jobs, schedule=schedule, store=store, limits=config.limits, cache=cache
        )
        return cls(config, store, jobs, runner, cache)

    @property
    def card(self) -> ModelCard:
        """The model's description."""
        assert self.runner.card is not None, "start() comes first"
        return self.runner.card

    @property
    def stock(self) -> bool:
        """Whether this server imitates a stock one."""
        return self.config.stock

    async def start(self) -> None:
        """Load the model and take up the jobs of the server before.

        Raises
        ------
        ModelLoadError
            If the model cannot be loaded.
        """
        self.jobs.restore()
        await self.runner.start()
        self.runner.wake()
        self._sweeper = asyncio.create_task(self._sweep())

    async def close(self) -> None:
        """End everything that was started; what is stored stays."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self.runner.close()
        self._checkers.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self.store.close)

    def release(self) -> None:
        """Let held calls answer, because the server is about to end."""
        self.closing = True
        self.jobs.release()

    async def bad_image(self, form: Form) -> str | None:
        """Look at every picture of an upload; return what is wrong with the first bad one."""
        loop = asyncio.get_running_loop()
        pixels = self.config.limits.pixels
        checks = [
            loop.run_in_executor(self._checkers, partial(check, path, max_pixels=pixels))
            for path in form.paths
        ]
        outcomes = await asyncio.gather(*checks, return_exceptions=True)
        for name, outcome in zip(form.names, outcomes, strict=True):
            if isinstance(outcome, BadImageError):
                return f"{name!r}: {outcome}" if not self.stock else str(outcome)
            if isinstance(outcome, BaseException):
                raise outcome
        return None

    async def _sweep(self) -> None:
        """Forget old jobs, now and then."""
        while True:
            await asyncio.sleep(self.config.limits.sweep_s)
            with contextlib.suppress(OSError):
                await self.jobs.sweep()
