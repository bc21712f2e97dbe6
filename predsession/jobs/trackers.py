"""Which tracker follows the objects of a clip, and with which settings: by what the server says it has."""

from __future__ import annotations

from predsession import errors
from predsession.http.caller import Caller
from predsession.wire.calls import Call
from predsession.wire.httpreply import parse_json
from predsession.wire.jsontypes import JSONObject, as_list, as_object
from predsession.wire.submits import Tracking


def choose_tracking(tracking_support: JSONObject, config: JSONObject) -> Tracking:
    """Choose the tracker, by what the server says of itself.

    Parameters
    ----------
    tracking_support : mapping
        The answer to ``get_session_info``.
    config : mapping
        The caller's: ``tracker``, and the tracker's own settings.

    Returns
    -------
    Tracking
        The first that the server names, unless the caller names one.

    Raises
    ------
    SourceError
        If the server does not track, or not with this tracker.
    """
    names = [name for name in as_list(tracking_support.get("tracking_algorithms")) if isinstance(name, str)]
    if not names or tracking_support.get("tracking_on_videos_support") is False:
        raise errors.SourceError("this server does not track; leave out tracking=, or use another server")
    settings = dict(config)
    tracker = settings.pop("tracker", None) or names[0]
    if tracker not in names:
        raise errors.SourceError(f"this server has no tracker {tracker!r}; it has {', '.join(names)}")
    return Tracking(str(tracker), settings)


def check_tracker_settings(tracking: Tracking, caller: Caller) -> None:
    """Refuse settings that the tracker lacks, before the clip is sent, where the server lists them.

    Parameters
    ----------
    tracking : Tracking
        What is to be sent.
    caller : Caller
        Asks the server.

    Raises
    ------
    SourceError
        For a setting that is not listed; names those that are.
    """
    if not tracking.settings:
        return
    published = as_object(parse_json(caller.call(Call("get_tracking_settings"))))
    known = as_object(published.get(tracking.tracker))
    unknown = sorted(set(tracking.settings) - set(known))
    if known and unknown:
        names = ", ".join(known)
        raise errors.SourceError(
            f"the tracker {tracking.tracker} has no setting {', '.join(unknown)}; it has {names}"
        )
