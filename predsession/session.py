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
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from predsession.errors import ItemError, JobTimeoutError, SessionClosedError, SourceError
from predsession.http.auth import find_token, show_url
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.inputs.images import ImageLimits
from predsession.inputs.sources import open_source
from predsession.jobs.batch import Outcome
from predsession.jobs.counters import Report
from predsession.jobs.images import ImageCourse
from predsession.jobs.pipeline import Pipeline
from predsession.jobs.shared import PipelineOptions, Shared
from predsession.launch import EmbeddedServer
from predsession.options import (
    ID_SOURCES,
    Api,
    OnError,
    check_keywords,
    check_one_source,
    listed,
    merge_settings,
    retry_policy,
)
from predsession.progress import (
    Bar,
    NoProgress,
    Progress,
    SessionProgress,
    SessionStatus,
    TqdmProgress,
)
from predsession.steps import AsyncSteps
from predsession.wire.calls import SubmitOptions
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.meta import ModelMeta
from predsession.wire.stages import Stage

URL_VARIABLE = "PREDSESSION_URL"
"""The environment variable that names the server where no url is passed."""


class PredictionSession:
    """Runs a source through a deployed model; iterate it for the predictions. Starts at once.

    Use it as a context manager, or iterate it to its end, or call `close`: each ends what is left on the
    server. So does forgetting it.

    Parameters
    ----------
    url : str, optional
        The server's base URL; by default the environment's ``PREDSESSION_URL``; without that, an embedded
        server is started for this session (extra ``server``).
    input : array, PIL image, bytes, str, PathLike, or list of them
        What to run: a (H, W) or (H, W, 1|3|4) uint8 RGB array, a PIL image, an encoded image, a path, an
        http(s) URL of an image, a folder, a Supervisely project folder, or a list that mixes any of them.
    image_id, video_id, dataset_id, project_id : int, optional
        The ancestor's other sources; not supported yet.
    api : Api, optional
        An object with ``token`` and ``retry_count``.
    tracking, tracking_config
        For videos; not supported yet.
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
        More of the model's settings.

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
        plural = {name: model_settings.pop(name, None) for name in ID_SOURCES}
        singular = {
            "image_id": image_id,
            "video_id": video_id,
            "dataset_id": dataset_id,
            "project_id": project_id,
        }
        check_one_source({"input": input, **plural, **{k: v for k, v in singular.items() if v is not None}})
        check_keywords(model_settings, inspect.signature(PredictionSession.__init__).parameters)
        if tracking or tracking_config:
            raise SourceError("tracking needs a video, and videos are not supported yet")
        if on_error not in ("raise", "skip", "yield"):
            raise ValueError(f"on_error must be 'raise', 'skip' or 'yield', not {on_error!r}")
        merged = merge_settings(
            (settings, inference_settings), {"conf": conf, "classes": listed(classes)}, model_settings
        )
        self._input = input
        self._settings = merged
        self._on_error = on_error
        self._errors: list[ItemError] = []
        self._taken = 0
        self._ended = self._closed = False
        self._steps = AsyncSteps()
        self._source = open_source(input, recursive=recursive)
        self._progress: Progress = (
            TqdmProgress(tqdm, desc=self._source.description) if show_progress else NoProgress()
        )
        connection = ConnectionOptions(connect_timeout, timeout, verify, cert, proxies)
        options = PipelineOptions(
            SubmitOptions(uuids.uuid4().hex, merged, batch_size),
            connection,
            retry_policy(api),
            ImageLimits() if max_pixels is None else ImageLimits(max_pixels),
            idle_timeout,
        )
        self._server = None if url or os.environ.get(URL_VARIABLE) else EmbeddedServer()
        self._open(url, find_token(token, getattr(api, "token", None), explicit_url=url), options)

    def _open(self, url: str | None, token: str | None, options: PipelineOptions) -> None:
        """Start the pipeline, and see to it that it ends when the session is forgotten."""
        self._url = self._server.url if self._server else url or os.environ[URL_VARIABLE]
        try:
            transport = HttpTransport(self._url, token=token, options=options.connection)
            shared = Shared(transport, options)
            self._pipeline = Pipeline(shared, ImageCourse(shared, self._source))
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
        outcome = self._take(timeout if block else 0.0)
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
                self.close()
                raise outcome

    def _take_any(self, timeout: float | None) -> Outcome | None:
        """Return the next outcome, None at the end; any error closes the session."""
        if self._ended:
            return None
        if self._closed:
            raise SessionClosedError("the session is closed; open a new one to run the rest")
        try:
            outcome = self._pipeline.shared.outlet.get(timeout, self._show)
        except queue.Empty:
            raise JobTimeoutError(f"no prediction arrived within {timeout:g} s; the job goes on") from None
        except BaseException:
            self.close()
            raise
        if outcome is None:
            self._ended = True
            self.close()
        else:
            self._taken += 1
            self._pipeline.shared.counters.add(
                "item_errors" if isinstance(outcome, ItemError) else "predictions"
            )
            self._show()
        return outcome

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Outcome:
        return self.next()

    def __len__(self) -> int:
        return len(self._source)

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
        self._finalizer()
        self._progress.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    # Looking.

    def is_done(self) -> bool:
        """Return whether every outcome has arrived, or the session was stopped."""
        return self._pipeline.shared.outlet.ended

    def progress(self) -> SessionProgress:
        """Return how far the session is, all its jobs together; asks no server."""
        counters, state = self._pipeline.shared.counters, self._pipeline.shared.state
        return SessionProgress(
            done=self._pipeline.shared.outlet.passed,
            total=len(self._source),
            stage=state.stage_text if state else Stage.PREPARING.value,
            taken=self._taken,
            bytes_sent=counters.get("bytes_sent"),
            bytes_total=counters.get("bytes_begun"),
        )

    def status(self) -> SessionStatus:
        """Return where the session stands; asks no server."""
        return SessionStatus(
            progress=self.progress(),
            uuid=self._pipeline.shared.uuid or next(iter(self._pipeline.shared.ledger.live), None),
            jobs=self._pipeline.shared.ledger.live,
            item_errors=len(self._errors),
            is_done=self.is_done(),
            closed=self._closed,
        )

    def report(self) -> Report:
        """Return what was counted so far: items, predictions, errors, jobs, retries, bytes, seconds."""
        return self._pipeline.report()

    @property
    def errors(self) -> tuple[ItemError, ...]:
        """The item errors so far."""
        return tuple(self._errors)

    @property
    def input(self) -> object:
        """What the caller handed in."""
        return self._input

    @property
    def settings(self) -> JSONObject:
        """The model's settings, as they are sent."""
        return dict(self._settings)

    @property
    def model_meta(self) -> ModelMeta:
        """The model's classes and tags; waits for the server's answer."""
        return self._pipeline.shared.facts.meta()

    @property
    def inference_request_uuid(self) -> str | None:
        """The current job's uuid; waits for the first. None if nothing had to be sent."""
        self._pipeline.wait_for_job()
        return self.status().uuid

    @property
    def final_result(self) -> JSON:
        """The final result of the session's only job that has one, or the list of them; else None."""
        finals = self._pipeline.course.finals
        return finals[0] if len(finals) == 1 else list(finals) or None

    def __repr__(self) -> str:
        progress = self.progress()
        done = f"{progress.done}/{progress.total}"
        return f"PredictionSession({show_url(self._url)!r}, {self._source.description}, {done} done)"

    def _show(self) -> None:
        """Bring the bar up to date."""
        self._progress.update(self.progress())


def _let_go(pipeline: Pipeline, server: EmbeddedServer | None) -> None:
    """End everything that a session holds; must not know the session itself."""
    try:
        pipeline.close()
    finally:
        if server is not None:
            server.stop()
