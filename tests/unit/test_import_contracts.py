"""The import contracts of pyproject.toml leave no room and no library out.

`scripts/check` runs the contracts; a list of rooms that somebody has to remember would let new ones through.
"""

from __future__ import annotations

import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import grimp

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
EVERYONES = {"numpy", "PIL"}
ONLY_TYPES = {"_typeshed"}


def contracts() -> list[dict[str, Any]]:
    """Return the contracts as they are written."""
    linter = tomllib.loads(PYPROJECT.read_text("utf-8"))["tool"]["importlinter"]
    assert linter["include_external_packages"] is True  # without it libraries are not seen at all
    written: list[dict[str, Any]] = linter["contracts"]
    return written


@cache
def libraries() -> frozenset[str]:
    """Return what is imported from outside, of Python's own modules and of others'."""
    graph = grimp.build_graph("predsession", include_external_packages=True, cache_dir=None)
    return frozenset(name for name in graph.modules if name.split(".")[0] != "predsession")


def test_each_room_has_its_place() -> None:
    """A new room that no layer names fails the check, as each contract is about all that is there."""
    (layers,) = [each for each in contracts() if each["type"] == "layers"]
    assert layers["containers"] == ["predsession"]
    assert layers["exhaustive"] is True
    assert layers["exhaustive_ignores"] == ["__main__"]


def test_each_library_has_its_rooms() -> None:
    """What is not Python's own, numpy or Pillow is forbidden to the whole package, but for exceptions."""
    held = {library for each in contracts() if each.get("source_modules") == ["predsession"]
            for library in each["forbidden_modules"]}  # fmt: skip
    assert {"requests", "tqdm", "av", "starlette", "onnxruntime", "sqlite3", "grpc"} <= held
    assert sorted(libraries() - sys.stdlib_module_names - EVERYONES - ONLY_TYPES - held) == []
    assert sorted(held - libraries()) == []  # one that nobody imports holds nothing


def test_a_contract_about_one_room_is_about_all_of_it() -> None:
    """Those with narrower sources say what a whole room never does; none lists the rooms that may not."""
    narrow = [each["source_modules"] for each in contracts()
              if each["type"] == "forbidden" and each["source_modules"] != ["predsession"]]  # fmt: skip
    assert narrow == [["predsession.wire", "predsession.errors"], ["predsession.inputs"]]


def test_exceptions_are_named() -> None:
    """No exception is for the whole package, or lets a room import whatever it likes."""
    for each in contracts():
        for exception in each.get("ignore_imports", ()):
            importer, _, imported = exception.partition(" -> ")
            if each["type"] == "forbidden":
                assert importer not in {"predsession", "predsession.*", "predsession.**"}, exception
                assert imported in each["forbidden_modules"], exception
