"""The client's calls about sessions of a runtime: callers with limits of their own.

Parameters have the order of the platform's own client, so that calls written for it mean the same here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from predsession.edge.base import Connected, check_priority
from predsession.errors import ProtocolError, SourceError
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.writing import written


class Admitting(Connected):
    """Opens and closes sessions."""

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
        RefusedError
            If the runtime says no, in its own words.
        PredSessionError
            Any other of those that `InferenceClient` lists.
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
        NotFoundError
            If the runtime does not know it.
        PredSessionError
            Any other of those that `InferenceClient` lists.
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
        session_id, app_id : str
            As for `create_session`.
        allowed_models : iterable of str
            As there.
        max_qps, max_concurrent, priority : int
            As there.

        Yields
        ------
        str
            What the runtime calls it: for ``session_id=`` of the other calls.

        Raises
        ------
        SourceError
            As for `create_session`.
        PredSessionError
            As for `create_session`; or if it cannot be closed, where the block ended well.
        SessionClosedError
            If the client was closed.
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
