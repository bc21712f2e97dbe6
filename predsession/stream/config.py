"""A session's arguments from a TOML file.

.. code:: toml

    model = "grpc://127.0.0.1:8001/net"      # or "package.module:function", or "path/to/file.py:function"
    store = "results.lance"
    batch_size = 256
    flush_after = 5.0

    [source]
    kind = "kafka"                           # the other keys are KafkaSource's
    bootstrap_servers = "127.0.0.1:9092"
    topics = ["alerts"]
    group_id = "night"
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import cast

from predsession.errors import SourceError

KEYS = frozenset({
    "model", "source", "store", "batch_size", "flush_after", "skip_stored", "on_error", "decode",
    "image_field", "settings", "token", "show_progress",
})  # fmt: skip
_SCHEMES = ("http://", "https://", "grpc://", "grpcs://", "unix:", "kafka://")


def read_config(path: Path) -> dict[str, object]:
    """Read a session's arguments.

    Parameters
    ----------
    path : Path
        A TOML file.

    Returns
    -------
    dict
        For `StreamSession`.

    Raises
    ------
    SourceError
        If it cannot be read, or a key means nothing.
    """
    try:
        with path.open("rb") as file:
            given: dict[str, object] = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from None
    unknown = sorted(given.keys() - KEYS)
    if unknown:
        raise SourceError(f"{path}: {', '.join(unknown)} means nothing; keys are {', '.join(sorted(KEYS))}")
    if "model" not in given:
        raise SourceError(f"{path}: a model is missing: model = 'http://127.0.0.1:8000'")
    given["model"] = _model(given["model"], path)
    if isinstance(given.get("decode"), str):
        given["decode"] = load_object(str(given["decode"]), path.parent)
    if isinstance(given.get("source"), dict):
        given["source"] = _source(cast("dict[str, object]", given["source"]), path)
    if isinstance(given.get("store"), str):
        given["store"] = path.parent / str(given["store"])
    return given


def _model(value: object, path: Path) -> object:
    """Return a URL as it is, or the function that a text names."""
    if not isinstance(value, str):
        raise SourceError(f"{path}: model is {value!r}; wanted a URL, or module:function")
    return value if value.startswith(_SCHEMES) else load_object(value, path.parent)


def load_object(text: str, folder: Path) -> Callable[..., object]:
    """Import what ``package.module:name`` or ``path/to/file.py:name`` names; a class is made one of.

    Parameters
    ----------
    text : str
        As above.
    folder : Path
        What a relative path is relative to.

    Returns
    -------
    callable
        What was found.

    Raises
    ------
    SourceError
        If there is no such thing, or it cannot be called.
    """
    place, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier():
        raise SourceError(f"{text!r} is no URL, and names no function: module:function, or file.py:function")
    try:
        if place.endswith(".py"):
            file = folder / place
            spec = importlib.util.spec_from_file_location(file.stem, file)
            if spec is None or spec.loader is None or not file.is_file():
                raise SourceError(f"{file}: there is no such file")
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(place)
        found: object = getattr(module, name)
    except (ImportError, AttributeError, SyntaxError) as error:
        raise SourceError(f"{text!r} cannot be loaded: {error}") from None
    if inspect.isclass(found):
        found = found()
    if not callable(found):
        raise SourceError(f"{text!r} is {type(found).__name__}, which cannot be called")
    return cast("Callable[..., object]", found)


def _source(given: dict[str, object], path: Path) -> object:
    """Make the source that a table describes."""
    from predsession.stream import sources

    kinds = sources.kinds()
    kind = given.pop("kind", None)
    if kind not in kinds:
        raise SourceError(f"{path}: [source] needs kind, one of {', '.join(kinds)}; it is {kind!r}")
    make = kinds[str(kind)]()
    if isinstance(given.get("decode"), str):
        given["decode"] = load_object(str(given["decode"]), path.parent)
    try:
        inspect.signature(make).bind(**given)
    except TypeError as error:
        raise SourceError(f"{path}: [source] of kind {kind}: {error}") from None
    return make(**given)
