"""The tensor models by name: those of the server, those of its repository, those that were sent.

Invariants: a model that is loaded stays until nobody wants it: each session that had it loaded, and whoever
did so without a session. While one is let go no new call gets to it, and those under way finish. A model that
was sent is not there any more afterwards; any other can be loaded again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from predsession.server.config import Limits, OipDoor
from predsession.server.models.card import ModelLoadError
from predsession.server.oip.keeping import Session
from predsession.server.oip.opening import Source, open_model, source_of
from predsession.server.oip.orders import LoadOrder
from predsession.server.oip.pictures import PictureModel
from predsession.server.oip.repository import NAME, VERSION, described, networks
from predsession.server.oip.served import Served
from predsession.server.oip.statistics import Statistics
from predsession.server.runner import Runner
from predsession.server.statuses import BadCallError, CallError
from predsession.server.texts import shortened
from predsession.wire.jsontypes import JSONObject
from predsession.wire.oip.residency import SHARED

_log = logging.getLogger("predsession.server")


@dataclass(slots=True, eq=False)
class Entry:
    """A model by its name.

    Parameters
    ----------
    name : str
        What calls say.
    source : Path, bytes, str or None
        What it is made of; None for one that the server has anyway.
    sent : bool
        Whether it was sent.
    """

    name: str
    source: Source | None
    sent: bool = False
    model: Served | None = None
    reason: str = ""
    """Why it is not there, where it is not."""
    statistics: Statistics = field(default_factory=Statistics)
    owners: set[str] = field(default_factory=set)
    """Sessions that had it loaded."""
    pinned: bool = False
    """Whether it was loaded for no session."""
    by_call: bool = False
    """Whether it was loaded by a call."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def state(self) -> str:
        """The protocol's word for how it is."""
        if self.model is not None:
            return "READY"
        return "LOADING" if self.lock.locked() else "UNAVAILABLE"

    @property
    def told(self) -> str:
        """What the index says of it beside that."""
        return SHARED if self.model is not None and self.owners and not self.pinned else self.reason


class Models:
    """All of them.

    Parameters
    ----------
    config : OipDoor
        With those of the command line.
    limits : Limits
        How many may be loaded.
    """

    def __init__(self, config: OipDoor, limits: Limits) -> None:
        self._config = config
        self._limits = limits
        self._entries: dict[str, Entry] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over all, those of the server first."""
        return iter(list(self._entries.values()))

    async def start(self, runners: Mapping[str, Runner]) -> None:
        """Load those of the command line.

        Parameters
        ----------
        runners : mapping of str to Runner
            The server's models of pictures, started.

        Raises
        ------
        ModelLoadError
            If one cannot be loaded, or two have the same name.
        """
        for name, runner in runners.items():
            self._add(Entry(name, None, model=PictureModel(runner, self._limits), pinned=True))
        for spec in self._config.models:
            await self._open(self._add(Entry(spec.name, source_of(spec.target), pinned=True)), LoadOrder())
        for name, runner in runners.items():
            await self._add_network(f"{name}.network", runner.card.files)
        self._look()

    async def _add_network(self, name: str, files: Sequence[str]) -> None:
        """Add the network that a model of pictures is made of."""
        networks = [Path(path) for path in files if path.endswith(".onnx")]
        if len(networks) != 1:
            return
        entry = self._add(Entry(name, networks[0], pinned=True))
        try:
            await self._open(entry, LoadOrder())
        except ModelLoadError as error:
            # The model itself is at work; that its network cannot be had alone is no reason to end.
            entry.reason = shortened(str(error))
            _log.warning("%s", error)

    def _add(self, entry: Entry) -> Entry:
        """Add a model under a new name."""
        if entry.name in self._entries:
            raise ModelLoadError(f"two models are called {entry.name}; give them names: NAME=TARGET")
        self._entries[entry.name] = entry
        return entry

    async def _open(self, entry: Entry, order: LoadOrder) -> None:
        """Load a model."""
        assert entry.source is not None, "the server's own are never loaded here"
        async with entry.lock:
            entry.model = await open_model(entry.name, entry.source, order, limits=self._limits)
        entry.reason = ""

    def _look(self) -> None:
        """List the repository's files, new ones with them; those that are gone go."""
        folder = self._config.repository
        found = {} if folder is None else networks(folder)
        for name, path in found.items():
            self._entries.setdefault(name, Entry(name, path, reason="not loaded"))
        for entry in self:
            within = (
                folder is not None and isinstance(entry.source, Path) and entry.source.is_relative_to(folder)
            )
            if within and entry.name not in found and entry.state == "UNAVAILABLE":
                del self._entries[entry.name]

    def index(self, *, ready: bool) -> list[JSONObject]:
        """List all, or those that are ready."""
        self._look()
        return [
            {"name": each.name, "version": VERSION, "state": each.state, "reason": each.told}
            for each in self
            if each.model is not None or not ready
        ]

    def get(self, name: str, version: str = "") -> tuple[Entry, Served]:
        """Return a model that is ready.

        Parameters
        ----------
        name : str
            Its name.
        version : str
            Its version; empty for the one that there is.

        Returns
        -------
        tuple
            The model.

        Raises
        ------
        CallError
            NOT_FOUND, or UNAVAILABLE while it is being loaded.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise CallError("NOT_FOUND", f"there is no model {name[:200]!r}; {self._known()}")
        if version not in {"", VERSION}:
            raise CallError("NOT_FOUND", f"model {name} has no version {version[:50]!r}; it has {VERSION}")
        if entry.model is None:
            code = "UNAVAILABLE" if entry.lock.locked() else "NOT_FOUND"
            raise CallError(code, f"model {name} is {entry.state}: {entry.reason or 'being loaded'}")
        return entry, entry.model

    def _known(self) -> str:
        """Say which there are."""
        ready = [entry.name for entry in self if entry.model is not None]
        return f"there are {', '.join(ready[:20])}" if ready else "none is ready"

    async def load(self, name: str, order: LoadOrder, session: Session | None) -> None:
        """Load a model, for a session or for good.

        Parameters
        ----------
        name : str
            What it is, or is to be, called.
        order : LoadOrder
            How.
        session : Session or None
            Whose it is to be.

        Raises
        ------
        CallError
            If it cannot be, or may not.
        """
        self._look()
        entry = self._entries.get(name)
        if order.network is not None:
            entry = self._receive(name, order.network)
        elif entry is None:
            raise CallError("NOT_FOUND", f"failed to load {name[:200]!r}: there is no such model here")
        if entry.model is None:
            await self._load(entry, order)
        elif not order.is_plain:
            raise CallError("ALREADY_EXISTS", f"failed to load {name!r}: it is loaded; unload it first")
        if session is None:
            entry.pinned = True
        elif entry.pinned:
            return  # it stays, whoever wants it
        elif not session.ended:
            entry.owners.add(session.id)
        elif not entry.owners:
            await self._free(entry)
            raise CallError("NOT_FOUND", f"session {session.id!r} was ended while {name} was loaded")

    def _receive(self, name: str, network: bytes) -> Entry:
        """Make room for a model that was sent."""
        if not self._config.upload:
            raise CallError(
                "PERMISSION_DENIED",
                "this server takes no models: it can be reached from other machines; --oip-load allows it",
            )
        if not NAME.fullmatch(name):
            raise BadCallError("a model's name has letters, digits, dots, dashes and underscores, up to 128")
        if name in self._entries:
            raise CallError("ALREADY_EXISTS", f"failed to load {name!r}: there is a model of that name")
        held = sum(len(each.source) for each in self if isinstance(each.source, bytes))
        if held + len(network) > self._limits.networks:
            limit = f"the limit is {self._limits.networks:,}, see --limit-networks"
            text = f"{held + len(network):,} bytes of models that were sent; {limit}"
            raise CallError("RESOURCE_EXHAUSTED", text)
        return self._add(Entry(name, network, sent=True))

    async def _load(self, entry: Entry, order: LoadOrder) -> None:
        """Load a model because a call wants it."""
        try:
            loaded = sum(each.by_call for each in self if each is not entry)
            if loaded >= self._limits.registered:
                text = f"{loaded} models were loaded by calls; see --limit-registered"
                raise CallError("RESOURCE_EXHAUSTED", text)
            entry.by_call = True
            async with entry.lock:
                if entry.model is not None:  # somebody else was quicker
                    return
                assert entry.source is not None, "the server's own are always there"
                order = described(entry.source, order)
                entry.model = await open_model(entry.name, entry.source, order, limits=self._limits)
                entry.by_call = True  # whoever had it before may have let it go in between
            entry.reason, entry.statistics = "", Statistics()
        except ModelLoadError as error:
            entry.reason = shortened(str(error))
            raise BadCallError(f"failed to load: {error}") from None
        finally:
            if entry.model is None:
                entry.by_call = False
                if entry.sent:
                    self._entries.pop(entry.name, None)

    async def unload(self, name: str, session: str) -> None:
        """Let a model go: wholly, or as far as a session is concerned.

        Parameters
        ----------
        name : str
            Which.
        session : str
            The session's id; empty for everybody's.

        Raises
        ------
        BadCallError
            If it is the server's own.
        CallError
            If it is not loaded.
        """
        entry, _ = self.get(name)
        if session:
            entry.owners.discard(session)
            if entry.owners or entry.pinned:
                return
        if entry.source is None:
            raise BadCallError(f"failed to unload {name!r}: it came with the server")
        await self._free(entry)

    async def end(self, session: str) -> list[str]:
        """Let the models of a session go.

        Parameters
        ----------
        session : str
            Its id.

        Returns
        -------
        list of str
            Those that nobody else wants.
        """
        owned = [entry for entry in self if session in entry.owners]
        gone: list[Entry] = []
        for entry in owned:
            entry.owners.discard(session)
            if not entry.owners and not entry.pinned:
                gone.append(entry)
        await asyncio.gather(*(self._free(entry) for entry in gone))
        return [entry.name for entry in gone]

    def of(self, session: str) -> list[str]:
        """Return the names of a session's models."""
        return [entry.name for entry in self if session in entry.owners]

    async def _free(self, entry: Entry) -> None:
        """Let a model go: no new calls, those under way finish."""
        model, entry.model = entry.model, None
        entry.reason = "unloaded"
        entry.owners.clear()
        entry.pinned = entry.by_call = False
        if entry.sent:
            self._entries.pop(entry.name, None)
        if model is None:
            return
        closing = asyncio.create_task(model.close(self._limits.batch))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)  # it is done whether or not its caller waits for it

    async def close(self) -> None:
        """End all, within the grace."""
        models = [entry.model for entry in self if entry.model is not None]
        for entry in self:
            entry.model, entry.reason = None, "the server is ending"
        await asyncio.gather(*(model.close(self._limits.grace) for model in models))
        if self._closing:
            await asyncio.wait(self._closing, timeout=self._limits.grace)
