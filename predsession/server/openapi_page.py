"""The description of the calls as a page to read: plain HTML, no script."""

from __future__ import annotations

import json
from html import escape

from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>predsession: API</title>
<link rel="icon" href="page/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="page/style.css">
<link rel="stylesheet" href="page/docs.css">
</head>
<body>
"""


def render(document: JSONObject) -> str:
    """Write the page.

    Parameters
    ----------
    document : JSONObject
        What `openapi.describe` returned.

    Returns
    -------
    str
        HTML, every text escaped.
    """
    info = as_object(document["info"])
    groups = _groups(document)
    parts = [
        _HEAD,
        '<header class="top"><div class="brand"><img src="page/icon.svg" alt="" width="22" height="22"> ',
        'predsession</div><nav aria-label="Pages"><a href=".">Server</a></nav>',
        '<div class="title"><h1>API</h1></div>',
        f'<p class="facts">{_text(info["description"])}</p></header>',
        _token_note(document),
        '<div class="docs">',
        _contents(groups),
        "<main>",
        *(_group(name, calls) for name, calls in groups.items()),
        _schemas(as_object(as_object(document["components"])["schemas"])),
        "</main></div>",
        '<footer><a href=".">Server</a> <a href="openapi.json">OpenAPI, as JSON</a></footer>',
        "</body></html>\n",
    ]
    return "".join(parts)


def _text(value: JSON) -> str:
    """Return a text, safe in HTML."""
    return escape(str(value))


def _breakable(path: str) -> str:
    """Return a path that may be broken after its underscores, where there is little room."""
    return _text(path).replace("_", "_<wbr>")


def _groups(document: JSONObject) -> dict[str, list[tuple[str, str, JSONObject]]]:
    """Return method, path and description of every call, under its tag."""
    groups: dict[str, list[tuple[str, str, JSONObject]]] = {}
    for path, methods in as_object(document["paths"]).items():
        for method, call in as_object(methods).items():
            described = as_object(call)
            tag = str(as_list(described["tags"])[0])
            groups.setdefault(tag, []).append((method.upper(), path, described))
    return groups


def _token_note(document: JSONObject) -> str:
    """Say how a token is shown, where one is wanted."""
    if "security" not in document:
        return ""
    return (
        '<p class="banner">This server wants a token: <code>x-api-key: TOKEN</code> or '
        "<code>Authorization: Bearer TOKEN</code>.</p>"
    )


def _contents(groups: dict[str, list[tuple[str, str, JSONObject]]]) -> str:
    """List all calls as links."""
    parts = ['<nav class="contents" aria-label="Calls">']
    for name, calls in groups.items():
        links = "".join(
            f'<li><a href="#{_text(call["operationId"])}">{_breakable(path)}</a></li>'
            for _, path, call in calls
        )
        parts.append(f"<h2>{_text(name)}</h2><ul>{links}</ul>")
    parts.append('<h2><a href="#schemas">Shapes</a></h2></nav>')
    return "".join(parts)


def _group(name: str, calls: list[tuple[str, str, JSONObject]]) -> str:
    """Describe the calls of one group."""
    return f"<h2>{_text(name)}</h2>" + "".join(_call(*call) for call in calls)


def _call(method: str, path: str, call: JSONObject) -> str:
    """Describe one call."""
    details = f"<p>{_text(call['description'])}</p>" if "description" in call else ""
    responses = "".join(
        f"<dt>{_text(status)}</dt><dd>{_response(as_object(response))}</dd>"
        for status, response in as_object(call["responses"]).items()
    )
    return (
        f'<section class="card call" id="{_text(call["operationId"])}">'
        f'<h3><span class="method">{method}</span> <code>{_text(path)}</code></h3>'
        f"<p>{_text(call['summary'])}</p>{details}{_body(as_object(call.get('requestBody')))}"
        f"{_example(method, path, as_object(call.get('requestBody')))}"
        f'<h4>Answers</h4><dl class="answers">{responses}</dl></section>'
    )


def _body(body: JSONObject) -> str:
    """Describe what is sent."""
    parts = []
    for kind, content in as_object(body.get("content")).items():
        parts.append(f"<h4>Body <code>{_text(kind)}</code></h4>")
        parts.append(_schema(as_object(as_object(content)["schema"])))
    return "".join(parts)


def _response(response: JSONObject) -> str:
    """Describe one answer, in a line."""
    kinds = as_object(response.get("content"))
    shapes = [_kind(as_object(as_object(content).get("schema")), kind) for kind, content in kinds.items()]
    return f'{_text(response["description"])} <span class="quiet">{", ".join(shapes)}</span>'


def _kind(schema: JSONObject, otherwise: str = "any") -> str:
    """Name the kind of a value: a link for one that has a name."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return f'<a href="#shape-{_text(name)}">{_text(name)}</a>'
    if "anyOf" in schema:
        return " or ".join(_kind(as_object(each)) for each in as_list(schema["anyOf"]))
    kind = schema.get("type", otherwise)
    if kind == "array":
        return f"list of {_kind(as_object(schema.get('items')))}"
    return _text(" or ".join(map(str, as_list(kind))) if not isinstance(kind, str) else kind)


def _schema(schema: JSONObject) -> str:
    """Describe an object by its properties, those within them indented."""
    required = as_list(schema.get("required"))
    rows = []
    for name, value in as_object(schema.get("properties")).items():
        each = as_object(value)
        inner = as_object(each.get("items")) if each.get("type") == "array" else each
        may = "" if name in required else '<span class="quiet">, optional</span>'
        rows.append(
            f'<dt><code>{_text(name)}</code> <span class="quiet">{_kind(each)}</span>{may}</dt>'
            f"<dd>{_text(each.get('description', ''))}{_schema(inner) if 'properties' in inner else ''}</dd>"
        )
    return f'<dl class="shape">{"".join(rows)}</dl>'


def _schemas(schemas: JSONObject) -> str:
    """Describe every shape that has a name."""
    parts = ['<h2 id="schemas">Shapes</h2>']
    for name, value in schemas.items():
        schema = as_object(value)
        about = f"<p>{_text(schema['description'])}</p>" if "description" in schema else ""
        parts.append(f'<section class="card call" id="shape-{_text(name)}"><h3>{_text(name)}</h3>{about}')
        parts.append(f"{_schema(schema)}</section>")
    return "".join(parts)


def _example(method: str, path: str, body: JSONObject) -> str:
    """Return a command line that makes the call; there is none for what a browser asks for."""
    if method == "GET":
        return ""
    words = [f"curl -X POST URL{path}"]
    content = as_object(body.get("content"))
    if "multipart/form-data" in content:
        words = [f"curl URL{path}", "-F files=@photo.jpg", "-F 'state={\"settings\": {}}'"]
    elif "application/json" in content:
        schema = as_object(as_object(content["application/json"])["schema"])
        state = as_object(as_object(schema["properties"])["state"])
        sample = {"state": dict.fromkeys(as_list(state.get("required")), "UUID")}
        words = [f"curl URL{path}", "-H 'Content-Type: application/json'", f"-d '{json.dumps(sample)}'"]
    return f'<pre tabindex="0"><code>{_text(" ".join(words))}</code></pre>'
