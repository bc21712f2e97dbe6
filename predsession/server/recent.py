"""The last things that went wrong, kept for the page; it reads them off the log.

The log is the one place that every part of the server tells its troubles to, so nothing needs to know of the
page, and the page shows nothing that the log would not.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass

from predsession.wire.jsontypes import JSONObject

_LOGGER = logging.getLogger("predsession.server")
KEPT = 50
LONGEST = 500
"""Characters of a message; a traceback's last line is all that is kept of it."""


@dataclass(slots=True)
class Trouble:
    """One message, and how often it came in a row.

    Parameters
    ----------
    at : float
        Seconds since 1970, of the last time.
    message : str
        One line.
    count : int
        How often.
    """

    at: float
    message: str
    count: int = 1

    def to_json(self) -> JSONObject:
        """Return the fields as a JSON object."""
        return {"at": self.at, "message": self.message, "count": self.count}


class RecentErrors(logging.Handler):
    """Keeps what one server logs as a warning or an error.

    Parameters
    ----------
    secret : str or None
        Never shown, should it find its way into a message.
    """

    def __init__(self, secret: str | None = None) -> None:
        super().__init__(logging.WARNING)
        self._secret = secret
        self._thread: int | None = None
        self._troubles: deque[Trouble] = deque(maxlen=KEPT)

    def open(self) -> None:
        """Begin; only what the calling thread logs is kept, so that two servers in one process do not mix."""
        self._thread = threading.get_ident()
        _LOGGER.addHandler(self)

    def close(self) -> None:
        """End."""
        _LOGGER.removeHandler(self)
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one message."""
        if record.thread != self._thread:
            return
        message = self._brief(record)
        last = self._troubles[-1] if self._troubles else None
        if last is not None and last.message == message:
            last.count += 1
            last.at = record.created
            return
        self._troubles.append(Trouble(record.created, message))

    def to_json(self) -> list[JSONObject]:
        """Return what is kept, the latest first."""
        return [trouble.to_json() for trouble in reversed(self._troubles)]

    def _brief(self, record: logging.LogRecord) -> str:
        """Return a message as one line of bounded length."""
        lines = record.getMessage().strip().splitlines() or [""]
        line = lines[-1] if lines[0].startswith("Traceback") else lines[0]
        if self._secret:
            line = line.replace(self._secret, "***")
        return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
