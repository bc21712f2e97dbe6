"""From a model's target on the command line to a loaded model."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import cast

from predsession.server.models.base import Model, describe
from predsession.server.models.bundled import BUNDLED
from predsession.server.models.card import ModelCard, ModelLoadError

_HOW = (
    "a model is one of {bundled}, or module:Model, path/to/file.py:Model, or the description file of an ONNX "
    "detector (.toml)"
)

_METHODS = ("predict", "infer", "stream")
"""What tells a model, of pictures or of tensors, from what makes one."""


def load_model(target: str) -> tuple[Model, ModelCard]:
    """Find a model, load it, and read its card.

    Parameters
    ----------
    target : str
        The name of a bundled model, ``module:attribute``, ``path/to/file.py:attribute``, or the path of a
        description file.

    Returns
    -------
    tuple
        The model, ready to predict, and its card.

    Raises
    ------
    ModelLoadError
        If there is no such model, or it cannot be loaded.
    """
    model = _find(target)
    load = getattr(model, "load", None)
    if callable(load):
        load()
    files = tuple(str(path) for path in getattr(model, "files", ()))
    return model, replace(describe(model), digest=_digest(target, model), files=files)


def find_object(target: str) -> object:
    """Make what a target names; it is not loaded yet.

    Parameters
    ----------
    target : str
        ``module:attribute`` or ``path/to/file.py:attribute``.

    Returns
    -------
    object
        A model of either kind, if the target's author knows what one is.

    Raises
    ------
    ModelLoadError
        If there is no such thing.
    """
    place, colon, attribute = target.rpartition(":")
    if not colon or not place or not attribute:
        raise ModelLoadError(f"{target!r} is neither module:Model nor path/to/file.py:Model")
    return _make(_module(place), attribute)


def _digest(target: str, model: Model) -> str:
    """Return a digest of what a model is made of: its source, its description, the `files` that it names."""
    try:
        source = inspect.getsourcefile(type(model))
    except TypeError:
        source = None  # its class is in no file
    named = [target if target.endswith(".toml") else None, source, *getattr(model, "files", ())]
    made = hashlib.blake2b(digest_size=16)
    for path in named:
        if path is not None and Path(path).is_file():
            with Path(path).open("rb") as file:
                made.update(hashlib.file_digest(file, "blake2b").digest())
    return made.hexdigest()


def _find(target: str) -> Model:
    """Make the model that a target names."""
    if target in BUNDLED:
        return BUNDLED[target]()
    if target.endswith(".toml"):
        from predsession.server.models.onnx import read_description

        return read_description(Path(target))
    place, colon, attribute = target.rpartition(":")
    if not colon or not place or not attribute:
        bundled = ", ".join(sorted(BUNDLED))
        raise ModelLoadError(f"{target!r} is no model; {_HOW.format(bundled=bundled)}")
    # Whether it really is a model, `describe` finds out.
    return cast("Model", _make(_module(place), attribute))


def _module(place: str) -> ModuleType:
    """Import a module by name or by path."""
    if not place.endswith(".py"):
        if str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            raise ModelLoadError(f"cannot import {place}: {error}") from error
    path = Path(place).resolve()
    if not path.is_file():
        raise ModelLoadError(f"there is no file {place}")
    # So that the file may import its neighbours.
    sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise ModelLoadError(f"{error.filename}, line {error.lineno}: {error.msg}") from error
    return module


def _make(module: ModuleType, attribute: str) -> object:
    """Take a model from a module: an object as it is, a class or a function by calling it."""
    found: object = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise ModelLoadError(f"{module.__name__} has no {attribute}")
    is_model = not isinstance(found, type) and any(hasattr(found, name) for name in _METHODS)
    if not is_model and not callable(found):
        raise ModelLoadError(
            f"{module.__name__}:{attribute} is neither a model nor a class or function of one"
        )
    return found() if callable(found) and not is_model else found
