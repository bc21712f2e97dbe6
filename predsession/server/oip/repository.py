"""A folder of networks that may be loaded by name."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from pathlib import Path

from predsession.server.models.card import ModelLoadError
from predsession.server.oip.opening import Source
from predsession.server.oip.orders import LoadOrder, read_scales
from predsession.server.statuses import CallError
from predsession.wire.jsontext import loads
from predsession.wire.jsontypes import as_object
from predsession.wire.oip.residency import QUANTIZATION

VERSION = "1"
"""Of every model."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""What a model may be called."""
_log = logging.getLogger("predsession.server")


def networks(folder: Path) -> dict[str, Path]:
    """Find a repository's models.

    Parameters
    ----------
    folder : Path
        Of ``NAME.onnx`` and ``NAME/1/model.onnx``.

    Returns
    -------
    dict of str to Path
        None where the folder cannot be read.
    """
    found: dict[str, Path] = {}
    try:
        for path in sorted(folder.iterdir()):
            nested = path / VERSION / "model.onnx"
            name, file = (path.stem, path) if path.suffix == ".onnx" else (path.name, nested)
            if NAME.fullmatch(name) and file.is_file():
                found.setdefault(name, file)
    except OSError as error:
        _log.error("the repository %s cannot be read: %s", folder, error)
    return found


def described(source: Source | None, order: LoadOrder) -> LoadOrder:
    """Return the order with the scales that lie beside a repository's model, in ``NAME/config.json``.

    Parameters
    ----------
    source : Path, bytes, str or None
        What the model is made of.
    order : LoadOrder
        As it came; scales in it go first.

    Returns
    -------
    LoadOrder
        Complete.

    Raises
    ------
    ModelLoadError
        If that file cannot be read.
    """
    if order.quantization or not isinstance(source, Path):
        return order
    path = source.parent.parent / "config.json"
    if source.name != "model.onnx" or not path.is_file():
        return order
    try:
        parameters = as_object(as_object(loads(path.read_bytes())).get("parameters"))
        scales = read_scales(as_object(parameters.get(QUANTIZATION)).get("string_value"))
    except (OSError, ValueError, RecursionError, CallError) as error:
        raise ModelLoadError(f"{path} cannot be read: {error}") from None
    return replace(order, quantization=scales)
