"""`PredictionSession`: what the caller touches.

Invariants: the pipeline never knows the session, so a session that is forgotten is collected, and what it
left on the server is ended then. All that shows progress happens on the caller's own thread.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import queue
import uuid as uuids
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from predsession.checks import (
    URL_VARIABLE,
    Api,
    OnError,
    check_connection,
    check_count,
    check_on_error,
    check_seconds,
    check_token,
    limits,
    listed,
    project_of,
    retry_policy,
    tracking_of,
)
from predsession.courses import plan
from predsession.errors import ItemError, JobTimeoutError, SessionClosedError
from predsession.http.auth import find_token
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.jobs.batch import Outcome
from predsession.jobs.pipeline import Pipeline, note_failures
from predsession.jobs.shared import PipelineOptions, Shared
from predsession.launch import EmbeddedServer
from predsession.options import (
    FRAME_NAMES,
    ID_OPTIONS,
    ID_SOURCES,
    check_keywords,
    check_one_source,
    merge_settings,
    take_keywords,
)
from predsession.prediction import Prediction
from predsession.progress import (
    Bar,
    NoProgress,
    Progress,
    TqdmProgress,
)
from predsession.steps import AsyncSteps
from predsession.tracks import TrackBook
from predsession.views import SessionViews
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.submits import SubmitOptions


class PredictionSession(SessionViews):
    """Runs a source through a deployed model; iterate it for the predictions. Starts at once.

    Use it as a context manager, or iterate it to its end, or call `close`: each ends what is left on the
    server. So does forgetting it.

    Parameters
    ----------
    url : str, optional
        The server's base URL; by default the environment's ``PREDSESSION_URL``; without that, an embedded
        server is started for this session (extra ``server``).
    input : array, PIL image, bytes, str, PathLike, list of them, or iterator
        What to run: a (H, W) or (H, W, 1|3|4) uint8 RGB array, a PIL image, an encoded image, a path, an
        http(s) URL of an image, a folder, a Supervisely project folder, or a list that mixes any of them; a
        video file or a list of those; an iterator of images, taken lazily, whose length is not known.
    image_id, video_id, dataset_id, project_id : int or sequence of int, optional
        What the server itself knows: images, one video, datasets of one project, or one project; also under
        the names ``image_ids`` and so on.
    api : Api, optional
        An object with ``token`` and ``retry_count``.
    tracking : bool, optional
        Whether the objects of a video are tracked: see `Prediction.track_ids` and `tracks`.
    tracking_config : mapping, optional
        ``tracker``, one of the server's, and the tracker's own settings; implies `tracking`.
    recursive : bool
        Whether the subfolders of a folder are looked into.
    conf : float, optional
        The model's setting of that name: the lowest score.
    classes : sequence of str, optional
        The model's setting of that name: the classes to keep.
    settings, inference_settings : mapping, optional
        More of the model's settings.
    batch_size : int, optional
        Images that the model takes at once.
    on_error : {"raise", "skip", "yield"}
        What an input that cannot be read, or is refused, does: raise its `ItemError` after everything
        before it has been yielded, and close; be left out (see `errors`); or come as its `ItemError`, which
        is falsy, in its place.
    show_progress : bool
        Whether to show a bar.
    tqdm : callable or bar, optional
        What makes the bar, or the bar itself.
    token : str, optional
        For the server; by default ``api.token`` or the environment's ``PREDSESSION_TOKEN``.
    timeout : float
        Seconds to wait for an answer.
    connect_timeout : float
        Seconds to wait for a connection, and for a block of an upload to be taken.
    verify : bool or str
        Whether to check certificates, or the path of a CA bundle.
    cert : str or tuple of str, optional
        A client certificate.
    proxies : mapping, optional
        Proxy by scheme.
    idle_timeout : float
        Seconds without any change after which a job is given up.
    max_pixels : int, optional
        Larger images are item errors.
    **model_settings : str, int, float or bool
        For videos ``start_frame``, ``num_frames``, ``end_frame`` (exclusive), ``duration`` (seconds),
        ``stride`` and ``direction``; for ids ``upload_mode``, ``iou_merge_threshold``, ``output_project_id``,
        ``cache_project_on_model`` and ``model_prediction_suffix``. All others are the model's settings.

    Raises
    ------
    SourceError
        If the source is missing, doubled, empty, or of a kind that is not supported.
    TypeError
        For a keyword that is neither ours nor fit to be a setting.
    ConnectError
        If `url` is no URL, or the embedded server does not start.
    MissingExtraError
        If there is no server to use, and none can be started.

    Examples
    --------
    >>> with PredictionSession("http://127.0.0.1:8000", "photos/", conf=0.4) as session:  # doctest: +SKIP
    ...     for prediction in session:
    ...         print(prediction.name, prediction.classes, prediction.boxes)
    """

    def __init__(
        self,
        url: str | None = None,
        input: object = None,  # noqa: A002 - the ancestor's name
        image_id: int | Sequence[int] | None = None,
        video_id: int | Sequence[int] | None = None,
        dataset_id: int | Sequence[int] | None = None,
        project_id: int | Sequence[int] | None = None,
        api: Api | None = None,
        tracking: bool | None = None,
        tracking_config: Mapping[str, JSON] | None = None,
        *,
        recursive: bool = False,
        conf: float | None = None,
        classes: Sequence[str] | None = None,
        settings: JSONObject | None = None,
        inference_settings: JSONObject | None = None,
        batch_size: int | None = None,
        on_error: OnError = "raise",
        show_progress: bool = False,
        tqdm: Callable[..., Bar] | Bar | None = None,
        token: str | None = None,
        timeout: float = 60.0,
        connect_timeout: float = 10.0,
        verify: bool | str = True,
        cert: str | tuple[str, str] | None = None,
        proxies: Mapping[str, str] | None = None,
        idle_timeout: float = 600.0,
        max_pixels: int | None = None,
        **model_settings: object,
    ) -> None:
        loose = dict(model_settings)
        sources = take_keywords(loose, ("input", *ID_SOURCES), locals())
        frames = take_keywords(loose, FRAME_NAMES)
        id_options = take_keywords(loose, ID_OPTIONS)
        check_one_source(sources)
        check_keywords(loose, inspect.signature(PredictionSession.__init__).parameters)
        merged = merge_settings(
            (settings, inference_settings), {"conf": conf, "classes": listed(classes)}, loose
        )
        connection = check_connection(ConnectionOptions(connect_timeout, timeout, verify, cert, proxies))
        options = PipelineOptions(
            SubmitOptions(uuids.uuid4().hex, merged, check_count("batch_size", batch_size)),
            connection,
            retry_policy(api),
            limits(max_pixels),
            check_seconds("idle_timeout", idle_timeout),
        )
        token = check_token(find_token(token, getattr(api, "token", None), explicit_url=url))
        self._input = input
        self._settings = merged
        self._on_error = check_on_error(on_error)
        self._errors: list[ItemError] = []
        self._taken = 0
        self._ended = self._closed = False
        self._first_error: BaseException | None = None
        self._steps = AsyncSteps()
        self._book = TrackBook() if tracking or tracking_config else None
        self._plan = plan(
            sources,
            frames=frames,
            id_options=id_options,
            recursive=recursive,
            tracking=tracking_of(tracking, tracking_config),
            project_of=lambda dataset: project_of(dataset, api, url=url, token=token, options=connection),
        )
        self._progress: Progress = (
            TqdmProgress(tqdm, desc=self._plan.description) if show_progress else NoProgress()
        )
        self._server = None if url or os.environ.get(URL_VARIABLE) else EmbeddedServer()
        self._open(url, token, options)

    def _open(self, url: str | None, token: str | None, options: PipelineOptions) -> None:
        """Start the pipeline, and see to it that it ends when the session is forgotten."""
        self._url = self._server.url if self._server else url or os.environ[URL_VARIABLE]
        try:
            transport = HttpTransport(self._url, token=token, options=options.connection)
            shared = Shared(transport, options, lost=self._server.lost if self._server else None)
            self._pipeline = Pipeline(shared, self._plan.make(shared, self._url, token))
        except BaseException:
            if self._server is not None:
                self._server.stop()
            raise
        self._finalizer = weakref.finalize(self, _let_go, self._pipeline, self._server)
        self._pipeline.start()

    # Iterating.

    def next(self, *, timeout: float | None = None, block: bool = True) -> Outcome:
        """Return the next prediction.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait; by default as long as it takes. Its expiry stops nothing: ask again.
        block : bool
            False returns what is there, or raises at once.

        Returns
        -------
        Prediction or ItemError
            An `ItemError` only with ``on_error="yield"``.

        Raises
        ------
        StopIteration
            After the last one.
        JobTimeoutError
            If none came within `timeout`.
        ItemError
            With ``on_error="raise"``, for an input that cannot be read or was refused.
        JobFailedError, MissingResultsError, TransportError, ResponseError
            If the run cannot go on. Everything before it has been returned then.
        SessionClosedError
            If the session was closed before its end.
        """
        wait = None if timeout is None else check_seconds("timeout", timeout, least=0.0)
        try:
            outcome = self._take(wait if block else 0.0)
        except queue.Empty:
            raise JobTimeoutError(f"no prediction arrived within {wait or 0:g} s; the job goes on") from None
        if outcome is None:
            raise StopIteration
        return outcome

    def _take(self, timeout: float | None) -> Outcome | None:
        """Return the next outcome that the caller should see, None at the end."""
        while True:
            outcome = self._take_any(timeout)
            if not isinstance(outcome, ItemError):
                return outcome
            self._errors.append(outcome)
            if self._on_error == "yield":
                return outcome
            if self._on_error == "raise":
                self._fail(outcome)
                raise outcome

    def _take_any(self, timeout: float | None) -> Outcome | None:
        """Return the next outcome, None at the end; any error closes the session."""
        if self._ended:
            return None
        if self._closed:
            raise self._closed_error()
        try:
            outcome = self._pipeline.shared.outlet.get(timeout, self._show)
        except queue.Empty:
            raise
        except BaseException as error:
            self._fail(error)
            raise
        if outcome is None and self._closed:
            raise self._closed_error()  # closed from another thread, while this one was waiting
        if outcome is None:
            self._ended = True
            self.close()
        else:
            self._taken += 1
            kind = "item_errors" if isinstance(outcome, ItemError) else "predictions"
            self._pipeline.shared.counters.add(kind)
            if self._book is not None and isinstance(outcome, Prediction):
                self._book.add(outcome)
        try:
            self._show()
        except BaseException as error:  # the caller's own bar, or a warning that is an error
            self._fail(error)
            raise
        return outcome

    def _fail(self, error: BaseException) -> None:
        """Close because of an error, which later calls will name as their cause."""
        self._first_error = error
        self._close_after(error)

    def _closed_error(self) -> SessionClosedError:
        """Make the error for a session that is asked for more."""
        error = SessionClosedError("the session is closed; open a new one to run the rest")
        error.__cause__ = self._first_error
        return error

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Outcome:
        return self.next()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Outcome:
        return await self._steps.next(self._take)

    # Ending.

    def stop(self) -> None:
        """End the work, on the server too. What has arrived can still be iterated. Idempotent."""
        self._pipeline.stop()

    def close(self) -> None:
        """Stop, and let go of everything. Idempotent."""
        self._closed = True
        try:
            self._finalizer()
        finally:
            self._progress.close()

    def _close_after(self, error: BaseException | None) -> None:
        """Close; an error that is on its way stays the one that is raised, what follows is noted on it."""
        try:
            self.close()
        except Exception as other:
            if error is None:
                raise
            error.add_note(f"while closing: {type(other).__name__}: {other}")
        if error is not None:
            note_failures(error, self._pipeline.shared.ledger)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_after(error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._close_after, error)

    def _show(self) -> None:
        """Bring the bar up to date, and warn of what there is to be warned of."""
        self._progress.update(self.progress())
        while self._pipeline.shared.warnings:
            warnings.warn(self._pipeline.shared.warnings.popleft(), stacklevel=4)


def _let_go(pipeline: Pipeline, server: EmbeddedServer | None) -> None:
    """End everything that a session holds; must not know the session itself."""
    try:
        pipeline.close()
    finally:
        if server is not None:
            server.stop()
