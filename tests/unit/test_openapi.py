"""The description of the calls: it names what the application has, and holds together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from predsession.server.app import routes
from predsession.server.config import ModelSpec, ServerConfig
from predsession.server.openapi import describe
from predsession.server.openapi_page import render
from predsession.server.service import Service

KINDS = [pytest.param(False, id="ours"), pytest.param(True, id="stock")]


@pytest.fixture(params=KINDS)
def stock(request: pytest.FixtureRequest) -> bool:
    """Both kinds of server."""
    kind: bool = request.param
    return kind


def operations(document: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield method, path and description of every call."""
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            yield method.upper(), path, call


def nodes(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield every object in a document."""
    if isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from nodes(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from nodes(inner)


def test_names_every_route_and_no_other(tmp_path: Path, stock: bool) -> None:
    """The description has the routes of the application itself; below a model's name, the same once more."""
    config = ServerConfig((ModelSpec("pixels", "pixels"),), tmp_path, ephemeral=True, stock=stock)
    service = Service.build(config)
    found: set[tuple[str, str]] = set()
    below: set[tuple[str, str]] = set()
    for route in routes(service):
        methods = {(method, route.path) for method in (route.methods or set()) - {"HEAD"}}
        target = below if route.path.startswith("/{model}/") else found
        target |= {(method, path.removeprefix("/{model}")) for method, path in methods}
    service.store.close()
    described = list(operations(describe(stock=stock, token=False)))
    assert {(method, path) for method, path, _ in described} == found
    prefixed = {(method, path) for method, path, call in described if "servers" in call}
    assert prefixed == below


def test_every_reference_leads_somewhere(stock: bool) -> None:
    """Each shape that is named is there, and each that is there is named."""
    document: Any = describe(stock=stock, token=True)
    named = {str(node["$ref"]) for node in nodes(document) if "$ref" in node}
    there = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert named <= there
    unnamed = {f"#/components/schemas/{name}" for name in ("Listed", "Project", "Dataset")}
    assert there - named <= (unnamed if stock else set())


def test_shapes_are_json_schemas() -> None:
    """Each shape is a valid schema of the dialect that OpenAPI 3.1 uses."""
    document: Any = describe(stock=False, token=False)
    for name, shape in document["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(shape)
        assert shape["type"] == "object", name


def test_identifiers_are_unique_and_usable(stock: bool) -> None:
    """Code generators get a name of their own for each call."""
    names = [str(call["operationId"]) for _, _, call in operations(describe(stock=stock, token=False))]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)


def test_token_is_wanted_where_it_is(stock: bool) -> None:
    """With a token every call can be refused for it, but those that are open; without one none."""
    for _, path, call in operations(describe(stock=stock, token=True)):
        free = path in {"/", "/docs", "/openapi.json", "/page/{name}", "/healthz", "/readyz"}
        assert (call.get("security") == []) == free, path
        assert ("401" in call["responses"]) != free, path
    assert all(
        "401" not in call["responses"] for _, _, call in operations(describe(stock=stock, token=False))
    )


class _Reader(HTMLParser):
    """Notes what stands in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.code: list[str] = []
        self.styled = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        fields = dict(attrs)
        self.tags.add(tag)
        self.styled |= "style" in fields or any(name.startswith("on") for name in fields)
        if fields.get("id"):
            self.ids.append(str(fields["id"]))
        self.links += [str(fields[name]) for name in ("href", "src") if fields.get(name)]

    def handle_data(self, data: str) -> None:
        self.code.append(data)


def test_page_lists_every_call_and_needs_no_other_server(stock: bool) -> None:
    """The page to read names each path, links within itself or to this server, and holds no script."""
    document = describe(stock=stock, token=True)
    reader = _Reader()
    reader.feed(render(document))
    for _, path, call in operations(document):
        assert path in reader.code
        assert call["operationId"] in reader.ids
    within = {link[1:] for link in reader.links if link.startswith("#")}
    assert within <= set(reader.ids)
    assert len(set(reader.ids)) == len(reader.ids)
    assert not [link for link in reader.links if ":" in link or link.startswith("//")]
    assert not reader.tags & {"script", "style", "iframe"}
    assert not reader.styled
