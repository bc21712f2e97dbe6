"""`PredictionSession`: what the caller touches.

Invariants: the pipeline never knows the session, so a session that is forgotten is collected, and what it
left on the server is ended then. All that shows progress happens on the caller's own thread.
"""

from __future__ import annotations

import inspect
import os
import secrets
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from predsession.checks import (
    URL_VARIABLE,
    Api,
    OnError,
    check_connection,
    check_count,
    check_on_error,
    check_seconds,
    check_token,
    encoding_for,
    limits,
    listed,
    project_of,
    retry_policy,
    tracking_of,
    url_of_environment,
)
from predsession.courses import plan
from predsession.errors import SourceError
from predsession.http.auth import Secret, find_token
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.jobs.attachment import Attachment
from predsession.jobs.pipeline import Pipeline
from predsession.jobs.shared import PipelineOptions, Shared
from predsession.options import (
    FRAME_NAMES,
    ID_OPTIONS,
    ID_SOURCES,
    check_keywords,
    check_one_source,
    merge_settings,
    take_keywords,
)
from predsession.progress import (
    Bar,
    NoProgress,
    TqdmProgress,
)
from predsession.showing import Showcase
from predsession.taking import SessionTaking
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.submits import SubmitOptions

if TYPE_CHECKING:
    from predsession.jobs.journal import Journal
    from predsession.launch import EmbeddedServer
    from predsession.tracks import TrackBook


class PredictionSession(SessionTaking):
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
    start_timeout : float, optional
        Seconds after which a job that has not begun to run is given up; by default `idle_timeout` says it
        all.
    total_timeout : float, optional
        Seconds after which the whole run is given up.
    resume : str or PathLike, optional
        A journal: a file in which every prediction is kept before it is yielded. A run that finds it sends
        only what is not in it; a file that has changed (path, size, time) is sent again. It belongs to one
        model and one choice of settings.
    replay : bool
        Whether what the journal has is yielded again, in its place, or left out.
    restart : bool
        Whether the journal is begun anew.
    max_pixels : int, optional
        Larger images are item errors.
    encoding : str, optional
        How arrays, PIL images and files that servers read differently travel: ``"webp"``, ``"png"`` and
        ``"bmp"`` lose nothing; ``"jpeg"``, ``"jpeg:90"`` and ``"webp:80"`` do. By default a bitmap to a
        server on this machine, else lossless WebP.
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
    JournalError
        If the journal is in use by another run, or belongs to other settings; if it belongs to another model,
        that is raised by the first prediction.

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
        start_timeout: float | None = None,
        total_timeout: float | None = None,
        resume: str | os.PathLike[str] | None = None,
        replay: bool = True,
        restart: bool = False,
        max_pixels: int | None = None,
        encoding: str | None = None,
        **model_settings: object,
    ) -> None:
        loose = dict(model_settings)
        sources = take_keywords(loose, ("input", *ID_SOURCES), locals())
        frames = take_keywords(loose, FRAME_NAMES)
        id_options = take_keywords(loose, ID_OPTIONS)
        check_one_source(sources)
        check_keywords(loose, inspect.signature(PredictionSession.__init__).parameters)
        named: dict[str, JSON] = {"conf": conf, "classes": listed(classes)}
        merged = merge_settings((settings, inference_settings), named, loose)
        connection = check_connection(ConnectionOptions(connect_timeout, timeout, verify, cert, proxies))
        options = PipelineOptions(
            SubmitOptions(_session_id(input), merged, check_count("batch_size", batch_size)),
            connection,
            retry_policy(api),
            limits(max_pixels),
            encoding_for(url or url_of_environment(), encoding),
            check_seconds("idle_timeout", idle_timeout),
            None if start_timeout is None else check_seconds("start_timeout", start_timeout),
            None if total_timeout is None else check_seconds("total_timeout", total_timeout),
        )
        token = check_token(find_token(token, getattr(api, "token", None), explicit_url=url))
        self._input = input
        self._settings = merged
        self._on_error = check_on_error(on_error)
        self._errors = []
        self._shown = Showcase()
        may_track = tracking or tracking_config or isinstance(input, Attachment)
        self._book = _track_book() if may_track else None
        config = tracking_of(tracking, tracking_config)
        self._plan = plan(
            sources,
            frames=frames,
            id_options=id_options,
            recursive=recursive,
            tracking=config,
            project_of=lambda dataset: project_of(dataset, api, url=url, token=token, options=connection),
        )
        self._progress = TqdmProgress(tqdm, desc=self._plan.description) if show_progress else NoProgress()
        journal = self._journal(resume, config, replay=replay, restart=restart)
        self._open(url, token, options, journal)

    def _journal(
        self,
        path: str | os.PathLike[str] | None,
        tracking: JSONObject | None,
        *,
        replay: bool,
        restart: bool,
    ) -> Journal | None:
        """Open the journal, and make sure that it belongs to these settings."""
        if path is None:
            if restart or not replay:
                raise SourceError("replay= and restart= are for a journal: pass resume= as well")
            return None
        from predsession.jobs.journal import Journal

        if self._plan.not_kept:
            raise SourceError(f"resume= is not for {self._plan.description}: {self._plan.not_kept}")
        journal = Journal(path, replay=replay, restart=restart)
        try:
            journal.bind({**self._settings, "tracking": tracking}, "settings")
        except BaseException:
            journal.close()
            raise
        return journal

    def _open(
        self, url: str | None, token: str | None, options: PipelineOptions, journal: Journal | None
    ) -> None:
        """Start the pipeline, and see to it that it ends when the session is forgotten."""
        self._server: EmbeddedServer | None = None
        try:
            named = url or url_of_environment()
            self._server = None if named else _embedded_server()
            self._url = Secret(self._server.url if self._server else named or "")
            transport = HttpTransport(self._url, token=token, options=options.connection)
            lost = self._server.lost if self._server else None
            shared = Shared(transport, options, lost=lost, journal=journal)
            self._pipeline = Pipeline(shared, self._plan.make(shared, self._url, token))
        except BaseException:
            if self._server is not None:
                self._server.stop()
            if journal is not None:
                journal.close()
            raise
        self._finalizer = weakref.finalize(self, _let_go, self._pipeline, self._server)
        self._pipeline.start()

    @classmethod
    def attach(
        cls,
        url: str,
        session_id: str | None = None,
        *,
        uuid: str | None = None,
        api: Api | None = None,
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
        total_timeout: float | None = None,
    ) -> Self:
        """Go on with jobs that are there already: of a session that was left, or whose process died.

        A server with the extension keeps what the first process had not dealt with, and says where each
        result's input stood (`Prediction.index`); for names and paths look there in your own source. What had
        not been sent is on no server: `resume=` is for that. Of a stock server one job can be read on by its
        uuid: what was popped before is gone, which a `ResultsGoneWarning` says.

        Parameters
        ----------
        url : str
            The server's base URL.
        session_id : str, optional
            `session_id` of the session that began: all its jobs.
        uuid : str, optional
            One job, instead.
        api, on_error, show_progress, tqdm, token, timeout, connect_timeout, verify, cert, proxies
            As for a session.
        idle_timeout, total_timeout
            As for a session.

        Returns
        -------
        PredictionSession
            Of what is left. It ends the jobs as any session does.

        Raises
        ------
        SourceError
            If neither, or both, of session and job were named.

        Notes
        -----
        The first prediction raises `JobExpiredError` if the server knows no such session or job.
        """
        return cls(
            url,
            Attachment(session_id, uuid),
            api=api,
            on_error=on_error,
            show_progress=show_progress,
            tqdm=tqdm,
            token=token,
            timeout=timeout,
            connect_timeout=connect_timeout,
            verify=verify,
            cert=cert,
            proxies=proxies,
            idle_timeout=idle_timeout,
            total_timeout=total_timeout,
        )


def _track_book() -> TrackBook:
    """Return an empty book of tracks."""
    from predsession.tracks import TrackBook

    return TrackBook()


def _embedded_server() -> EmbeddedServer:
    """Start a server for one session."""
    from predsession.launch import EmbeddedServer

    return EmbeddedServer(purpose=f"Running without a server's URL (url=, --url, {URL_VARIABLE})")


def _session_id(source: object) -> str:
    """Return the id to work under: a new one, or that of the session whose jobs are gone on with."""
    return source.session if isinstance(source, Attachment) and source.session else secrets.token_hex(16)


def _let_go(pipeline: Pipeline, server: EmbeddedServer | None) -> None:
    """End everything that a session holds; must not know the session itself."""
    try:
        pipeline.close()
    finally:
        if server is not None:
            server.stop()
