"""The client's calls about models, sessions, settings and counters.

Parameters have the order of the platform's own client, so that calls written for it mean the same here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt

from predsession.edge.base import Connected, check_priority, seconds_of
from predsession.edge.endpoint import host_path
from predsession.edge.models import (
    ModelInfo,
    SystemStats,
    TensorSpec,
    from_model_info,
    from_stats,
    to_specs,
)
from predsession.errors import NotFoundError, ProtocolError, SourceError
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.findings import from_embedding
from predsession.wire.edge.writing import written
from predsession.wire.jsontypes import JSON

REGISTER_SECONDS = 120.0


class Managing(Connected):
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
            Folder of this container to folder of the host; see `predsession.edge.endpoint.host_path`.

        Returns
        -------
        str
            What the runtime calls it.

        Raises
        ------
        SourceError
            If a tensor's description lacks something, has an unknown key, or a dtype that the wire lacks; if
            the wire cannot hold something.
        PredSessionError
            The runtime's "no" (`predsession.edge.refusals`), or what went wrong on the way.
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
        PredSessionError
            The runtime's "no" (`predsession.edge.refusals`), or what went wrong on the way.
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
            Whatever else went wrong.
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
        """
        request = written(pb.GetStatsRequest, sampling_window_ms=sampling_window_ms)
        return from_stats(self._ask("GetStats", request, pb.SystemStats))

    def create_session(
        self,
        session_id: str = "",
        app_id: str = "",
        allowed_models: Iterable[str] = (),
        max_qps: int = 0,
        max_concurrent: int = 0,
        priority: int = 4,
    ) -> str:
        """Open a session with limits of its own.

        Parameters
        ----------
        session_id : str
            What it should be called; many a runtime chooses a name of its own.
        app_id : str
            Whose it is.
        allowed_models : iterable of str
            The models it may use; all if there are none.
        max_qps : int
            Calls a second; 0 for no limit.
        max_concurrent : int
            Calls at once; 0 for no limit.
        priority : int
            0 to 7, 7 first.

        Returns
        -------
        str
            What it is called: use this one.

        Raises
        ------
        SourceError
            If `allowed_models` is one text, `priority` not 0 to 7, or the wire cannot hold something.
        ProtocolError
            If no id came back.
        PredSessionError
            The runtime's "no" (`predsession.edge.refusals`), or what went wrong on the way.
        SessionClosedError
            If the client was closed.
        """
        if isinstance(allowed_models, str):
            raise SourceError("allowed_models is one text; wanted a list of ids")
        request = written(
            pb.SessionConfig,
            session_id=session_id,
            app_id=app_id,
            allowed_models=list(allowed_models),
            max_qps=max_qps,
            max_concurrent=max_concurrent,
            priority=check_priority(priority),
        )
        reply = self._ask("CreateSession", request, pb.SessionCreateResponse)
        if not reply.status.success:
            raise self._refused(reply.status, f"CreateSession {session_id!r}")
        if not reply.session_id:
            raise ProtocolError(f"CreateSession at {self.endpoint}: no id came back", url=self.endpoint)
        return reply.session_id

    def destroy_session(self, session_id: str) -> None:
        """Close a session.

        Parameters
        ----------
        session_id : str
            As `create_session` returned it.

        Raises
        ------
        PredSessionError
            The runtime's "no" (`predsession.edge.refusals`), or what went wrong on the way.
        SessionClosedError
            If the client was closed.
        """
        reply = self._ask("DestroySession", written(pb.SessionConfig, session_id=session_id), pb.Status)
        if not reply.success:
            raise self._refused(reply, f"DestroySession {session_id!r}")

    @contextmanager
    def edge_session(
        self,
        session_id: str = "",
        app_id: str = "",
        allowed_models: Iterable[str] = (),
        max_qps: int = 0,
        max_concurrent: int = 0,
        priority: int = 4,
    ) -> Iterator[str]:
        """Open a session for a ``with`` block, and close it at its end, whichever it is.

        Parameters
        ----------
        session_id : str
            What it should be called.
        app_id : str
            Whose it is.
        allowed_models : iterable of str
            The models it may use.
        max_qps : int
            Calls a second.
        max_concurrent : int
            Calls at once.
        priority : int
            0 to 7, 7 first.

        Yields
        ------
        str
            What the runtime calls it: for ``session_id=`` of the other calls.
        """
        name = self.create_session(
            session_id,
            app_id,
            allowed_models=allowed_models,
            max_qps=max_qps,
            max_concurrent=max_concurrent,
            priority=priority,
        )
        try:
            yield name
        except BaseException as first:
            try:
                self.destroy_session(name)
            except Exception as error:  # noqa: BLE001 - the first error is the one to see
                first.add_note(f"and the session {name!r} could not be closed: {error}")
            raise
        self.destroy_session(name)

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
        PredSessionError
            The runtime's "no" (`predsession.edge.refusals`), or what went wrong on the way.
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
        PredSessionError
            `RefusedError` with the runtime's words; `NotFoundError` if it has no text encoder.
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
