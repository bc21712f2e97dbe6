"""What is public is written down, and the documents promise no more than that."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from public_api import API_FILE, BEYOND, PUBLIC, describe_all

import predsession
from predsession import Prediction

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_public_api_is_what_is_written_down() -> None:
    """Each name, signature, property and field of each public module is as the list has it."""
    kept, now = API_FILE.read_text("utf-8").splitlines(), describe_all().splitlines()
    changes = [
        line
        for line in difflib.unified_diff(kept, now, "promised", "now", lineterm="", n=0)
        if not line.startswith("@@")
    ]
    assert not changes, (
        "The public API has changed:\n"
        + "\n".join(changes)
        + "\n\nIf that is meant: `scripts/renew` writes the list anew, and CHANGELOG.md needs a line for "
        "users. What is renamed or taken away is deprecated first: CONTRIBUTING.md, Versions and deprecation."
    )


@pytest.mark.parametrize("module", PUBLIC)
def test_names_are_listed_once_and_in_order(module: str) -> None:
    """`__all__` is sorted, without doubles; each name is there, has a docstring, and is in `dir`."""
    found = importlib.import_module(module)
    assert list(found.__all__) == sorted(set(found.__all__))
    for name in found.__all__:
        thing = getattr(found, name)
        assert name in dir(found)
        assert not callable(thing) or inspect.getdoc(thing), name


def _classes_in(annotation: object) -> Iterator[type]:
    """Yield the classes that an annotation names."""
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for part in get_args(annotation):
        yield from _classes_in(part)


def test_what_a_value_is_made_of_is_public() -> None:
    """Whoever builds a public value can import the types of its fields from where names are promised."""
    modules = [importlib.import_module(each) for each in PUBLIC]
    public = [getattr(module, name) for module in modules for name in module.__all__]
    values = [each for each in public if dataclasses.is_dataclass(each) or hasattr(each, "_fields")]
    values.remove(Prediction)  # is built by its class methods, from arrays or JSON
    assert predsession.ModelMeta in values
    for value in values:
        for field, annotation in get_type_hints(value).items():
            for kind in _classes_in(annotation):
                assert not kind.__module__.startswith("predsession") or kind in public, (value, field)


def _imports(text: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of each import of ours."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a cell with a magic, or a fragment
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "predsession":
            yield from ((node.module or "", alias.name) for alias in node.names)


def _shown_code() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of all code that users are shown."""
    for path in DOCUMENTS:
        for block in re.findall(r"^```python\n(.*?)^```", path.read_text("utf-8"), re.DOTALL | re.MULTILINE):
            yield path.name, block
    for path in sorted((ROOT / "examples").rglob("*.py")):
        yield path.name, path.read_text("utf-8")
    for path in sorted((ROOT / "examples").rglob("*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            yield path.name, "".join(cell["source"])


def test_the_documents_use_what_is_public() -> None:
    """Whatever is imported in README, docs and examples is in the list: what is shown is promised."""
    promised = {(module, name) for module in PUBLIC for name in importlib.import_module(module).__all__}
    promised |= {(module, name) for module, names in BEYOND.items() for name in names}
    promised |= {tuple(module.rsplit(".", 1)) for module in PUBLIC if "." in module}
    shown = {(place, *found) for place, text in _shown_code() for found in _imports(text)}
    assert shown
    beyond = [f"{place}: from {module} import {name}" for place, module, name in sorted(shown)
              if (module, name) not in promised]  # fmt: skip
    assert not beyond


def test_the_core_has_no_public_name_that_needs_an_extra() -> None:
    """`from predsession import *` works without extras: each name's home is in a room of the core."""
    homes = importlib.import_module("predsession")._HOMES
    assert set(homes) == set(importlib.import_module("predsession").__all__)
    rooms = {home.split(".")[1] for home in homes.values()}
    assert not rooms & {"edge", "tensor", "stream", "server", "testing"}
