"""`TensorSession`: named tensors through the models of a server."""

from __future__ import annotations

import contextlib
import logging
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from predsession.errors import SessionClosedError, SourceError, TransportError
from predsession.rpc.pipeline import Pipeline
from predsession.tensor.calling import Calling, Manner, Results
from predsession.tensor.containers import Data
from predsession.tensor.handles import ModelHandle, ModelsAsked, PathLike
from predsession.tensor.headers import veiled
from predsession.tensor.hosting import ServerHandle, init_server
from predsession.tensor.htensor import HTensor
from predsession.tensor.modelbook import ModelBook
from predsession.tensor.plan import OutputConfig, Plan, make_plan
from predsession.tensor.profile import Meter
from predsession.tensor.streaming import TensorStream
from predsession.tensor.views import SessionViews
from predsession.tensor.way import Way
from predsession.wire.oip.residency import COMPRESS, EXTENSION

log = logging.getLogger("predsession.tensor")
Inputs = Mapping[str, Data | HTensor]


class TensorSession(SessionViews):
    """Runs named tensors through models of a server; any thread may use it.

    Alone it finds the server, puts the models there, and lets both go at its end; with `model_handle` and
    `server` it uses what `init_model` and `init_server` made, and leaves it.

    Parameters
    ----------
    host : str or None
        ``"grpc://host:port"``, ``"http://host:port"``, ``"host"``.
    models : iterable of str or None
        Names of models that the server has; those that are not ready are loaded. Without any, and without
        `local_model_path`, all that are ready.
    local_model_path : path, iterable of paths, or None
        Models to be put on the server: ONNX files, or folders as in Triton's repository.
    frame_timeout : float
        Seconds that a call may take.
    with_profile : bool
        Whether times are taken, for `get_profile`. On a server that tells them by counters only, each call
        asks twice more.
    compress_option : str
        "NONE", "IN" (requests are compressed), "INOUT" (replies too).
    server_timeout : float
        **Minutes** for which our server keeps models and tensors once this process has died.
    core_id : int or iterable of int
        Which cores the models that are loaded may use; -1 for any.
    remote_environment : mapping of str to str or None
        What the models that are loaded are told.
    debug : bool
        Whether each call is logged at INFO, not at DEBUG.
    grpc_port : int or None
        The port, where `host` has none; 8001 by default.
    token : str or None
        The server's token.
    headers : mapping of str to str or None
        Sent along with every call.
    model_handle : ModelHandle or None
        From `init_model`.
    server : ServerHandle or None
        From `init_server`.

    Raises
    ------
    SourceError
        If something is wrong with these; nothing is left on the server.
    PredSessionError
        If the server cannot be reached, or refuses.
    """

    _shown: str | None = None

    def __init__(
        self,
        host: str | None = None,
        *,
        models: Iterable[str] | None = None,
        local_model_path: PathLike | Iterable[PathLike] | None = None,
        frame_timeout: float = 90.0,
        with_profile: bool = False,
        compress_option: str = "NONE",
        server_timeout: float = 5.0,
        core_id: int | Iterable[int] = -1,
        remote_environment: Mapping[str, str] | None = None,
        debug: bool = False,
        grpc_port: int | None = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        model_handle: ModelHandle | None = None,
        server: ServerHandle | None = None,
    ) -> None:
        token, headers = veiled(token, headers)
        if not isinstance(frame_timeout, int | float) or not 0 < frame_timeout < 1e9:
            raise SourceError(f"frame_timeout is {frame_timeout!r}; wanted seconds above 0")
        self._own: list[ModelHandle | ServerHandle] = []
        if host is None:
            handle = _shared(model_handle, server, local_model_path, models)
        else:
            if model_handle is not None or server is not None:
                raise SourceError("host goes without model_handle and server: these have an address already")
            asked = ModelsAsked.read(local_model_path, models, core_id, remote_environment=remote_environment)
            made = init_server(
                host,
                grpc_port=grpc_port,
                token=token,
                headers=headers,
                compress_option=compress_option,
                server_timeout=server_timeout,
            )
            self._own.append(made)
            try:
                handle = asked.on(made)
            except BaseException:
                made.close()
                raise
            self._own.insert(0, handle)
        self._open(handle, frame_timeout, with_profile=with_profile, debug=debug)

    def _open(self, handle: ModelHandle, seconds: float, *, with_profile: bool, debug: bool) -> None:
        """Learn what the models take and give."""
        handle.entered()
        self._handle = handle
        self._server = handle.server
        self._with_profile = with_profile
        self._pid = os.getpid()
        self._way = Way(self._server.residency)
        self._closed = False
        self._shown = f"{', '.join(handle.names)} on {handle.server!r}"
        self._finalizer = weakref.finalize(self, _close, self._way, handle, self._own, self._pid)
        try:
            facts = self._server.facts
            ours = EXTENSION in facts.extensions
            self._server.wait_ready(handle.names.values())
            self._book = ModelBook(self._server.door, handle.names, asks=not ours)
            manner = Manner(
                seconds,
                {COMPRESS: True} if ours and self._server.compresses_replies else {},
                timed=with_profile,
                tells=ours,
                level=logging.INFO if debug else logging.DEBUG,
            )
        except BaseException:
            self.close_server()
            raise
        self._seconds = seconds
        # Not a method of the session's own: nothing that a call needs may keep a forgotten session alive.
        self._calling = Calling(self._server.door, self._way, manner)
        self._meters = {name: Meter() for name in handle.names}

    # -- calls -----------------------------------------------------------------------------------------

    def __call__(
        self, data: Inputs, output_config: OutputConfig | None = None, model_name: str | None = None
    ) -> Results:
        """Run a model, and wait.

        Parameters
        ----------
        data : mapping of str to ndarray, torch.Tensor or HTensor
            By the input's name; NumPy's or torch's, not both.
        output_config : mapping or None
            Output name to ``{"device": ..., "key": ...}``: None is not sent back, "cpu" comes as `HTensor`,
            "server" stays there under its key, both in a list does both.
        model_name : str or None
            Which; needed where the session has several.

        Returns
        -------
        dict
            Output name to what the inputs were, an ndarray or a torch tensor; those of `output_config` as
            `HTensor`.

        Raises
        ------
        SourceError
            If data or configuration do not fit the model; nothing was sent.
        PredSessionError
            Whatever went wrong.
        SessionClosedError
            If the session was closed.
        """
        plan, meter = self._plan(data, output_config, model_name)
        return self._calling.call(plan, meter)

    def submit(
        self, data: Inputs, output_config: OutputConfig | None = None, model_name: str | None = None
    ) -> Future[Results]:
        """Run a model, and go on.

        Parameters
        ----------
        data, output_config, model_name
            As above. Arrays must not be changed until the future is done.

        Returns
        -------
        Future
            Of what a call returns; cancelling it cancels the call.

        Raises
        ------
        SourceError
            If data or configuration do not fit the model; nothing was sent.
        SessionClosedError
            If the session was closed.
        """
        plan, meter = self._plan(data, output_config, model_name)
        return self._calling.submit(plan, meter)

    def map(
        self,
        source: Iterable[Inputs],
        output_config: OutputConfig | None = None,
        model_name: str | None = None,
        *,
        depth: int = 4,
    ) -> Iterator[Results]:
        """Run a model over a source, several calls on their way at once.

        Parameters
        ----------
        source : iterable of mapping
            Each as `data` above; taken in a thread of its own.
        output_config, model_name
            As above, the same for all.
        depth : int
            How many calls are on their way at once.

        Returns
        -------
        iterator of dict
            In the source's order; leaving it cancels what is on its way.

        Raises
        ------
        SourceError
            If `depth` is not 1 or more.
        """
        if not isinstance(depth, int) or depth < 1:
            raise SourceError(f"depth is {depth!r}; wanted 1 or more")
        return iter(Pipeline(source, lambda data: self.submit(data, output_config, model_name), depth))

    def stream(
        self, data: Inputs, model_name: str | None = None, *, idle_timeout: float | None = None
    ) -> TensorStream:
        """Run a model that answers many times (a decoupled one); over gRPC only.

        Parameters
        ----------
        data : mapping of str to ndarray or torch.Tensor
            As above; nothing is kept on the server.
        model_name : str or None
            Which.
        idle_timeout : float or None
            Seconds between two answers; `frame_timeout` by default.

        Returns
        -------
        TensorStream
            An iterator of dicts; leaving or cancelling it ends the call on the server.

        Raises
        ------
        SourceError
            If data does not fit the model, or the session is over HTTP; nothing was sent.
        SessionClosedError
            If the session was closed.
        """
        plan, _ = self._plan(data, None, model_name)
        idle = self._seconds if idle_timeout is None else idle_timeout
        return TensorStream.opened(self._server.door, plan, self._server.facts, idle=idle)

    def _plan(self, data: Inputs, config: OutputConfig | None, model_name: str | None) -> tuple[Plan, Meter]:
        """Check a call."""
        self._check()
        name = self._book.name_of(model_name)
        facts = self._book.facts(name)
        try:
            plan = make_plan(
                facts,
                data,
                config,
                kept=self._calling.table.known(),
                optional=lambda: self._book.optional(name),
            )
        except TransportError:
            self._check()  # the connection that was asked for the inputs may have been closed meanwhile
            raise
        return plan, self._meters[name]

    def _check(self) -> None:
        """Refuse what comes after the end, or in another process."""
        if self._closed:
            raise SessionClosedError("close_server() has ended this session: open another")
        if self._pid != os.getpid():
            raise SessionClosedError(
                "this session belongs to the process that was forked: hand the handles of init_server() and "
                "init_model() to the other one, and open a session there"
            )
        if self._handle.closed:
            raise SessionClosedError(
                f"deinit_model() has let {', '.join(self._handle.names)} go, which comes after close_server()"
            )

    def forget(self, *keys: str) -> None:
        """Let tensors go that are kept on the server; all others stay.

        Parameters
        ----------
        *keys : str
            Which; a key that is not kept is passed over.

        Raises
        ------
        PredSessionError
            If the server cannot be told.
        """
        self._check()
        known = [key for key in keys if key in self._calling.table.known()]
        if known:
            turn = self._calling.table.enter((), dict.fromkeys(known), seconds=self._seconds)
            try:
                self._way.find().forget(known)
                self._calling.table.drop(known)
            finally:
                self._calling.table.leave(turn)

    # -- the end ---------------------------------------------------------------------------------------

    def close_server(self) -> None:
        """End the session, and let go what it made; it may be done twice."""
        self._closed = True
        self._finalizer()

    close = close_server

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the session."""
        self.close_server()

    def __repr__(self) -> str:
        """Return which models, where."""
        if self._shown is None:  # in a traceback of its opening, with the values of variables
            return "<TensorSession, not open>"
        state = ", closed" if self._closed else ""
        return f"<TensorSession {self._shown}{state}>"


def _shared(
    handle: ModelHandle | None, server: ServerHandle | None, local: object, models: object
) -> ModelHandle:
    """Return the handle of a session that uses what others made."""
    if not isinstance(handle, ModelHandle):
        raise SourceError("a session needs a host, or the model_handle of init_model()")
    if server is not None and server is not handle.server and repr(server) != repr(handle.server):
        raise SourceError(f"model_handle is on {handle.server!r}, and server is {server!r}")
    if local is not None or models is not None:
        raise SourceError("model_handle has its models: leave out local_model_path and models")
    return handle


def _close(way: Way, handle: ModelHandle, own: Iterable[ModelHandle | ServerHandle], pid: int) -> None:
    """Let everything go, in the process that has it; whatever happens to one, the others go too."""
    if os.getpid() != pid:
        return
    with contextlib.ExitStack() as stack:
        for each in reversed(list(own)):
            stack.callback(each.close)
        stack.callback(handle.left)
        stack.callback(way.close)
