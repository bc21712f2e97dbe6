"""Which model a call means: by path prefix, by the word ``deploy``, or the first."""

from __future__ import annotations

from starlette.requests import Request

from predsession.server.calls import read_body
from predsession.server.json_text import read_json
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


async def asked(service: Service, request: Request) -> tuple[Runner, JSONObject]:
    """Return the model that a call asks about which works without a body, and with any.

    Parameters
    ----------
    service : Service
        With the models.
    request : Request
        The call.

    Returns
    -------
    tuple
        The model, and the state, empty where there is none.

    Raises
    ------
    Refusal
        If there is no such model, or the body is too large or too slow.
    """
    body = await read_body(request, service.config.limits)
    try:
        data = read_json(body or b"{}")
    except ValueError:
        data = {}
    state = as_object(as_object(data).get("state"))
    return chosen(service, request, state), state
