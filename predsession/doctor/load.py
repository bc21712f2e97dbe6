"""How long a call takes, and whether connections are kept."""

from __future__ import annotations

import statistics
import time

from predsession import errors
from predsession.doctor.findings import Finding, ok, warning
from predsession.http.transport import HttpTransport
from predsession.wire import calls

CALLS = 10
ENOUGH_S = 3.0
"""Seconds; after that many, fewer calls tell enough."""
SLOW_S = 0.5


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
    while len(seconds) < CALLS and sum(seconds) < ENOUGH_S:
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
    text = f"{len(seconds)} calls took {middle:.1f} ms each (median; the slowest {worst:.1f} ms)"
    if len(seconds) == 1:
        text = f"A call took {middle:.1f} ms"
    if opened() >= max(2, len(seconds) - 1):
        advice = "Turn on keep-alive (HTTP/1.1) in the server, or in the proxy before it."
        return warning("latency", f"{text}, and each opened a connection of its own.", advice)
    if middle > SLOW_S * 1e3:
        advice = "The server is far or busy: a session waits that long for each upload and each poll."
        return warning("latency", f"{text}, which is slow.", advice)
    return ok("latency", f"{text}; the connection is kept between them.")
