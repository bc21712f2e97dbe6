"""The client's calls about models, settings and counters.

Parameters have the order of the platform's own client, so that calls written for it mean the same here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt

from predsession.edge.admitting import Admitting
from predsession.edge.base import seconds_of
from predsession.edge.endpoint import host_path
from predsession.edge.models import (
    ModelInfo,
    SystemStats,
    TensorSpec,
    from_model_info,
    from_stats,
    to_specs,
)
from predsession.errors import NotFoundError, SourceError
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.findings import from_embedding
from predsession.wire.edge.writing import written
from predsession.wire.jsontypes import JSON

REGISTER_SECONDS = 120.0


class Managing(Admitting):
    """Asks for, and changes, what the runtime holds."""

    def register_model(
        self,
        model_path: str | os.PathLike[str],
        model_id: str | None = None,
        owner_id: str | None = None,
        model_type: str | None = None,
        model_variant: str | None = None,
        inputs: Iterable[TensorSpec] | None = None,
        outputs: Iterable[TensorSpec] | None = None,
        *,
        batch_size: int = 0,
        transient: bool = False,
        raw_output_only: bool = False,
        path_map: Mapping[str, str] | None = None,
    ) -> str:
        """Have the runtime load a model.

        Parameters
        ----------
        model_path : str or PathLike
            The model's file, which the runtime opens on its own host.
        model_id : str or None
            What to call it; without it, the file's name without its ending.
        owner_id : str or None
            Whose it is.
        model_type, model_variant : str or None
            What it does, in the runtime's words.
        inputs, outputs : iterable of TensorSpec, or None
            ``{"shape": ..., "dtype": "uint8"}``; most runtimes read them off the file.
        batch_size : int
            Pictures it takes at once; 0 leaves it to the runtime.
        transient : bool
            Let it go with its owner.
        raw_output_only : bool
            Let it give its own outputs only.
        path_map : mapping of str to str, or None
            Folder of this container to folder of the host; the longest that fits is taken. Without it
            ``/opt/aipc`` and ``/data/aipc`` become what ``AIPC_HOST_PREFIX`` says.

        Returns
        -------
        str
            What the runtime calls it.

        Raises
        ------
        SourceError
            If a tensor's description lacks something, has an unknown key, or a dtype that the wire lacks; if
            the wire cannot hold something.
        RefusedError
            If the runtime says no, in its own words: the file, or another model under that name.
        PredSessionError
            Any other of those that `InferenceClient` lists.
        SessionClosedError
            If the client was closed.
        """
        request = written(
            pb.ModelRegisterRequest,
            model_path=host_path(model_path, path_map),
            model_id=model_id or PurePosixPath(os.fspath(model_path)).stem,
            inputs=to_specs(inputs),
            outputs=to_specs(outputs),
            owner_id=owner_id or "",
            model_type=model_type or "",
            model_variant=model_variant or "",
            transient=transient,
            raw_output_only=raw_output_only,
            batch_size=batch_size,
        )
        reply = self._ask("RegisterModel", request, pb.ModelRegisterResponse, REGISTER_SECONDS)
        if not reply.status.success:
            raise self._refused(reply.status, f"RegisterModel of {request.model_path}")
        return reply.model_id or request.model_id

    def unregister_model(self, model_id: str, *, owner_id: str = "") -> None:
        """Have the runtime forget a model.

        Parameters
        ----------
        model_id : str
            Which.
        owner_id : str
            Whose; without it, whoever's it is.

        Raises
        ------
        NotFoundError
            If the runtime does not know it.
        RefusedError
            If the runtime says no otherwise: it is in use, or another owner's.
        PredSessionError
            Any other of those that `InferenceClient` lists.
        SessionClosedError
            If the client was closed.
        """
        reply = self._ask(
            "UnregisterModel", written(pb.ModelInfo, model_id=model_id, owner_id=owner_id), pb.Status
        )
        if not reply.success:
            raise self._refused(reply, f"UnregisterModel of {model_id!r}")

    def list_models(self) -> list[ModelInfo]:
        """Ask which models there are.

        Returns
        -------
        list of ModelInfo
            In the runtime's order.

        Raises
        ------
        PredSessionError
            Any of those that `InferenceClient` lists.
        SessionClosedError
            If the client was closed.
        """
        return [
            from_model_info(each) for each in self._ask("ListModels", pb.Empty(), pb.ModelListResponse).models
        ]

    def get_model_info(self, model_id: str) -> ModelInfo | None:
        """Ask what a model is.

        Parameters
        ----------
        model_id : str
            Which.

        Returns
        -------
        ModelInfo or None
            None if the runtime does not know it.

        Raises
        ------
        NotFoundError
            If the runtime does not offer the call.
        PredSessionError
            Any other of those that `InferenceClient` lists.
        SessionClosedError
            If the client was closed.
        """
        try:
            reply = self._ask("GetModelInfo", written(pb.ModelInfo, model_id=model_id), pb.ModelInfo)
        except NotFoundError as error:
            if error.status != 404:
                raise
            return None
        return from_model_info(reply) if reply.model_id else None

    def get_stats(self, *, sampling_window_ms: int = 0) -> SystemStats:
        """Ask for the counters. The runtime takes its time: half a second and more.

        Parameters
        ----------
        sampling_window_ms : int
            Milliseconds over which a newer runtime counts, as the wire has them; 0 for its own choice.

        Returns
        -------
        dict
            See `SystemStats`.

        Raises
        ------
        SourceError
            If the wire cannot hold the window.
        PredSessionError
            Any of those that `InferenceClient` lists.
        SessionClosedError
            If the client was closed.
        """
        request = written(pb.GetStatsRequest, sampling_window_ms=sampling_window_ms)
        return from_stats(self._ask("GetStats", request, pb.SystemStats))

    def update_postprocess_config(self, model_id: str, config: str | Mapping[str, JSON]) -> None:
        """Change how a model's outputs are read, while it runs.

        Parameters
        ----------
        model_id : str
            Which model.
        config : str or mapping
            JSON, or what becomes JSON: ``{"detection_threshold": 0.4}``. Which keys there are is up to the
            runtime and the model.

        Raises
        ------
        SourceError
            If it is no JSON object.
        NotFoundError
            If the runtime does not know the model.
        RefusedError
            If it does not take the settings.
        PredSessionError
            Any other of those that `InferenceClient` lists.
        SessionClosedError
            If the client was closed.
        """
        try:
            text = config if isinstance(config, str) else json.dumps(config, allow_nan=False)
            whole = isinstance(json.loads(text), dict)
        except (TypeError, ValueError):
            whole = False
        if not whole:
            raise SourceError(f"config is no JSON object: {str(config)[:80]}")
        request = written(pb.UpdatePostprocessConfigRequest, model_id=model_id, config_json=text)
        reply = self._ask("UpdatePostprocessConfig", request, pb.UpdatePostprocessConfigResponse)
        if not reply.status.success:
            raise self._refused(reply.status, f"UpdatePostprocessConfig of {model_id!r}")

    def encode_text(self, text: str, *, timeout_ms: int = 5000) -> npt.NDArray[np.float32]:
        """Turn a text into a vector, to be compared with the vectors of pictures.

        Parameters
        ----------
        text : str
            The text.
        timeout_ms : int
            Milliseconds, as the wire has them.

        Returns
        -------
        (D,) float32 ndarray
            Read-only.

        Raises
        ------
        SourceError
            If the wire cannot hold the text, or `timeout_ms` is no time.
        NotFoundError
            If the runtime has no text encoder.
        RefusedError
            If the runtime says no, in its own words.
        PredSessionError
            Any other of those that `InferenceClient` lists.
        SessionClosedError
            If the client was closed.
        """
        seconds = seconds_of(timeout_ms)
        reply = self._ask(
            "EncodeText", written(pb.EncodeTextRequest, text=text), pb.EncodeTextResponse, seconds
        )
        # Runtimes leave `success` false here when all is well, and mean `code`.
        if reply.status.code or not reply.embedding.data:
            raise self._refused(reply.status, f"EncodeText (code {reply.status.code})")
        return from_embedding(reply.embedding).data
