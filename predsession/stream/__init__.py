"""An endless source, batch by batch through a model, into a store on disk; extra ``[stream]``.

>>> from predsession.stream import StreamSession
>>> with StreamSession(function, source, store="results.lance") as session:  # doctest: +SKIP
...     for batch, results in session:
...         ...
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from predsession.errors import MissingExtraError

if TYPE_CHECKING:
    from predsession.stream.cameras import CameraSource, VideoSource
    from predsession.stream.dataset import ResultDataset, open_results
    from predsession.stream.kafka import KafkaSource
    from predsession.stream.samples import Batch, DeadLetter, Sample
    from predsession.stream.session import StreamSession
    from predsession.stream.source import IterableSource, Source
    from predsession.stream.watching import FolderSource
    from predsession.stream.writer import read_letters

__all__ = [
    "Batch",
    "CameraSource",
    "DeadLetter",
    "FolderSource",
    "IterableSource",
    "KafkaSource",
    "ResultDataset",
    "Sample",
    "Source",
    "StreamSession",
    "VideoSource",
    "open_results",
    "read_letters",
]

_HOMES = {
    "Batch": "samples",
    "CameraSource": "cameras",
    "DeadLetter": "samples",
    "FolderSource": "watching",
    "IterableSource": "source",
    "KafkaSource": "kafka",
    "ResultDataset": "dataset",
    "Sample": "samples",
    "Source": "source",
    "StreamSession": "session",
    "VideoSource": "cameras",
    "open_results": "dataset",
    "read_letters": "writer",
}
_EXTRAS = {"pyarrow": "stream", "lance": "stream", "confluent_kafka": "kafka"}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used; say which extra is missing, if it is."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'predsession.stream' has no attribute {name!r}")
    try:
        value: object = getattr(importlib.import_module(f"predsession.stream.{home}"), name)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        raise MissingExtraError(extra, f"predsession.stream.{name}") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, those not yet imported included."""
    return sorted({*globals(), *__all__})
