"""How long an answer may take to come, down to its single bytes, and a request to go. A part of `transport`.

A socket's timeout is for each piece that comes: a peer that sends a byte now and then never lets it pass, be
it in the head, in a chunk's size or behind the last one. So the file that an answer is read from has a time
for the head as a whole, counted from the last byte that was sent, and another for what follows it.

Sending is the other way round: there the timeout is for all that is handed over at once, so that a large
body would have no more time than a small one. It is handed over in blocks.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.poolmanager import PoolManager

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, SupportsRead, WriteableBuffer

    _Sent = ReadableBuffer | SupportsRead[bytes] | Iterable[ReadableBuffer] | str

MOST_BYTES = 1 << 29
"""No answer to a call is longer, packed or unpacked: 512 MiB."""
SLOWEST = 1024
"""Bytes a second, on the average, once an answer has taken longer than the read timeout as a whole."""

_BLOCK = 1 << 16
"""Bytes that are handed to a socket at once."""


class _PatientFile(io.RawIOBase):
    """A socket's file that no trickle holds beyond its time."""

    def __init__(self, sock: socket.socket, file: io.RawIOBase, patience: float) -> None:
        self._sock, self._file, self._patience = sock, file, patience
        self._ends, self._pace, self._received = time.monotonic() + patience, 0.0, 0

    def begin_body(self) -> None:
        """Give what follows the head the same time again, and more for all that comes."""
        self._ends, self._pace = time.monotonic() + self._patience, 1 / SLOWEST

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        """Read what there is, as long as there is time left."""
        left = self._ends + self._received * self._pace - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(min(left, self._patience))
        count = self._file.readinto(buffer)
        self._received += count or 0
        if self._received > 2 * MOST_BYTES:  # twice: chunks have heads of their own
            raise OSError("the answer has no end")
        return count

    def close(self) -> None:
        """Close the socket's file."""
        try:
            self._file.close()
        finally:
            super().close()


class _PatientResponse(http.client.HTTPResponse):
    """An answer whose head comes in time, or not at all."""

    def __init__(
        self, sock: socket.socket, debuglevel: int = 0, method: str | None = None, *, patience: float
    ) -> None:
        super().__init__(sock, debuglevel, method)
        self._patient = _PatientFile(sock, self.fp.detach(), patience)
        self.fp = io.BufferedReader(self._patient)

    def begin(self) -> None:
        """Read the head."""
        super().begin()
        self._patient.begin_body()


def _be_patient(manager: PoolManager) -> None:
    """Have the connections of a pool that has made none yet read answers that come in time."""
    pools: Mapping[str, type[HTTPConnectionPool]] = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: _patient_pool(pool) for scheme, pool in pools.items()}


def _patient_pool(pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    """Return a pool with connections of its own kind (plain, TLS, SOCKS) that read and send patiently."""
    base = cast("type[HTTPConnection]", pool.ConnectionCls)

    def response_class(
        connection: HTTPConnection, sock: socket.socket, debuglevel: int = 0, method: str | None = None
    ) -> http.client.HTTPResponse:
        # The read timeout by now; while a proxy is asked for a way through, the one for connections.
        if connection.timeout is None:
            return http.client.HTTPResponse(sock, debuglevel, method)
        return _PatientResponse(sock, debuglevel, method, patience=connection.timeout)

    def send(connection: HTTPConnection, data: _Sent) -> None:
        if not isinstance(data, bytes) or len(data) <= _BLOCK:
            base.send(connection, data)
            return
        for begin in range(0, len(data), _BLOCK):
            base.send(connection, data[begin : begin + _BLOCK])

    patient = type(f"Patient{base.__name__}", (base,), {"response_class": response_class, "send": send})
    return type(f"Patient{pool.__name__}", (pool,), {"ConnectionCls": patient})


class PatientAdapter(HTTPAdapter):
    """What requests sends over, with and without a proxy."""

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **others: object) -> None:
        """Make the pool of connections."""
        super().init_poolmanager(connections, maxsize, block, **others)
        _be_patient(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **others: object) -> PoolManager:
        """Return the pool of a proxy's connections."""
        known = proxy in self.proxy_manager
        manager: PoolManager = super().proxy_manager_for(proxy, **others)
        if not known:
            _be_patient(manager)
        return manager
