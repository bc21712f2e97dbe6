"""How large a request may be, how long a call takes, and whether connections are kept.

The size is found by uploads that start nothing: their one file has another name than ``files``, which a
server of the protocol reads to its end and then refuses (422; docs/protocol.md). What stands before the
server counts the bytes all the same.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from predsession import errors
from predsession.doctor.findings import Finding, ok, warning
from predsession.http.transport import HttpTransport
from predsession.wire import calls
from predsession.wire.httpreply import Reply, parse_json
from predsession.wire.jsontypes import as_object

MIB = 1 << 20
STEPS = (1, 8, 32)
"""MiB of the uploads that are tried."""
LONGEST_S = 20.0
"""Seconds; an upload that would take longer, by the speed of the one before, is not tried."""
LARGEST_OF_IMAGES = 16
"""MiB of the largest upload that a session makes of several images (jobs/pace.py)."""
CALLS = 10
SLOW_S = 0.5
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
    words : str
        What happened where none came.
    """

    mib: int
    seconds: float
    reply: Reply | None = None
    words: str = ""

    @property
    def taken(self) -> bool:
        """Whether all of it was taken in: refused for what it is, not for its size."""
        return self.reply is not None and self.reply.status in (200, 400, 422)


def try_sizes(transport: HttpTransport, steps: Sequence[int] = STEPS) -> list[Tried]:
    """Send uploads of growing size, until one is not taken.

    Parameters
    ----------
    transport : HttpTransport
        To the server.
    steps : sequence of int
        MiB, growing.

    Returns
    -------
    list of Tried
        The last may have failed.
    """
    tried: list[Tried] = []
    for mib in steps:
        if tried and tried[-1].seconds * mib / tried[-1].mib > LONGEST_S:
            break
        tried.append(_try(transport, mib))
        if not tried[-1].taken:
            break
    return tried


def _try(transport: HttpTransport, mib: int) -> Tried:
    """Send one upload."""
    body = _HEAD + bytes(mib * MIB - len(_HEAD) - len(_TAIL)) + _TAIL
    headers = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}
    began = time.perf_counter()
    try:
        reply = transport.ask("POST", "inference_batch_async", body=body, headers=headers)
    except errors.TransportError as error:
        return Tried(mib, time.perf_counter() - began, words=str(error))
    _clear_if_started(transport, reply)
    return Tried(mib, time.perf_counter() - began, reply)


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


def look_at_sizes(tried: Sequence[Tried]) -> Finding:
    """Say what the sizes that were tried mean for a run.

    Parameters
    ----------
    tried : sequence of Tried
        As `try_sizes` returns them, at least one.

    Returns
    -------
    Finding
        A warning where uploads will be refused.
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
    return warning("upload", *_bounded(last, largest))


def _bounded(last: Tried, largest: int) -> tuple[str, str]:
    """Say what a limit does, and where it may come from."""
    span = f"between {largest} and {last.mib} MiB" if largest else f"below {last.mib} MiB"
    status = None if last.reply is None else last.reply.status
    if status == 413:
        text = f"The limit of a request is {span}: one of {last.mib} MiB is refused (413)."
    elif status is None:
        text = (
            f"One request of {last.mib} MiB gets no answer ({last.words.rstrip('.')}): the limit is {span}."
        )
    else:
        text = f"One request of {last.mib} MiB is answered with {status}, so that the limit is {span}."
    text += (
        " Images that are refused together are sent in smaller requests; one image, or clip, beyond it fails."
    )
    advice = "Raise it where the server's proxy is set up (nginx: client_max_body_size), if yours are larger."
    return text, advice


def look_at_latency(transport: HttpTransport) -> Finding:
    """Time some calls, and count the connections that they open.

    Parameters
    ----------
    transport : HttpTransport
        To the server, with a connection that was used before.

    Returns
    -------
    Finding
        A warning where calls are slow, fail, or open a connection each.
    """
    opened, seconds = transport.watch_connections(), list[float]()
    for _ in range(CALLS):
        began = time.perf_counter()
        try:
            reply = transport.send(calls.session_info())
        except errors.TransportError as error:
            text = f"Call {len(seconds) + 1} of {CALLS} in a row failed: {error}"
            return warning("latency", text, "Sessions try again; but find out what is unsteady in between.")
        if reply.status != 200:
            text = f"Call {len(seconds) + 1} of {CALLS} in a row was answered with {reply.status}."
            return warning(
                "latency", text, "Sessions try again; but something limits, or fails, now and then."
            )
        seconds.append(time.perf_counter() - began)
    middle, worst = statistics.median(seconds) * 1e3, max(seconds) * 1e3
    text = f"{CALLS} calls took {middle:.1f} ms each (median; the slowest {worst:.1f} ms)"
    if opened() >= CALLS - 1:
        advice = "Turn on keep-alive (HTTP/1.1) in the server, or in the proxy before it."
        return warning("latency", f"{text}, and each opened a connection of its own.", advice)
    if middle > SLOW_S * 1e3:
        advice = "The server is far or busy: a session waits that long for each upload and each poll."
        return warning("latency", f"{text}, which is slow.", advice)
    return ok("latency", f"{text}; the connection is kept between them.")
