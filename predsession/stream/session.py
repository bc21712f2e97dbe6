"""`StreamSession`: an endless source, batch by batch through a model, into a store.

Invariants: a source is told that a sample is done only once its result, or its dead letter, is on disk; an
object is stored once; whichever way out it is, the batch in hand is finished or comes again.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from predsession.clock import Clock, SystemClock
from predsession.errors import SessionBusyError, SessionClosedError, SourceError
from predsession.stream.attempts import Attempts
from predsession.stream.batching import Batcher, Flag, Turn
from predsession.stream.config import check_arguments, read_config
from predsession.stream.counting import Counts, StreamProgress
from predsession.stream.dataset import ResultDataset
from predsession.stream.ending import end_all, let_be
from predsession.stream.models import open_model
from predsession.stream.rounds import Rounds
from predsession.stream.samples import Batch, DeadLetter, Decode, batch_of
from predsession.stream.schema import Results
from predsession.stream.source import Source
from predsession.stream.sources import open_source
from predsession.stream.tables import open_table
from predsession.stream.writer import Writer

log = logging.getLogger("predsession.stream")
_PATIENCE = 2.0
"""Seconds for which closing waits for whoever asks the source."""


class StreamSession:
    """Runs what a source gives through a model, and stores the results.

    Parameters
    ----------
    model : str, DeployedModel, TensorSession or callable
        ``"http://host:port"`` runs images, ``"grpc://host:port/model"`` named tensors; a callable takes a
        batch, a dict with ``object_id`` and fields, and returns an array, a dict of arrays, or a list of
        `Prediction`. It is opened once.
    source : Source, iterable, str or None
        Samples: dicts with ``object_id`` and fields. A text is a folder that is watched, a video, a camera,
        or ``"kafka://host:port/topic"``. None for `process` by hand.
    store : str or PathLike
        ``results.lance`` or ``results.parquet``; what is there is added to.
    batch_size : int
        Samples in a batch.
    flush_after : float
        Seconds for which the first sample of a batch waits for others.
    skip_stored : bool
        Whether an object that is stored is not processed again.
    on_error : str
        "raise", or "skip": a sample that a model fails at, or whose row does not fit, becomes a dead letter,
        and the stream goes on. Mistakes of the model or in its settings are raised in any case.
    decode : callable or None
        From what the source has to a sample; JSON for messages by default.
    image_field : str
        Which field is the image, for models of images.
    settings : mapping or None
        Keywords for sessions of images: ``{"conf": 0.4}``.
    token : str or None
        Of the server, for a URL.
    show_progress : bool
        Whether a bar shows count, rate and how far behind the source it is.
    clock : Clock or None
        What time it is.

    Raises
    ------
    SourceError
        If something is wrong with these.
    StoreError
        If the store cannot be opened.
    PredSessionError
        If the model cannot be reached.
    """

    def __init__(
        self,
        model: object,
        source: object = None,
        store: str | os.PathLike[str] = "results.lance",
        *,
        batch_size: int = 64,
        flush_after: float = 5.0,
        skip_stored: bool = True,
        on_error: str = "raise",
        decode: Decode | None = None,
        image_field: str = "image",
        settings: Mapping[str, object] | None = None,
        token: str | None = None,
        show_progress: bool = False,
        clock: Clock | None = None,
    ) -> None:
        check_arguments(batch_size, flush_after, on_error)
        self._clock = clock or SystemClock()
        # May be taken again by the thread that has it: a signal handler may break in wherever it likes.
        self._lock = threading.RLock()
        self._asking = Turn()
        self._stopped = Flag()
        self._dataset: ResultDataset | None = None
        self._closed = False
        self._writer = writer = Writer(store, by_id=skip_stored)
        self._source: Source | None = None
        self._runner = open_model(model, image_field=image_field, settings=settings or {}, token=token)
        attempts = Attempts(self._runner, skip=on_error == "skip", settled=lambda: writer.schema)
        self._rounds = Rounds(attempts, writer, self._runner, by_id=skip_stored)
        try:
            self._source = None if source is None else open_source(source, decode=decode, ahead=batch_size)
        except BaseException:
            self._runner.close()
            raise
        self._batcher: Batcher | None = None
        if self._source is not None:
            self._batcher = Batcher(
                self._source, batch_size, flush_after, clock=self._clock, stopped=self._stopped
            )
        # A session that is forgotten, or open when the interpreter ends, leaves no thread and no connection.
        self._forgotten = weakref.finalize(self, let_be, self._source, self._runner)
        self._counts = Counts(StreamProgress() if show_progress else None, self._clock)
        self._working: int | None = None
        self._processed: list[str] = []

    @classmethod
    def from_config(cls, path: str | os.PathLike[str], **keywords: object) -> Self:
        """Read a session from a TOML file: docs/stream.md has every key.

        Parameters
        ----------
        path : str or PathLike
            The file.
        **keywords : object
            Take the place of what is in it.

        Returns
        -------
        StreamSession
            As if it had been made by hand.

        Raises
        ------
        SourceError
            If the file cannot be read, or a key or a value means nothing; names the file.
        """
        make: Callable[..., Self] = cls
        given = {**read_config(Path(path)), **keywords}
        try:
            return make(**given)
        except SourceError as error:
            raise SourceError(f"{path}: {error}") from None

    # -- driving it ------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[tuple[Batch, Results]]:
        """Take batches, process them, and yield both; what is stored already is passed over.

        Returns
        -------
        iterator of tuple of Batch and (ndarray, dict or list of Prediction)
            What was stored.
        """
        return self._results(self.source)

    def _results(self, batches: Iterator[Batch]) -> Iterator[tuple[Batch, Results]]:
        """Yield batches with what came of them."""
        for batch in batches:
            try:
                done = self._process(batch)
            except SessionClosedError:
                if self._closed:  # by another thread: the batch comes again in the next run
                    return
                raise
            if done is not None:
                yield done

    @property
    def source(self) -> Iterator[Batch]:
        """The source's batches, one by one, for `process` by hand.

        Raises
        ------
        SourceError
            If the session has no source.
        SessionClosedError
            If it was closed.
        """
        return self._batches(self._need_source())

    def _need_source(self) -> Batcher:
        """Return what makes batches, or say what is missing."""
        self._check_open()
        if self._batcher is None:
            raise SourceError("this session has no source: pass source=, or hand batches to process()")
        return self._batcher

    def _batches(self, batcher: Batcher) -> Iterator[Batch]:
        """Yield batches until the end."""
        while not self._closed and not self._stopped.is_set():
            letters: list[DeadLetter] = []
            with self._asking:
                try:
                    samples = batcher.next(letters.append)
                finally:
                    self._bury(letters)
            if samples is None:
                return
            if samples:
                yield Batch.of(samples)

    def peek(self, timeout: float = 120.0) -> Mapping[str, object] | None:
        """Look at the first sample; it is not lost.

        Parameters
        ----------
        timeout : float
            Seconds to wait for it.

        Returns
        -------
        mapping or None
            Its fields; None if none came.

        Raises
        ------
        SourceError
            If the session has no source.
        """
        batcher = self._need_source()
        with self._asking:
            first = batcher.peek(timeout)
        return None if first is None else first.fields

    def process(self, batch: Mapping[str, object]) -> Results:
        """Run a batch through the model, and store the results.

        Parameters
        ----------
        batch : mapping
            ``object_id``, a list of str, and a list or an array for each field.

        Returns
        -------
        ndarray, dict of ndarray, or list of Prediction
            A row for each object that was processed, which `processed_ids` lists: what is stored already, and
            what became a dead letter, is not among them. Where nothing is left, no row of the store's kind.

        Raises
        ------
        SessionClosedError
            If the session was closed.
        SessionBusyError
            If another thread is in here.
        SourceError
            If it is no batch.
        StoreError
            If the results do not fit the store; nothing was written.
        """
        done = self._process(batch_of(batch))
        schema = self._writer.schema
        return done[1] if done is not None else [] if schema is None else schema.empty()

    @property
    def processed_ids(self) -> list[str]:
        """The object ids of the last batch's results, a row each."""
        return list(self._processed)

    def _process(self, batch: Batch) -> tuple[Batch, Results] | None:
        """Run a batch, store what came of it, tell the source."""
        if not self._lock.acquire(blocking=False):
            raise SessionBusyError("another thread is in process(): one at a time, or a session for each")
        if self._working is not None:
            self._lock.release()
            raise SessionBusyError("process() comes after the batch in hand, not within it")
        self._working = threading.get_ident()
        try:
            self._check_open()
            self._processed = []
            before = self._counts.dead
            stored, done = self._rounds.run(batch, self._bury)
            self._tell(batch.positions)
            self._processed = [] if done is None else done[0].ids
            dead = self._counts.dead - before
            self._counts.add(stored, batch.count - stored - dead, self._behind())
            return done
        finally:
            self._working = None
            self._lock.release()

    def _bury(self, letters: Sequence[DeadLetter]) -> None:
        """Put letters away, and tell the source."""
        if letters:
            for each in letters:
                log.warning("%s cannot be processed: %s", each.position, each.reason)
            self._writer.bury(letters)
            self._counts.dead += len(letters)
            if self._source is not None:
                self._source.dead(letters)
            self._tell([each.position for each in letters])

    def _tell(self, positions: Sequence[str]) -> None:
        """Tell the source what is done."""
        placed = [each for each in positions if each]
        if self._source is not None and placed:
            self._source.done(placed)

    def _behind(self) -> int | None:
        """Return how far behind the source we are."""
        return None if self._source is None else self._source.behind()

    def _check_open(self) -> None:
        """Refuse what comes after the end."""
        if self._closed:
            raise SessionClosedError("this session was closed: open another")

    # -- the end ---------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Have the stream end after the batch in hand; from any thread, and from a signal handler."""
        self._stopped.set()
        stop = getattr(self._source, "stop", None)  # a source may have it, and need not
        if callable(stop):
            stop()

    def close(self) -> ResultDataset:
        """End the stream, and return what is stored; it may be done twice.

        Returns
        -------
        ResultDataset
            Of everything in the store; empty if nothing was ever stored.

        Raises
        ------
        SessionBusyError
            If it is called from within the batch in hand, or from within itself, in a signal handler.
        """
        if threading.get_ident() in {self._working, self._asking.owner}:
            raise SessionBusyError("close() comes after the batch in hand, not within it: stop() is for that")
        self._stopped.set()
        with self._lock:  # the batch in hand is finished
            self._working = threading.get_ident()
            try:
                if not self._closed:
                    self._closed = True
                    self._forgotten.detach()
                    self._let_go()
            finally:
                self._working = None
        if self._dataset is None:
            self._dataset = ResultDataset(open_table(self._writer.table.path))
        return self._dataset

    def _let_go(self) -> None:
        """Let go of source, model and store, whatever happens to one of them; raise what came first."""
        # Whoever asks the source sees that it is over. One that never answers is closed all the same.
        asked = self._asking.lock.acquire(timeout=_PATIENCE)
        try:
            store = partial(self._writer.close, compact=True)
            source = [] if self._source is None else [self._source.close]
            end_all([*source, self._runner.close, store, self._counts.close])
        finally:
            if asked:
                self._asking.lock.release()

    @property
    def dataset(self) -> ResultDataset:
        """What is stored: at the end all of it, before that what there is at the moment."""
        return ResultDataset(open_table(self._writer.table.path)) if self._dataset is None else self._dataset

    @property
    def counts(self) -> Counts:
        """How many were seen, stored, skipped, found dead."""
        return self._counts

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; an error of the body stays the one that is seen."""
        try:
            self.close()
        except Exception as failed:
            if error is None:
                raise
            log.warning("closing after %r failed, too: %r", error, failed)
