"""Named tensors through the models of an Open Inference Protocol server; extra ``[tensor]``.

>>> from predsession.tensor import TensorSession
>>> with TensorSession("grpc://127.0.0.1:8001", models=["net"]) as session:  # doctest: +SKIP
...     scores = session({"image": array})["scores"]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from predsession.errors import MissingExtraError

if TYPE_CHECKING:
    from predsession.tensor.handles import ModelHandle, deinit_model, deinit_server, init_model
    from predsession.tensor.hosting import ServerHandle, init_server
    from predsession.tensor.htensor import HTensor
    from predsession.tensor.info import TensorInfo
    from predsession.tensor.quantization import dequantize, quantize
    from predsession.tensor.session import TensorSession
    from predsession.tensor.streaming import TensorStream

__all__ = [
    "HTensor",
    "ModelHandle",
    "ServerHandle",
    "TensorInfo",
    "TensorSession",
    "TensorStream",
    "deinit_model",
    "deinit_server",
    "dequantize",
    "init_model",
    "init_server",
    "quantize",
]

_HOMES = {
    "HTensor": "predsession.tensor.htensor",
    "ModelHandle": "predsession.tensor.handles",
    "ServerHandle": "predsession.tensor.hosting",
    "TensorInfo": "predsession.tensor.info",
    "TensorSession": "predsession.tensor.session",
    "TensorStream": "predsession.tensor.streaming",
    "deinit_model": "predsession.tensor.handles",
    "deinit_server": "predsession.tensor.handles",
    "dequantize": "predsession.tensor.quantization",
    "init_model": "predsession.tensor.handles",
    "init_server": "predsession.tensor.hosting",
    "quantize": "predsession.tensor.quantization",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used; say which extra is missing, if it is."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'predsession.tensor' has no attribute {name!r}")
    try:
        value: object = getattr(importlib.import_module(home), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in {"grpc", "google", "ml_dtypes"}:
            raise
        raise MissingExtraError("tensor", "a session with named tensors") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, those not yet imported included."""
    return sorted({*globals(), *__all__})
