"""Every exception of the package. Imports nothing of ours.

::

    PredSessionError
    ├─ TransportError            no usable answer came back
    │  ├─ ConnectError           nothing was sent: always safe to try again
    │  ├─ RequestTimeoutError    (also TimeoutError) it may have been acted on
    │  └─ ProtocolError          the peer broke its contract
    ├─ ResponseError             status, body head, retry_after
    │  ├─ AuthError · NotFoundError · InvalidRequestError · UploadTooLargeError
    │  ├─ RateLimitError · ServerFaultError
    │  └─ RefusedError           a well-formed "no" (success=false)
    ├─ JobError                  uuid, stage, items concerned
    │  ├─ JobFailedError · JobCancelledError · JobExpiredError
    │  ├─ MissingResultsError    which items have no result
    │  └─ JobTimeoutError        (also TimeoutError) our deadline passed
    ├─ ItemError                 one input is unreadable or was refused
    ├─ SourceError               (also ValueError) the source itself
    ├─ JournalError              locked, made by another run, damaged
    ├─ DiskError                 (also OSError) a file of ours cannot be written or read
    ├─ StoreError                a result that does not fit the store's schema
    └─ MissingExtraError         (also ImportError) names the extra to install
    SessionClosedError(RuntimeError)
    └─ SessionBusyError          another thread is using it

Invariant: each survives pickle with its message, its fields and its notes; so the fields live in the
instance's ``__dict__`` and unpickling calls no ``__init__``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

BODY_HEAD = 500
"""How many characters of an answer's body an error keeps."""


def _rebuild(
    kind: type[PredSessionError], args: tuple[object, ...], fields: dict[str, object]
) -> PredSessionError:
    """Make the exception again, without running its constructor."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


class PredSessionError(Exception):
    """Base of everything this package raises on its own account."""

    def __reduce__(
        self,
    ) -> tuple[object, tuple[type[PredSessionError], tuple[object, ...], dict[str, object]]]:
        """Pickle by fields, so that keyword-only constructors survive."""
        return _rebuild, (type(self), self.args, dict(self.__dict__))


class TransportError(PredSessionError):
    """No usable answer came back.

    Parameters
    ----------
    message : str
        What was tried, on what, what happened.
    url : str
        Where, with secrets taken out.
    """

    def __init__(self, message: str, *, url: str = "") -> None:
        super().__init__(message)
        self.url = url


class ConnectError(TransportError):
    """The peer could not be reached; nothing was sent, so trying again is always safe.

    Parameters
    ----------
    message : str
        What was tried, on what, what happened.
    url : str
        Where, with secrets taken out.
    permanent : bool
        Whether trying again is useless all the same: a certificate, a malformed address.
    """

    def __init__(self, message: str, *, url: str = "", permanent: bool = False) -> None:
        super().__init__(message, url=url)
        self.permanent = permanent


class RequestTimeoutError(TransportError, TimeoutError):
    """No answer in time; the request may have been acted on."""


class ProtocolError(TransportError):
    """The peer broke its contract: HTML with status 200, missing fields, a wrong count."""


class ResponseError(PredSessionError):
    """The server answered, and the answer is an error.

    Parameters
    ----------
    message : str
        What was asked, and what came back.
    status : int
        HTTP status.
    body_head : str
        The first characters of the body.
    retry_after : float or None
        Seconds the server asked to wait, where it did.
    url : str
        Where, with secrets taken out.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        body_head: str = "",
        retry_after: float | None = None,
        url: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body_head: str = body_head[:BODY_HEAD]
        self.retry_after = retry_after
        self.url = url


class AuthError(ResponseError):
    """The server wants a token, or refuses the one it got (401, 403)."""


class NotFoundError(ResponseError):
    """There is no such endpoint (404, 405)."""


class InvalidRequestError(ResponseError):
    """The server does not accept the request as it is (400, 415, 422)."""


class UploadTooLargeError(ResponseError):
    """The request is larger than the server, or a proxy before it, allows (413)."""


class RateLimitError(ResponseError):
    """The server asks to come back later (429)."""


class ServerFaultError(ResponseError):
    """The server, or a proxy before it, failed (5xx)."""


class RefusedError(ResponseError):
    """The server answered "no" in a well-formed reply (``success`` is false)."""


class JobError(PredSessionError):
    """A job did not end as it should.

    Parameters
    ----------
    message : str
        What happened, and what to do.
    uuid : str
        The job's id on the server.
    stage : str
        Where it stood, in the server's words.
    items : sequence of str
        The names of the inputs concerned.
    """

    def __init__(self, message: str, *, uuid: str = "", stage: str = "", items: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.uuid = uuid
        self.stage = stage
        self.items: tuple[str, ...] = tuple(items)


class JobFailedError(JobError):
    """The server reports an exception in the job.

    Parameters
    ----------
    message : str
        What happened.
    type : str
        The exception's type, as the server names it.
    server_message : str
        The exception's text on the server.
    traceback : str
        The server's traceback, empty where it sent none.
    **fields
        As in `JobError`.
    """

    def __init__(
        self,
        message: str,
        *,
        type: str = "",  # noqa: A002 - the wire's own word
        server_message: str = "",
        traceback: str = "",
        uuid: str = "",
        stage: str = "",
        items: Sequence[str] = (),
    ) -> None:
        super().__init__(message, uuid=uuid, stage=stage, items=items)
        self.type = type
        self.server_message = server_message
        self.traceback = traceback


class JobCancelledError(JobError):
    """Somebody else stopped the job."""


class JobExpiredError(JobError):
    """The server no longer knows the job."""


class MissingResultsError(JobError):
    """Some inputs have no result, and asking again is impossible or did not help."""


class JobTimeoutError(JobError, TimeoutError):
    """One of our own deadlines passed."""


class ItemError(PredSessionError):
    """One input is unreadable or was refused. It is falsy, so that ``if prediction:`` works.

    Parameters
    ----------
    message : str
        The whole sentence: which input, what is wrong, what to do.
    index : int
        Position in the source, from 0.
    name : str
        The input's name.
    path : str or None
        Its path, where it has one.
    reason : str
        What is wrong, without the name.
    """

    def __init__(
        self,
        message: str,
        *,
        index: int = -1,
        name: str = "",
        path: str | None = None,
        reason: str = "",
    ) -> None:
        super().__init__(message)
        self.index = index
        self.name = name
        self.path = path
        self.reason: str = reason or message

    def __repr__(self) -> str:
        return f"{type(self).__name__}(index={self.index}, name={self.name!r}, reason={self.reason!r})"

    def __bool__(self) -> Literal[False]:
        """Return False: there is no prediction here."""
        return False

    def to_json(self) -> dict[str, object]:
        """Return the fields as a JSON object with the key ``error``.

        Returns
        -------
        dict
            ``{"index", "name", "path", "error": {"type", "message"}}``.
        """
        error = {"type": type(self).__name__, "message": self.reason}
        return {"index": self.index, "name": self.name, "path": self.path, "error": error}


class SourceError(PredSessionError, ValueError):
    """The source itself is wrong: no such file, an empty folder, an unsupported kind."""


class JournalError(PredSessionError):
    """The journal is locked by another run, made with another model or other settings, or damaged."""


class DiskError(PredSessionError, OSError):
    """Results cannot be written, or kept in a file until it is their turn: the disk is full, mostly."""


class StoreError(PredSessionError):
    """A result does not fit the store's schema."""


class MissingExtraError(PredSessionError, ImportError):
    """An optional part is not installed.

    Parameters
    ----------
    extra : str
        The extra's name, for ``pip install 'predsession[extra]'``.
    purpose : str
        What it is needed for.
    """

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs an extra: pip install 'predsession[{extra}]'")
        self.extra = extra


class SessionClosedError(RuntimeError):
    """The session, or the stream, was closed and is asked for more: the caller's mistake."""


class SessionBusyError(SessionClosedError):
    """Another thread is using what one at a time may use: the caller's mistake."""


class ClipShorterWarning(UserWarning):
    """A clip gave fewer frames than its packets promise; the message has both numbers."""


class ResultsGoneWarning(UserWarning):
    """Results of a job were taken by another client; the message says how many."""


class UnfinishedFileWarning(UserWarning):
    """A file of predictions ends in the middle of one, as a run that was killed leaves it."""
