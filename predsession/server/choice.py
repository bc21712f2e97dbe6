"""Which model a call means: by path prefix, by the word ``deploy``, or the first."""

from __future__ import annotations

from starlette.requests import Request

from predsession.server.refusal import Refusal, explained
from predsession.server.runner import Runner
from predsession.server.service import Service
from predsession.wire.jsontypes import JSONObject, as_object


def chosen(service: Service, request: Request, state: JSONObject) -> Runner:
    """Return the model that a call means.

    Parameters
    ----------
    service : Service
        With the models.
    request : Request
        Its path may begin with a model's name.
    state : JSONObject
        ``deploy``, or ``settings.deploy``, may name a model.

    Returns
    -------
    Runner
        The model.

    Raises
    ------
    Refusal
        With status 404, if there is no such model.
    """
    named = as_object(state.get("settings")).get("deploy", state.get("deploy"))
    name = request.path_params.get("model") or (None if service.stock else named)
    if name is None:
        return service.first
    runner = service.runners.get(str(name))
    if runner is None:
        raise Refusal(404, explained(f"There is no model {name!r}; there are {', '.join(service.runners)}."))
    return runner
