"""The answers that are errors, in the words of a stock server.

References
----------
docs/protocol.md, "Errors": each body was recorded.
"""

from __future__ import annotations

import json

from predsession.errors import PredSessionError
from predsession.wire.jsontypes import JSON

SLOW = 408
TITLE = "Oops! Something went wrong"


class Refusal(PredSessionError):  # noqa: N818 - an answer, not a fault
    """A call that is answered with an error.

    Parameters
    ----------
    status : int
        The HTTP status.
    body : JSON
        The answer.
    retry_after : int or None
        Seconds after which asking again makes sense.
    """

    def __init__(self, status: int, body: JSON, *, retry_after: int | None = None) -> None:
        super().__init__(f"{status}: {json.dumps(body)[:200]}")
        self.status = status
        self.body = body
        self.retry_after = retry_after


class Fault(PredSessionError):  # noqa: N818 - as above
    """What a stock server answers with status 500: an exception that nobody caught.

    Parameters
    ----------
    shown : str
        The exception as Python would show it.
    """

    def __init__(self, shown: str) -> None:
        super().__init__(shown)
        self.shown = shown

    @property
    def body(self) -> JSON:
        """The answer of a server in production mode."""
        return {"detail": {"title": TITLE, "message": self.shown}}


NO_FILES: JSON = {
    "detail": [{"type": "missing", "loc": ["body", "files"], "msg": "Field required", "input": None}]
}
"""The body of the 422 for an upload without files."""


def detail(text: str) -> JSON:
    """Return a body with one sentence in ``detail``."""
    return {"detail": text}


def explained(text: str) -> JSON:
    """Return a body as a stock server words its own checks."""
    return {"detail": text, "success": False, "message": text}


def too_slow(seconds: float) -> JSON:
    """Return the body of the 408 for a body of which nothing came for so long."""
    return explained(f"Nothing came for {seconds:g} seconds.")


def unknown_job(uuid: str, count: int) -> str:
    """Return the exception for a uuid that is not known.

    Parameters
    ----------
    uuid : str
        What the caller named.
    count : int
        How many jobs there are.

    Returns
    -------
    str
        The recorded words, which clients recognise.
    """
    text = (
        f"inference_request_uuid {uuid} was given, but there is no such uuid in "
        f"'self._inference_requests' ({count} items)"
    )
    return f"RuntimeError({text!r})"
