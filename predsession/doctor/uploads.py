"""How large a request may be, and what else uploads meet.

The size is found by uploads that start nothing: their one file has another name than ``files``, which a
server of the protocol reads to its end and then refuses (422; docs/protocol.md). What stands before the
server counts the bytes all the same.
"""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass

from predsession import errors
from predsession.doctor.answering import redirects_to
from predsession.doctor.findings import Finding, bad, ok, warning
from predsession.doctor.target import Target
from predsession.http.retry import Failure, failure_of
from predsession.http.transport import HttpTransport
from predsession.inputs.uploads import Part, PartReader
from predsession.wire import calls
from predsession.wire.httpreply import Reply, error_text, is_own_text, parse_json
from predsession.wire.jsontypes import as_object

MIB = 1 << 20
STEPS = (1, 8, 32)
"""MiB of the uploads that are tried."""
LONGEST_S = 20.0
"""Seconds; an upload that would take longer, by the speed of the one before, is not tried."""
LARGEST_OF_IMAGES = 16
"""MiB of the largest upload that a session makes of several images (jobs/pace.py)."""
_BOUNDARY = "predsession-doctor-padding"
_HEAD = (
    f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="padding"; filename="padding.bin"\r\n'
    "Content-Type: application/octet-stream\r\n\r\n"
).encode()
_TAIL = f"\r\n--{_BOUNDARY}--\r\n".encode()


@dataclass(frozen=True, slots=True)
class Tried:
    """One upload.

    Parameters
    ----------
    mib : int
        Its size.
    seconds : float
        How long it took.
    reply : Reply or None
        The answer, where one came.
    error : TransportError or None
        What happened where none came.
    """

    mib: int
    seconds: float
    reply: Reply | None = None
    error: errors.TransportError | None = None

    @property
    def taken(self) -> bool:
        """Whether all of it was taken in: refused for what it is, not for its size."""
        return self.reply is not None and self.reply.status in (200, 400, 422)


class _TooSlowError(errors.PredSessionError):
    """An upload's time is over; no OSError, which requests would take for the connection's."""


def try_sizes(
    transport: HttpTransport, steps: Sequence[int] = STEPS, *, patience: float = LONGEST_S
) -> list[Tried]:
    """Send uploads of growing size, until one is not taken.

    Parameters
    ----------
    transport : HttpTransport
        To the server.
    steps : sequence of int
        MiB, growing.
    patience : float
        Seconds for one to be sent; a server that takes it in drop by drop would hold us for hours.

    Returns
    -------
    list of Tried
        The last may have failed.
    """
    tried: list[Tried] = []
    for mib in steps:
        if tried and tried[-1].seconds * mib / tried[-1].mib > LONGEST_S:
            break
        tried.append(_try(transport, mib, patience))
        if not tried[-1].taken:
            break
    return tried


def _try(transport: HttpTransport, mib: int, patience: float) -> Tried:
    """Send one upload."""
    body = _padding(mib, time.monotonic() + patience)
    headers = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}
    began = time.perf_counter()
    try:
        reply = transport.ask("POST", "inference_batch_async", body=body, headers=headers)
    except _TooSlowError:
        error = errors.RequestTimeoutError(f"it was not taken in within {patience:g} s")
        return Tried(mib, time.perf_counter() - began, error=error)
    except errors.TransportError as error:
        return Tried(mib, time.perf_counter() - began, error=error)
    _clear_if_started(transport, reply)
    return Tried(mib, time.perf_counter() - began, reply)


def _padding(mib: int, ends: float) -> PartReader:
    """Return the body of an upload that ends when its time is over."""
    body = _HEAD + bytes(mib * MIB - len(_HEAD) - len(_TAIL)) + _TAIL

    def look_at_time(_: int) -> None:
        if time.monotonic() > ends:
            raise _TooSlowError

    part = Part("padding.bin", "application/octet-stream", len(body), lambda: io.BytesIO(body))
    return PartReader(part, look_at_time)


def _clear_if_started(transport: HttpTransport, reply: Reply) -> None:
    """Make a server forget the padding that it took for an image, against the protocol."""
    if reply.status != 200:
        return
    try:
        uuid = as_object(parse_json(reply)).get("inference_request_uuid")
        if isinstance(uuid, str):
            transport.send(calls.stop(uuid))
            transport.send(calls.clear(uuid))
    except errors.PredSessionError:
        return


def look_at_sizes(tried: Sequence[Tried], target: Target) -> Finding:
    """Say what the sizes that were tried mean for a run.

    Parameters
    ----------
    tried : sequence of Tried
        As `try_sizes` returns them, at least one.
    target : Target
        Where they were sent.

    Returns
    -------
    Finding
        A warning where uploads will be refused, or were not taken now; bad where all are refused.
    """
    last = tried[-1]
    largest = max((each.mib for each in tried if each.taken), default=0)
    if last.taken:
        speed = last.mib / max(last.seconds, 1e-3)
        text = f"Requests of {last.mib} MiB are taken ({speed:.1f} MiB/s)."
        if last.mib < STEPS[-1]:
            text += " Larger ones were not tried: they would take too long."
        if last.mib < LARGEST_OF_IMAGES:
            return ok(
                "upload", f"{text} A session sends what fits into about two seconds of the server's work."
            )
        return ok("upload", f"{text} A session puts up to {LARGEST_OF_IMAGES} MiB of images into one.")
    return _untaken(last, largest, target)


_RAISE = "Raise it where the server's proxy is set up (nginx: client_max_body_size), if yours are larger."
_SMALLER = (
    " Images that are refused together are sent in smaller requests; one image, or clip, beyond it fails."
)


def _untaken(last: Tried, largest: int, target: Target) -> Finding:
    """Say why an upload was not taken: only a 413, or a connection that breaks, tells of a size."""
    if last.reply is None:
        return warning("upload", *_unanswered(last, largest))
    status, words = last.reply.status, error_text(last.reply).rstrip(".")
    if status == 413:
        text = f"The limit of a request is {_span(last, largest)}: one of {last.mib} MiB is refused (413)."
        return warning("upload", text + _SMALLER, _raising(last.reply))
    upload = f"An upload of {last.mib} MiB, which starts nothing,"
    if largest:
        upload = f"Uploads of up to {largest} MiB are taken. One of {last.mib} MiB"
    if failure_of(status) is Failure.BUSY:
        text = f"{upload} is put off ({status}: {words})."
        return warning("upload", text, "Sessions try again. Examine it again when it is less busy.")
    if status >= 500:
        advice = "Look at its log, or that of the proxy before it. Sessions try again, a few times."
        return warning("upload", f"{upload} fails ({status}: {words}).", advice)
    # A server of the protocol that is asked nothing else would refuse all images, too.
    verdict = warning if largest else bad
    if 300 <= status < 400:
        goal = redirects_to(last.reply, target) or "nowhere"
        text = f"{upload} is redirected to {goal} ({status}); uploads do not follow."
        return verdict("upload", text, "Ask whoever runs the server for the address that takes uploads.")
    if status in (401, 403):
        advice = "What is asked is let through, uploads are not: ask whoever runs the server, or the proxy."
        return verdict("upload", f"{upload} is forbidden ({status}: {words}).", advice)
    advice = "Does what stands before the server let inference_batch_async through?"
    return verdict("upload", f"{upload} is refused ({status}: {words}).", advice)


def _span(last: Tried, largest: int) -> str:
    """Say between which sizes a limit is."""
    return f"between {largest} and {last.mib} MiB" if largest else f"below {last.mib} MiB"


def _raising(reply: Reply) -> str:
    """Say where a limit is set, by who tells of it."""
    if is_own_text(reply):
        return (
            "The server itself refuses it: start it with a larger limit (`predsession serve --limit-body`)."
        )
    return _RAISE


def _unanswered(last: Tried, largest: int) -> tuple[str, str]:
    """Say what it means that an upload has no answer."""
    words = str(last.error).rstrip(".")
    if isinstance(last.error, errors.RequestTimeoutError):
        text = f"An upload of {last.mib} MiB had no answer in time: {words}."
        advice = (
            "It hangs at uploads, or is busy, or the link is slow: look at its log; --timeout waits longer."
        )
        return text, advice
    if isinstance(last.error, errors.ConnectError):
        text = f"An upload of {last.mib} MiB cannot be sent: {words}."
        return text, "The server was there a moment ago: look at its log."
    text = f"One request of {last.mib} MiB gets no answer: {words}."
    if not largest:
        return (
            text,
            "Look at the server's log, and that of a proxy: uploads break, or the limit is below 1 MiB.",
        )
    text = f"{text} Up to {largest} MiB are taken: the limit is {_span(last, largest)}, as it seems."
    return text + _SMALLER, _RAISE
