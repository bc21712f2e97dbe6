"""Models that are loaded into a server's repository, and unloaded again."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator

from predsession.errors import (
    NotFoundError,
    PredSessionError,
    ResponseError,
    SessionClosedError,
    SourceError,
)
from predsession.tensor.deploying import LocalModel, Options, check_unique, load_parameters
from predsession.tensor.door import Door
from predsession.tensor.lease import Lease
from predsession.tensor.ledger import Record
from predsession.wire.oip.facts import ServerFacts
from predsession.wire.oip.residency import EXTENSION, SHARED

log = logging.getLogger("predsession.tensor")
_AS_IT_IS = Options((), {})
_UNLOAD_SECONDS = 20.0
"""An end does not wait longer for a server that does not answer."""


class Repository:
    """A server's models.

    Parameters
    ----------
    door : Door
        The server.
    facts : ServerFacts
        What it is.
    record : Record
        Takes down what is loaded on a server that has no lease.
    lease : Lease
        Of what is loaded on one that has.
    seconds : float
        That loading may take.
    """

    def __init__(
        self, door: Door, facts: ServerFacts, *, record: Record, lease: Lease, seconds: float
    ) -> None:
        self._door = door
        self._facts = facts
        self._record = record
        self._lease = lease
        self._seconds = seconds

    def put(self, local: Iterable[LocalModel], options: Options) -> dict[str, str]:
        """Load models of this machine's; all or none.

        Parameters
        ----------
        local : iterable of LocalModel
            Which.
        options : Options
            How they are to be run.

        Returns
        -------
        dict of str to str
            Own name to the server's name for it.

        Raises
        ------
        PredSessionError
            If one cannot be loaded.
        """
        names: dict[str, str] = {}
        loaded: list[str] = []
        try:
            for model in local:
                name = names[model.name] = self._record.name_for(model.name)
                self._load(name, model, options, loaded)
        except BaseException:
            self.remove(loaded)
            raise
        return names

    def take(self, models: Iterable[str] | None, options: Options) -> tuple[dict[str, str], list[str]]:
        """Find models of the server's own, and load those that are not.

        Parameters
        ----------
        models : iterable of str or None
            Which; None for all that are ready.
        options : Options
            How those are to be run that are loaded.

        Returns
        -------
        dict of str to str
            Name to name.
        list of str
            Those that are to be unloaded for us. On our server also those that other sessions had loaded: a
            model stays there until the last of them lets it go.

        Raises
        ------
        SourceError
            If one is not there; the message has those that are.
        PredSessionError
            If the server cannot be asked.
        """
        names = self._ready() if models is None else list(models)
        check_unique(names, "models")
        loaded: list[str] = []
        fresh = False
        try:
            for name, ready in self._readiness(names):
                if not ready:
                    self._load(name, None, options, loaded)
                    fresh = True
                elif ready == SHARED:
                    self._load(name, None, _AS_IT_IS, loaded)
            if options.given and not fresh:
                raise SourceError(
                    f"{' and '.join(options.given)}: settled when a model is loaded, and {', '.join(names)} "
                    "is ready as it is"
                )
        except BaseException:
            self.remove(loaded)
            raise
        return dict(zip(names, names, strict=True)), loaded

    def _readiness(self, names: list[str]) -> Iterator[tuple[str, str]]:
        """Tell of each model whether it is ready: an empty text if not, `SHARED` if sessions share it."""
        if EXTENSION not in self._facts.extensions:
            yield from ((name, "ready" if self._door.model_ready(name) else "") for name in names)
            return
        states = {each.name: each for each in self._door.index() if each.state == "READY"}
        for name in names:
            yield name, "" if name not in states else states[name].reason or "ready"

    def _ready(self) -> list[str]:
        """Return the names of all models that are ready."""
        try:
            states = self._door.index()
        except (NotFoundError, ResponseError) as error:
            raise SourceError(
                f"{self._door.shown} does not list its models ({error}): pass models=[...]"
            ) from None
        names = list(dict.fromkeys(each.name for each in states if each.state in {"READY", ""}))
        if not states:  # PyTriton lists nothing, whatever it has; it counts what it has all the same
            with contextlib.suppress(PredSessionError):
                names = self._door.counted()
        ready = [name for name in names if self._door.model_ready(name)]
        if not ready:
            raise SourceError(
                f"{self._door.shown} lists no model that is ready: pass models=[...] to have some loaded"
            )
        return ready

    def _load(self, name: str, local: LocalModel | None, options: Options, loaded: list[str]) -> None:
        """Load one model, and add it to those that are; unless it was refused, it may be there."""
        said = load_parameters(
            local, server=self._facts, name=name, options=options, session=self._record.token
        )
        if EXTENSION in self._facts.extensions:
            self._lease.begin()
        else:
            self._record.add_model(name)
        loaded.append(name)
        try:
            self._door.load(name, said, self._seconds)
        except ResponseError as error:
            loaded.remove(name)
            self._record.remove_model(name)
            if local is not None:
                raise
            raise SourceError(
                f"{name!r} is not ready, and cannot be loaded: {str(error).rstrip('.')}.{self._listed()}"
            ) from error

    def _listed(self) -> str:
        """Return a sentence with the names of what the server has."""
        try:
            names = list(dict.fromkeys(each.name for each in self._door.index()))
        except PredSessionError:
            return ""
        return f" The server has {', '.join(map(repr, names))}." if names else ""

    def remove(self, names: Iterable[str]) -> None:
        """Unload what was loaded; a server that is gone has done it itself.

        Parameters
        ----------
        names : iterable of str
            The server's names.
        """
        session = self._record.token if EXTENSION in self._facts.extensions else ""
        for name in list(names):
            try:
                self._door.unload(name, min(self._seconds, _UNLOAD_SECONDS), session)
            except NotFoundError:
                pass
            except (PredSessionError, SessionClosedError) as error:
                log.warning("%s is left on %s: %s", name, self._door.shown, error)
                continue
            self._record.remove_model(name)
