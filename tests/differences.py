"""Where two answers differ: in their keys, in the kinds of their values, in the words for a stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_VALUES = {"stage", "status"}
"""Keys whose texts are held against each other, not only their kind."""


def differences(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    """Yield where two answers differ in their keys, or in the kinds of their values.

    Parameters
    ----------
    theirs, ours : JSON
        The recorded answer, and ours.
    path : str
        Where they stand.

    Yields
    ------
    str
        One sentence each.
    """
    if isinstance(theirs, dict) and isinstance(ours, dict):
        yield from (f"{path}.{key}: only there" for key in theirs if key not in ours)
        yield from (f"{path}.{key}: only here" for key in ours if key not in theirs)
        for key in theirs.keys() & ours.keys():
            yield from differences(theirs[key], ours[key], f"{path}.{key}")
    elif isinstance(theirs, list) and isinstance(ours, list):
        yield from _of_lists(theirs, ours, path)
    elif _kind(theirs) != _kind(ours):
        yield f"{path}: {_kind(theirs)} there, {_kind(ours)} here"
    elif path.rpartition(".")[2] in _VALUES and theirs != ours:
        yield f"{path}: {theirs!r} there, {ours!r} here"


def _of_lists(theirs: list[Any], ours: list[Any], path: str) -> Iterator[str]:
    """Hold objects against one of the same geometry, anything else first against first."""
    if bool(theirs) != bool(ours):
        there, here = ("something" if each else "nothing" for each in (theirs, ours))
        yield f"{path}[]: {there} there, {here} here"
        return
    by_kind, mine = ({_geometry(one): one for one in reversed(each)} for each in (theirs, ours))
    yield from (f"{path}[]: {kind} only there" for kind in by_kind if kind not in mine)
    for kind, one in mine.items():
        yield from differences(by_kind.get(kind), one, f"{path}[]")


def _geometry(value: Any) -> str:
    """Return what kind of object something is."""
    return str(value.get("geometryType", "")) if isinstance(value, dict) else ""


def _kind(value: Any) -> str:
    """Return the kind of a value."""
    if isinstance(value, bool) or value is None:
        return {"NoneType": "null", "bool": "bool"}[type(value).__name__]
    return {str: "text", int: "number", float: "number", dict: "object", list: "array"}[type(value)]
