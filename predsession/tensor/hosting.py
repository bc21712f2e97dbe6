"""A server that models are put on. Invariant: it is not let go while a model of ours is there."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Protocol, Self

from predsession.errors import (
    ServerFaultError,
    SessionClosedError,
    SourceError,
)
from predsession.http.auth import Secret
from predsession.tensor.address import find_address
from predsession.tensor.door import Door
from predsession.tensor.grpcdoor import GrpcDoor
from predsession.tensor.headers import checked, veiled
from predsession.tensor.httpdoor import HttpDoor
from predsession.tensor.inregions import InRegions
from predsession.tensor.lease import Lease
from predsession.tensor.ledger import Record, clear_up
from predsession.tensor.onserver import OnServer
from predsession.tensor.repository import Repository
from predsession.tensor.residency import HereOnly, Residency
from predsession.wire.oip.facts import ServerFacts
from predsession.wire.oip.regions import EXTENSION as REGIONS
from predsession.wire.oip.residency import EXTENSION

log = logging.getLogger("predsession.tensor")
COMPRESSION = {"NONE": (False, False), "IN": (True, False), "INOUT": (True, True)}
"""Whether requests are compressed, and whether replies are to be."""
CALL_SECONDS = 30.0
"""The deadline of calls that run no model and load none."""
LONGEST_MINUTES = 1440.0
"""A day: our server gives no longer lease."""
_LOOK_SECONDS = 0.05


class Handle(Protocol):
    """Models that were put on a server: `predsession.tensor.handles.ModelHandle`."""

    names: dict[str, str]

    @property
    def closed(self) -> bool:
        """Whether they were let go."""

    @property
    def is_copy(self) -> bool:
        """Whether another handle has the models."""

    @property
    def sessions(self) -> int:
        """How many sessions of this process use them."""

    def close(self) -> None:
        """Let the models go."""


class ServerHandle:
    """A server that models are put on; made by `init_server`.

    It can be pickled, and handed to other processes.

    Parameters
    ----------
    host : str
        ``"grpc://host:port"``, ``"http://host:port"``, ``"host"``.
    grpc_port : int or None
        The port, where `host` has none.
    token : str or None
        The server's token.
    headers : mapping of str to str or None
        Sent along with every call.
    compress_option : str
        "NONE", "IN" (requests) or "INOUT" (replies too).
    server_timeout : float
        **Minutes** for which our server keeps models and tensors after it heard the last word.
    load_timeout : float
        Seconds that loading a model may take.
    """

    def __init__(
        self,
        host: str,
        *,
        grpc_port: int | None = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        compress_option: str = "NONE",
        server_timeout: float = 5.0,
        load_timeout: float = 120.0,
    ) -> None:
        token, headers = veiled(token, headers)
        if not isinstance(compress_option, str) or compress_option not in COMPRESSION:
            raise SourceError(
                f"compress_option is {compress_option!r}; wanted {', '.join(map(repr, COMPRESSION))}"
            )
        if not isinstance(server_timeout, int | float) or not 0 < server_timeout <= LONGEST_MINUTES:
            raise SourceError(
                f"server_timeout is {server_timeout!r}; wanted minutes above 0, {LONGEST_MINUTES:g} at most"
            )
        self._address = find_address(host, grpc_port)
        self._token = token
        self._headers = checked(headers, token)
        self._compress = compress_option
        self.lease_s: float = server_timeout * 60
        self._load_timeout = load_timeout
        self._owner = os.getpid()
        self._begin()
        self._finalizer = weakref.finalize(self, _let_go, self._record, self._lease, self._door, self._owner)

    def _begin(self) -> None:
        """Make what is each process's own."""
        self._lock = threading.Lock()
        self._door: Door = self._make_door()
        self._record = Record(self._door.shown)
        self._lease = Lease(self._door, self._record.token, self.lease_s)
        self._facts: ServerFacts | None = None
        self._models: weakref.WeakSet[Handle] = weakref.WeakSet()  # one that nobody has lets go by itself
        self._closed = False

    def _make_door(self) -> Door:
        """Make the connection."""
        packs, unpacks = COMPRESSION[self._compress]
        if self._address.http:
            return HttpDoor(
                self._address,
                headers=self._headers,
                token=self._token,
                compress=(packs, unpacks),
                seconds=CALL_SECONDS,
            )
        headers: dict[str, str] = dict(self._headers)
        if self._token is not None:
            headers["authorization"] = Secret(f"Bearer {self._token}")
        return GrpcDoor(self._address, headers=headers, compressed=packs, seconds=CALL_SECONDS)

    def __getstate__(self) -> dict[str, object]:
        """Return what another process needs: how to reach the server."""
        kept = ("_address", "_token", "_headers", "_compress", "lease_s", "_load_timeout", "_owner")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Connect anew, when that is first needed."""
        for name, value in state.items():
            setattr(self, name, value)
        self._begin()
        self._finalizer = weakref.finalize(self, _let_go, self._record, self._lease, self._door, os.getpid())

    @property
    def door(self) -> Door:
        """The connection.

        Raises
        ------
        SessionClosedError
            If the server was let go.
        """
        if self._closed:
            raise SessionClosedError(f"deinit_server() has let {self._address.shown} go: init_server() anew")
        return self._door

    @property
    def facts(self) -> ServerFacts:
        """What the server is; asked once.

        Raises
        ------
        PredSessionError
            If it cannot be reached, or is none.
        """
        with self._lock:
            if self._facts is None:
                self._facts = self.door.server()
                if EXTENSION not in self._facts.extensions:
                    self._clear_up()
            return self._facts

    def _clear_up(self) -> None:
        """Remove what dead sessions of this machine left on a server that has no lease."""
        gone = clear_up(self._door, self._load_timeout)
        if gone:
            log.warning(
                "removed from %s what a session left that did not end: %s", self._door.shown, ", ".join(gone)
            )

    @property
    def compresses_replies(self) -> bool:
        """Whether replies are to be compressed."""
        return COMPRESSION[self._compress][1]

    def residency(self) -> Residency:
        """Return how tensors are kept on this server.

        Returns
        -------
        Residency
            The best there is.
        """
        if EXTENSION in self.facts.extensions:
            return OnServer(self.door, self.lease_s)
        regions = InRegions.probed(self.door, self._record) if REGIONS in self.facts.extensions else None
        if regions is not None:
            return regions
        log.warning(
            "%s (%s %s) keeps no tensors for us: they are kept here, and sent with each call",
            self._door.shown,
            self.facts.name,
            self.facts.version,
        )
        return HereOnly()

    @property
    def repository(self) -> Repository:
        """Its models."""
        return Repository(
            self.door, self.facts, record=self._record, lease=self._lease, seconds=self._load_timeout
        )

    def wait_ready(self, names: Iterable[str]) -> None:
        """Wait until models answer: a server may say that it has loaded one a moment before.

        Parameters
        ----------
        names : iterable of str
            The server's names.

        Raises
        ------
        ServerFaultError
            If one does not get ready.
        """
        ends = time.monotonic() + self._load_timeout
        for name in names:
            while not self.door.model_ready(name):
                if time.monotonic() > ends:
                    raise ServerFaultError(f"{name!r} on {self._door.shown} does not get ready")
                time.sleep(_LOOK_SECONDS)

    # -- the end ---------------------------------------------------------------------------------------

    def note(self, handle: Handle) -> None:
        """Take down that a model is there."""
        self._models.add(handle)

    def deinit(self) -> None:
        """Let the server go; it may be done twice.

        Raises
        ------
        SessionClosedError
            If models are there, or sessions; the message names what is to be done first.
        """
        if self._closed:
            return
        used = self._used()
        there = [handle for handle in self._models if not handle.closed and not handle.is_copy]
        first = ["close_server()"] * bool(used) + ["deinit_model()"] * bool(there)
        if first:
            order = f"{' and '.join(first)} {'comes' if len(first) == 1 else 'come'} before deinit_server()"
            raise SessionClosedError(f"{order}: {', '.join(_names(there) or used)} is still there")
        self.close()

    def _used(self) -> list[str]:
        """Return the names of the models that sessions of this process use."""
        return _names([handle for handle in self._models if handle.sessions])

    def close(self) -> None:
        """Let everything go; it may be done twice."""
        if not self._closed:
            self._closed = True
            self._finalizer()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the server go, its models first.

        Raises
        ------
        SessionClosedError
            If sessions used it, and nothing else is raised.
        """
        used = [] if self._closed else self._used()
        for handle in list(self._models):
            handle.close()
        self.close()
        if used and kind is None:
            raise SessionClosedError(
                "close_server() of the session comes before the end of the server's block: "
                f"{', '.join(used)} was used, and let go all the same"
            )

    def __repr__(self) -> str:
        """Return where it is."""
        return f"<ServerHandle {self._address.shown}>"


def _names(handles: Iterable[Handle]) -> list[str]:
    """Return the names of models."""
    return [name for handle in handles for name in handle.names]


def _let_go(record: Record, lease: Lease, door: Door, owner: int) -> None:
    """End what there is on a server; in the process that has it."""
    if os.getpid() == owner:
        lease.end()
        record.close()
        door.close()


def init_server(
    host: str,
    *,
    grpc_port: int | None = None,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    compress_option: str = "NONE",
    server_timeout: float = 5.0,
    load_timeout: float = 120.0,
) -> ServerHandle:
    """Find a server, for models and sessions that live shorter than it is needed.

    Parameters
    ----------
    host : str
        ``"grpc://host:port"``, ``"http://host:port"``, ``"host"``.
    grpc_port : int or None
        The port, where `host` has none; 8001 by default.
    token : str or None
        The server's token.
    headers : mapping of str to str or None
        Sent along with every call.
    compress_option : str
        "NONE", "IN" (requests) or "INOUT" (replies too).
    server_timeout : float
        **Minutes** for which our server keeps models and tensors after it heard the last word.
    load_timeout : float
        Seconds that loading a model may take.

    Returns
    -------
    ServerHandle
        To be let go by `deinit_server`, or a ``with`` block.

    Raises
    ------
    SourceError
        If the address means nothing.
    PredSessionError
        If nobody is there, or somebody else.
    """
    token, headers = veiled(token, headers)
    handle = ServerHandle(
        host,
        grpc_port=grpc_port,
        token=token,
        headers=headers,
        compress_option=compress_option,
        server_timeout=server_timeout,
        load_timeout=load_timeout,
    )
    try:
        _ = handle.facts
    except BaseException:
        handle.close()
        raise
    return handle
