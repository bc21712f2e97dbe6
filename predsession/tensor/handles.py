"""Models on a server, shared by sessions; and the four calls that make and end what sessions share.

Invariant: what was loaded is unloaded once, by the process that loaded it, and not while a session uses it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from predsession.errors import SessionClosedError, SourceError
from predsession.tensor.deploying import LocalModel, Options, check_unique, find_local
from predsession.tensor.hosting import ServerHandle
from predsession.tensor.repository import Repository

PathLike = str | os.PathLike[str]


class ModelHandle:
    """Models on a server; made by `init_model`.

    It can be pickled, and handed to other processes.

    Parameters
    ----------
    server : ServerHandle
        Where.
    names : mapping of str to str
        Own name to the server's name for it.
    loaded : iterable of str
        Those of the server's names that were loaded for us.
    """

    def __init__(self, server: ServerHandle, names: Mapping[str, str], loaded: Iterable[str]) -> None:
        self.server = server
        self.names: dict[str, str] = dict(names)
        self._loaded = tuple(loaded)
        self._owner: int | None = os.getpid()
        self._lock = threading.Lock()
        self._sessions = 0
        self._closed = False
        self._finalizer = weakref.finalize(self, _unload, server.repository, self._loaded, self._owner)
        server.note(self)

    def __getstate__(self) -> dict[str, object]:
        """Return what another process needs."""
        kept = ("server", "names", "_loaded", "_closed")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Take over the names; the models stay their maker's."""
        for name, value in state.items():
            setattr(self, name, value)
        self._owner, self._sessions, self._lock = None, 0, threading.Lock()
        self.server.note(self)

    @property
    def closed(self) -> bool:
        """Whether the models were let go."""
        return self._closed

    @property
    def sessions(self) -> int:
        """How many sessions of this process use it."""
        return self._sessions

    @property
    def is_copy(self) -> bool:
        """Whether it came from another process, or another handle, which has the models."""
        return os.getpid() != self._owner

    def entered(self) -> None:
        """Take down that a session uses it.

        Raises
        ------
        SessionClosedError
            If the models were let go.
        """
        if self._closed:
            raise SessionClosedError(f"deinit_model() has let {', '.join(self.names)} go: init_model() anew")
        with self._lock:
            self._sessions += 1

    def left(self) -> None:
        """Take down that a session has ended."""
        with self._lock:
            self._sessions -= 1

    def deinit(self) -> None:
        """Let the models go; it may be done twice.

        Raises
        ------
        SessionClosedError
            If a session uses them, or another process made them.
        """
        if self.is_copy:
            raise SessionClosedError(
                f"{', '.join(self.names)} belongs to the handle that init_model() returned, in its process: "
                "deinit_model() of that one lets it go; this is a copy"
            )
        if self._sessions:
            raise SessionClosedError(self._used("deinit_model()"))
        self.close()

    def _used(self, what: str) -> str:
        """Say that sessions use it, and what comes first."""
        return (
            f"close_server() of the session comes before {what}: {self._sessions} of them "
            f"use {', '.join(self.names)}"
        )

    def close(self) -> None:
        """Let the models go, if they are ours, whoever uses them; it may be done twice."""
        if not self.is_copy and not self._closed:
            self._closed = True
            self._finalizer()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the models go; raise `SessionClosedError` if sessions used them, and nothing else is raised."""
        used = self._sessions and not self._closed and not self.is_copy
        self.close()
        if used and kind is None:
            raise SessionClosedError(f"{self._used('the end of its block')}; it was let go all the same")

    def __repr__(self) -> str:
        """Return what it stands for."""
        return f"<ModelHandle {', '.join(self.names)} on {self.server!r}>"


def _unload(repository: Repository, loaded: Iterable[str], owner: int) -> None:
    """Unload what was loaded; in the process that did."""
    if os.getpid() == owner:
        repository.remove(loaded)


@dataclass(frozen=True, slots=True)
class ModelsAsked:
    """Which models are to be put on a server, and how they are to be run; checked before it is asked.

    Parameters
    ----------
    local : tuple of LocalModel
        Those of this machine; empty for the server's own.
    names : tuple of str or None
        The server's own; None for all that are ready.
    options : Options
        How they are to be run.
    """

    local: tuple[LocalModel, ...]
    names: tuple[str, ...] | None
    options: Options

    @classmethod
    def read(
        cls,
        local_model_path: PathLike | Iterable[PathLike] | None,
        models: Iterable[str] | None,
        core_id: int | Iterable[int],
        *,
        remote_environment: Mapping[str, str] | None,
    ) -> ModelsAsked:
        """Read what a caller says.

        Parameters
        ----------
        local_model_path, models, core_id, remote_environment
            As `init_model` takes them.

        Returns
        -------
        ModelsAsked
            Checked.

        Raises
        ------
        SourceError
            If something is wrong with it.
        """
        if local_model_path is not None and models is not None:
            raise SourceError("local_model_path and models: pass one of the two")
        options = Options.read(core_id, remote_environment)
        if local_model_path is not None:
            return cls(tuple(find_local(local_model_path)), None, options)
        if not isinstance(models, Iterable | None):
            raise SourceError(f"models is {models!r}; wanted names of models, or None for all that are ready")
        names = None if models is None else (models,) if isinstance(models, str) else tuple(models)
        if names is not None:
            if not names or not all(isinstance(name, str) and name for name in names):
                raise SourceError(
                    f"models is {models!r}; wanted names of models, or None for all that are ready"
                )
            check_unique(list(names), "models")
        return cls((), names, options)

    def on(self, server: ServerHandle) -> ModelHandle:
        """Put them on a server.

        Parameters
        ----------
        server : ServerHandle
            Which.

        Returns
        -------
        ModelHandle
            For them.
        """
        if self.local:
            names = server.repository.put(self.local, self.options)
            return ModelHandle(server, names, names.values())
        names, loaded = server.repository.take(self.names, self.options)
        return ModelHandle(server, names, loaded)


def init_model(
    local_model_path: PathLike | Iterable[PathLike] | None,
    server: ServerHandle,
    *,
    models: Iterable[str] | None = None,
    core_id: int | Iterable[int] = -1,
    remote_environment: Mapping[str, str] | None = None,
) -> ModelHandle:
    """Put models on a server, for sessions to share.

    Parameters
    ----------
    local_model_path : path, iterable of paths, or None
        ONNX files, or folders as in Triton's repository; None for models of the server's own.
    server : ServerHandle
        From `init_server`.
    models : iterable of str or None
        Names of models that the server has; those that are not ready are loaded.
    core_id : int or iterable of int
        Which cores they may use; -1 for any.
    remote_environment : mapping of str to str or None
        What they are told.

    Returns
    -------
    ModelHandle
        To be let go by `deinit_model`, or a ``with`` block.

    Raises
    ------
    SourceError
        If there is no such model, or a server has no counterpart for something.
    PredSessionError
        If the server cannot be asked, or refuses.
    """
    if not isinstance(server, ServerHandle):
        raise SourceError(f"server is {type(server).__name__}; wanted what init_server() returns")
    return ModelsAsked.read(local_model_path, models, core_id, remote_environment=remote_environment).on(
        server
    )


def deinit_model(handle: ModelHandle) -> None:
    """Let models go; it may be done twice.

    Parameters
    ----------
    handle : ModelHandle
        From `init_model`.

    Raises
    ------
    SessionClosedError
        If a session still uses them, or this is a copy.
    """
    handle.deinit()


def deinit_server(server: ServerHandle) -> None:
    """Let a server go; it may be done twice.

    Parameters
    ----------
    server : ServerHandle
        From `init_server`.

    Raises
    ------
    SessionClosedError
        If models are still there, or sessions of this process use it.
    """
    server.deinit()
