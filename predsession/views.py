"""What can be seen of a session: progress, status, figures, what it was given. Asks no server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from predsession.checks import OnError
from predsession.courses import Plan
from predsession.errors import ItemError
from predsession.http.auth import show_url
from predsession.jobs.counters import Report
from predsession.jobs.pipeline import Pipeline
from predsession.progress import SessionProgress, SessionStatus
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.meta import ModelMeta
from predsession.wire.stages import Stage

if TYPE_CHECKING:
    from predsession.showing import Showcase
    from predsession.tracks import Track, TrackBook


class SessionViews:
    """The part of a session that only looks; `PredictionSession` sets its attributes."""

    _url: str
    _plan: Plan
    _pipeline: Pipeline
    _input: object
    _settings: dict[str, JSON]
    _on_error: OnError
    _errors: list[ItemError]
    _taken: int = 0
    _ended: bool = False
    _closed: bool = False
    _first_error: BaseException | None = None
    _book: TrackBook | None
    _shown: Showcase

    def _root(self) -> str | None:
        """Return the folder that the input's paths have in common."""
        from predsession.export.places import common_folder

        return common_folder(self._given())

    def _given(self) -> Sequence[object]:
        """Return what was handed in, one by one; an iterator, whose inputs are not known yet, is one."""
        return self._input if isinstance(self._input, list | tuple) else [self._input]

    def __len__(self) -> int:
        total = self._pipeline.known_total()
        if total is None:
            raise TypeError(f"the length of {self._plan.description} is not known")
        return total

    def is_done(self) -> bool:
        """Return whether every outcome has arrived, or the session was stopped."""
        return self._pipeline.shared.outlet.ended

    def progress(self) -> SessionProgress:
        """Return how far the session is, all its jobs together; asks no server."""
        counters, state = self._pipeline.shared.counters, self._pipeline.shared.state
        return SessionProgress(
            done=self._pipeline.shared.outlet.passed,
            total=self._pipeline.course.total,
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
    def session_id(self) -> str:
        """What another process attaches to: see `PredictionSession.attach`."""
        return self._pipeline.shared.options.submit.session

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

    @property
    def tracks(self) -> list[Track]:
        """The tracks of the predictions that were taken so far; all of them after the end.

        Raises
        ------
        ValueError
            If the session does not track.
        """
        if self._book is None:
            raise ValueError("this session does not track: pass tracking=True")
        return self._book.tracks(self._pipeline.course.finals if self._pipeline.shared.outlet.ended else ())

    def _repr_html_(self) -> str:
        """Return how far the session is and what it has found, for a notebook."""
        from predsession.showing import SessionState, session_html

        state = SessionState(
            f"{self._plan.description} on {show_url(self._url)}",
            self.progress(),
            ended=self._ended,
            closed=self._closed,
            is_done=self.is_done(),
            error=self._first_error,
            errors=self._errors[:],
        )
        return session_html(state, self._shown)

    def __repr__(self) -> str:
        progress = self.progress()
        done = f"{progress.done}/{'?' if progress.total is None else progress.total}"
        return f"PredictionSession({show_url(self._url)!r}, {self._plan.description}, {done} done)"
