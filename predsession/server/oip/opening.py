"""From a file, a class or bytes to a model on its thread."""

from __future__ import annotations

import asyncio
import re
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from predsession.server.config import Limits
from predsession.server.models.card import ModelLoadError
from predsession.server.models.loading import find_object
from predsession.server.models.onnx_tensors import open_tensors
from predsession.server.models.tensors import Runnable, TensorFacts, TensorModel, describe_tensors
from predsession.server.oip.orders import LoadOrder
from predsession.server.oip.running import ThreadModel, UserModel
from predsession.server.oip.threads import ModelThread

Source = Path | bytes | str
"""An ONNX file, what is in one, or ``module:Model``."""
_Opened = tuple[Runnable, TensorFacts]
_WRITES = re.compile(r"path|file|folder|dump|^ep\.", re.IGNORECASE)


def source_of(target: str) -> Source:
    """Return what a target of the command line means."""
    return Path(target) if target.endswith(".onnx") else target


async def open_model(name: str, source: Source, order: LoadOrder, *, limits: Limits) -> ThreadModel:
    """Load a model on a thread of its own.

    Parameters
    ----------
    name : str
        What it is called.
    source : Path, bytes or str
        What it is made of.
    order : LoadOrder
        How.
    limits : Limits
        How long that may take.

    Returns
    -------
    ThreadModel
        Ready.

    Raises
    ------
    ModelLoadError
        If it cannot be.
    """
    thread = ModelThread(name, order.cores)
    loading = thread.submit(_guarded(lambda: _open(name, source, order), name))
    try:
        async with asyncio.timeout(limits.load):
            runnable, facts = await asyncio.shield(loading)
    except TimeoutError:
        raise ModelLoadError(f"model {name}: not loaded within {limits.load:g} s; see --limit-load") from None
    except BaseException:
        loading.add_done_callback(lambda done: done.cancelled() or done.exception())
        thread.end()
        raise
    return ThreadModel(name, thread, runnable=runnable, facts=facts, limits=limits)


def _guarded(work: Callable[[], _Opened], name: str) -> Callable[[], _Opened]:
    """Return what does the same, and says why it could not."""

    def guarded() -> _Opened:
        try:
            return work()
        except ModelLoadError as error:
            raise ModelLoadError(f"model {name}: {error}") from error
        except BaseException as error:  # a model is somebody's code and raises anything
            traceback.print_exception(error)
            raise ModelLoadError(f"model {name}: {type(error).__name__}: {error}") from error

    return guarded


def _open(name: str, source: Source, order: LoadOrder) -> _Opened:
    """Load a model, on its thread."""
    if isinstance(source, str):
        return _open_object(source, order)
    entries = _entries(order.environment)
    network = open_tensors(
        source,
        name if isinstance(source, bytes) else str(source),
        threads=len(order.cores),
        entries=entries,
        quantization=order.quantization,
    )
    return network, network.facts


def _entries(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return settings of an onnxruntime session; none that has it read or write files."""
    bad = [name for name in environment if _WRITES.search(name)]
    if bad:
        raise ModelLoadError(f"{bad[0]} cannot be set over the network: it is about files")
    return environment


def _open_object(target: str, order: LoadOrder) -> _Opened:
    """Load a user's model."""
    if order.quantization:
        raise ModelLoadError("its scales are its own; a load cannot set others")
    found = find_object(target)
    if order.environment:
        setattr(found, "environment", dict(order.environment))  # noqa: B010 - no attribute of object
    load = getattr(found, "load", None)
    if callable(load):
        load()
    facts = describe_tensors(found)
    model = cast("TensorModel", found)
    return UserModel(model, facts), facts
