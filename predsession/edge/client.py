"""`InferenceClient`: what the caller touches. Its calls are in `inferring`, `managing` and `generating`."""

from __future__ import annotations

from predsession.edge.generating import Generating
from predsession.edge.inferring import Inferring
from predsession.edge.managing import Managing


class InferenceClient(Inferring, Managing, Generating):
    """A client of an edge runtime: one request, one answer, over gRPC.

    It connects when it is first used; any number of threads may share it, and after a fork the child has a
    connection of its own. Close it, or use it in a ``with`` block.

    Parameters
    ----------
    endpoint : str or None
        ``"127.0.0.1:50051"``, ``"unix:///run/x.sock"``; without one what the environment variable
        ``AI_RUNTIME_ENDPOINT`` says, else ``unix:///run/aipc/ai-runtime.sock``.

    Examples
    --------
    >>> with InferenceClient("127.0.0.1:50051") as client:  # doctest: +SKIP
    ...     for found in client.infer(picture, "yolov8n").objects:
    ...         print(found.label, found.score, found.bbox.to_xyxy(640, 480))
    """
