"""Whether a server no longer knows a job, where it does not say so in words."""

from __future__ import annotations

from dataclasses import replace

from predsession import errors
from predsession.http.caller import Caller
from predsession.wire import calls
from predsession.wire.calls import Repeat
from predsession.wire.httpreply import is_unknown_job


def seems_forgotten(caller: Caller, uuid: str) -> bool:
    """Find out whether a server knows a job, by calls that take nothing.

    A stock server in development mode answers a bare 500 for an unknown job, as for any other fault. It is
    taken for the former if it comes twice, and the server is well otherwise.

    Parameters
    ----------
    caller : Caller
        To the server.
    uuid : str
        The job.

    Returns
    -------
    bool
        True if the job is unknown; False also where that cannot be found out.
    """
    # Without the patience that other faults deserve: it would be spent on every job that is forgotten.
    look = replace(calls.status(uuid), repeat=Repeat.REFUSED)
    for _ in range(2):
        try:
            return is_unknown_job(caller.call(look))
        except errors.ServerFaultError as error:
            if error.status != 500:
                return False
        except errors.TransportError:
            return False
        caller.call(calls.session_info())
    return True
