"""The course of ids: one job on what the server knows, its results handed over as they come.

Rule: what comes is known only to the server, so it is counted against the server's own total. Images by id
tell which they are, so that missing ones can be run again, unless the job writes its results back: running
that again would write twice, and the error names what is missing instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from predsession import errors
from predsession.jobs.batch import Outcome
from predsession.jobs.ending import check_failed, finish, missing_results
from predsession.jobs.flight import Flight
from predsession.jobs.job import JobReader
from predsession.jobs.predicting import Library
from predsession.jobs.receiver import MOST_TRIES
from predsession.jobs.shared import Shared
from predsession.jobs.start import Starter
from predsession.jobs.trackers import choose_tracking
from predsession.prediction import Prediction
from predsession.wire.calls import Call
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.replies import parse_item_fault
from predsession.wire.submits import IdTarget, Tracking, images_by_id, submit_ids

MOST_NAMED = 1_000_000
"""Results that are missing and each named in the error; who speaks of more does not mean it."""

if TYPE_CHECKING:
    from predsession.jobs.journal import Journal


class IdCourse:
    """Runs a job on what the server knows.

    Parameters
    ----------
    shared : Shared
        The pipeline's.
    target : IdTarget
        What is run.
    tracking : mapping or None
        The caller's tracking configuration; None not to track.
    endpoint : str
        The server's URL: pictures are fetched from there by id.
    token : str or None
        For the server.
    """

    def __init__(
        self,
        shared: Shared,
        target: IdTarget,
        *,
        tracking: JSONObject | None,
        endpoint: str,
        token: str | None = None,
    ) -> None:
        self._shared = shared
        self._target = target
        self._config = tracking
        self._tracking: Tracking | None = None
        self._library = Library(shared, endpoint, token)
        self._starter = Starter(shared)
        self._flight: Flight[str | None] = Flight()
        self._handed = 0
        self._seen: Counter[int] = Counter()
        self._asked = Counter(target.images or ())
        self._total = None if target.images is None else len(target.images)
        self._finals: list[JSON] = []
        self._kept: list[JSONObject] = []

    def send_all(self) -> None:
        """Start the job."""
        if self._config is not None:
            self._tracking = choose_tracking(self._shared.facts.info().raw, self._config)
        if self._shared.journal is not None:
            self._recall(self._shared.journal)
        left = (self._asked - self._seen).elements()
        target = images_by_id(list(left), self._target.extra) if self._kept else self._target
        if self._flight.take_room(1):
            self._flight.put(None if target.images == () else self._start(target))

    def end_sending(self, error: BaseException | None) -> None:
        """End the flight."""
        self._flight.end(error)

    def _recall(self, journal: Journal) -> None:
        """Find out which of the images asked for are kept."""
        for image in self._target.images or ():
            found = journal.find(f"image {image}")
            if found is not None:
                self._seen[image] += 1
                self._kept.append(found)
        self._shared.counters.add("kept", len(self._kept))
        if self._total is not None and not self._is_replayed():
            self._total -= len(self._kept)

    def _is_replayed(self) -> bool:
        """Whether the caller sees what is kept."""
        return self._shared.journal is None or self._shared.journal.replay

    def _key(self, outcome: Outcome) -> str | None:
        """Return what an outcome is to be kept under: only images that were asked for by id are."""
        if self._target.images is None or not isinstance(outcome, Prediction) or outcome.image_id is None:
            return None
        return f"image {outcome.image_id}"

    def _start(self, target: IdTarget) -> str:
        """Start a job."""
        options, tracking = self._shared.options.submit, self._tracking

        def call(key: str, idempotent: bool) -> Call:
            return submit_ids(options, target, tracking=tracking, key=key, idempotent=idempotent)

        return self._starter.start(call)

    def receive_all(self) -> None:
        """Read the job, and run again what is missing, where that can be."""
        uuid = self._flight.get()
        for item in self._kept if self._is_replayed() else ():
            self._shared.hand_over(self._library.predicted(item, index=self._handed))
            self._handed += 1
        for tries in range(1, MOST_TRIES + 1):
            if uuid is None or self._shared.cancel.is_set():
                return
            reader = self._read(uuid)
            if self._shared.cancel.is_set():
                return
            finish(self._shared, reader, self._finals)
            missing = self._missing(reader)
            check_failed(reader, missing, sent=self._total or self._handed, unit="items")
            if not missing:
                return
            if self._target.images is None or tries == MOST_TRIES:
                raise missing_results(missing, tries, reader)
            self._shared.counters.add("resent_items", len(missing))
            left = list((self._asked - self._seen).elements())
            uuid = self._start(images_by_id(left, self._target.extra))

    def _read(self, uuid: str) -> JobReader:
        """Read one job."""
        most = None if self._target.images is None else self._asked.total()
        reader = JobReader(self._shared, uuid, expected=None, identified=True, most=most)
        number = 0
        for group in reader.results():
            if self._target.images is None and reader.state is not None:
                self._total = reader.state.total
            for item in group:
                number += 1
                outcome = self._outcome(item)
                if outcome is None:
                    reader.handle(number)
                    continue
                key = self._key(outcome)
                self._shared.hand_over(outcome, key=key, handled=reader.handled_by_caller(number))
                self._handed += 1
        if self._target.images is None and reader.state is not None:
            self._total = reader.state.total
        return reader

    def _missing(self, reader: JobReader) -> list[str]:
        """Name what has no result."""
        if self._target.images is not None:
            return [f"image {one}" for one in (self._asked - self._seen).elements()]
        if reader.expired or (self._total is not None and self._handed < self._total):
            least = max(1, (self._total or 0) - self._handed)
            if least > MOST_NAMED:
                raise errors.ProtocolError(
                    f"the server speaks of {self._total} results for {self._target.description}, and sent "
                    f"{self._handed}"
                )
            return [f"one of {self._target.description}"] * least
        return []

    def _outcome(self, item: JSONObject) -> Outcome | None:
        """Turn a result into an outcome; None for an image that came before."""
        image = item.get("image_id")
        if self._target.images is not None and isinstance(image, int):
            if self._seen[image] >= self._asked[image]:
                return None
            self._seen[image] += 1
        fault = parse_item_fault(item)
        if fault is None:
            return self._library.predicted(item, index=self._handed)
        name = str(item.get("name") or image or f"item {self._handed}")
        reason = f"{fault.message} ({fault.type})"
        return errors.ItemError(f"{name}: {reason}", index=self._handed, name=name, reason=reason)

    @property
    def total(self) -> int | None:
        """How many results come: the number of ids, else what the server says."""
        return self._total

    @property
    def counted(self) -> bool:
        """The server tells, where it is not known here."""
        return True

    @property
    def finals(self) -> Sequence[JSON]:
        """The final results of the jobs that had one."""
        return self._finals
