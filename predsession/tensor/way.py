"""How a session keeps tensors: found out when one first is to be, by whichever thread comes first."""

from __future__ import annotations

import threading
from collections.abc import Callable

from predsession.errors import SessionClosedError
from predsession.tensor.residency import Residency


class Way:
    """A residency that is made when it is needed, once.

    Parameters
    ----------
    make : callable
        Makes it.
    """

    def __init__(self, make: Callable[[], Residency]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._found: Residency | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return self._closed

    def find(self) -> Residency:
        """Return it.

        Returns
        -------
        Residency
            Always the same.

        Raises
        ------
        SessionClosedError
            If the session was closed.
        """
        with self._lock:
            if self._closed:
                raise SessionClosedError("close_server() has ended this session: open another")
            if self._found is None:
                self._found = self._make()
            return self._found

    def close(self) -> None:
        """Let everything go; it may be done twice."""
        with self._lock:
            found, self._found, self._closed = self._found, None, True
        if found is not None:
            found.close()
