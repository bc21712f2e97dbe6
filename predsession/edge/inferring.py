"""The client's calls that run models: one picture, several, many, a camera.

Parameters have the order of the platform's own client, so that calls written for it mean the same here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future

import numpy as np
import numpy.typing as npt

from predsession.edge.base import Connected, check_idle
from predsession.edge.exchange import ask_batch, ask_infer, failed_infer, read_batch, read_frame, read_infer
from predsession.edge.result import BatchInferItem, InferenceResult
from predsession.edge.subscription import Subscription
from predsession.errors import SourceError
from predsession.rpc.flight import Ask
from predsession.rpc.pipeline import Pipeline
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.methods import METHODS
from predsession.wire.edge.writing import written

Array = npt.NDArray[np.generic]


class Inferring(Connected):
    """Runs models."""

    def infer(
        self,
        image: npt.ArrayLike,
        model_id: str,
        timeout_ms: int = 5000,
        priority: int = 4,
        session_id: str = "",
    ) -> InferenceResult:
        """Run one picture through a model.

        Parameters
        ----------
        image : (H, W, 3) uint8 array-like
            RGB, at the model's size, or at any where the server scales, as ours does. Other shapes and dtypes
            go as they are.
        model_id : str
            Which model.
        timeout_ms : int
            Milliseconds, as the wire has them.
        priority : int
            0 to 7, 7 first.
        session_id : str
            Whose quota it takes.

        Returns
        -------
        InferenceResult
            What was found.

        Raises
        ------
        SourceError
            If the array, a name, the time or the priority cannot be sent as it is, before anything is sent.
        RequestTimeoutError
            If there was no answer within `timeout_ms`.
        NotFoundError
            If the runtime knows no such model or session.
        AuthError
            If the session may not use the model.
        RateLimitError
            If the session's quota is used up.
        RefusedError
            If the runtime says no otherwise, in its own words.
        PredSessionError
            Any other of those that `InferenceClient` lists.
        SessionClosedError
            If the client was closed.
        """
        ask = ask_infer([image], model_id, timeout_ms, priority=priority, session_id=session_id)
        result = read_infer(self._channel.call(ask), model_id, self.endpoint)
        result.raise_for_status()
        return result

    def infer_async(
        self,
        image: npt.ArrayLike,
        model_id: str,
        timeout_ms: int = 5000,
        priority: int = 4,
        session_id: str = "",
    ) -> Future[InferenceResult]:
        """Run one picture through a model, in the background.

        Parameters
        ----------
        image : (H, W, 3) uint8 array-like
            As for `infer`. It is copied before this returns.
        model_id : str
            Which model.
        timeout_ms : int
            Milliseconds, as the wire has them.
        priority : int
            0 to 7, 7 first.
        session_id : str
            Whose quota it takes.

        Returns
        -------
        Future
            Gives the result, or raises as `infer` does; cancelling it cancels the call. What is called by its
            ``add_done_callback`` runs in gRPC's thread, and must be short.

        Raises
        ------
        SourceError
            If the array cannot be sent as it is, before anything is sent.
        SessionClosedError
            If the client was closed.
        """

        def read(reply: pb.InferResponse) -> InferenceResult:
            """Read the answer, or raise what is wrong with it."""
            result = read_infer(reply, model_id, self.endpoint)
            result.raise_for_status()
            return result

        return self._channel.submit(
            ask_infer([image], model_id, timeout_ms, priority=priority, session_id=session_id), read
        )

    def infer_with_tensors(
        self,
        model_id: str,
        inputs: Sequence[npt.ArrayLike],
        *,
        input_names: Sequence[str] | None = None,
        timeout_ms: int = 5000,
        priority: int = 4,
        session_id: str = "",
    ) -> list[Array]:
        """Run a model on its inputs, and return its own outputs.

        Parameters
        ----------
        model_id : str
            Which model.
        inputs : sequence of array-like
            In the model's own order.
        input_names : sequence of str or None
            One for each, for the reader only: the wire has no place for them.
        timeout_ms : int
            Milliseconds, as the wire has them.
        priority : int
            0 to 7, 7 first.
        session_id : str
            Whose quota it takes.

        Returns
        -------
        list of ndarray
            Read-only, in the model's own order.

        Raises
        ------
        SourceError
            If something cannot be sent as it is, or there are not as many names as arrays.
        PredSessionError
            As for `infer`.
        SessionClosedError
            If the client was closed.
        """
        if input_names is not None and len(input_names) != len(inputs):
            raise SourceError(f"{len(input_names)} input_names for {len(inputs)} inputs")
        ask = ask_infer(inputs, model_id, timeout_ms, priority=priority, session_id=session_id)
        result = read_infer(self._channel.call(ask), model_id, self.endpoint)
        result.raise_for_status()
        return result.raw_outputs or []

    def infer_batch(self, items: Iterable[BatchInferItem], timeout_ms: int = 10000) -> list[InferenceResult]:
        """Run several pictures in one call, each through a model of its own choice.

        Parameters
        ----------
        items : iterable of BatchInferItem
            The pictures.
        timeout_ms : int
            Milliseconds for all of them, as the wire has them.

        Returns
        -------
        list of InferenceResult
            In the order of the items. One that failed is false, and raises its error as soon as it is asked
            for what was found.

        Raises
        ------
        SourceError
            If an array cannot be sent as it is, before anything is sent.
        ProtocolError
            If there are not as many answers as items.
        PredSessionError
            If the call as a whole failed, by one of those that `InferenceClient` lists.
        SessionClosedError
            If the client was closed.
        """
        batch = list(items)
        if not batch:
            return []  # a runtime refuses an empty batch
        return read_batch(self._channel.call(ask_batch(batch, timeout_ms)), batch, self.endpoint)

    def infer_batch_async(
        self, items: Iterable[BatchInferItem], timeout_ms: int = 10000
    ) -> Future[list[InferenceResult]]:
        """Run several pictures in one call, in the background.

        Parameters
        ----------
        items : iterable of BatchInferItem
            The pictures.
        timeout_ms : int
            Milliseconds for all of them, as the wire has them.

        Returns
        -------
        Future
            Gives what `infer_batch` returns, or raises as it does.

        Raises
        ------
        SourceError
            If an array cannot be sent as it is, before anything is sent.
        SessionClosedError
            If the client was closed.
        """
        batch = list(items)
        if not batch:
            nothing: Future[list[InferenceResult]] = Future()
            nothing.set_result([])
            return nothing
        return self._channel.submit(
            ask_batch(batch, timeout_ms), lambda reply: read_batch(reply, batch, self.endpoint)
        )

    def infer_many(
        self,
        images: Iterable[npt.ArrayLike],
        model_id: str,
        depth: int = 4,
        *,
        timeout_ms: int = 5000,
        priority: int = 4,
        session_id: str = "",
    ) -> Iterator[InferenceResult]:
        """Run pictures through a model, several on their way at once.

        Parameters
        ----------
        images : iterable of array-like
            Taken one by one, `depth` ahead of what is yielded, in a thread of its own: a slow source does
            not keep back the results that are there.
        model_id : str
            Which model.
        depth : int
            Calls on their way at once.
        timeout_ms : int
            Milliseconds for each, as the wire has them.
        priority : int
            0 to 7, 7 first.
        session_id : str
            Whose quota it takes.

        Yields
        ------
        InferenceResult
            In the order of the pictures. One that failed is false and has its error: the runtime said no, was
            late, or its answer cannot be read; what concerns them all is raised: the connection, a call that
            is not offered, who is asking. Leaving it cancels what is on its way.

        Raises
        ------
        SourceError
            If `depth` is not above 0, or an array cannot be sent as it is; after the results of those before.
        ConnectError
            If nobody is there.
        TransportError
            If the connection broke.
        AuthError
            If the caller, or the session, may not do that.
        NotFoundError
            If the runtime does not offer the call.
        SessionClosedError
            If the client was closed.
        """
        if depth < 1 or depth != int(depth):
            raise SourceError(f"depth is {depth}; wanted a whole number above 0")

        def send(image: npt.ArrayLike) -> Future[InferenceResult]:
            """Send one picture."""
            ask = ask_infer([image], model_id, timeout_ms, priority=priority, session_id=session_id)
            return self._channel.submit(
                ask, lambda reply: read_infer(reply, model_id, self.endpoint), failed_infer
            )

        yield from Pipeline(images, send, depth)

    def subscribe(
        self,
        stream: str,
        model: str,
        fps: int = 10,
        session_id: str = "",
        raw_output_only: bool = False,
        max_consecutive_failures: int | None = 10,
        *,
        queue_size: int = 100,
        idle_timeout: float | None = 60.0,
    ) -> Subscription:
        """Run a camera of the runtime through a model.

        Parameters
        ----------
        stream : str
            Which camera.
        model : str
            Which model.
        fps : int
            Frames a second at most; 0 leaves it to the runtime.
        session_id : str
            Whose quota it takes.
        raw_output_only : bool
            Give the model's own outputs instead of what they mean.
        max_consecutive_failures : int or None
            Failed frames are skipped, and logged; so many in a row raise. 0 or None: never.
        queue_size : int
            Frames that are kept for a slow caller; the oldest is dropped.
        idle_timeout : float or None
            Seconds without a frame, a failed one included, that raise RequestTimeoutError; None: never.

        Returns
        -------
        Subscription
            Iterates ``(frame_sequence, InferenceResult)``; close it, or leave its ``with`` block.

        Raises
        ------
        SourceError
            If `fps` is no number of the wire's, `queue_size` not above 0, or `idle_timeout` no time.
        SessionClosedError
            If the client was closed.
        """
        if not 0 <= fps < 2**32 or queue_size < 1:
            raise SourceError(
                f"fps is {fps}, queue_size is {queue_size}; wanted 0 to {2**32 - 1}, and 1 or more"
            )
        if (max_consecutive_failures or 0) < 0:
            raise SourceError(f"max_consecutive_failures is {max_consecutive_failures}; 0 or None: no limit")
        check_idle(idle_timeout)
        request = written(
            pb.StreamInferRequest,
            model_id=model,
            stream_id=stream,
            fps_limit=fps,
            session_id=session_id,
            raw_output_only=raw_output_only,
        )
        ask = Ask(
            METHODS["StreamInfer"].path, request.SerializeToString(), pb.StreamInferResponse.FromString, None
        )
        return Subscription(
            self._channel.stream(ask),
            lambda message: read_frame(message, f"{stream} with {model}", self.endpoint),
            what=f"{stream} with {model} at {self.endpoint}",
            queue_size=queue_size,
            max_consecutive_failures=max_consecutive_failures,
            idle_timeout=idle_timeout,
        )
