"""Taking predictions from a session, one by one, and ending it: what happens on the caller's own thread.

Invariants: any error closes the session, and is the one that is raised; what goes wrong while cleaning up is
a note on it. All that shows progress happens here.
"""

from __future__ import annotations

import os
import queue
import warnings
import weakref
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from predsession.cells import iterating
from predsession.checks import check_seconds
from predsession.errors import ItemError, JobTimeoutError, SessionClosedError, SourceError
from predsession.jobs.batch import Outcome
from predsession.jobs.pipeline import note_failures
from predsession.progress import Progress
from predsession.views import SessionViews

if TYPE_CHECKING:
    from predsession.export.saving import Saved
    from predsession.export.target import Images
    from predsession.launch import EmbeddedServer
    from predsession.steps import AsyncSteps


class SessionTaking(SessionViews):
    """The part of a session that hands out and ends; `PredictionSession` sets its attributes."""

    _steps: AsyncSteps | None = None
    _progress: Progress
    _server: EmbeddedServer | None
    _finalizer: weakref.finalize[..., SessionTaking]

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
            outcome = self._take_next(timeout)
            if not isinstance(outcome, ItemError) or self._on_error == "yield":
                return outcome

    def _take_next(self, timeout: float | None) -> Outcome | None:
        """Return the next outcome, None at the end; an item error is noted, and may be raised."""
        outcome = self._take_any(timeout)
        if isinstance(outcome, ItemError):
            self._errors.append(outcome)
            if self._on_error == "raise":
                self._fail(outcome)
                raise outcome
        return outcome

    def _take_any(self, timeout: float | None) -> Outcome | None:
        """Return the next outcome, None at the end; any error closes the session."""
        if self._ended:
            return None
        if self._closed:
            raise self._closed_error()
        try:
            iterating(self._close_because, self._progress)
            outcome = self._pipeline.shared.outlet.get(timeout, self._while_waiting)
        except queue.Empty:
            raise
        except BaseException as error:
            self._fail(error)
            raise
        if outcome is None and self._is_over():
            return None  # another thread has taken the end
        if outcome is None and self._closed:
            raise self._closed_error()  # closed from another thread, while this one was waiting
        if outcome is None:
            self._ended = True
            self.close()
        else:
            self._note(outcome)
        try:
            self._show()
        except BaseException as error:  # the caller's own bar, or a warning that is an error
            self._fail(error)
            raise
        return outcome

    def _note(self, outcome: Outcome) -> None:
        """Count what is handed to the caller, and remember what the displays need of it."""
        self._taken += 1
        if isinstance(outcome, ItemError):
            self._pipeline.shared.counters.add("item_errors")
            return
        self._pipeline.shared.counters.add("predictions")
        self._shown.add(outcome)
        if self._book is not None:
            self._book.add(outcome)

    def _is_over(self) -> bool:
        """Whether the end was taken, by whichever thread."""
        return self._ended

    def _fail(self, error: BaseException) -> None:
        """Close because of an error, which later calls will name as their cause."""
        self._first_error = error
        self._close_after(error)

    def _close_because(self, error: BaseException) -> None:
        """Close because of an error that came from outside, unless the end is there already."""
        if not self._ended and not self._closed:
            self._fail(error)

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
        from predsession.steps import AsyncSteps

        if self._steps is None:
            self._steps = AsyncSteps()
        iterating(self._close_because, self._progress)
        return await self._steps.next(self._take)

    # Into files.

    def save(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,  # noqa: A002 - the user's word
        *,
        overwrite: bool = False,
        append: bool = False,
        images: Images | None = None,
        scores: bool = False,
    ) -> Saved:
        """Take all predictions that are left, and write them into a file or a folder as they come.

        Memory stays flat. A run that is killed leaves what it had in the file itself or, for documents that
        can only be written whole, in ``<file>.partial.jsonl`` beside it; a session with ``resume=`` goes on
        with it.

        Parameters
        ----------
        path : str or PathLike
            The file, or the folder for formats of many files.
        format : str or None
            ``"jsonl"``, ``"csv"``, ``"coco"``, ...: docs/exports.md has all. Without it, what the suffix
            says.
        overwrite : bool
            Whether a file that is there is replaced. In a folder, what has the same name is, and nothing
            else.
        append : bool
            Whether it is added to: JSON lines and CSV only.
        images : {"copy", "link"} or None
            Whether folders get the pictures as well.
        scores : bool
            Whether YOLO's lines end with a score, which not every reader of them takes.

        Returns
        -------
        Saved
            Where, how many, and what the format could not carry. The errors of items are among what is
            written, with ``on_error="skip"``, too.

        Raises
        ------
        SourceError
            If there is no such format, or the place cannot be used.
        MissingExtraError
            If the format needs an extra.
        DiskError
            If the disk is full.
        SessionClosedError
            If nothing is left: all predictions were taken, or the session was closed.
        ItemError, JobFailedError, MissingResultsError, TransportError, ResponseError
            As for `next`.
        """
        from predsession.export.saving import Saving, pour
        from predsession.export.target import Target, existing_of, refuse_input

        if self._ended:
            raise SessionClosedError(
                "all predictions of the session were taken, so there is nothing left to be written: open a "
                "new one, or write what you have kept with save_predictions"
            )
        if self._closed:
            raise self._closed_error()
        journal = self._pipeline.shared.journal
        comes_again = journal is not None and journal.replay
        if append and comes_again:
            raise SourceError(
                "append= is not for a session with resume=: what it has kept comes again, and would be there "
                "twice; pass replay=False, or another path"
            )
        refuse_input(path, self._given())
        target = Target(
            path=Path(path),
            existing=existing_of(overwrite=overwrite, append=append, resume=comes_again and self._owns(path)),
            root=self._root(),
            images=images,
            scores=scores,
        )
        saving = Saving(target, format)  # what is wrong with the place leaves the session as it is
        try:
            with closing(saving):
                self._own(path)
                return pour(iter(self._take_rest, None), saving)
        except BaseException as error:
            self._fail(error)
            raise

    def _own(self, path: str | os.PathLike[str]) -> None:
        """Note that a file is this run's: one that comes again with the same journal may go on with it."""
        if self._pipeline.shared.journal is not None:
            self._pipeline.shared.journal.note_file(path)

    def _owns(self, path: str | os.PathLike[str]) -> bool:
        """Whether a file was written by this run, before it was broken off."""
        journal = self._pipeline.shared.journal
        return journal is not None and journal.knows_file(path)

    def to_html(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Saved:
        """Take all predictions that are left, and write them as one page to look at.

        Parameters
        ----------
        path : str or PathLike
            The page, ``report.html``: it needs no other file, and no network. A name that does not end in
            ``.html`` is a folder's, and the page in it is ``index.html``.
        overwrite : bool
            Whether a file that is there is replaced.

        Returns
        -------
        Saved
            Where, and how many.

        Raises
        ------
        SourceError
            If the place cannot be used.
        DiskError
            If the disk is full.
        ItemError, JobFailedError, MissingResultsError, TransportError, ResponseError
            As for `next`.
        """
        return self.save(path, "html", overwrite=overwrite)

    def _take_rest(self) -> Outcome | None:
        """Return the next outcome for a file, which wants item errors as well; None at the end."""
        return self._take_next(None)

    # Ending.

    def stop(self) -> None:
        """End the work, on the server too. What has arrived can still be iterated. Idempotent."""
        self._pipeline.stop()

    def detach(self) -> str:
        """Let go of everything here, and leave the jobs running on the server.

        Returns
        -------
        str
            `session_id`, for `PredictionSession.attach`. What has arrived and was not taken is still on a
            server with ``ack``; a stock one knows the jobs only by their uuids (see `status`), and has no
            results that have arrived here. A server with a ``lease`` ends what nobody attaches to in time.

        Raises
        ------
        SourceError
            If the session has a server of its own.
        """
        if self._server is not None:
            raise SourceError(
                "this session has a server of its own, which ends with it: pass url= to one that goes on"
            )
        self._closed = True
        if self._finalizer.detach() is not None:
            self._pipeline.detach()
        self._progress.close()
        return self.session_id

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
        import asyncio

        await asyncio.to_thread(self._close_after, error)

    def _while_waiting(self) -> None:
        """Do what is to be done while nothing comes."""
        self._pipeline.shared.check_time()
        self._show()

    def _show(self) -> None:
        """Bring the bar up to date, and warn of what there is to be warned of."""
        self._progress.update(self.progress())
        while self._pipeline.shared.warnings:
            warnings.warn(self._pipeline.shared.warnings.popleft(), stacklevel=4)
