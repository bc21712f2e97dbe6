"""A session's lease on our server: renewed for as long as its process lives, ended when it closes."""

from __future__ import annotations

import contextlib
import logging
import os
import threading

from predsession.errors import PredSessionError
from predsession.tensor.door import Door

log = logging.getLogger("predsession.tensor")
_SHARE = 3
"""A lease is renewed after so small a part of it, so that one renewal may be lost."""


class Lease:
    """Keeps a session on the server.

    Parameters
    ----------
    door : Door
        The server.
    session : str
        Which.
    seconds : float
        How long the server keeps it after the last word.
    """

    def __init__(self, door: Door, session: str, seconds: float) -> None:
        self._door = door
        self._session = session
        self._seconds = seconds
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def open(self) -> bool:
        """Whether there is something to be ended."""
        return self._thread is not None

    def begin(self) -> None:
        """Tell the server, and go on telling it.

        Raises
        ------
        PredSessionError
            If the server cannot be told.
        """
        with self._lock:
            if self._thread is not None or os.getpid() != self._owner:
                return
            self._door.renew(self._session, self._seconds)
            self._thread = threading.Thread(target=self._renew, name="predsession-lease", daemon=True)
            self._thread.start()

    def _renew(self) -> None:
        """Renew until the end."""
        while not self._closing.wait(self._seconds / _SHARE):
            try:
                self._door.renew(self._session, self._seconds)
            except PredSessionError as error:
                log.warning(
                    "the lease on %s was not renewed, and will be tried again: %s", self._door.shown, error
                )
            except RuntimeError:  # the door was closed in between
                return

    def end(self) -> None:
        """Let go of everything on the server; a server that does not answer does so by itself."""
        if os.getpid() != self._owner or self._closing.is_set():
            return
        self._closing.set()
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is None:
            return
        if thread is not threading.current_thread():  # the collector of forgotten sessions may be anywhere
            thread.join()
        with contextlib.suppress(RuntimeError):
            try:
                self._door.end(self._session)
            except PredSessionError as error:
                log.warning("%s was not told of the end, and notices within %g s: %s",
                    self._door.shown, self._seconds, error)  # fmt: skip
