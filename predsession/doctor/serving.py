"""Which server it is, what it can do, whether its model is there, whether its clock is right."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

from predsession import __version__, errors
from predsession.doctor.findings import Finding, bad, ok, warning
from predsession.http.transport import HttpTransport
from predsession.wire import calls
from predsession.wire.calls import Call
from predsession.wire.httpreply import Reply, parse_json
from predsession.wire.jsontypes import JSONObject, as_list, as_object
from predsession.wire.meta import ModelMeta
from predsession.wire.replies import FEATURES, ServerInfo, parse_job_list

CLOCK_SECONDS = 5.0
"""A difference that is worth a word; a Date header alone is a second or two off."""
_VERSION = 1

_COSTS = {
    "ack": "results of an answer that is lost on the way are computed again",
    "after": "a long job's results are held on the server until they are written down here",
    "wait": "results are polled for, up to a second after they are there",
    "idempotency": "a submit whose answer is lost may leave a job running that nobody can name",
    "item_errors": "one bad image fails its whole upload, whose images are then sent one by one",
    "lease": "jobs of a client that is killed run on to their end",
    "list": "`predsession jobs` cannot list, and a session is not found again by its id",
    "float_boxes": "boxes are of whole pixels",
}


def look_at_server(info: ServerInfo) -> Finding:
    """Say which server it is, and the versions of both sides.

    Parameters
    ----------
    info : ServerInfo
        What it says of itself.

    Returns
    -------
    Finding
        A warning where it speaks a later version of the extension.
    """
    extension = as_object(info.raw.get("predsession"))
    name = info.app_name or "unnamed"
    here = f"This is predsession {__version__}"
    if not extension:
        text = f"It is a stock server, {name!r}, which tells no version. {here}, and speaks its protocol."
        return ok("server", text)
    version = extension.get("version")
    if version != _VERSION:
        text = f"It speaks predsession/{version}. {here}, which speaks predsession/{_VERSION}."
        advice = "It is treated as a stock server. Update the older of the two sides."
        return warning("server", text, advice)
    text = (
        f"It is an embedded server, and speaks predsession/{version}, as this predsession {__version__} does."
    )
    return ok("server", text)


def look_at_features(info: ServerInfo) -> Finding:
    """Say which features of the extension there are, and what it costs that others are not.

    Parameters
    ----------
    info : ServerInfo
        What the server says of itself.

    Returns
    -------
    Finding
        A warning where a server of ours has some only, or has more than is known here.
    """
    extension = as_object(info.raw.get("predsession"))
    absent = tuple(f"without {name}: {cost}" for name, cost in _COSTS.items() if name not in info.features)
    if not info.features:
        return ok("features", "A stock server has none of the extension's features.", details=absent)
    newer = sorted({str(each) for each in as_list(extension.get("features"))} - FEATURES)
    if absent:
        text = f"The server has {len(info.features)} of the {len(_COSTS)} features that are known here."
        return warning("features", text, "It is an older one: update it.", details=absent)
    text = f"All features: {', '.join(_COSTS)}."
    if newer:
        return warning("features", f"{text} And some that are not known here: {', '.join(newer)}.",
                       "Update this client: pip install --upgrade predsession.")  # fmt: skip
    return ok("features", text)


def look_at_model(transport: HttpTransport, info: ServerInfo) -> Finding:
    """Say whether the model is deployed and ready, and what it finds.

    Parameters
    ----------
    transport : HttpTransport
        To the server.
    info : ServerInfo
        What it says of itself.

    Returns
    -------
    Finding
        Bad where no image could be run.
    """
    status = _status(transport)
    progress = as_object(status.get("progress")).get("message")
    if status.get("is_deployed") is False:
        said = f": {progress}" if progress else ""
        return bad("model", f"The model is not deployed{said}.", "Deploy one, or wait until it is loaded.")
    try:
        meta = ModelMeta.from_json(parse_json(transport.send(calls.model_meta())))
    except (errors.PredSessionError, ValueError) as error:
        return bad("model", f"The model's classes cannot be read: {error}", "Look at the server's log.")
    names = ", ".join(meta.names[:5]) + (", ..." if len(meta.names) > 5 else "")
    task = str(info.raw.get("task type") or "a task it does not name")
    if not meta.names:
        return warning(
            "model", f"The model is ready ({task}), but has no classes.", "Look at its model file."
        )
    return ok("model", f"The model is ready: {task}, {_classes(len(meta.names))} ({names}).")


def _classes(count: int) -> str:
    """Return a number of classes as it is said."""
    return "1 class" if count == 1 else f"{count} classes"


def _status(transport: HttpTransport) -> JSONObject:
    """Ask for the status; a server that has no such call is taken to be ready."""
    try:
        return as_object(parse_json(transport.send(Call("get_status"))))
    except errors.PredSessionError:
        return {}


def look_at_clock(reply: Reply, sent: float, received: float) -> Finding:
    """Compare the clocks.

    Parameters
    ----------
    reply : Reply
        An answer with a Date header.
    sent, received : float
        Seconds since the epoch, by our own clock, before and after it.

    Returns
    -------
    Finding
        A warning where they differ by more than `CLOCK_SECONDS`, or there is nothing to compare.
    """
    try:
        theirs = parsedate_to_datetime(reply.headers["date"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return ok("clock", "The server tells no time, so the clocks cannot be compared.")
    # The header has whole seconds, rounded down, of a moment between the two.
    ahead = theirs + 0.5 - (sent + received) / 2
    off = max(0.0, abs(ahead) - 0.5 - (received - sent) / 2)
    if off <= CLOCK_SECONDS:
        return ok("clock", "The server's clock and ours agree.")
    text = f"The server's clock is {_spoken(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} ours."
    why = "Signed URLs and certificates end too early or too late, and lines of the two logs do not match."
    return warning("clock", f"{text} {why}", "Turn on NTP on whichever is wrong: compare with a third clock.")


def _spoken(seconds: float) -> str:
    """Return a time as it is said."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def look_at_jobs(transport: HttpTransport, info: ServerInfo) -> Finding:
    """Say what the server is busy with.

    Parameters
    ----------
    transport : HttpTransport
        To the server.
    info : ServerInfo
        What it says of itself.

    Returns
    -------
    Finding
        Never bad: others may use it, too.
    """
    if "list" not in info.features:
        return ok("jobs", "A stock server cannot say which jobs are live.")
    try:
        jobs = parse_job_list(transport.send(calls.list_jobs()))
    except errors.PredSessionError as error:
        return warning("jobs", f"The jobs cannot be listed: {error}", "Look at the server's log.")
    if not jobs:
        return ok("jobs", "No job is live.")
    oldest = max((job.age or 0.0 for job in jobs), default=0.0)
    text = f"{len(jobs)} live; the oldest began {_spoken(oldest)} ago. Yours wait for their turn."
    return ok("jobs", text, "`predsession jobs URL` lists them, and stops them with --stop UUID.")


def now() -> float:
    """Return seconds since the epoch: what a Date header is compared with."""
    return time.time()
