"""The models behind the gRPC door: those of the command line, and those that callers register.

A registered model has workers of its own, and goes when it is unregistered or the server ends. HTTP does not
see it: a job there may outlive its caller, and must not outlive its model.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

from predsession.errors import PredSessionError
from predsession.server.config import ModelSpec
from predsession.server.edge.changes import ChangeError, changed
from predsession.server.models.card import ModelLoadError
from predsession.server.runner import Runner
from predsession.server.schedule import Schedule
from predsession.server.service import Service
from predsession.wire.jsontypes import JSONObject

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LONGEST_OWNER = 256
_NAMES = {"target": "model_path", "owner": "owner_id"}
"""What the interface calls them."""


class ModelError(PredSessionError):
    """A call about a model that cannot be done; the message is for the caller."""


@dataclass(slots=True, eq=False)
class EdgeModel:
    """A model that calls can name.

    Parameters
    ----------
    id : str
        What they call it.
    target : str
        What it was made of.
    runner : Runner
        Its workers.
    owner : str
        Who registered it.
    registered : bool
        Whether somebody did; else it came with the server.
    raw_only : bool
        Whether its arrays are answered alone.
    transient : bool
        As it was registered; nothing follows from it here.
    """

    id: str
    target: str
    runner: Runner
    owner: str = ""
    registered: bool = False
    raw_only: bool = False
    transient: bool = False
    loaded: float = field(default_factory=time.time)
    users: int = 0
    """Calls and streams that are under way."""
    skews: int = 0
    """Frames of streams that were sent, since when they were taken in microseconds, and the longest of it."""
    skew_us: int = 0
    skew_longest_us: int = 0

    @property
    def wish(self) -> _Wish | None:
        """What it was registered as; None if it came with the server."""
        if not self.registered:
            return None
        return _Wish(self.target, self.owner, self.raw_only, self.transient)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Keep it from being unregistered."""
        self.users += 1
        try:
            yield
        finally:
            self.users -= 1

    def skewed(self, microseconds: int) -> int:
        """Count the time from a frame's taking to its result, and return it."""
        self.skews += 1
        self.skew_us += microseconds
        self.skew_longest_us = max(self.skew_longest_us, microseconds)
        return microseconds


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a model is registered as; whoever asks for the same gets the one that is there."""

    target: str
    owner: str
    raw_output_only: bool
    transient: bool

    def differs_from(self, present: _Wish) -> str:
        """Name what another one has otherwise; nothing where it is the same."""
        for each in fields(self):
            asked, has = getattr(self, each.name), getattr(present, each.name)
            if asked != has:
                return f"its {_NAMES.get(each.name, each.name)} is {has!r}, not {asked!r}"
        return ""


@dataclass(slots=True, eq=False)
class _Loading:
    """A model that is being loaded, and how many wait for it."""

    wish: _Wish
    task: asyncio.Task[EdgeModel]
    waiters: int = 0


class Models:
    """All of them.

    Parameters
    ----------
    service : Service
        With the models of the command line.
    may_register : bool
        Whether callers may have models loaded.
    """

    def __init__(self, service: Service, *, may_register: bool) -> None:
        self._service = service
        self._may_register = may_register
        self._loading: dict[str, _Loading] = {}
        # What ends does so whether its caller waits or not: a worker that nobody holds would run for ever.
        self._ending: set[asyncio.Task[EdgeModel] | asyncio.Task[None]] = set()
        self._models = {
            name: EdgeModel(name, runner.spec.target, runner) for name, runner in service.runners.items()
        }

    def __iter__(self) -> Iterator[EdgeModel]:
        """Iterate over all, those of the command line first."""
        return iter(list(self._models.values()))

    def get(self, name: str) -> EdgeModel | None:
        """Return a model by its name."""
        return self._models.get(name)

    async def register(
        self, name: str, path: str, *, owner: str = "", raw_only: bool = False, transient: bool = False
    ) -> EdgeModel:
        """Load a model.

        Parameters
        ----------
        name : str
            What it is to be called.
        path : str
            A description file, the network beside one, ``module:Model`` or ``path/to/file.py:Model``.
        owner : str
            Whose it is.
        raw_only : bool
            Whether its arrays are answered alone.
        transient : bool
            Is told again.

        Returns
        -------
        EdgeModel
            Ready; the one that is there already, or is being loaded, where the same was asked for before.

        Raises
        ------
        ModelError
            If it cannot be, or may not.
        """
        if not name or not path:
            raise ModelError("model_id and model_path required")
        if len(owner) > _LONGEST_OWNER:
            raise ModelError(f"owner_id has {_LONGEST_OWNER} characters at most")
        wish = _Wish(_target(path), owner, raw_only, transient)
        present = self._models.get(name)
        if present is not None:
            _check_same(name, wish, present.wish)
            return present
        loading = self._loading.get(name)
        if loading is None:
            self._check(name)
            loading = self._loading[name] = _Loading(wish, asyncio.create_task(self._make(name, wish)))
        _check_same(name, wish, loading.wish)
        return await self._wait_for(name, loading)

    def _check(self, name: str) -> None:
        """Refuse to load what may not be."""
        if not self._may_register:
            raise ModelError(
                "Registering is not allowed: it loads code, and this server can be reached from other "
                "machines, or asks for a token elsewhere; start it with --grpc-register to allow it"
            )
        if not _NAME.fullmatch(name):
            raise ModelError("model_id may have letters, digits, dots, dashes and underscores, up to 128")
        registered = sum(model.registered for model in self)
        held = registered + len(self._loading) + len(self._ending)
        if held >= self._service.config.limits.registered:
            still = f", {len(self._ending)} are ending" if self._ending else ""
            raise ModelError(
                f"Too many models: {held - len(self._ending)} are registered{still}; see --limit-registered"
            )

    async def _wait_for(self, name: str, loading: _Loading) -> EdgeModel:
        """Wait until it is loaded; where nobody waits any more, it is given up."""
        loading.waiters += 1
        try:
            return await asyncio.shield(loading.task)
        finally:
            loading.waiters -= 1
            if not loading.waiters and not loading.task.done():
                self._loading.pop(name, None)
                loading.task.cancel()
                self._end(loading.task)

    async def _make(self, name: str, wish: _Wish) -> EdgeModel:
        """Load a model, and offer it."""
        try:
            runner = await self._load(name, wish.target)
        finally:
            # Whoever comes while a load that was given up ends has begun another one under this name.
            if name in self._loading and self._loading[name].task is asyncio.current_task():
                del self._loading[name]
        made = EdgeModel(name, wish.target, runner, wish.owner, True, wish.raw_output_only, wish.transient)
        self._models[name] = made
        return made

    async def _load(self, name: str, target: str) -> Runner:
        """Start a model's workers."""
        assert self._service.make_runner is not None, "build() comes first"
        runner = self._service.make_runner(ModelSpec(name, target), Schedule())
        try:
            await runner.start()
        except ModelLoadError as error:
            raise ModelError(f"Failed to load: {error}") from None
        return runner

    def _end(self, task: asyncio.Task[EdgeModel] | asyncio.Task[None]) -> None:
        """Hold a task that ends workers until it has."""
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def unregister(self, name: str, owner: str) -> None:
        """Let a model go; its workers end even if the caller does not wait for that.

        Parameters
        ----------
        name : str
            Which.
        owner : str
            Whose; empty for whoever's it is.

        Raises
        ------
        ModelError
            If there is none, it is somebody else's, it came with the server, or is in use.
        """
        model = self._models.get(name)
        if model is None:
            raise ModelError(f"Failed to unregister: no model {name!r}")
        if not model.registered:
            raise ModelError(f"Failed to unregister: {name} came with the server")
        if owner and owner != model.owner:
            raise ModelError(f"Failed to unregister: {name} is not {owner}'s")
        if model.users:
            raise ModelError(f"Failed to unregister: {name} is in use by {model.users}")
        del self._models[name]
        ending = asyncio.create_task(model.runner.close())
        self._end(ending)
        await asyncio.shield(ending)

    def configure(self, name: str, text: str) -> JSONObject:
        """Change a model's settings, for pictures that a worker takes from now on.

        Parameters
        ----------
        name : str
            Which model.
        text : str
            JSON: an object of settings, by their own names or those of the runtimes.

        Returns
        -------
        JSONObject
            All settings, as they are now.

        Raises
        ------
        ModelError
            If there is no such model or setting, or the value is none; nothing has changed then.
        """
        model = self._models.get(name)
        if model is None:
            raise ModelError(f"Failed to update config: -1 (no model {name!r})")
        shots = model.runner.shots
        try:
            shots.settings = changed(shots.settings, text, card=model.runner.card)
        except ChangeError as error:
            raise ModelError(f"Failed to update config: {error}") from None
        return shots.settings

    def release(self) -> None:
        """Have no worker of those that were registered started again: the server is about to end."""
        for model in self:
            model.runner.release()

    async def close(self) -> None:
        """End the workers of those that were registered, and wait for those that are ending."""
        registered = [model for model in self if model.registered]
        for loading in self._loading.values():
            loading.task.cancel()
            self._end(loading.task)
        await asyncio.gather(*(model.runner.close() for model in registered))
        await asyncio.gather(*self._ending, return_exceptions=True)


def _check_same(name: str, wish: _Wish, present: _Wish | None) -> None:
    """Refuse to register under a name that is taken by something else."""
    difference = "it came with the server" if present is None else wish.differs_from(present)
    if difference:
        raise ModelError(f"Model already registered: {name}; {difference}")


def _target(path: str) -> str:
    """Return what is loaded: of a network the description beside it, for a network alone says too little."""
    if not path.endswith(".onnx"):
        return path
    described = Path(path).with_suffix(".toml")
    try:
        there = described.is_file()
    except OSError as error:
        raise ModelError(f"Failed to load: {path}: {error.strerror}") from None
    if not there:
        raise ModelError(
            f"Failed to load: {path} needs a description beside it, {described.name}, that says what its "
            "classes are and how its input and its output are laid out"
        )
    return str(described)
