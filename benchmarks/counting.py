"""A proxy that counts: how many bytes a client and its server really send each other."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class CountingProxy:
    """Passes on what comes, in both directions, and counts it; a context manager.

    Parameters
    ----------
    target : tuple of str and int
        Where to.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.count = 0
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        """Take connections."""
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
            except OSError:
                return
            self._sockets += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        """Pass on one direction."""
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 18):
                with self._lock:
                    self.count += len(piece)
                sink.sendall(piece)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close everything."""
        for each in (self._listener, *self._sockets):
            each.close()
