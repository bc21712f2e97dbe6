"""The description of all calls as an OpenAPI 3.1 document.

References
----------
https://spec.openapis.org/oas/v3.1.1.
"""

from __future__ import annotations

from predsession.server.openapi_calls import Operation, operations
from predsession.server.openapi_more import more_operations
from predsession.server.openapi_schemas import SCHEMAS, ref, typed
from predsession.wire.jsontypes import JSON, JSONObject

_ABOUT = """Runs pictures through a model. A client submits pictures, polls the job, takes the results, and \
clears the job. Every call is a POST; the uuid of a job travels in the body."""
_ABOUT_MODELS = " With several models, each of them is also found below its name: /detect/inference_image."
_ABOUT_STOCK = " This server imitates a stock Supervisely server, with its limits and without the extension."

_MODEL_SERVER: JSONObject = {
    "url": "./{model}",
    "description": "The same of one model, by its name.",
    "variables": {"model": {"default": "detect"}},
}

_REFUSALS = {
    400: "A value that cannot be used; the answer says which.",
    401: "The token is missing or wrong.",
    403: "What this server does not do; the answer says why, and what to call instead.",
    404: "There is no such model, item, or frame; the answer says which.",
    413: "The body is larger than the server takes.",
    422: "No part named files.",
    429: "Too much at once; Retry-After says when to ask again.",
    500: "A job that is not known (any longer), a bad picture, or a fault of the model or the server.",
    503: "The server is ending or not ready; Retry-After says when to ask again.",
    507: "The disk, or the server's share of it, is full.",
}


def describe(*, stock: bool, token: bool) -> JSONObject:
    """Return the description.

    Parameters
    ----------
    stock : bool
        Whether the server imitates a stock one.
    token : bool
        Whether it wants a token.

    Returns
    -------
    JSONObject
        An OpenAPI 3.1 document.
    """
    paths: dict[str, dict[str, JSON]] = {}
    for each in [*operations(stock=stock), *more_operations(stock=stock)]:
        paths.setdefault(each.path, {})[each.method] = _operation(each, stock=stock, token=token)
    components: dict[str, JSON] = {"schemas": SCHEMAS}
    document: dict[str, JSON] = {
        "openapi": "3.1.0",
        "info": {
            "title": "predsession",
            "version": "1",  # of the calls, not of the package, which is nobody's business without a token
            "description": _ABOUT + (_ABOUT_STOCK if stock else _ABOUT_MODELS),
        },
        "servers": [{"url": "."}],
        "paths": paths,
        "components": components,
    }
    if token:
        components["securitySchemes"] = {
            "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            "bearer": {"type": "http", "scheme": "bearer"},
        }
        document["security"] = [{"key": []}, {"bearer": []}]
    return document


def _operation(each: Operation, *, stock: bool, token: bool) -> JSONObject:
    """Return one call's description."""
    refusals = {*each.refusals} | ({401} if token and not each.open else set())
    if stock and each.method == "post":
        refusals -= {404}  # its calls cannot name a model, and it has no library
    described: dict[str, JSON] = {
        "operationId": _identifier(each),
        "tags": [each.tag],
        "summary": each.summary,
        "responses": {"200": _answered(each.answer), **{str(s): _refused(s) for s in sorted(refusals)}},
    }
    if each.details:
        described["description"] = each.details
    if each.method == "post" and not stock:
        described["servers"] = [{"url": "."}, _MODEL_SERVER]
    if each.body is not None:
        described["requestBody"] = each.body
    parameters: list[JSON] = [
        {"name": name, "in": "path", "required": True, "schema": typed(kind)}
        for name, kind in (("name", "string"), ("id", "integer"), ("frame", "integer"))
        if f"{{{name}}}" in each.path
    ]
    if parameters:
        described["parameters"] = parameters
    if token and each.open:
        described["security"] = []
    return described


def _identifier(each: Operation) -> str:
    """Return a name that code generators can use."""
    words = each.path.replace("/{name}", "_file").replace("/{id}", "_one").replace("/{frame}", "_one")
    return words.strip("/").replace(".", "_").replace("/", "_") or "page"


def _answered(answer: JSONObject | str) -> JSONObject:
    """Return the description of a good answer."""
    if isinstance(answer, str):
        return {"description": "The file.", "content": {answer: {}}}
    return {"description": "The answer.", "content": {"application/json": {"schema": answer}}}


def _refused(status: int) -> JSONObject:
    """Return the description of an error's answer."""
    schema = ref("Refusal")
    if status == 400:  # a stock server words some of these as a bare sentence
        schema = {"anyOf": [schema, typed("string")]}
    return {"description": _REFUSALS[status], "content": {"application/json": {"schema": schema}}}
