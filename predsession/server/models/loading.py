"""From a model's target on the command line to a loaded model."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from predsession.server.models.base import Model, describe
from predsession.server.models.bundled import BUNDLED
from predsession.server.models.card import ModelCard, ModelLoadError

_HOW = (
    "a model is one of {bundled}, or module:Model, path/to/file.py:Model, or the description file of an ONNX "
    "detector (.toml)"
)


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
    return model, describe(model)


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
    return _make(_module(place), attribute)


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


def _make(module: ModuleType, attribute: str) -> Model:
    """Take a model from a module: an object as it is, a class or a function by calling it."""
    found: object = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise ModelLoadError(f"{module.__name__} has no {attribute}")
    is_model = not isinstance(found, type) and hasattr(found, "predict")
    if not is_model and not callable(found):
        raise ModelLoadError(
            f"{module.__name__}:{attribute} is neither a model nor a class or function of one"
        )
    model: Model = found if is_model else found()  # type: ignore[assignment,operator]
    return model
