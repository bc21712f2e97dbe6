"""Other libraries' log lines about our requests, with the secrets taken out.

urllib3 logs the path of each request at DEBUG; a path may hold a session token, a query a signature. The
filter changes only lines that are logged while one of our own requests is under way on that thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from predsession.http.auth import show_url

_ours = threading.local()


class _Discretion(logging.Filter):
    """Shows every text of a line as URLs may be shown."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Take the secrets out; no line is dropped."""
        if getattr(_ours, "under_way", False) and isinstance(record.args, tuple):
            record.args = tuple(_shown(each) for each in record.args)
        return True


def _shown(value: object) -> object:
    """Return a text without secrets; other values as they are."""
    return show_url(value) if isinstance(value, str) and ("/" in value or "?" in value) else value


logging.getLogger("urllib3.connectionpool").addFilter(_Discretion())


@contextmanager
def discreet() -> Iterator[None]:
    """Mark what this thread does as one of our requests."""
    _ours.under_way = True
    try:
        yield
    finally:
        _ours.under_way = False
