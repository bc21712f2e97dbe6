"""The receiver's work: jobs read in the order they were sent, gaps filled, outcomes handed over in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from predsession import errors
from predsession.clock import Clock
from predsession.http.caller import Caller
from predsession.inputs.items import Item
from predsession.jobs.batch import Batch, Slot
from predsession.jobs.cleanup import Ledger
from predsession.jobs.counters import Counters
from predsession.jobs.facts import ServerFacts
from predsession.jobs.flight import Flight
from predsession.jobs.job import JobReader
from predsession.jobs.outlet import Outlet
from predsession.jobs.pace import UploadSize
from predsession.jobs.submit import Submitter
from predsession.prediction import Loader, Prediction
from predsession.wire import calls
from predsession.wire.httpreply import is_unknown_job, parse_json
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.replies import JobState, parse_item_fault
from predsession.wire.stages import Stage

MOST_TRIES = 5
"""How often one item is sent before its result counts as missing."""
KEEP_ALIVE = 20.0
"""Seconds between signs of life while a slow caller holds the pipeline back."""


@dataclass(slots=True)
class Receiver:
    """Reads jobs to their end.

    Parameters
    ----------
    caller, clock, cancel, facts, ledger, counters
        What the threads of a pipeline share.
    submitter : Submitter
        Sends again what is missing.
    flight : Flight
        Where the batches come from.
    outlet : Outlet
        Where the outcomes go.
    size : UploadSize
        Learns how fast the server is.
    idle_timeout : float
        Seconds without any change after which a job is given up.
    loader_of : callable
        Item to the loader of its picture.
    """

    caller: Caller
    clock: Clock
    cancel: threading.Event
    facts: ServerFacts
    ledger: Ledger
    counters: Counters
    submitter: Submitter
    flight: Flight
    outlet: Outlet
    size: UploadSize
    idle_timeout: float
    loader_of: Callable[[Item], Loader | None]
    finals: list[JSON] = field(default_factory=list)
    """The final results of the jobs that had one."""
    state: JobState | None = None
    """The present job, as its last answer showed it."""
    uuid: str | None = None
    """The present job, or the last one."""
    _free_since: float = 0.0

    def receive_all(self) -> None:
        """Read every upload of the flight to its end; ends the outlet."""
        self.facts.ask()
        while (batches := self.flight.get()) is not None:
            for batch in batches:
                self._settle(batch)
            self.flight.give_back(sum(len(batch.sent) for batch in batches))
            if self.cancel.is_set():
                return
        self.outlet.end()

    def _settle(self, batch: Batch) -> None:
        """Give every slot of the batch an outcome, sending again what is missing, and hand all over."""
        todo = deque([batch])
        self._hand_over(batch)
        while todo and not self.cancel.is_set():
            present = todo.popleft()
            if present.uuid is not None:
                self._read(present, batch)
            missing = present.missing()
            if missing and not self.cancel.is_set():
                self._check_tries(missing, present)
                todo.extendleft(reversed(self.submitter.submit(missing)))
            self._hand_over(batch)

    def _check_tries(self, missing: Sequence[Slot], batch: Batch) -> None:
        """Give up where sending again has not helped."""
        names = [slot.item.label for slot in missing]
        if any(slot.tries >= MOST_TRIES for slot in missing):
            raise errors.MissingResultsError(
                f"{len(names)} items have no result after {MOST_TRIES} jobs: {', '.join(names[:5])}"
                f"{', ...' if len(names) > 5 else ''}",
                uuid=batch.uuid or "",
                items=names,
            )

    def _read(self, batch: Batch, whole: Batch) -> None:
        """Read one job; what it leaves without an outcome is missing."""
        assert batch.uuid is not None
        self.uuid = batch.uuid
        began = max(batch.sent_at, self._free_since)
        reader = self._reader(batch)
        waiting = iter(batch.sent)
        groups = reader.results()
        while True:
            with self.counters.timed("seconds_wait"):
                group = next(groups, None)
            if group is None:
                break
            with self.counters.timed("seconds_parse"):
                for item in group:
                    self._settle_slot(next(waiting), item)
            self._hand_over(whole)
        self._free_since = self.clock.now()
        if not self.cancel.is_set():
            self.size.measured(len(batch.sent), self._free_since - began)
            self._end(batch, reader)

    def _reader(self, batch: Batch) -> JobReader:
        """Make a reader for a batch's job."""
        assert batch.uuid is not None
        return JobReader(
            self.caller,
            self.clock,
            self.cancel,
            info=self.facts.info(),
            uuid=batch.uuid,
            expected=len(batch.sent),
            idle_timeout=self.idle_timeout,
            watch=self._watch,
        )

    def _watch(self, state: JobState) -> None:
        """Keep what the present job's last answer showed."""
        self.state = state

    def _settle_slot(self, slot: Slot, item: JSONObject) -> None:
        """Turn a result item into the slot's outcome."""
        fault = parse_item_fault(item)
        if fault is not None:
            slot.fail(f"the server refused it: {fault.message} ({fault.type})")
            return
        try:
            slot.settle(self._predict(slot.item, item))
        except errors.ProtocolError as error:
            error.add_note(f"in the result for {slot.item.label}")
            raise

    def _predict(self, source: Item, item: JSONObject) -> Prediction:
        """Make the prediction for one item."""
        return Prediction.from_wire(
            item,
            meta=self.facts.meta(),
            index=source.index,
            name=source.name,
            path=source.path,
            url=source.url,
            loader=self.loader_of(source),
        )

    def _end(self, batch: Batch, reader: JobReader) -> None:
        """Clear the job, and raise if it did not end as it should and sending again is no answer."""
        assert batch.uuid is not None
        if reader.expired:
            self.ledger.lost(batch.uuid)
            return
        state = reader.state
        if state is not None and state.has_final:
            self._fetch_final(batch.uuid)
        self.ledger.finished(batch.uuid)
        if state is not None:
            self._check_end(batch, state)

    def _fetch_final(self, uuid: str) -> None:
        """Keep the job's final result."""
        reply = self.caller.call(calls.result(uuid))
        if not is_unknown_job(reply):
            self.finals.append(parse_json(reply))

    def _check_end(self, batch: Batch, state: JobState) -> None:
        """Raise for a failed or cancelled job; an image pushed out of a stock server's cache is missing."""
        missing = batch.missing()
        names = [slot.item.label for slot in missing]
        fault = state.exception
        if fault is not None or state.stage is Stage.ERROR:
            kind = fault.type if fault else ""
            text = fault.message if fault else ""
            if kind == "KeyError" and any(slot.upload_name in text for slot in batch.sent):
                return
            raise errors.JobFailedError(
                f"job {batch.uuid} failed on the server: {kind or 'error'}: {text or 'no message'}; "
                f"{len(missing)} of its {len(batch.sent)} images have no result",
                type=kind,
                server_message=text,
                traceback=fault.traceback if fault else "",
                uuid=batch.uuid or "",
                stage=state.stage_text,
                items=names,
            )
        if state.stage is Stage.CANCELLED and missing:
            raise errors.JobCancelledError(
                f"job {batch.uuid} was stopped by somebody else; {len(missing)} of its images have no "
                "result. Another client, or an administrator, may be clearing this server's jobs.",
                uuid=batch.uuid or "",
                stage=state.stage_text,
                items=names,
            )

    def _hand_over(self, batch: Batch) -> None:
        """Pass on the outcomes that are next in order, waiting for a slow caller."""
        while batch.handed < len(batch.slots):
            outcome = batch.slots[batch.handed].outcome
            if outcome is None or self.cancel.is_set():
                return
            while not self.outlet.put(outcome, timeout=KEEP_ALIVE):
                self._keep_alive()
            batch.handed += 1

    def _keep_alive(self) -> None:
        """Name the live jobs, so that a server with a lease does not take us for dead."""
        for uuid in self.ledger.live:
            try:
                self.caller.call(calls.progress(uuid))
            except errors.PredSessionError:
                return  # the next poll will meet the same fault, and deal with it
