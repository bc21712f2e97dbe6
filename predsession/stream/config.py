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
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import cast

from predsession.errors import SourceError
from predsession.stream.tables import store_path

KINDS: Mapping[str, tuple[type, ...]] = {
    "model": (str,),
    "source": (str, dict),
    "store": (str,),
    "batch_size": (int,),
    "flush_after": (int, float),
    "skip_stored": (bool,),
    "on_error": (str,),
    "decode": (str,),
    "image_field": (str,),
    "settings": (dict,),
    "token": (str,),
    "show_progress": (bool,),
}
"""The keys, and what their values are."""
_WORDS = {str: "a text", dict: "a table", int: "a whole number", float: "a number", bool: "true or false"}
_SCHEMES = ("http://", "https://", "grpc://", "grpcs://", "unix:")
_FOREVER = 1e9


def read_config(path: Path) -> dict[str, object]:
    """Read a session's arguments.

    Parameters
    ----------
    path : Path
        A TOML file. Paths in it are relative to its folder.

    Returns
    -------
    dict
        For `StreamSession`.

    Raises
    ------
    SourceError
        If it cannot be read, or a key means nothing; names file and key.
    """
    given = read_table(path)
    if "model" not in given:
        raise SourceError(f"{path}: a model is missing: model = 'http://127.0.0.1:8000'")
    return resolved(given, path)


def read_table(path: Path) -> dict[str, object]:
    """Read a TOML file, and check its keys.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict
        As it says.

    Raises
    ------
    SourceError
        If it cannot be read, a key means nothing, or its value is of another kind.
    """
    try:
        given: dict[str, object] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from None
    unknown = sorted(given.keys() - KINDS.keys())
    if unknown:
        raise SourceError(f"{path}: {', '.join(unknown)} means nothing; keys are {', '.join(sorted(KINDS))}")
    for key, value in given.items():
        if type(value) not in KINDS[key]:
            wanted = " or ".join(_WORDS[kind] for kind in KINDS[key])
            raise SourceError(f"{path}: {key} is {value!r}; wanted {wanted}")
    try:
        check_arguments(
            given.get("batch_size", 1), given.get("flush_after", 1), given.get("on_error", "raise")
        )
    except SourceError as error:
        raise SourceError(f"{path}: {error}") from None
    return given


def resolved(given: Mapping[str, object], path: Path) -> dict[str, object]:
    """Make what a file's texts and tables stand for.

    Parameters
    ----------
    given : mapping
        From `read_table`.
    path : Path
        The file, named in errors.

    Returns
    -------
    dict
        For `StreamSession`.

    Raises
    ------
    SourceError
        If there is no such function or source; names file and key.
    """
    found = dict(given)
    for key, make in (("model", load_model), ("decode", load_object)):
        if key in found:
            try:
                found[key] = make(str(found[key]), path.parent)
            except SourceError as error:
                raise SourceError(f"{path}: {key}: {error}") from None
    if "source" in found:
        found["source"] = _source(found["source"], path)
    if "store" in found:
        try:
            found["store"] = store_path(path.parent / str(found["store"]))
        except SourceError as error:
            raise SourceError(f"{path}: store: {error}") from None
    return found


def check_arguments(batch_size: object, flush_after: object, on_error: object) -> None:
    """Refuse what makes no sense; raises `SourceError`."""
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
        raise SourceError(f"batch_size is {batch_size!r}; wanted 1 or more")
    if not isinstance(flush_after, int | float) or not 0 < flush_after < _FOREVER:
        raise SourceError(f"flush_after is {flush_after!r}; wanted seconds above 0")
    if on_error not in {"raise", "skip"}:
        raise SourceError(f"on_error is {on_error!r}; wanted 'raise' or 'skip'")


def load_model(text: str, folder: Path) -> object:
    """Return a server's URL as it is, or the function that a text names; as `load_object`."""
    return text if text.startswith(_SCHEMES) else load_object(text, folder)


def load_object(text: str, folder: Path) -> Callable[..., object]:
    """Import what ``package.module:name`` or ``path/to/file.py:name`` names; a class is made one of.

    Parameters
    ----------
    text : str
        As above.
    folder : Path
        What a relative path is relative to; modules are looked for there, too.

    Returns
    -------
    callable
        What was found.

    Raises
    ------
    SourceError
        If there is no such thing, it cannot be loaded, or it cannot be called.
    """
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name.isidentifier():
        raise SourceError(f"{text!r} is no URL, and names no function: module:function, or file.py:function")
    try:
        found: object = getattr(_module(place, folder), name)
        if inspect.isclass(found):
            found = found()
    except SourceError:
        raise
    except Exception as error:  # a user's file may raise anything
        raise SourceError(f"{text!r} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise SourceError(f"{text!r} is {type(found).__name__}, which cannot be called")
    return cast("Callable[..., object]", found)


def _module(place: str, folder: Path) -> ModuleType:
    """Import a module by name or by path; it may import its neighbours."""
    file = (folder / place).resolve()
    beside = str(file.parent if place.endswith(".py") else folder.resolve())
    if beside not in sys.path:
        sys.path.append(beside)
    if not place.endswith(".py"):
        return importlib.import_module(place)
    if not file.is_file():
        raise SourceError(f"{file}: there is no such file")
    # Not under its own name, which may be that of a module which others import.
    spec = importlib.util.spec_from_file_location(f"predsession_loaded_{file.stem}", file)
    assert spec is not None, "the name ends in .py"
    assert spec.loader is not None, "likewise"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _decoder(text: str, folder: Path) -> Callable[..., object]:
    """Import a decoder."""
    try:
        return load_object(text, folder)
    except SourceError as error:
        raise SourceError(f"decode: {error}") from None


def _source(value: object, path: Path) -> object:
    """Make the source that a text or a table describes."""
    from predsession.stream import sources

    if not isinstance(value, dict):
        text = str(value)
        return text if text.startswith((*sources.CAMERAS, sources.KAFKA)) else str(path.parent / text)
    given = dict(value)
    kinds = sources.kinds()
    kind = given.pop("kind", None)
    if not isinstance(kind, str) or kind not in kinds:
        raise SourceError(f"{path}: [source] needs kind, one of {', '.join(kinds)}; it is {kind!r}")
    where = f"{path}: [source] of kind {kind}"
    if isinstance(given.get("path"), str):
        given["path"] = path.parent / given["path"]
    try:
        if isinstance(given.get("decode"), str):
            given["decode"] = _decoder(given["decode"], path.parent)
        make = kinds[kind]()
        inspect.signature(make).bind(**given)
        return make(**given)
    except SourceError as error:
        raise SourceError(f"{where}: {error}") from None
    except (TypeError, ValueError) as error:
        raise SourceError(
            f"{where}: {error}; its keys are {', '.join(inspect.signature(make).parameters)}"
        ) from None
