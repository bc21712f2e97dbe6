"""The models behind the gRPC door: those of the command line, and those that callers register.

A registered model has workers of its own, and goes when it is unregistered or the server ends. HTTP does not
see it: a job there may outlive its caller, and must not outlive its model.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from predsession.errors import PredSessionError
from predsession.server.config import ModelSpec
from predsession.server.models.card import ModelLoadError
from predsession.server.refusal import Refusal
from predsession.server.runner import Runner
from predsession.server.schedule import Schedule
from predsession.server.service import Service
from predsession.server.settings import complete_settings
from predsession.server.shots import error_text
from predsession.wire.jsontypes import JSON, JSONObject

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ALIASES = {
    "detection_threshold": "conf",
    "score_threshold": "conf",
    "iou_threshold": "iou",
    "nms_iou_threshold": "iou",
    "max_boxes": "max_objects",
}
"""What the runtimes call settings that our models have under another name."""


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
        self._loading: set[str] = set()
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
            Ready; the one that is there already where the same was asked for before.

        Raises
        ------
        ModelError
            If it cannot be, or may not.
        """
        if not name or not path:
            raise ModelError("model_id and model_path required")
        present = self._models.get(name)
        target = _target(path)
        if present is not None and present.registered and (present.target, present.owner) == (target, owner):
            return present
        self._check(name)
        self._loading.add(name)
        try:
            runner = await self._load(name, target)
        finally:
            self._loading.discard(name)
        model = EdgeModel(name, target, runner, owner, True, raw_only, transient)
        self._models[name] = model
        return model

    def _check(self, name: str) -> None:
        """Refuse to load what may not be."""
        if not self._may_register:
            raise ModelError(
                "Registering is not allowed: it loads code, and this server can be reached from other "
                "machines; start it with --grpc-register to allow it"
            )
        if not _NAME.fullmatch(name):
            raise ModelError("model_id may have letters, digits, dots, dashes and underscores, up to 128")
        if name in self._models or name in self._loading:
            raise ModelError(f"Model already registered: {name}")
        registered = sum(model.registered for model in self) + len(self._loading)
        if registered >= self._service.config.limits.registered:
            raise ModelError(f"Too many models: {registered} are registered; see --limit-registered")

    async def _load(self, name: str, target: str) -> Runner:
        """Start a model's workers."""
        assert self._service.make_runner is not None, "build() comes first"
        runner = self._service.make_runner(ModelSpec(name, target), Schedule())
        try:
            await runner.start()
        except ModelLoadError as error:
            raise ModelError(f"Failed to load: {error}") from None
        return runner

    async def unregister(self, name: str, owner: str) -> None:
        """Let a model go.

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
        await model.runner.close()

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
        shots, card = model.runner.shots, model.runner.card
        try:
            given: JSON = json.loads(text)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, Mapping):
            raise ModelError("Failed to update config: config_json is no JSON object")
        changes = {_ALIASES.get(key, key) if key not in card.settings else key: given[key] for key in given}
        try:
            shots.settings = complete_settings({**shots.settings, **changes}, card, strict=True)
        except Refusal as refusal:
            raise ModelError(f"Failed to update config: {_said(refusal)}") from None
        return shots.settings

    async def close(self) -> None:
        """End the workers of those that were registered."""
        registered = [model for model in self if model.registered]
        await asyncio.gather(*(model.runner.close() for model in registered))


def _target(path: str) -> str:
    """Return what is loaded: of a network the description beside it, for a network alone says too little."""
    if not path.endswith(".onnx"):
        return path
    described = Path(path).with_suffix(".toml")
    if not described.is_file():
        raise ModelError(
            f"Failed to load: {path} needs a description beside it, {described.name}, that says what its "
            "classes are and how its input and its output are laid out"
        )
    return str(described)


def _said(refusal: Refusal) -> str:
    """Return a refusal's text."""
    body = refusal.body
    return error_text({"message": body.get("detail", "") if isinstance(body, dict) else str(body)})
