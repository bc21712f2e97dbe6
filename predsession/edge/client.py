"""`InferenceClient`: what the caller touches.

Its calls are in `inferring`, `managing` (those of sessions in `admitting`) and `generating`.
"""

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

    Raises
    ------
    SourceError
        If `endpoint` is no address.

    Notes
    -----
    What any call may raise, of `PredSessionError`:

    - `ConnectError`: nobody is there; nothing was sent.
    - `RequestTimeoutError`: no answer in time, noticed here or by the runtime.
    - `TransportError`: the connection broke under the call, which may have been acted on.
    - `ProtocolError`: the answer cannot be read, or is not what it says.
    - `UploadTooLargeError`: more than 64 MiB; nothing was sent.
    - `NotFoundError`: an unknown model or session (status 404), or the runtime does not offer the call (501).
    - `AuthError`: the runtime does not let the caller, or the session, do that.
    - `RateLimitError`: a quota is used up.
    - `InvalidRequestError`: the runtime does not accept a value.
    - `RefusedError`: any other "no" of the runtime, in its own words.
    - `ServerFaultError`: the runtime failed.

    Examples
    --------
    >>> with InferenceClient("127.0.0.1:50051") as client:  # doctest: +SKIP
    ...     for found in client.infer(picture, "yolov8n").objects:
    ...         print(found.label, found.score, found.bbox.to_xyxy(640, 480))
    """
