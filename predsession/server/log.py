"""The server's log: one line a message on stderr, for people or as JSON; never a token, never a query."""

from __future__ import annotations

import json
import logging
import sys
import time

_FIELDS = "fields"


class _Text(logging.Formatter):
    """One line for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the time, the message, and fields where there are some."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        return f"{stamp} {record.getMessage()}"


class _Json(logging.Formatter):
    """One line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a JSON object."""
        fields = getattr(record, _FIELDS, None)
        line: dict[str, object] = {"time": round(record.created, 3), "level": record.levelname.lower()}
        line.update(fields if isinstance(fields, dict) else {"message": record.getMessage()})
        return json.dumps(line)


def set_up(*, as_json: bool, quiet: bool) -> None:
    """Send the log to stderr.

    Parameters
    ----------
    as_json : bool
        Whether each line is a JSON object.
    quiet : bool
        Whether only errors are logged.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if as_json else _Text())
    logging.basicConfig(handlers=[handler], level=logging.ERROR if quiet else logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
